//! Free ports. The kernel hands them out; two tests never get the same while both hold theirs.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// A port that was free a moment ago, from a range of this process's own below the ephemeral ones, so that
/// nobody's outgoing connection takes it between now and its use.
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let base = 10_000 + (std::process::id() % 200) as u16 * 100;
    loop {
        let port = base + NEXT.fetch_add(1, Ordering::Relaxed) % 2_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
