//! SIGTERM or Ctrl-C: stop in order. The same again: at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancelled by the first signal, and by the second.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    pub(crate) stop: CancellationToken,
    pub(crate) abort: CancellationToken,
}

impl Signals {
    /// Listens from now on.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let signals = Self::default();
        let mut term = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let heard = signals.clone();
        tokio::spawn(async move {
            for token in [&heard.stop, &heard.abort] {
                tokio::select! { _ = term.recv() => {}, _ = interrupt.recv() => {} }
                tracing::info!("told to stop; once more stops at once");
                token.cancel();
            }
        });
        Ok(signals)
    }
}
