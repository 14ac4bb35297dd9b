//! No test can start a container, so what the deployment files say is compared with what the binary knows.

use paceline_tests::binary;
use serde_norway::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

fn text(file: &str) -> String {
    fs::read_to_string(binary::root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// One service of the compose file, as far as it matters here.
struct Service {
    name: String,
    is_ours: bool,
    command: Vec<String>,
    healthcheck: Vec<String>,
    environment: BTreeMap<String, String>,
    ports: Vec<String>,
    volumes: Vec<String>,
    depends_on_healthy: Vec<String>,
}

fn services() -> Vec<Service> {
    let mut compose: Value = serde_norway::from_str(&text("docker-compose.yml")).expect("it is YAML");
    compose.apply_merge().expect("its anchors are defined");
    let services = compose["services"].as_mapping().expect("it has services");
    services
        .iter()
        .map(|(name, service)| Service::read(name.as_str().expect("names are texts"), service))
        .collect()
}

impl Service {
    fn read(name: &str, service: &Value) -> Self {
        let environment = service["environment"].as_mapping().into_iter().flatten();
        let depends_on = service["depends_on"].as_mapping().into_iter().flatten();
        Self {
            name: name.to_owned(),
            is_ours: service["image"] == "paceline",
            command: words(&service["command"]),
            healthcheck: words(&service["healthcheck"]["test"]),
            environment: environment.map(|(name, value)| (plain(name), plain(value))).collect(),
            ports: words(&service["ports"]),
            volumes: words(&service["volumes"]),
            depends_on_healthy: depends_on
                .filter(|(_, wish)| wish["condition"] == "service_healthy")
                .map(|(name, _)| plain(name))
                .collect(),
        }
    }

    fn value_of(&self, flag: &str) -> Option<&str> {
        let at = self.command.iter().position(|word| word == flag)?;
        self.command.get(at + 1).map(String::as_str)
    }
}

fn words(list: &Value) -> Vec<String> {
    list.as_sequence().into_iter().flatten().map(plain).collect()
}

/// A flag's `yes` without quotes would be a boolean, and reach Redis as `true`.
fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value:?} is no text: quote it")).to_owned()
}

fn problems<'a>(commands: impl Iterator<Item = &'a [String]>) -> Vec<String> {
    commands
        .filter_map(|command| {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            binary::misspelled(&words)
        })
        .collect()
}

#[test]
fn every_command_of_the_compose_file_exists() {
    let services = services();
    let ours: Vec<&Service> = services.iter().filter(|service| service.is_ours).collect();
    assert_eq!(
        ours.iter().map(|service| service.name.as_str()).collect::<Vec<_>>(),
        ["worker", "admin", "sandbox"]
    );
    let checks = services.iter().filter_map(|service| match service.healthcheck.as_slice() {
        [kind, program, rest @ ..] if kind == "CMD" && program == "paceline" => Some(rest),
        _ => None,
    });
    let commands = ours.iter().map(|service| service.command.as_slice()).chain(checks);
    assert_eq!(problems(commands), [""; 0]);
}

#[test]
fn every_service_but_the_worker_tells_whether_it_is_well() {
    for service in services() {
        let has_port = service.name != "worker";
        assert_eq!(!service.healthcheck.is_empty(), has_port, "{}", service.name);
        let needs_redis = ["worker", "admin"].contains(&service.name.as_str());
        assert_eq!(service.depends_on_healthy == ["redis"], needs_redis, "{}", service.name);
    }
}

#[test]
fn the_redis_of_the_compose_file_has_the_settings_that_matter() {
    let services = services();
    let redis = services.iter().find(|service| service.name == "redis").expect("it has a Redis");
    assert_eq!(redis.command[0], "redis-server");
    for (flag, value) in [
        ("--appendonly", "yes"),
        ("--appendfsync", "everysec"),
        ("--maxmemory-policy", "noeviction"),
        ("--maxmemory", "1gb"),
        ("--zset-max-listpack-entries", "0"),
        ("--lazyfree-lazy-expire", "yes"),
        ("--lazyfree-lazy-server-del", "yes"),
    ] {
        assert_eq!(redis.value_of(flag), Some(value), "{flag}");
    }
    assert!(redis.volumes.iter().any(|volume| volume.ends_with(":/data")), "the AOF outlives the container");
}

/// The same words, given to a real server: a setting that it does not know would end it at once.
#[test]
fn redis_starts_with_the_settings_of_the_compose_file() {
    let services = services();
    let redis = services.iter().find(|service| service.name == "redis").expect("it has a Redis");
    let options: Vec<&str> = redis.command[1..].iter().map(String::as_str).collect();
    let server = paceline_tests::redis_server::RedisServer::with(&options);
    let config: BTreeMap<String, String> = redis::cmd("CONFIG")
        .arg("GET")
        .arg("maxmemory*")
        .query(&mut server.connection())
        .expect("it answers");
    assert_eq!(config["maxmemory"], (1_u64 << 30).to_string());
    assert_eq!(config["maxmemory-policy"], "noeviction");
}

