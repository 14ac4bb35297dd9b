//! What would lose data refuses to start and says why; `paceline doctor` says all of it.

use paceline_tests::binary::paceline;
use paceline_tests::redis_server::RedisServer;
use std::process::{Command, Output};

const SETTINGS: &str = r#"
[admin]
listen = "127.0.0.1:0"
[provider.p]
base_url = "http://127.0.0.1:1"
deduplicates = true
[credential.k]
provider = "p"
[class.bulk]
credential = "k"
group = "{group}"
"#;

fn run(group: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("paceline.toml");
    std::fs::write(&file, SETTINGS.replace("{group}", group)).expect("it can be written to");
    let mut command = Command::new(paceline());
    command.args(args).arg("--config").arg(file).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_redis_that_throws_jobs_away_is_refused() {
    let redis = RedisServer::with(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let doctor = run("bulk", &["doctor", "--redis", &redis.url()]);
    assert!(
        !doctor.status.success() && text(&doctor.stdout).contains("noeviction"),
        "{}",
        text(&doctor.stdout)
    );
    let served = run("bulk", &["serve", "--redis", &redis.url()]);
    assert!(!served.status.success(), "it does not start");
    assert!(text(&served.stderr).contains("maxmemory-policy is allkeys-lru"), "{}", text(&served.stderr));
}

#[test]
fn a_class_that_moved_with_jobs_in_it_is_refused_until_they_are_done() {
    let redis = RedisServer::start();
    let url = redis.url();
    let doctor = |group: &str| run(group, &["doctor", "--redis", &url, "--json"]);
    assert!(doctor("one").status.success(), "{}", text(&doctor("one").stderr));
    let mut connection = redis.connection();
    let queued = "paceline:{one}:bulk:queued";
    redis::cmd("ZADD").arg(queued).arg(1).arg("k").exec(&mut connection).expect("it runs");
    let moved = doctor("two");
    assert!(!moved.status.success(), "{}", text(&moved.stdout));
    assert!(
        text(&moved.stdout).contains("1 jobs of class bulk are under the group one"),
        "{}",
        text(&moved.stdout)
    );
    redis::cmd("DEL").arg(queued).exec(&mut connection).expect("it runs");
    assert!(doctor("two").status.success() && doctor("two").status.success());
}
