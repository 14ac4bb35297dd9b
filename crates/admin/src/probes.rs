//! What a worker without the API answers: is it alive, is it ready, its metrics. No jobs, no payloads, nothing to change.

use crate::{Readiness, metrics};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use std::future::Future;
use tokio::net::TcpListener;

/// Serves `/livez`, `/readyz` and `/metrics` of this process until `shutdown` completes.
pub async fn serve_probes(
    listener: TcpListener,
    readiness: Readiness,
    handle: Option<PrometheusHandle>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let readyz = move || async move {
        match readiness() {
            None => (StatusCode::OK, Json(json!({ "status": "ready" }))),
            Some(reason) => {
                (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": "not_ready", "reason": reason })))
            }
        }
    };
    let scrape = move || async move { metrics::of_process(handle.as_ref()) };
    let routes = Router::new()
        .route("/livez", get(|| async { Json(json!({ "status": "alive" })) }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape));
    axum::serve(listener, routes).with_graceful_shutdown(shutdown).await
}
