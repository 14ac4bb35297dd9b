//! The `paceline` binary, for tests that run it as a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The binary of the same build as this test. It is built where it is missing or older than its sources; many
/// tests may ask at once, in this process and in others (cargo's own lock lets one build and the others wait).
pub fn paceline() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY
        .get_or_init(|| {
            let folder = build_folder();
            let binary = folder.join("paceline");
            if !is_fresh(&binary) {
                build(&folder);
            }
            assert!(binary.exists(), "{} is not where cargo built it", binary.display());
            binary
        })
        .clone()
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

fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let target = folder.parent().expect("a profile's folder lies in the target folder");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "paceline-cli", "--bin", "paceline", "--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root())
        .status();
    assert!(built.is_ok_and(|status| status.success()), "cargo build -p paceline-cli failed");
}
