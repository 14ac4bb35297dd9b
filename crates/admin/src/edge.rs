//! What every request meets, whatever its route: limits, access, and answers that are always well formed.

use crate::access;
use crate::classes::App;
use crate::problem::{Cause, MEDIA_TYPE, Problem};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::TimeoutLayer;

/// No request takes longer, its body included.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The routes behind everything they share, outermost first.
pub(crate) fn wrap(routes: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
    routes.layer(
        ServiceBuilder::new()
            .layer(from_fn_with_state(app.clone(), answer))
            .layer(CatchPanicLayer::custom(panicked))
            .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, REQUEST_TIMEOUT))
            .layer(from_fn_with_state(app.clone(), access::guard))
            .layer(RequestBodyLimitLayer::new(app.config.admin.max_body_bytes)),
    )
}

/// 404 for what is no route at all.
pub(crate) async fn no_such_route() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such route")
}

/// Sees every answer last: every error is a problem, every 5xx is logged, nothing is cached or guessed at.
async fn answer(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    // The route, not the path: a path holds keys, and a key may be somebody's address.
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let mut response = as_problem(next.run(request).await, app.config.admin.max_body_bytes);
    log_failure(&method, &route, &response);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Every 5xx leaves its cause in the log.
pub(crate) fn log_failure(method: &Method, route: &str, response: &Response) {
    if !response.status().is_server_error() {
        return;
    }
    let cause = response.extensions().get::<Cause>().map_or("", |cause| &*cause.0);
    let status = response.status().as_u16();
    if status == 500 {
        tracing::error!(%method, route, cause, "a request failed: a bug, or a wrong setting");
    } else {
        tracing::warn!(status, %method, route, cause, "a request failed");
    }
}

/// An error that a layer or the router answered in its own words, as a problem.
pub(crate) fn as_problem(response: Response, max_body_bytes: usize) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let content_type = response.headers().get(header::CONTENT_TYPE);
    if !is_error || content_type.is_some_and(|value| value == MEDIA_TYPE) {
        return response;
    }
    let problem = match status {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::body_too_large(max_body_bytes),
        StatusCode::METHOD_NOT_ALLOWED => Problem::new(status, "the route does not take this method"),
        StatusCode::SERVICE_UNAVAILABLE => {
            let seconds = REQUEST_TIMEOUT.as_secs();
            Problem::new(status, format!("not done within {seconds} s; repeat the same request later"))
                .kind("timeout")
                .retry_after_s(1)
        }
        _ => Problem::new(status, status.canonical_reason().unwrap_or("the request was refused")),
    };
    let allow = response.headers().get(header::ALLOW).cloned();
    let mut answer = problem.into_response();
    if let Some(allow) = allow {
        answer.headers_mut().insert(header::ALLOW, allow);
    }
    answer
}

/// A panic is a bug of ours: the client learns that much, the log the rest.
pub(crate) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let cause = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "a bug in the server; its log says where")
        .cause(format!("panic: {cause}"))
        .into_response()
}
