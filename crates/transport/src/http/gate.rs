//! Whether anything can have left: known by construction, not guessed from an error.
//!
//! A request's body passes a gate. Either the body opens it, when the client asks for the first byte, or we
//! withdraw the request while it is shut; never both, and never again afterwards. So a request that was
//! withdrawn has put nothing of its body on the wire, whatever the layers beneath were doing; at worst a head went
//! out whose body never came, and no peer can have accepted a message it has not seen. It also makes the body a
//! stream that cannot be read twice: no layer can repeat the request.

use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use std::future::pending;
use std::io;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Shut,
    Open,
    Withdrawn,
}

/// One attempt's gate; clones are the same gate.
#[derive(Debug, Clone)]
pub(super) struct Gate(watch::Sender<State>);

impl Gate {
    /// An empty body is never asked for, so its gate is open from the start: in doubt, it has left.
    pub(super) fn new(body: &[u8]) -> Self {
        Self(watch::Sender::new(if body.is_empty() { State::Open } else { State::Shut }))
    }

    /// `body`, behind this gate.
    pub(super) fn body(&self, body: &[u8]) -> Body {
        if body.is_empty() {
            return Body::default();
        }
        let (gate, body) = (self.clone(), Bytes::copy_from_slice(body));
        Body::wrap_stream(stream::once(async move {
            if gate.turn(State::Open) { Ok(body) } else { Err(io::Error::other("withdrawn")) }
        }))
    }

    /// Nothing has left, and from now on nothing will.
    pub(super) fn withdraw(&self) -> bool {
        self.turn(State::Withdrawn)
    }

    /// Ends when the request was withdrawn because nothing of it had left by then.
    pub(super) async fn withdrawn_after(&self, patience: Duration) {
        sleep(patience).await;
        if !self.withdraw() {
            pending::<()>().await;
        }
    }

    /// Ends when the gate has been open for `patience`.
    pub(super) async fn open_for(&self, patience: Duration) {
        let open = |state: &State| *state == State::Open;
        drop(self.0.subscribe().wait_for(open).await.expect("this gate holds the channel's sender"));
        sleep(patience).await;
    }

    /// Whether it stands at `to` now: a gate turns once.
    fn turn(&self, to: State) -> bool {
        self.0.send_if_modified(|state| {
            let shut = *state == State::Shut;
            if shut {
                *state = to;
            }
            shut
        });
        *self.0.borrow() == to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_turns_once() {
        let gate = Gate::new(b"x");
        assert!(gate.turn(State::Open) && !gate.withdraw());
        let gate = Gate::new(b"x");
        assert!(gate.withdraw() && gate.withdraw() && !gate.turn(State::Open));
        assert!(!Gate::new(b"").withdraw());
    }
}
