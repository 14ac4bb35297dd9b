//! A preset as a page for whoever is called at night: plain text, at most 100 columns.

use super::{AuthKind, Known, Preset};
use crate::request::Encoding;
use crate::vocabulary::Rule;
use std::fmt::Write;

const COLUMNS: usize = 100;

impl Preset {
    /// The runbook: what a throttle looks like, what a timeout means, burst against sustained, what to set, sources.
    pub fn runbook(&self) -> String {
        let mut page = Page::default();
        page.line(&format!("{}: {} ({})", self.name, self.title, self.kind));
        page.line(&self.sendable_words());
        page.section("A throttle", &self.advice.throttle);
        page.section("A timeout", &format!("{} {}", self.advice.timeout, self.repeat_words()));
        page.section("Burst and sustained", &self.advice.pace);
        page.title("Limits");
        for limit in &self.limits {
            page.item(&format!("{}, {}: {}", limit.of, limit.unit, limit.value));
        }
        page.section("An acceptance", &self.advice.accepted);
        page.title("What to set");
        self.advice.set.iter().for_each(|line| page.item(line));
        page.section("Request", &self.request_words());
        page.title("Words it knows (first match wins; then the HTTP table)");
        self.layer().rules().iter().for_each(|rule| page.item(&rule_words(rule)));
        page.title("Sources");
        self.sources.iter().for_each(|source| page.item(source));
        page.text
    }

    fn sendable_words(&self) -> String {
        if self.sendable {
            return "Jobs can leave by it.".into();
        }
        format!(
            "Vocabulary and runbook only: its authentication ({}) or transport is not built yet.",
            auth_word(self.auth.kind)
        )
    }

    fn repeat_words(&self) -> String {
        let known = match self.idempotency.deduplicates {
            Known::Is(true) => "A repeat under the same send id is recognised",
            Known::Is(false) => "A repeat is not recognised: it is a second message",
            Known::Not(_) => "Whether a repeat is recognised is unknown: take it for a second message",
        };
        let mut words = known.to_owned();
        if let Some(header) = &self.idempotency.header {
            let _ = write!(words, " (header {header}");
            let _ = match &self.idempotency.window_s {
                Some(Known::Is(window_s)) => write!(words, ", for {} h)", window_s / 3_600),
                Some(Known::Not(_)) => write!(words, ", for a time that is unknown)"),
                None => write!(words, ")"),
            };
        }
        let refusals = match self.idempotency.caches_refusals {
            Known::Is(true) => " Refusals are remembered too.",
            Known::Is(false) => "",
            Known::Not(_) => " Whether refusals are remembered too is unknown.",
        };
        let blank = if self.idempotency.note.is_empty() { "" } else { " " };
        format!("{words}.{refusals}{blank}{}", self.idempotency.note)
    }

    fn request_words(&self) -> String {
        let request = &self.request;
        let base = request.base_url.as_deref().unwrap_or("{your own base URL}");
        let body = match request.encoding {
            Encoding::Json => "JSON",
            Encoding::Form => "form",
            Encoding::Raw => "raw",
        };
        let name = self.auth.name.as_deref().or(self.auth.user.as_deref());
        let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
        let auth = format!("auth {}{name}, the secret is {}.", auth_word(self.auth.kind), self.auth.secret);
        format!("{} {base}{}, body {body}, {auth} {}", request.method, request.path, request.note)
    }
}

fn auth_word(kind: AuthKind) -> &'static str {
    match kind {
        AuthKind::Bearer => "bearer",
        AuthKind::Basic => "basic",
        AuthKind::Header => "header",
        AuthKind::Query => "query",
        AuthKind::Sigv4 => "AWS signature v4",
        AuthKind::Oauth => "OAuth token of a service account",
        AuthKind::Jwt => "self-signed JWT",
    }
}

fn rule_words(rule: &Rule) -> String {
    let scope = rule.document()["scope"].as_str().map(|scope| format!(" of the {scope}")).unwrap_or_default();
    let cap = rule.max_spent().map(|cap| format!(", at most {cap} attempts")).unwrap_or_default();
    format!("{}: {}{scope}{cap}: {}", rule.name(), rule.outcome().replace('_', " "), rule.reason())
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn title(&mut self, title: &str) {
        self.text.push('\n');
        self.line(title);
    }

    fn section(&mut self, title: &str, words: &str) {
        self.title(title);
        self.wrapped("  ", "  ", words);
    }

    fn item(&mut self, words: &str) {
        self.wrapped("  - ", "    ", words);
    }

    fn line(&mut self, line: &str) {
        self.wrapped("", "", line);
    }

    fn wrapped(&mut self, first: &str, next: &str, words: &str) {
        let mut line = first.to_owned();
        let mut is_bare = true;
        for word in words.split_whitespace() {
            if !is_bare && line.chars().count() + 1 + word.chars().count() > COLUMNS {
                self.push(&line);
                line = next.to_owned();
                is_bare = true;
            }
            if !is_bare {
                line.push(' ');
            }
            line.push_str(word);
            is_bare = false;
        }
        self.push(&line);
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}
