//! The `paceline` binary, for tests that run it as a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The binary of the same build as this test. It is built where it is missing or older than its sources; many
/// tests may ask at once, in this process and in others (cargo's own lock lets one build and the others wait).
pub fn paceline() -> PathBuf {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = BINARY.get_or_init(|| {
        let folder = build_folder();
        let binary = folder.join("paceline");
        if is_fresh(&binary) { Ok(binary) } else { build(&folder).map(|()| binary) }
    });
    // Kept, so that one broken build is not tried again by every test.
    found.clone().unwrap_or_else(|error| panic!("cargo build -p paceline-cli: {error}"))
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("tests/ lies in the repository").to_owned()
}

/// `target/debug` of a test that runs as `target/debug/deps/it-0123456789abcdef`.
fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a running test knows its own file");
    let folder = test.parent().and_then(Path::parent).expect("cargo puts tests into deps/");
    folder.to_owned()
}

/// Cargo lists what a binary was made of beside it; one source that is younger, or gone, makes it stale.
fn is_fresh(binary: &Path) -> bool {
    let (Some(built), Ok(list)) = (modified(binary), fs::read_to_string(binary.with_extension("d"))) else {
        return false;
    };
    let sources = list.split_once(": ").map_or("", |(_, sources)| sources);
    // Only a blank inside a path is written with a backslash.
    let sources = sources.trim().replace("\\ ", "\0");
    sources
        .split(' ')
        .all(|source| modified(Path::new(&source.replace('\0', " "))).is_some_and(|at| at <= built))
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}

fn build(folder: &Path) -> Result<(), String> {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let target = folder.parent().expect("a profile's folder lies in the target folder");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // What cargo told this test about itself is not about that build: build scripts that look at it would run again
    // there, and once more at the next build outside.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_cargo(name)) {
        command.env_remove(name);
    }
    let built = command
        .args(["build", "--quiet", "--package", "paceline-cli", "--bin", "paceline", "--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root())
        .output()
        .map_err(|error| error.to_string())?;
    if built.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&built.stderr).into_owned()) }
}

fn is_of_cargo(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_CRATE_NAME"
}

/// What is wrong with a command line of a document or a deployment file: `words` follow `paceline`. Values are
/// not looked at, only that the command and every flag exist.
pub fn misspelled(words: &[&str]) -> Option<String> {
    let command: Vec<&str> = words.iter().copied().take_while(|word| !word.starts_with('-')).collect();
    let asked = Command::new(paceline()).args(&command).arg("--help").output().expect("the binary runs");
    if !asked.status.success() {
        return Some(format!("paceline {} is no command", command.join(" ")));
    }
    let help = String::from_utf8_lossy(&asked.stdout).into_owned();
    let known: Vec<&str> = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect();
    let flag = words.iter().filter(|word| word.starts_with('-') && word.len() > 1);
    let unknown = flag.map(|flag| flag.split('=').next().unwrap_or(flag)).find(|flag| !known.contains(flag));
    unknown.map(|flag| format!("paceline {} has no {flag}", command.join(" ")))
}
