//! Connections that are not there, are not ours, or go away.

use crate::peer::{OK, Peer, broken, http, job, provider, send, transport};
use futures_util::future::join_all;
use paceline_core::Answer;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    match send(&transport(&provider(&base_url)), job("/")).await {
        Answer::NotSent { phase: "connect", error } => assert!(error.contains("refused"), "{error}"),
        other => panic!("{other:?}"),
    }
}

/// Without a resolver at hand the look-up hangs instead of failing: then the connect deadline ends it.
#[tokio::test]
async fn a_name_that_does_not_exist_is_not_sent() {
    let answer = send(&transport(&provider("http://nowhere.invalid")), job("/")).await;
    assert!([("not_sent", "dns"), ("not_sent", "connect")].contains(&broken(&answer)), "{answer:?}");
}

#[tokio::test]
async fn a_peer_that_does_not_speak_tls_is_not_sent() {
    let peer = Peer::talking(|mut line| async move {
        line.say("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        line.listen().await;
    })
    .await;
    let answer = send(&transport(&provider(&format!("https://{}", peer.address))), job("/")).await;
    assert_eq!(broken(&answer), ("not_sent", "tls"), "{answer:?}");
}

/// The test runs itself again in such an environment.
#[test]
fn a_proxy_in_the_environment_is_not_used() {
    const PROXY: &str = "http://127.0.0.1:1";
    if std::env::var("HTTP_PROXY").is_ok_and(|proxy| proxy == PROXY) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(async {
            let peer = Peer::answering(OK).await;
            http(send(&peer.transport(), job("/")).await);
        });
    }
    let again = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "connections::a_proxy_in_the_environment_is_not_used"])
        .env("HTTP_PROXY", PROXY)
        .env("ALL_PROXY", PROXY)
        .env_remove("NO_PROXY")
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
}

/// failures 28: the peer lets go of idle connections just as the next request comes.
#[tokio::test]
async fn an_idle_connection_that_closes_is_survived() {
    let lanes = (0..6).map(|lane| async move {
        let peer = Peer::talking(|mut line| async move {
            while let Ok(Some(_)) = timeout(Duration::from_millis(50), line.request()).await {
                line.say(OK).await;
            }
        })
        .await;
        let transport = peer.transport();
        let mut broke = 0;
        for turn in 0..12 {
            match send(&transport, job("/")).await {
                Answer::Http(answer) => assert_eq!(answer.status, 200),
                Answer::Unanswered { phase: "reset", .. } => broke += 1,
                other => panic!("{other:?}"),
            }
            // Around the moment the peer lets go, a little before to a little after.
            sleep(Duration::from_millis(46 + (lane + turn) % 9)).await;
        }
        // A request that met the close may have been read or not; one that was answered was read once.
        assert!((12 - broke..=12).contains(&peer.heard().len()));
        broke
    });
    let broke: usize = join_all(lanes).await.into_iter().sum();
    assert!(broke <= 7, "{broke} of 72 requests met the close");
}

#[tokio::test]
async fn a_connection_is_used_again_while_it_is_fresh() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let peer = Peer::talking(move |mut line| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            while line.request().await.is_some() {
                line.say(OK).await;
            }
        }
    })
    .await;
    let transport = peer.transport();
    for _ in 0..10 {
        http(send(&transport, job("/")).await);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
