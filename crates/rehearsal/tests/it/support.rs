//! A sandbox on a free port, and two ways to talk to it: a real client, and a socket that sees every byte.

use paceline_rehearsal::{Sandbox, Scenario};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A limit that time does not move, unless the test says otherwise.
pub(crate) async fn sandbox(change: impl FnOnce(&mut Scenario)) -> Sandbox {
    let mut scenario = Scenario { rate_per_s: 0.0, burst: 1_000, ..Scenario::default() };
    change(&mut scenario);
    Sandbox::start(([127, 0, 0, 1], 0).into(), scenario).await.unwrap()
}

pub(crate) fn client() -> Client {
    // The second install of a test run finds the first; either way there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().timeout(Duration::from_secs(10)).build().unwrap()
}

pub(crate) fn send(client: &Client, sandbox: &Sandbox, send_id: &str) -> RequestBuilder {
    let payload = json!({ "key": format!("key of {send_id}"), "text": "hello" });
    client
        .post(format!("{}/v1/send", sandbox.base_url()))
        .bearer_auth("test")
        .header("idempotency-key", send_id)
        .json(&payload)
}

pub(crate) async fn status(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

pub(crate) async fn json_of(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// A connection with a whole request written to it.
pub(crate) async fn raw_send(sandbox: &Sandbox, send_id: &str) -> TcpStream {
    let mut stream = TcpStream::connect(sandbox.addr()).await.unwrap();
    write_send(&mut stream, send_id).await;
    stream
}

pub(crate) async fn write_send(stream: &mut TcpStream, send_id: &str) {
    let request =
        format!("POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: {send_id}\r\ncontent-length: 2\r\n\r\n{{}}");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Everything until the other side closes; a reset is a close as well.
pub(crate) async fn bytes_until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes));
    let _ = read.await.expect("the sandbox closes the connection");
    bytes
}

/// One answer's head and short body, of a connection that stays open.
pub(crate) async fn one_answer(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 4_096];
    let read = stream.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

/// Waits until the sandbox has this many requests: a signal, where a sleep would be a guess.
pub(crate) async fn arrived(sandbox: &Sandbox, requests: u64) {
    while sandbox.summary().requests < requests {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
