use super::*;

const GOOD: &str = r#"
[provider.acme]
base_url = "https://api.acme.example/v2"
deduplicates = true
message_id = "body:/id"
headers.x-source = "paceline"

[credential.acme]
provider = "acme"
auth = "bearer"
secret = "env:ACME_KEY"
rate = "100/s"
burst = 50

[class.bulk]
credential = "acme"
path = "/send"
"#;

fn read(file: &str) -> Result<Config, Vec<ConfigFault>> {
    Config::read(Sources { file: Some(("paceline.toml", file)), environment: &[] })
}

fn faults(file: &str) -> Vec<String> {
    read(file).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn the_defaults_alone_are_valid_and_use_no_class() {
    let config = Config::read(Sources::default()).unwrap();
    assert_eq!(config.namespace.as_str(), "paceline");
    assert!(config.classes.is_empty());
}

#[test]
fn an_operators_file_lies_on_top() {
    let config = read(GOOD).unwrap();
    let bulk = &config.classes[&Name::new("bulk").unwrap()];
    assert_eq!((bulk.group.as_str(), bulk.concurrency, bulk.policy.max_spent), ("bulk", 128, 10));
    assert_eq!(bulk.request.path.as_deref(), Some("/send"));
    assert_eq!(bulk.request.headers["x-source"], "paceline");
    assert_eq!(bulk.policy.dedup_window_ms, Some(86_400_000));
    assert_eq!(config.budgets_of(bulk)[0].1.rate.to_string(), "100/s");
    assert_eq!(config.lease_ms(bulk), 20_000);
}

#[test]
fn the_environment_wins() {
    let environment = [
        ("PACELINE__CLASS__BULK__CONCURRENCY".to_owned(), "7".to_owned()),
        ("PACELINE__REDIS__URL".to_owned(), "redis://10.0.0.5".to_owned()),
        ("PATH".to_owned(), "/bin".to_owned()),
    ];
    let config = Config::read(Sources { file: Some(("f", GOOD)), environment: &environment }).unwrap();
    assert_eq!(config.classes[&Name::new("bulk").unwrap()].concurrency, 7);
    assert_eq!(config.redis.url, "redis://10.0.0.5");
}

#[test]
fn every_fault_is_told_at_once_with_its_line_and_a_near_miss() {
    let file = GOOD.replace("deduplicates = true\n", "")
        + "concurency = 5\ndeadline_ms = 0\n[admin]\nlisten = \"0.0.0.0:1\"\n";
    let faults = faults(&file);
    let wanted = [
        "paceline.toml:2: provider.acme.deduplicates: is missing",
        "paceline.toml:18: class.bulk.deadline_ms: must be a whole number from 10 to 600000",
        "paceline.toml:20: admin.listen: is not loopback, and there is no [token.*]: anyone could send",
        "paceline.toml:17: class.bulk.concurency: is not a setting; did you mean class.bulk.concurrency?",
    ];
    for fault in wanted {
        assert!(faults.iter().any(|found| found == fault), "{fault}\n{faults:#?}");
    }
    assert_eq!(faults.len(), wanted.len(), "{faults:#?}");
}

#[test]
fn classes_that_share_a_credential_need_one_group() {
    let shared = format!("{GOOD}[class.lifecycle]\ncredential = \"acme\"\n");
    let faults = faults(&shared);
    assert!(faults[0].contains("class.lifecycle.group: must be the same as of class bulk"), "{faults:?}");
    assert!(
        read(
            &shared
                .replace("path = \"/send\"", "group = \"acme\"")
                .replace("[class.lifecycle]", "[class.lifecycle]\ngroup = \"acme\"")
        )
        .is_ok()
    );
}

#[test]
fn a_secret_written_in_the_clear_is_refused_and_not_repeated() {
    let faults = faults(&GOOD.replace("env:ACME_KEY", "sk_live_hunter2"));
    assert!(faults[0].contains("credential.acme.secret"), "{faults:?}");
    assert!(!faults.concat().contains("hunter2"));
}

#[test]
fn nonsense_is_refused_setting_by_setting() {
    for (setting, from, to) in [
        ("credential.acme.rate", "\"100/s\"", "\"0/s\""),
        ("credential.acme.burst", "burst = 50", "burst = 0"),
        ("credential.acme.auth", "\"bearer\"", "\"digest\""),
        ("credential.acme.provider", "provider = \"acme\"", "provider = \"acne\""),
        ("class.bulk.credential", "credential = \"acme\"", "credential = \"acne\""),
        ("class.bulk.path", "\"/send\"", "\"//evil\""),
        ("class.bulk.receipt_retention_s", "path =", "receipt_retention_s = 60\npath ="),
        ("provider.acme.base_url", "https://api", "ftp://api"),
        ("toml", "burst = 50", "burst = = 50"),
        ("class.Bulk", "[class.bulk]", "[class.Bulk]"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let faults = read(&GOOD.replace(from, to)).unwrap_err();
        assert!(faults.iter().any(|fault| fault.setting == setting), "{setting}: {faults:#?}");
    }
}

/// Every setting stands in the commented file, set or shown, and the file shows no other.
#[test]
fn the_commented_file_and_the_types_agree() {
    let mut shown = BTreeSet::new();
    let mut section = String::new();
    for line in DEFAULTS.lines() {
        let line = line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line);
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = header.to_owned();
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            shown.insert(if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") });
        }
    }
    let short = |path: &str| {
        let parts: Vec<&str> = path.split('.').collect();
        match parts.as_slice() {
            ["defaults", kind, rest @ ..] => format!("{kind}.{}", rest.join(".")),
            [kind @ ("provider" | "credential" | "account" | "class" | "token"), _, rest @ ..] => {
                format!("{kind}.{}", rest.join("."))
            }
            _ => path.to_owned(),
        }
    };
    let header = |path: String| {
        path.split_once(".headers.").map_or(path.clone(), |(kind, _)| format!("{kind}.headers"))
    };
    let shown: BTreeSet<String> = shown.iter().map(|path| header(short(path))).collect();
    let known: BTreeSet<String> = settings().iter().map(|path| header(short(path))).collect();
    assert_eq!(shown, known);
}

/// A pointer that can never match would make every acceptance ambiguous.
#[test]
fn a_success_pointer_is_a_pointer() {
    let told = faults(
        &GOOD.replace("message_id", "success_pointer = \"status\"\nsuccess_value = \"0\"\nmessage_id"),
    );
    assert!(
        told.iter().any(|fault| fault.contains("success_pointer") && fault.contains("JSON pointer")),
        "{told:?}"
    );
    let rules = |file: &str| read(file).unwrap().providers[&Name::new("acme").unwrap()].rules.clone();
    assert_eq!(rules(GOOD).success, None);
    assert!(
        rules(&GOOD.replace("message_id", "success_pointer = \"/s\"\nsuccess_value = \"0\"\nmessage_id"))
            .success
            .is_some()
    );
}
