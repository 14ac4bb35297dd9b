//! `paceline check-config`

use crate::args::CheckOptions;
use crate::{print, settings};
use paceline_core::config::{Config, DEFAULTS};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(path: Option<&Path>, options: &CheckOptions) -> anyhow::Result<ExitCode> {
    if options.defaults {
        print::line(DEFAULTS.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    match settings::read(path)? {
        Ok(config) => {
            print::table(
                &["class", "group", "credential", "provider", "rate", "burst in force", "deduplicates"],
                rows(&config),
            );
            missing_secrets(&config);
            print::line("the settings are right");
            Ok(ExitCode::SUCCESS)
        }
        Err(faults) => {
            print::line(settings::told(&faults));
            Ok(ExitCode::FAILURE)
        }
    }
}

fn rows(config: &Config) -> Vec<Vec<String>> {
    let row = |class: &paceline_core::config::Class| {
        let credential = &config.credentials[&class.credential];
        vec![
            class.name.to_string(),
            class.group.to_string(),
            class.credential.to_string(),
            credential.provider.to_string(),
            credential.limits.rate.to_string(),
            credential.limits.effective_burst().to_string(),
            if class.policy.dedup_window_ms.is_some() { "yes" } else { "no" }.into(),
        ]
    };
    config.classes.values().map(row).collect()
}

/// A secret that is not there on this machine may be on the one that sends: a note, not a fault.
fn missing_secrets(config: &Config) {
    use paceline_core::config::Auth;
    for (name, credential) in &config.credentials {
        let secret = match &credential.auth {
            Auth::None => continue,
            Auth::Bearer(secret)
            | Auth::Basic { secret, .. }
            | Auth::Header { secret, .. }
            | Auth::Query { secret, .. } => secret,
        };
        if let Err(error) = settings::secret(secret) {
            print::note(format_args!("note: credential.{name}.secret: {error:#}"));
        }
    }
}
