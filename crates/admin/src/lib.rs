//! The API for producers and operators, and the pages: jobs in, the truth out.
//!
//! Every refusal is an RFC 9457 problem that names its field; a 2xx is given only after Redis has the job.
//! [`app`] is the whole API as a router, to be tried with `oneshot`; [`serve`] puts it on a listener.
//!
//! | route | role | what |
//! |---|---|---|
//! | `POST /v1/jobs` | producer | one job, an array, or NDJSON (`push`) |
//! | `GET`, `DELETE /v1/jobs/{class}/{key}` · `POST /v1/cancel` | viewer, producer | look, cancel (`jobs`) |
//! | `POST /v1/erase` | operator | content removed, receipt kept (`jobs`) |
//! | `POST /v1/confirmations` | operator | a person says what became of a job (`confirmations`) |
//! | `GET /v1/queues[/{class}]` · `POST …/pause`, `…/resume` | viewer, operator | depths, holds (`queues`) |
//! | `GET /v1/queues/{class}/explain` | viewer | why not now, when at the earliest (`explain`) |
//! | `GET /v1/budgets[/{name}[/decisions]]` | viewer | pace against ceiling, what binds, why it changed (`budgets`) |
//! | `PUT`, `DELETE /v1/budgets/{name}` · `POST …/pause`, `…/resume` | operator | limits by hand, holds (`budgets`) |
//! | `GET /v1/alerts` | viewer | what a person should look at (`alerts`) |
//! | `GET /v1/dead-letters` · `POST /v1/replays` | viewer, operator | who waits for a person (`dead_letters`, `replays`) |
//! | `GET /v1/codes` | viewer | provider code × outcome × state (`codes`) |
//! | `GET /metrics` · `/livez`, `/readyz` | viewer, open | for machines (`metrics`, `health`) |
//! | `/`, `/classes/{class}`, … | viewer, operator | for people (`pages`) |

mod access;
mod alerts;
mod budgets;
mod classes;
mod codes;
mod confirmations;
mod cursor;
mod dead_letters;
mod door;
mod edge;
mod explain;
mod fields;
mod health;
mod incoming;
mod jobs;
mod metrics;
mod pages;
mod probes;
mod problem;
mod push;
mod queues;
mod replays;
mod time;

pub use alerts::{Alert, Notice, watch as watch_alerts};
use axum::Router;
use axum::routing::{get, post};
use classes::App;
pub use door::{Api, serve};
use metrics_exporter_prometheus::PrometheusHandle;
use paceline_core::Name;
use paceline_core::config::{Config, Role};
use paceline_store::RedisStore;
pub use probes::serve_probes;
use secrecy::SecretString;
use std::sync::Arc;
use uuid::Uuid;

/// Says why this process is not ready; `None`: it is.
pub type Readiness = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// What the API needs, put together by whoever starts it.
#[derive(Clone)]
pub struct AppState {
    /// Where the jobs are.
    pub store: RedisStore,
    /// The configuration.
    pub config: Arc<Config>,
    /// Who may do what. Empty: everything is allowed to everyone who reaches the listener, as operator
    /// `loopback`; the caller guarantees that it listens on loopback only.
    pub tokens: Vec<(Role, Name, SecretString)>,
    /// What else must be well for `/readyz`.
    pub readiness: Readiness,
    /// Metrics of this process; `/metrics` adds the gauges it reads at scrape.
    pub metrics: Option<PrometheusHandle>,
    /// Part of every send id.
    pub deployment_id: Uuid,
}

/// The whole API.
pub fn app(state: AppState) -> Router {
    let app = Arc::new(App::new(state));
    let routes = Router::new()
        .route("/v1/jobs", post(push::push))
        .route("/v1/jobs/{class}/{*key}", get(jobs::show).delete(jobs::cancel_one))
        .route("/v1/cancel", post(jobs::cancel))
        .route("/v1/erase", post(jobs::erase))
        .route("/v1/confirmations", post(confirmations::confirm))
        .route("/v1/queues", get(queues::list))
        .route("/v1/queues/{class}", get(queues::show))
        .route("/v1/queues/{class}/pause", post(queues::pause))
        .route("/v1/queues/{class}/resume", post(queues::resume))
        .route("/v1/queues/{class}/explain", get(explain::explain))
        .route("/v1/budgets", get(budgets::list))
        .route("/v1/budgets/{name}", get(budgets::show).put(budgets::set).delete(budgets::unset))
        .route("/v1/budgets/{name}/decisions", get(budgets::decisions))
        .route("/v1/budgets/{name}/pause", post(budgets::pause))
        .route("/v1/budgets/{name}/resume", post(budgets::resume))
        .route("/v1/alerts", get(alerts::list))
        .route("/v1/dead-letters", get(dead_letters::list))
        .route("/v1/replays", post(replays::replay))
        .route("/v1/codes", get(codes::list))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::scrape))
        .fallback(edge::no_such_route);
    edge::wrap(routes, &app).merge(pages::router(&app)).with_state(app)
}
