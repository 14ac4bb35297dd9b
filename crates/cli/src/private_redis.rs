//! A private `redis-server` for `serve`, `demo` and `bench` where no address is configured: its own folder, AOF,
//! and the settings that were measured to matter. It ends with its parent.

use anyhow::{Context, bail};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// How it keeps its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// AOF, fsync every second.
    Everysec,
    /// AOF, fsync before every answer.
    Always,
    /// Nothing is kept: for measuring.
    None,
}

/// One running server; dropping it kills it, [`Self::stop`] lets it write first.
pub(crate) struct PrivateRedis {
    child: Child,
    port: u16,
}

impl PrivateRedis {
    /// Starts it in `folder` on a free port, and waits until it answers.
    pub(crate) async fn start(folder: &Path, durability: Durability) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let port = free_port()?;
        let (appendonly, appendfsync) = match durability {
            Durability::Everysec => ("yes", "everysec"),
            Durability::Always => ("yes", "always"),
            Durability::None => ("no", "no"),
        };
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--daemonize", "no"])
            .args(["--appendonly", appendonly, "--appendfsync", appendfsync, "--save", ""])
            .args(["--maxmemory-policy", "noeviction", "--zset-max-listpack-entries", "0"])
            .args(["--lazyfree-lazy-expire", "yes", "--lazyfree-lazy-server-del", "yes"])
            .arg("--dir")
            .arg(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C reaches the whole group; Redis must outlive the worker's last settle.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(not_installed)?;
        let mut redis = Self { child, port };
        redis.await_answer().await?;
        Ok(redis)
    }

    async fn await_answer(&mut self) -> anyhow::Result<()> {
        for _ in 0..500 {
            if let Some(status) = self.child.try_wait()? {
                bail!("redis-server ended at once ({status}); its version must be 7.0 or later");
            }
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("redis-server did not answer within 10 s")
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// SIGTERM, so that the AOF is complete.
    pub(crate) async fn stop(mut self) {
        use nix::sys::signal::{Signal, kill};
        if let Some(pid) = self.child.id() {
            let _ = kill(nix::unistd::Pid::from_raw(pid.cast_signed()), Signal::SIGTERM);
            let _ = tokio::time::timeout(Duration::from_secs(5), self.child.wait()).await;
        }
    }
}

fn not_installed(error: std::io::Error) -> anyhow::Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        anyhow::anyhow!(
            "redis-server is not installed, and no Redis is configured.\n  \
             Debian, Ubuntu:  apt-get install redis-server\n  macOS:           brew install redis\n  \
             or set redis.url (PACELINE__REDIS__URL=redis://…)"
        )
    } else {
        anyhow::anyhow!("redis-server cannot be started: {error}")
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
