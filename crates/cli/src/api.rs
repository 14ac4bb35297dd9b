//! The API as the command line sees it: JSON in, JSON out, problems as errors that say what to do.

use crate::args::ApiOptions;
use crate::settings;
use anyhow::{Context, bail};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use std::path::Path;

/// A client of one API.
pub(crate) struct Api {
    client: reqwest::Client,
    base: String,
    token: Option<String>,
}

impl Api {
    /// Where the options say, else where the settings say that the API listens.
    pub(crate) fn new(config: Option<&Path>, options: &ApiOptions) -> anyhow::Result<Self> {
        let base = match &options.api {
            Some(base) => base.trim_end_matches('/').to_owned(),
            None => format!("http://{}", settings::load(config)?.admin.listen),
        };
        Self::at(base, options.token.clone())
    }

    /// At this address.
    pub(crate) fn at(base: String, token: Option<String>) -> anyhow::Result<Self> {
        Ok(Self { client: reqwest::Client::builder().no_proxy().build()?, base, token })
    }

    pub(crate) async fn get(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<Value> {
        answer(self.request(Method::GET, path).query(query)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        answer(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        answer(self.request(Method::PUT, path).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        answer(self.request(Method::DELETE, path)).await
    }

    /// NDJSON; the answer tells of each line.
    pub(crate) async fn post_lines(&self, path: &str, lines: Vec<u8>) -> anyhow::Result<Value> {
        answer(self.request(Method::POST, path).header("content-type", "application/x-ndjson").body(lines))
            .await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}

async fn answer(request: RequestBuilder) -> anyhow::Result<Value> {
    let response =
        request.send().await.context("the API does not answer; is `paceline serve` running? (--api URL)")?;
    let status = response.status();
    let value: Value = response.json().await.with_context(|| format!("{status}: the answer is not JSON"))?;
    if status.is_success() {
        return Ok(value);
    }
    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let hint = match status {
        StatusCode::UNAUTHORIZED => " (PACELINE_TOKEN or --token)",
        StatusCode::SERVICE_UNAVAILABLE => " (safe to repeat)",
        _ => "",
    };
    bail!("{} {}: {}{hint}", status.as_u16(), text("title"), text("detail"))
}

/// A path segment or more, escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut url = url::Url::parse("http://x").expect("a constant URL parses");
    url.path_segments_mut().expect("http has a path").push(text);
    url.path().trim_start_matches('/').to_owned()
}
