//! Sign-in: a token becomes a cookie that proves it, without holding it.
//!
//! The cookie is `<token's name>.<until>.<mac>`, the mac keyed by the token itself. So it outlives a restart, holds for every
//! process with the same settings, and is worth nothing once the token is changed; there is nothing to store.

use super::fault::{Answer, Fault};
use super::form::{InForm, InQuery};
use super::layout;
use crate::access::{self, Caller};
use crate::classes::App;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use maud::{Markup, html};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use std::sync::Arc;
use std::time::Duration;

const COOKIE: &str = "paceline_session";
/// A day's work; after it the token is asked for again.
const LIFE_S: u64 = 12 * 3_600;
/// A wrong token is answered this late, which is nothing to a person and much to who guesses.
const REFUSAL_DELAY: Duration = Duration::from_millis(300);

/// Who signed in, where somebody did and the session still stands.
pub(super) fn caller(app: &App, headers: &HeaderMap) -> Option<Caller> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, session) = pairs.find(|(name, _)| *name == COOKIE)?;
    let mut parts = session.splitn(3, '.');
    let (name, until, mac) = (parts.next()?, parts.next()?, parts.next()?);
    let until_s: u64 = until.parse().ok()?;
    let (role, _, secret) = app.tokens.iter().find(|(_, of, _)| of.as_str() == name)?;
    let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
    // Compared in constant time.
    proof(app, name, until_s, secret).verify_slice(&mac).ok()?;
    let stands = until_s > app.store.now_ms() / 1_000;
    stands.then(|| Caller { role: *role, name: name.to_owned() })
}

fn proof(app: &App, name: &str, until_s: u64, secret: &SecretString) -> Hmac<Sha256> {
    let key = secret.expose_secret().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(format!("paceline session\n{}\n{name}\n{until_s}", app.config.namespace).as_bytes());
    mac
}

fn cookie(app: &App, caller: &Caller, is_https: bool) -> Option<HeaderValue> {
    let until_s = app.store.now_ms() / 1_000 + LIFE_S;
    let (.., secret) = app.tokens.iter().find(|(_, name, _)| name.as_str() == caller.name)?;
    let mac = URL_SAFE_NO_PAD.encode(proof(app, &caller.name, until_s, secret).finalize().into_bytes());
    set_cookie(&format!("{}.{until_s}.{mac}", caller.name), LIFE_S, is_https)
}

fn set_cookie(value: &str, life_s: u64, is_https: bool) -> Option<HeaderValue> {
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{COOKIE}={value}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Strict{secure}");
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Where to go afterwards: a page of ours, never another site.
fn next(asked: Option<&str>) -> &str {
    let is_ours = |path: &&str| {
        path.starts_with('/')
            && !path[1..].starts_with(['/', '\\'])
            && path.bytes().all(|b| b.is_ascii_graphic())
    };
    asked.filter(is_ours).unwrap_or("/")
}

/// `GET /sign-in`
pub(super) async fn show(State(app): State<Arc<App>>, InQuery(asked): InQuery) -> Response {
    if app.tokens.is_empty() {
        return Redirect::to("/").into_response();
    }
    page(next(asked.get("next")), None).into_response()
}

fn page(next: &str, refused: Option<&str>) -> Markup {
    let main = html! {
        section.door {
            h1 { "Sign in" }
            p { "With a token of this deployment. A viewer looks, an operator also changes." }
            form method="post" action="/sign-in" {
                input type="hidden" name="next" value=(next);
                label for="token" { "Token" }
                input #token type="password" name="token" required autocomplete="current-password"
                    autofocus aria-describedby=[refused.map(|_| "refused")] aria-invalid=[refused.map(|_| "true")];
                @if let Some(words) = refused { p #refused.fault role="alert" { (words) } }
                button.button.primary type="submit" { "Sign in" }
            }
            p.quiet { "Tokens are in the settings under " code { "[token.*]" } "; the session lasts 12 hours." }
        }
    };
    layout::bare("Sign in", false, main)
}

/// `POST /sign-in`
pub(super) async fn sign_in(State(app): State<Arc<App>>, headers: HeaderMap, InForm(form): InForm) -> Answer {
    let next = next(form.get("next"));
    let known = form.get("token").and_then(|token| access::known_token(&app, token.trim()));
    let Some(caller) = known else {
        tokio::time::sleep(REFUSAL_DELAY).await;
        tracing::warn!("a sign-in was refused");
        let words = "This token is not known. Tokens are compared letter by letter.";
        return Ok((StatusCode::UNAUTHORIZED, page(next, Some(words))).into_response());
    };
    tracing::info!(by = caller.name, role = access::word(caller.role), "signed in");
    let is_https = headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let mut response = Redirect::to(next).into_response();
    response.headers_mut().extend(cookie(&app, &caller, is_https).map(|value| (header::SET_COOKIE, value)));
    Ok(response)
}

/// `POST /sign-out`
pub(super) async fn sign_out() -> Result<Response, Fault> {
    let mut response = Redirect::to("/sign-in").into_response();
    response.headers_mut().extend(set_cookie("", 0, false).map(|value| (header::SET_COOKIE, value)));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_site() {
        assert_eq!(next(Some("/classes/bulk?x=1")), "/classes/bulk?x=1");
        for asked in
            ["//evil.example", "/\\evil.example", "https://evil.example", "", "/a\r\nb", "/\t/evil", "/ü"]
        {
            assert_eq!(next(Some(asked)), "/", "{asked}");
        }
    }
}
