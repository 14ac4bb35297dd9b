//! Finds the settings, reads them, and resolves the secrets they refer to.

use anyhow::{Context, bail};
use paceline_core::config::{Config, ConfigFault, SecretRef, Sources};
use secrecy::SecretString;
use std::path::{Path, PathBuf};

/// Used where no `--config` was given and it exists.
const HERE: &str = "paceline.toml";

/// The configuration, or every fault of it.
pub(crate) fn load(path: Option<&Path>) -> anyhow::Result<Config> {
    read(path)?.map_err(|faults| anyhow::anyhow!(told(&faults)))
}

/// The file that the settings are in, if any.
pub(crate) fn place(path: Option<&Path>) -> Option<PathBuf> {
    path.map(Path::to_owned).or_else(|| Path::new(HERE).exists().then(|| HERE.into()))
}

/// The configuration or its faults; an error only where the file cannot be read.
pub(crate) fn read(path: Option<&Path>) -> anyhow::Result<Result<Config, Vec<ConfigFault>>> {
    let path = place(path);
    let text = match &path {
        Some(path) => {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
        }
        None => String::new(),
    };
    let environment: Vec<(String, String)> = std::env::vars().collect();
    let name = path.as_ref().map_or_else(String::new, |path| path.display().to_string());
    let file = path.as_ref().map(|_| (name.as_str(), text.as_str()));
    Ok(Config::read(Sources { file, environment: &environment }))
}

/// Every fault on a line of its own.
pub(crate) fn told(faults: &[ConfigFault]) -> String {
    let lines: Vec<String> = faults.iter().map(|fault| format!("  {fault}")).collect();
    format!("the settings have {} fault(s):\n{}", faults.len(), lines.join("\n"))
}

/// What a reference refers to. The error names the reference, never the secret.
pub(crate) fn secret(reference: &SecretRef) -> anyhow::Result<SecretString> {
    let (text, name) = match reference {
        SecretRef::Env(name) => {
            (std::env::var(name).with_context(|| format!("env:{name} is not set"))?, format!("env:{name}"))
        }
        SecretRef::File(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read file:{path}"))?;
            (text, format!("file:{path}"))
        }
    };
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        bail!("{name} is empty");
    }
    Ok(secret.to_owned().into())
}
