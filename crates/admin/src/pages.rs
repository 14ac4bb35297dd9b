//! The pages for operators: what the API answers, as HTML, from the same functions and never from a second truth.
//!
//! | page | what |
//! |---|---|
//! | `/` | every class, pace against ceiling, holds, throttles, alerts (`overview`) |
//! | `/classes/{class}` | why not now, pace over time, quotas, codes; pause and resume (`class`) |
//! | `/dead-letters`, `/dead-letters/replay` | who waits for a person; preview and replay (`dead_letters`, `replay`) |
//! | `/job?class=&key=` | one job with its attempts (`job`) |
//! | `/budgets`, `/budgets/{name}` | limits by form, decisions in words (`budgets`, `budget`) |
//! | `/alerts` | what a person should look at (`alerts`) |
//! | `/sign-in`, `/sign-out`, `/assets/{file}` | the door (`door`, `session`), script and style (`assets`) |
//!
//! Everything works without the script; with it a page asks for itself every two seconds and takes over what changed.

mod alerts;
mod assets;
mod budget;
mod budgets;
mod chart;
mod class;
mod dead_letters;
mod door;
mod fault;
mod form;
mod job;
mod layout;
mod overview;
mod parts;
mod replay;
mod session;
mod traffic;
mod words;

use crate::classes::App;
use axum::Router;
use axum::routing::{get, post};
use std::sync::Arc;

/// The pages behind everything they share. They have no fallback: what is no page may be a route of the API.
pub(crate) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let pages = Router::new()
        .route("/", get(overview::show))
        .route("/classes/{class}", get(class::show))
        .route("/classes/{class}/pause", post(class::pause))
        .route("/classes/{class}/resume", post(class::resume))
        .route("/dead-letters", get(dead_letters::show))
        .route("/dead-letters/replay", get(replay::preview).post(replay::run))
        .route("/job", get(job::show))
        .route("/budgets", get(budgets::show))
        .route("/budgets/{name}", get(budget::show))
        .route("/budgets/{name}/limits", post(budget::set))
        .route("/budgets/{name}/limits/drop", post(budget::drop))
        .route("/budgets/{name}/pause", post(budget::pause))
        .route("/budgets/{name}/resume", post(budget::resume))
        .route("/alerts", get(alerts::show))
        .route("/sign-in", get(session::show).post(session::sign_in))
        .route("/sign-out", post(session::sign_out))
        .route("/assets/{file}", get(assets::serve));
    door::wrap(pages, app)
}
