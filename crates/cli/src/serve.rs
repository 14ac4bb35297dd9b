//! `paceline serve`, `worker` and `admin`: the parts, their start-up checks, and their end.

mod reload;
mod running;

use crate::args::ServeOptions;
use crate::private_redis::{Durability, PrivateRedis};
use crate::settings;
use crate::signals::Signals;
use anyhow::bail;
use paceline_core::config::{self, Config};
pub(crate) use running::Running;
use std::path::Path;
use std::process::ExitCode;

/// Which parts of Paceline run in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    Worker,
    Admin,
    Both,
}

/// Where a private Redis keeps its data.
const PRIVATE_FOLDER: &str = ".paceline/redis";

pub(crate) async fn run(
    path: Option<&Path>,
    parts: Parts,
    options: &ServeOptions,
) -> anyhow::Result<ExitCode> {
    let mut config = settings_for(path, options)?;
    let signals = Signals::listen()?;
    let private = match (config.redis.url.is_empty(), parts) {
        (false, _) => None,
        (true, Parts::Both) => {
            let durability = match config.redis.durability {
                config::Durability::Always => Durability::Always,
                _ => Durability::Everysec,
            };
            Some(PrivateRedis::start(Path::new(PRIVATE_FOLDER), durability).await?)
        }
        (true, _) => bail!("redis.url is not set; only `serve` starts a private Redis"),
    };
    if let Some(redis) = &private {
        config.redis.url = redis.url();
        tracing::info!(url = config.redis.url, folder = PRIVATE_FOLDER, "started a private Redis");
    }
    let private_url = private.as_ref().map(PrivateRedis::url);
    let reread = || {
        let mut config = settings_for(path, options)?;
        if let Some(url) = &private_url {
            config.redis.url.clone_from(url);
        }
        Ok(config)
    };
    let outcome = match Running::start(config, parts, &signals).await {
        Ok(mut running) => {
            running.keep_up(settings::place(path), reread, &signals).await;
            running.until_stopped(&signals).await;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error),
    };
    if let Some(redis) = private {
        redis.stop().await;
    }
    outcome
}

/// The settings with what the command line says on top.
fn settings_for(path: Option<&Path>, options: &ServeOptions) -> anyhow::Result<Config> {
    let mut config = settings::load(path)?;
    if let Some(url) = &options.redis {
        config.redis.url.clone_from(url);
    }
    if let Some(listen) = options.listen {
        if !listen.ip().is_loopback() && config.tokens.is_empty() {
            bail!("--listen {listen} is not loopback, and there is no [token.*]: anyone could send");
        }
        config.admin.listen = listen;
    }
    if config.classes.is_empty() {
        bail!(
            "no class is in use: give one a credential (`paceline check-config --defaults` shows every setting)"
        );
    }
    Ok(config)
}
