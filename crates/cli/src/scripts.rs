//! `paceline scripts`

use crate::args::ScriptsOptions;
use crate::print;
use std::process::ExitCode;

pub(crate) fn run(options: &ScriptsOptions) -> anyhow::Result<ExitCode> {
    let scripts = paceline_store::scripts::all();
    if options.json {
        let map: serde_json::Map<String, serde_json::Value> = scripts
            .iter()
            .map(|script| (script.sha.clone(), format!("lua/{}.lua", script.name).into()))
            .collect();
        print::json(&map)?;
    } else {
        let rows = scripts
            .iter()
            .map(|script| vec![script.sha.clone(), format!("lua/{}.lua", script.name)])
            .collect();
        print::table(&["sha", "file"], rows);
    }
    Ok(ExitCode::SUCCESS)
}
