//! The named steps of an attempt, where a test may have the process die as if by `kill -9`. Debug builds only: a release
//! has nothing of it.

/// Where an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Claimed, and nothing done yet.
    Claimed,
    /// Redis has the mark of its start; before that, where no mark is needed.
    Started,
    /// The next thing is the write.
    Sending,
    /// The answer is here.
    Answered,
    /// Classified, and not told to the settler.
    Classified,
    /// The settlements are put together and not written.
    Settling,
    /// Redis has them.
    Settled,
}

/// Dies here if `PACELINE_DIE_AT=<step>:<n>` names this step and this is its nth time.
#[cfg(debug_assertions)]
pub(crate) fn reached(step: Step) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    static END: OnceLock<Option<(String, usize)>> = OnceLock::new();
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    let end = END.get_or_init(|| {
        let text = std::env::var("PACELINE_DIE_AT").ok()?;
        let (name, n) = text.split_once(':')?;
        Some((name.to_owned(), n.parse().ok()?))
    });
    let Some((name, n)) = end else { return };
    if format!("{step:?}").eq_ignore_ascii_case(name) && SEEN.fetch_add(1, Ordering::SeqCst) + 1 == *n {
        // No destructor runs and nothing is flushed, as with SIGKILL.
        std::process::abort();
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn reached(_: Step) {}
