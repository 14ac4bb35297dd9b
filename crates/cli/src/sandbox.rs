//! `paceline sandbox`

use crate::args::SandboxOptions;
use crate::print;
use crate::signals::Signals;
use anyhow::Context;
use paceline_rehearsal::{Sandbox, Scenario};
use std::process::ExitCode;

pub(crate) async fn run(options: &SandboxOptions) -> anyhow::Result<ExitCode> {
    let scenario = match &options.scenario {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            Scenario::from_toml(&text).with_context(|| path.display().to_string())?
        }
        None => Scenario::default(),
    };
    let signals = Signals::listen()?;
    let sandbox = Sandbox::start(options.listen, scenario).await?;
    print::line(format_args!("sandbox on {}; what arrived: {0}/_sandbox/ledger", sandbox.base_url()));
    signals.stop.cancelled().await;
    let ledger = sandbox.shutdown().await;
    print::json(&ledger.summary)?;
    Ok(ExitCode::SUCCESS)
}
