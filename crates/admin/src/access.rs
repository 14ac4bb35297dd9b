//! Who may do what: bearer tokens with a role, or loopback without tokens.

use crate::classes::App;
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use paceline_core::config::Role;
use secrecy::ExposeSecret;
use std::net::IpAddr;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) role: Role,
    /// The token's name, or `loopback`.
    pub(crate) name: String,
}

/// The role a request needs; `None`: it is open. What is not named here needs an operator.
fn needed(method: &Method, path: &str) -> Option<Role> {
    match (method.as_str(), path) {
        ("GET" | "HEAD", "/livez" | "/readyz") => None,
        ("GET" | "HEAD", _) => Some(Role::Viewer),
        ("POST", "/v1/jobs" | "/v1/cancel") => Some(Role::Producer),
        ("DELETE", path) if path.starts_with("/v1/jobs/") => Some(Role::Producer),
        _ => Some(Role::Operator),
    }
}

/// Lets a request through with its [`Caller`], or refuses it.
pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let Some(needed) = needed(request.method(), request.uri().path()) else {
        return next.run(request).await;
    };
    let caller = if app.tokens.is_empty() { loopback(&request) } else { bearer(&app, request.headers()) };
    match caller {
        Ok(caller) if caller.role >= needed => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Ok(caller) => forbidden(format!("{} needs the role {}", caller.name, word(needed))).into_response(),
        Err(problem) => problem.into_response(),
    }
}

fn bearer(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let Some(given) = given.filter(|token| !token.is_empty()) else {
        return Err(unauthorized(
            "this API needs an Authorization: Bearer token",
            "Bearer realm=\"paceline\"",
        ));
    };
    known_token(app, given).ok_or_else(|| {
        unauthorized("the token is not known", "Bearer realm=\"paceline\", error=\"invalid_token\"")
    })
}

/// Whose token it is.
pub(crate) fn known_token(app: &App, given: &str) -> Option<Caller> {
    let mut found = None;
    // Every token is compared, and each in constant time: how long it takes says nothing about which is near.
    for (role, name, secret) in &app.tokens {
        let same: bool = secret.expose_secret().as_bytes().ct_eq(given.as_bytes()).into();
        if same && found.is_none() {
            found = Some(Caller { role: *role, name: name.to_string() });
        }
    }
    found
}

fn unauthorized(detail: &str, challenge: &'static str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, detail).challenge(challenge)
}

pub(crate) fn forbidden(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, detail)
}

pub(crate) const fn word(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Producer => "producer",
        Role::Operator => "operator",
    }
}

/// Without tokens the listener is on loopback, and a page in the operator's browser is there too. A name that
/// was rebound to 127.0.0.1 shows in Host, a foreign page that changes something shows in Origin.
pub(crate) fn loopback(request: &Request) -> Result<Caller, Problem> {
    let host = host(request.headers(), request.uri());
    if host.is_some_and(|host| !is_loopback(host)) {
        return Err(forbidden("Host is not loopback; set [token.*] to serve other names"));
    }
    let origin = request.headers().get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("null"));
    let reads = matches!(request.method().as_str(), "GET" | "HEAD");
    if !reads && origin.is_some_and(|origin| !same_origin(origin, host)) {
        return Err(forbidden("Origin is another site; set [token.*] to allow it"));
    }
    Ok(Caller { role: Role::Operator, name: "loopback".into() })
}

/// `None` where there is none: an HTTP/1.0 client, never a browser. A Host that is no text is no loopback.
pub(crate) fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    match headers.get(header::HOST) {
        Some(host) => Some(host.to_str().unwrap_or("")),
        None => uri.authority().map(Authority::as_str),
    }
}

fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

pub(crate) fn same_origin(origin: &str, host: Option<&str>) -> bool {
    let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    site.zip(host).is_some_and(|(site, host)| site.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_needs_an_operator() {
        let of = |method: &str, path: &str| needed(&method.parse().unwrap(), path);
        assert_eq!(of("GET", "/readyz"), None);
        assert_eq!(of("GET", "/metrics"), Some(Role::Viewer));
        assert_eq!(of("POST", "/v1/jobs"), Some(Role::Producer));
        assert_eq!(of("DELETE", "/v1/jobs/bulk/a/b"), Some(Role::Producer));
        for (method, path) in [
            ("POST", "/v1/jobs/"),
            ("POST", "/v1//jobs"),
            ("POST", "/v1/erase"),
            ("POST", "/livez"),
            ("DELETE", "/v1/queues/bulk"),
            ("PUT", "/v1/jobs"),
        ] {
            assert_eq!(of(method, path), Some(Role::Operator), "{method} {path}");
        }
    }

    #[test]
    fn only_loopback_names_pass_as_loopback() {
        for host in ["127.0.0.1", "127.0.0.1:8700", "localhost:8700", "LOCALHOST", "[::1]:8700", "127.9.9.9"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", "a b"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn another_port_is_another_origin() {
        assert!(same_origin("http://127.0.0.1:8700", Some("127.0.0.1:8700")));
        for origin in ["null", "http://127.0.0.1:3000", "http://evil.example", "file://"] {
            assert!(!same_origin(origin, Some("127.0.0.1:8700")), "{origin}");
        }
    }
}
