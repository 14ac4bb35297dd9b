//! A real Redis of the test's own, the API on it, and requests.

mod redis_server;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use paceline_admin::{AppState, app};
use paceline_core::budget::Limits;
use paceline_core::config::{Config, Role, Sources};
use paceline_core::decide::{Decision, Signal};
use paceline_core::history::{Attempt, History};
use paceline_core::job::{Counters, Flags};
use paceline_core::policy::Trips;
use paceline_core::{Name, State};
use paceline_store::{Batch, Claim, ClaimAsk, ClassRef, Record, RedisStore, Settled, Settlement, Store};
pub(crate) use redis_server::RedisServer;
use secrecy::SecretString;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;
use uuid::Uuid;

pub(crate) const DEPLOYMENT: Uuid = Uuid::from_u128(7);

/// Two providers, one of which does not recognise a repeat; two classes that share an account.
const CONFIG: &str = r#"
[provider.acme]
base_url = "https://api.acme.example"
deduplicates = true
dedup_window_s = 3600
[provider.blunt]
base_url = "https://blunt.example"
deduplicates = false
[account.shared]
rate = "1000/s"
[credential.acme-key]
provider = "acme"
account = "shared"
rate = "100/s"
burst = 20
[credential.blunt-key]
provider = "blunt"
account = "shared"
[class.bulk]
credential = "acme-key"
group = "g"
max_document_bytes = 20000
[class.lifecycle]
credential = "blunt-key"
group = "g"
max_waiting = 3
"#;

/// The API on a Redis of its own.
pub(crate) struct Api {
    pub(crate) redis: RedisServer,
    pub(crate) state: AppState,
    router: Router,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{} is no JSON", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// A problem of this status; its members.
    pub(crate) fn problem(&self, status: u16) -> Value {
        let body = self.json();
        assert_eq!(self.status, status, "{body}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{body}");
        assert_eq!(body["status"], status, "{body}");
        for member in ["type", "title", "detail"] {
            assert!(body[member].is_string(), "{member} of {body}");
        }
        body
    }

    /// 200; its members.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json()
    }
}

impl Api {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl Fn(&mut AppState)) -> Self {
        Self::configured("", change)
    }

    /// With settings on top of the usual ones.
    pub(crate) fn configured(settings: &str, change: impl Fn(&mut AppState)) -> Self {
        let redis = RedisServer::start();
        let file = format!("{settings}{CONFIG}");
        let config = Config::read(Sources { file: Some(("test.toml", &file)), environment: &[] })
            .expect("it is valid");
        let store = RedisStore::open(&redis.url(), config.namespace.clone(), Duration::from_secs(2)).unwrap();
        let mut state = AppState {
            store,
            config: Arc::new(config),
            tokens: Vec::new(),
            readiness: Arc::new(|| None),
            metrics: None,
            deployment_id: DEPLOYMENT,
        };
        change(&mut state);
        Self { redis, router: app(state.clone()), state }
    }

    /// With a token of each role: `viewer-token`, `producer-token`, `operator-token`.
    pub(crate) fn with_tokens() -> Self {
        Self::with(|state| {
            let roles =
                [("viewer", Role::Viewer), ("producer", Role::Producer), ("operator", Role::Operator)];
            let token = |(name, role): (&str, Role)| {
                (role, Name::new(name).unwrap(), SecretString::from(format!("{name}-token")))
            };
            state.tokens = roles.map(token).to_vec();
        })
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).expect("every answer is UTF-8");
        Answer { status, headers, text }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request("GET", path, "")).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(request("DELETE", path, "")).await
    }

    pub(crate) async fn put(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(request("PUT", path, body)).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(request("POST", path, body)).await
    }

    pub(crate) async fn ndjson(&self, body: impl Into<Body>) -> Answer {
        let mut request = request("POST", "/v1/jobs", body);
        request.headers_mut().insert("content-type", "application/x-ndjson".parse().unwrap());
        self.send(request).await
    }

    /// Pushes jobs that must be new.
    pub(crate) async fn push(&self, class: &str, keys: &[&str]) {
        let jobs: Vec<Value> = keys
            .iter()
            .map(|key| serde_json::json!({ "class": class, "key": key, "payload": { "secret": "ada" } }))
            .collect();
        let answer = self.post("/v1/jobs", Value::from(jobs).to_string()).await.ok();
        assert_eq!(answer["created"], keys.len(), "{answer}");
    }

    pub(crate) fn class(&self, class: &str) -> ClassRef {
        let config = &self.state.config;
        ClassRef::of(config, &config.classes[&Name::new(class).unwrap()])
    }

    /// Claims everything that is due and leaves it in flight.
    pub(crate) async fn claim_only(&self, class: &str) -> Batch {
        let mut at = self.class(class);
        // The pace is not what these tests are about.
        for budget in &mut at.budgets {
            budget.limits = Limits::fixed("100000/s".parse().unwrap(), 100_000, 0);
        }
        self.state.store.declare(&at).await.unwrap();
        let ask = ClaimAsk {
            worker: "w".into(),
            nonce: Uuid::now_v7().to_string(),
            max_jobs: 200,
            lease_ms: 20_000,
            lookahead_ms: 10_000,
            solo_lapses: 2,
        };
        match self.state.store.claim(&at, &ask).await.unwrap() {
            Claim::Jobs(batch) => batch,
            other => panic!("something is due: {other:?}"),
        }
    }

    /// Claims everything that is due and ends it as told.
    pub(crate) async fn end(&self, class: &str, end: &End) {
        let (at, batch) = (self.class(class), self.claim_only(class).await);
        let settle = |key: &str, record: &Record| {
            let Record::Job(job) = record else { panic!("it can be read") };
            end.settlement(key, job.birth, batch.now_ms, batch.deadline_ms)
        };
        let settlements: Vec<Settlement> =
            batch.jobs.iter().map(|claimed| settle(&claimed.key, &claimed.record)).collect();
        let settled = self.state.store.settle(&at, &Trips::default(), &settlements).await.unwrap();
        assert!(settled.iter().all(|word| *word == Settled::Moved(end.target)), "{settled:?}");
    }

    /// Pushes jobs and makes dead letters of them.
    pub(crate) async fn die(&self, class: &str, keys: &[&str], end: &End) {
        self.push(class, keys).await;
        self.end(class, end).await;
    }

    /// Everything under the namespace, to compare.
    pub(crate) fn snapshot(&self) -> Vec<String> {
        self.redis.keys()
    }
}

