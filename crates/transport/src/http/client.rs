//! The HTTP client, with everything off that would send a second request or send it elsewhere.

use crate::TransportError;
use paceline_core::config::Provider;
use reqwest::{Client, ClientBuilder, redirect, retry};
use std::time::Duration;

/// Servers commonly drop a connection that was idle for 5 s. A request written as the close arrives is lost and
/// nobody can tell whether it was acted on, so our side lets go first.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// Far above any class's concurrency: a connection is closed because it idled, not because it was one too many.
const MAX_IDLE: usize = 1_024;

const TCP_KEEPALIVE: Duration = Duration::from_secs(15);

/// The parser's own bound is 100. A refusal must not become "nobody can tell" because of its many headers.
const MAX_PARSED_HEADERS: usize = 256;

/// The client for `provider`, with `adjust` as the last word (tests speak HTTP/2 without TLS).
pub(super) fn build(
    provider: &Provider,
    adjust: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, TransportError> {
    // An error means that the process has a provider already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = liveness(single(Client::builder()), provider)
        .user_agent(concat!("paceline/", env!("CARGO_PKG_VERSION")))
        .http1_max_headers(MAX_PARSED_HEADERS);
    if provider.base_url.scheme() == "http" {
        // No redirect is followed, so no certificate will ever be checked: a machine without root certificates
        // can still send to a sandbox.
        builder = builder.tls_certs_only([]);
    }
    adjust(builder)
        .build()
        .map_err(|error| TransportError::TrustMissing(super::failure::causes(&error.without_url())))
}

/// One request per attempt, to the provider itself, answered as it was written. Decoding and proxies are off
/// here and not by Cargo features, because another crate's features must not change what a job does.
fn single(builder: ClientBuilder) -> ClientBuilder {
    builder
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(retry::never())
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
}

fn liveness(builder: ClientBuilder, provider: &Provider) -> ClientBuilder {
    // Every job shares one HTTP/2 connection. If nobody is at its other end, that is found before the first job
    // gives up, and the next one finds another (failures 58).
    let ping = Duration::from_millis(provider.first_byte_timeout_ms / 3).max(Duration::from_millis(100));
    builder
        .connect_timeout(Duration::from_millis(provider.connect_timeout_ms))
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(MAX_IDLE)
        .tcp_nodelay(true)
        .tcp_keepalive(TCP_KEEPALIVE)
        .http2_keep_alive_interval(ping)
        .http2_keep_alive_timeout(ping)
}
