//! What a transport reports: raw facts and never a verdict.

/// How one attempt ended on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The remote side answered over HTTP.
    Http(HttpAnswer),
    /// No byte of the request can have left: safe to repeat without an idempotency key.
    NotSent {
        /// Where it broke: `request`, `dns`, `connect`, `tls`, `refused_stream`.
        phase: &'static str,
        /// The error, bounded.
        error: String,
    },
    /// Bytes may have left and no whole answer came: the remote side may have accepted.
    Unanswered {
        /// Where it broke: `first_byte`, `deadline`, `reset`, `unreadable`, `body`, `panic`, `shutdown`.
        phase: &'static str,
        /// The error, bounded.
        error: String,
    },
}

/// The facts of an HTTP answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status code as sent; not necessarily a registered one.
    pub status: u16,
    /// Name (lower case) and value, in the order received; values as clean text.
    pub headers: Vec<(String, String)>,
    /// The body, capped by the transport.
    pub body: Vec<u8>,
    /// The cap cut the body.
    pub body_truncated: bool,
}

impl HttpAnswer {
    /// The first header of that (lower case) name, trimmed; a blank value counts as absent.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }
}

/// The facts of an SMPP answer (`submit_sm_resp`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SmppAnswer {
    /// The `command_status` as sent.
    pub status: u32,
    /// The provider's id of the message, where the answer had a body.
    pub message_id: Option<String>,
}