/// How an attempt ends.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) target: State,
    pub(crate) code: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) ambiguous: bool,
}

impl End {
    pub(crate) const DEFERRED: Self =
        Self { target: State::Deferred, code: "503", outcome: "transient", reason: "busy", ambiguous: false };
    pub(crate) const UNCONFIRMED: Self = Self {
        target: State::Unconfirmed,
        code: "timeout",
        outcome: "ambiguous",
        reason: "no answer",
        ambiguous: true,
    };
    pub(crate) const FAILED: Self = Self {
        target: State::Failed,
        code: "422",
        outcome: "terminal",
        reason: "invalid recipient",
        ambiguous: false,
    };

    fn settlement(&self, key: &str, birth: [u8; 8], now_ms: u64, deadline_ms: u64) -> Settlement {
        let mut history = History::default();
        history.push(Attempt {
            at_ms: now_ms,
            code: self.code.into(),
            outcome: self.outcome.into(),
            reason: self.reason.into(),
            rule: "http:test".into(),
            snippet: "no mailbox for ada".into(),
            ..Attempt::default()
        });
        let decision = Decision {
            target: self.target,
            cancelled_target: State::Cancelled,
            delay_ms: 0,
            counters: Counters { spent: 1, attempts: 1, ..Counters::default() },
            flags: Flags { ambiguous: self.ambiguous, ..Flags::default() },
            starts_throttle: false,
            starts_window: true,
            signal: Signal::None,
            hold: None,
            refund: false,
            reason: self.reason.into(),
        };
        Settlement {
            key: key.to_owned(),
            birth,
            deadline_ms,
            claimed_ms: now_ms,
            probed: false,
            decision,
            decided_again: false,
            count: format!("{}|{}", self.code, self.outcome),
            history: history.to_lines(),
        }
    }
}

pub(crate) fn request(method: &str, path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::builder()
        .method(method.parse::<Method>().unwrap())
        .uri(path)
        .header("content-type", "application/json")
        .body(body.into())
        .unwrap()
}

pub(crate) fn with_header(mut request: Request<Body>, name: &'static str, value: &str) -> Request<Body> {
    request.headers_mut().insert(name, value.parse().unwrap());
    request
}