#[test]
fn nothing_is_published_beyond_loopback() {
    for service in services() {
        for port in service.ports {
            assert!(port.starts_with("127.0.0.1:"), "{}: {port}", service.name);
        }
    }
}

#[test]
fn the_example_settings_fit_the_compose_file() {
    let checked = Command::new(binary::paceline())
        .args(["check-config", "--config", "deploy/paceline.toml"])
        .current_dir(binary::root())
        .env_clear()
        .output()
        .expect("the binary runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));

    let settings: toml::Table = text("deploy/paceline.toml").parse().expect("it is TOML");
    let services = services();
    let service = |name: &str| services.iter().find(|service| service.name == name).expect("it is a service");
    for name in ["worker", "admin"] {
        let mounted = format!(
            "./deploy/paceline.toml:{}:ro",
            service(name).value_of("--config").expect("it has settings")
        );
        assert_eq!(service(name).volumes, [mounted], "{name}");
    }
    assert_eq!(settings["redis"]["url"].as_str(), Some("redis://redis:6379"));
    let sandbox = service("sandbox").value_of("--listen").and_then(|listen| listen.rsplit(':').next());
    let origin = format!("http://sandbox:{}", sandbox.expect("the sandbox listens"));
    assert_eq!(settings["provider"]["sandbox"]["base_url"].as_str(), Some(origin.as_str()));

    let listen = settings["admin"]["listen"].as_str().expect("the API listens");
    let port = listen.rsplit(':').next().expect("on a port");
    assert_eq!(service("admin").ports, [format!("127.0.0.1:{port}:{port}")]);
    assert_eq!(service("admin").environment["PACELINE_API"], format!("http://127.0.0.1:{port}"));
    let needs =
        [("admin", &settings["token"]["operator"]), ("worker", &settings["credential"]["sandbox-key"])];
    for (name, holder) in needs {
        let variable = holder["secret"].as_str().and_then(|secret| secret.strip_prefix("env:"));
        assert!(service(name).environment.contains_key(variable.expect("an env: reference")), "{name}");
    }
}

/// `["paceline"]` of an instruction in its JSON form.
fn instruction(dockerfile: &str, word: &str) -> Vec<String> {
    let list = dockerfile.lines().find_map(|line| line.strip_prefix(word)).expect("the Dockerfile has it");
    serde_json::from_str(list.trim()).expect("it is in the JSON form, so that no shell swallows signals")
}

#[test]
fn the_image_runs_the_binary_as_nobody_in_particular() {
    let dockerfile = text("Dockerfile");
    assert_eq!(instruction(&dockerfile, "ENTRYPOINT"), ["paceline"]);
    let command = instruction(&dockerfile, "CMD");
    assert_eq!(problems(std::iter::once(command.as_slice())), [""; 0]);
    let stages: Vec<&str> = dockerfile.split("\nFROM ").collect();
    assert_eq!(stages.len(), 3, "a stage that builds and one that runs");
    let built = "--package paceline-cli --bin paceline";
    assert!(stages[1].contains(built) && stages[1].contains("--locked"), "{}", stages[1]);
    assert!(stages[2].contains("ca-certificates"), "without roots no provider can be trusted");
    let user = stages[2].lines().find_map(|line| line.strip_prefix("USER ")).expect("it names a user");
    assert!(user.parse::<u32>().is_ok_and(|id| id > 0), "{user}: a number that is not root's");
    let rust = stages[1].split([':', '-']).nth(1);
    let manifest: toml::Table = text("Cargo.toml").parse().expect("it is TOML");
    assert_eq!(
        rust,
        manifest["workspace"]["package"]["rust-version"].as_str(),
        "the image builds with our Rust"
    );
}

/// Every member of the workspace must reach the build, or cargo refuses to read the manifest.
#[test]
fn the_build_context_holds_every_member_of_the_workspace() {
    let ignored = text(".dockerignore");
    let ignored: Vec<&str> = ignored.lines().filter(|line| !line.starts_with('#')).collect();
    for needed in ["crates", "tests", "lua", "Cargo.toml", "Cargo.lock", "*.toml", "*.lock"] {
        assert!(!ignored.contains(&needed), "{needed}");
    }
    for heavy in ["target", ".git", ".paceline"] {
        assert!(ignored.contains(&heavy), "{heavy}");
    }
}
