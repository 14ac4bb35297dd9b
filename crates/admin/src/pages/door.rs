//! Who may see a page and who may change something; what every answer carries.

use super::fault::Fault;
use super::form::link;
use super::session;
use crate::access::{self, Caller};
use crate::classes::App;
use crate::edge;
use crate::problem::Problem;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use paceline_core::config::Role;
use std::sync::Arc;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::TimeoutLayer;

/// No form is larger: 200 of the longest keys, encoded.
const MAX_FORM_BYTES: usize = 256 * 1_024;
/// The script asks with this header for the changing part of a page only.
pub(super) const FRAGMENT: HeaderName = HeaderName::from_static("x-paceline-fragment");

/// Everything comes from here, and nothing runs that is not in our own files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// `same-origin` and not `no-referrer`: with that, a browser hides the Origin of our own forms from us.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The pages behind everything they share, outermost first.
pub(super) fn wrap(pages: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
    pages.layer(
        ServiceBuilder::new()
            .layer(from_fn(finish))
            .layer(CatchPanicLayer::custom(edge::panicked))
            .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, edge::REQUEST_TIMEOUT))
            .layer(from_fn_with_state(app.clone(), guard))
            .layer(RequestBodyLimitLayer::new(MAX_FORM_BYTES)),
    )
}

/// Sees every answer last: an error is a page, a 5xx is in the log, nothing of a job is kept in a cache.
async fn finish(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let mut response = as_page(next.run(request).await);
    edge::log_failure(&method, &route, &response);
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// An error that a layer answered in its own words, as a page.
fn as_page(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let content_type = response.headers().get(header::CONTENT_TYPE);
    if !is_error || content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/html")) {
        return response;
    }
    let detail = match status {
        StatusCode::METHOD_NOT_ALLOWED => "this address does not take that method",
        StatusCode::PAYLOAD_TOO_LARGE => "the form is larger than 256 KiB; choose fewer jobs at once",
        StatusCode::SERVICE_UNAVAILABLE => "the page was not ready within 30 s",
        StatusCode::INTERNAL_SERVER_ERROR => "a bug in the server; its log says where",
        _ => "the request was refused",
    };
    let (mut old, _) = response.into_parts();
    let mut page = Fault(Problem::new(status, detail)).into_response();
    page.extensions_mut().extend(std::mem::take(&mut old.extensions));
    page.headers_mut().extend(old.headers.remove(header::ALLOW).map(|allow| (header::ALLOW, allow)));
    page
}

/// Lets a request through with its [`Caller`], or refuses it.
async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && !is_our_own(&request) {
        let words = "this was sent by a page of another site, or by no browser at all (scripts use /v1)";
        return Fault(access::forbidden(words)).into_response();
    }
    let path = request.uri().path();
    if path == "/sign-in" || path == "/sign-out" || path.starts_with("/assets/") {
        return next.run(request).await;
    }
    let caller = if app.tokens.is_empty() {
        access::loopback(&request).map(Some)
    } else {
        Ok(session::caller(&app, request.headers()))
    };
    let needed = if reads { Role::Viewer } else { Role::Operator };
    match caller {
        Ok(Some(caller)) if caller.role >= needed => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Ok(Some(caller)) => refused(&caller, needed),
        Ok(None) => to_sign_in(&request, reads),
        Err(problem) => Fault(problem).into_response(),
    }
}

fn refused(caller: &Caller, needed: Role) -> Response {
    let words = format!("{} needs the role {} for that", caller.name, access::word(needed));
    Fault(access::forbidden(words)).into_response()
}

/// A person is asked to sign in; the script learns that it has to ask the person.
fn to_sign_in(request: &Request, reads: bool) -> Response {
    if request.headers().contains_key(FRAGMENT) {
        return Fault(Problem::new(StatusCode::UNAUTHORIZED, "the session is over")).into_response();
    }
    let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
    let next = if reads && asked != "/" { asked } else { "" };
    Redirect::to(&link("/sign-in", [("next", next)])).into_response()
}

/// Whether a browser says that one of our pages sent this. `Sec-Fetch-Site` no page can forge, but it is only
/// there on TLS and loopback; `Origin` is there on every post.
fn is_our_own(request: &Request) -> bool {
    let headers = request.headers();
    match text(headers, "sec-fetch-site") {
        Some(site) => site == "same-origin",
        None => text(headers, "origin")
            .is_some_and(|origin| access::same_origin(origin, access::host(headers, request.uri()))),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or(""))
}
