//! Newer settings without a restart: by SIGHUP, or when the settings' file or a secret's file has changed.

use super::Running;
use crate::signals::Signals;
use paceline_core::config::{Auth, Config, SecretRef};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::signal::unix::{SignalKind, signal};

/// Between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);

/// When a file was changed, and how long it is.
type Mark = Option<(SystemTime, u64)>;

impl Running {
    /// Follows the settings until told to stop. Settings with a fault are told and not used.
    pub(super) async fn keep_up(
        &mut self,
        place: Option<PathBuf>,
        reread: impl Fn() -> anyhow::Result<Config>,
        signals: &Signals,
    ) {
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
        let mut seen = marks(place.as_deref(), &self.config);
        loop {
            let asked = tokio::select! {
                _ = hangup.recv() => true,
                () = tokio::time::sleep(LOOK) => false,
                () = signals.stop.cancelled() => return,
            };
            let now = marks(place.as_deref(), &self.config);
            if !asked && now == seen {
                continue;
            }
            match self.follow(&reread, signals).await {
                Ok(()) => tracing::info!("newer settings are in force"),
                Err(error) => tracing::error!("the settings were changed and are not used: {error:#}"),
            }
            seen = marks(place.as_deref(), &self.config);
        }
    }

    async fn follow(
        &mut self,
        reread: impl Fn() -> anyhow::Result<Config>,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        let config = reread()?;
        if let Some(setting) = needs_restart(&self.config, &config) {
            anyhow::bail!("{setting} was changed: that needs a restart");
        }
        self.go_over_to(config, signals).await
    }
}

/// What a process is built around.
fn needs_restart(old: &Config, new: &Config) -> Option<&'static str> {
    let changed = [
        ("namespace", old.namespace != new.namespace),
        ("deployment_id", old.deployment_id != new.deployment_id),
        ("redis.url", old.redis.url != new.redis.url),
        ("redis.durability", old.redis.durability != new.redis.durability),
        ("redis.response_timeout_ms", old.redis.response_timeout_ms != new.redis.response_timeout_ms),
        ("admin.listen", old.admin.listen != new.admin.listen),
        ("worker.listen", old.worker.listen != new.worker.listen),
    ];
    changed.into_iter().find(|(_, changed)| *changed).map(|(setting, _)| setting)
}

fn marks(place: Option<&Path>, config: &Config) -> Vec<(PathBuf, Mark)> {
    let secrets = config.credentials.values().filter_map(|credential| match &credential.auth {
        Auth::None => None,
        Auth::Bearer(secret)
        | Auth::Basic { secret, .. }
        | Auth::Header { secret, .. }
        | Auth::Query { secret, .. } => Some(secret),
    });
    let files =
        secrets.chain(config.tokens.values().map(|token| &token.secret)).filter_map(|secret| match secret {
            SecretRef::File(path) => Some(PathBuf::from(path)),
            SecretRef::Env(_) => None,
        });
    let all = place.map(Path::to_owned).into_iter().chain(files);
    all.map(|path| (path.clone(), mark(&path))).collect()
}

fn mark(path: &Path) -> Mark {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
