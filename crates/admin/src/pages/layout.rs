//! What every page is set in: head, navigation, main, and who looks at it.

use super::assets::{self, ICON, SCRIPT, STYLE};
use super::door::FRAGMENT;
use super::fault::{Answer, Fault};
use super::words::many;
use crate::access::{self, Caller};
use crate::alerts;
use crate::classes::App;
use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use maud::{DOCTYPE, Markup, html};
use paceline_core::config::Role;
use std::sync::Arc;

/// Where in the navigation a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Area {
    Overview,
    DeadLetters,
    Budgets,
    Alerts,
    Nowhere,
}

const AREAS: [(Area, &str, &str); 4] = [
    (Area::Overview, "/", "Overview"),
    (Area::DeadLetters, "/dead-letters", "Dead letters"),
    (Area::Budgets, "/budgets", "Budgets"),
    (Area::Alerts, "/alerts", "Alerts"),
];

/// A page that is to be set.
pub(super) struct Page<'a> {
    pub(super) title: &'a str,
    pub(super) area: Area,
    /// The script asks for it again and again; else it stands until somebody does something.
    pub(super) live: bool,
    pub(super) main: Markup,
}

/// Who asks for a page, and for how much of it.
pub(super) struct Shell {
    pub(super) caller: Caller,
    is_fragment: bool,
    known_tag: Option<HeaderValue>,
}

impl FromRequestParts<Arc<App>> for Shell {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Fault> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let nobody = || Problem::new(StatusCode::UNAUTHORIZED, "nobody is signed in");
        Ok(Self {
            caller: caller.ok_or_else(nobody)?,
            is_fragment: parts.headers.contains_key(FRAGMENT),
            known_tag: parts.headers.get(header::IF_NONE_MATCH).cloned(),
        })
    }
}

impl Shell {
    /// May the one who looks change something?
    pub(super) fn may_change(&self) -> bool {
        self.caller.role >= Role::Operator
    }

    /// The page, or the part of it that changes, or that nothing has changed.
    pub(super) async fn page(&self, app: &App, page: Page<'_>) -> Answer {
        let alerts = alerts::standing(app).await?.len();
        self.page_with(app, page, alerts).await
    }

    /// The same where it is known how many alerts stand.
    pub(super) async fn page_with(&self, app: &App, page: Page<'_>, alerts: usize) -> Answer {
        let body = html! {
            div #page data-live=[page.live.then_some("2000")] data-title=(title(page.title)) {
                (self.header(app, page.area, alerts))
                main #main tabindex="-1" { (page.main) }
            }
        };
        let whole = if self.is_fragment { body } else { document(page.title, html! { (body) (footer()) }) };
        let tag = format!("\"{}\"", assets::hash(whole.0.as_bytes()));
        let tag = HeaderValue::from_str(&tag).map_err(|_| Problem::invalid("etag", "cannot be written"))?;
        if self.known_tag.as_ref() == Some(&tag) {
            return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
        }
        Ok(([(header::ETAG, tag)], whole).into_response())
    }

    /// The same after something went wrong with what was sent.
    pub(super) async fn refusal(&self, app: &App, status: StatusCode, page: Page<'_>) -> Answer {
        let mut response = self.page(app, page).await?;
        *response.status_mut() = status;
        Ok(response)
    }

    fn header(&self, app: &App, area: Area, alerts: usize) -> Markup {
        html! {
            header.top {
                (brand())
                (navigation(area, alerts))
                div.who {
                    span.name { (self.caller.name) }
                    @if !app.tokens.is_empty() {
                        " " span.quiet { (access::word(self.caller.role)) }
                        form method="post" action="/sign-out" { button.link type="submit" { "Sign out" } }
                    }
                }
            }
        }
    }
}

fn brand() -> Markup {
    html! {
        a.brand href="/" { img src=(ICON.path) alt="" width="20" height="20"; "Paceline" }
    }
}

fn navigation(area: Area, alerts: usize) -> Markup {
    html! {
        nav aria-label="Pages" {
            ul {
                @for (of, path, name) in AREAS {
                    li {
                        a href=(path) aria-current=[(of == area).then_some("page")] {
                            (name)
                            @if of == Area::Alerts && alerts > 0 {
                                " " span.dot-count title=(many(alerts as u64, "alert stands", "alerts stand")) { (alerts) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A page for somebody who may not be known.
pub(super) fn bare(title: &str, again: bool, main: Markup) -> Markup {
    let body = html! {
        div #page data-live=[again.then_some("5000")] data-title=(self::title(title)) {
            header.top { (brand()) (navigation(Area::Nowhere, 0)) }
            main #main tabindex="-1" { (main) }
        }
    };
    document(title, html! { (body) (footer()) })
}

fn title(page: &str) -> String {
    format!("{page} · Paceline")
}

fn document(page: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title(page)) }
                link rel="icon" type="image/svg+xml" href=(ICON.path);
                link rel="stylesheet" href=(STYLE.path);
                script src=(SCRIPT.path) defer {}
            }
            body {
                a.skip href="#main" { "To the content" }
                (body)
                p #said.unseen role="status" {}
            }
        }
    }
}

/// The script fills in whether the page is live, and lets a person stop it.
fn footer() -> Markup {
    html! {
        footer {
            p #live-state { noscript { "Without a script nothing here moves by itself; reload for new numbers." } }
            p.quiet { "Times are UTC, by the clock of Redis." }
        }
    }
}
