//! `/livez`: the process serves. `/readyz`: it can do its work, shown by a real script and not by a ping.

use crate::classes::App;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use paceline_store::Store;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// A script that takes longer is as good as none.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(1);

/// Well.
#[derive(Debug, Serialize)]
pub(crate) struct Well {
    status: &'static str,
}

/// `GET /livez`
pub(crate) async fn livez() -> Json<Well> {
    Json(Well { status: "alive" })
}

/// `GET /readyz`: 200, or 503 with the reason.
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Result<Json<Well>, Problem> {
    if let Some(known) = app.known().next() {
        match tokio::time::timeout(SCRIPT_TIMEOUT, app.store.depths(&known.at)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                return Err(not_ready("Redis does not run our scripts").cause(error.to_string()));
            }
            Err(_) => return Err(not_ready("Redis does not answer within 1 s")),
        }
    }
    match (app.readiness)() {
        None => Ok(Json(Well { status: "ready" })),
        Some(reason) => Err(not_ready(&reason)),
    }
}

fn not_ready(reason: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason).kind("not_ready")
}
