//! The sections of the configuration, one function each. A missing value is a fault already gathered, so a
//! section that lacks one simply yields `None`.

use super::layers::Scalar;
use super::reader::{Reader, Section};
use super::*;
use crate::Fault;
use crate::backoff::Backoff;
use crate::budget::{Rate, Start};
use crate::policy::{OnAmbiguous, Trips};
use crate::quota::Quota;
use crate::request::Encoding;
use crate::vocabulary::{Condition, Locator, Pointer};

pub(super) fn config(reader: &mut Reader) -> Option<Config> {
    let top = Section::fixed("");
    let namespace = reader.required(&top, "namespace", name);
    let deployment_id = reader.optional(&top, "deployment_id", |value| {
        text(value)?.parse::<Uuid>().map_err(|_| "must be a UUID".to_owned())
    });
    let tokens = tokens(reader);
    let redis = redis(reader);
    let admin = admin(reader, tokens.is_empty());
    let alerts = alerts(reader);
    let worker = worker(reader);
    let providers = each(reader, "provider", provider);
    let accounts = each(reader, "account", |reader, section, _| limits(reader, section));
    let credentials = each(reader, "credential", credential);
    check_references(reader, &providers, &accounts, &credentials);
    let classes = classes(reader, &providers, &credentials);
    check_groups(reader, &classes, &credentials);
    Some(Config {
        namespace: namespace?,
        deployment_id,
        redis: redis?,
        admin: admin?,
        alerts: alerts?,
        worker: worker?,
        providers,
        accounts,
        credentials,
        classes,
        tokens,
    })
}

fn each<T>(
    reader: &mut Reader,
    kind: &str,
    read: impl Fn(&mut Reader, &Section, &Name) -> Option<T>,
) -> BTreeMap<Name, T> {
    let names = reader.names(kind);
    names
        .into_iter()
        .filter_map(|name| Some((name.clone(), read(reader, &Section::named(kind, &name), &name)?)))
        .collect()
}

fn redis(reader: &mut Reader) -> Option<RedisConfig> {
    let section = Section::fixed("redis");
    let url = reader.required(&section, "url", |value| {
        let url = text(value)?;
        let known = ["redis://", "rediss://", "redis+sentinel://", "redis+cluster://"]
            .iter()
            .any(|scheme| url.starts_with(scheme));
        if url.is_empty() || known {
            Ok(url)
        } else {
            Err("must start with redis://, rediss://, redis+sentinel:// or redis+cluster://".into())
        }
    });
    let response_timeout_ms =
        reader.required(&section, "response_timeout_ms", |value| integer(value, 50, 60_000));
    let durability = reader.required(&section, "durability", |value| match text(value)?.as_str() {
        "everysec" => Ok(Durability::Everysec),
        "always" => Ok(Durability::Always),
        "replica" => Ok(Durability::Replica),
        _ => Err("must be everysec, always or replica".into()),
    });
    Some(RedisConfig { url: url?, response_timeout_ms: response_timeout_ms?, durability: durability? })
}

fn admin(reader: &mut Reader, no_tokens: bool) -> Option<AdminConfig> {
    let section = Section::fixed("admin");
    let listen: Option<SocketAddr> = reader.required(&section, "listen", |value| {
        text(value)?.parse().map_err(|_| "must be an address and port like 127.0.0.1:8700".to_owned())
    });
    if no_tokens && listen.is_some_and(|listen| !listen.ip().is_loopback()) {
        reader.fault(&section, "listen", "is not loopback, and there is no [token.*]: anyone could send");
    }
    let max_body_bytes = reader.required(&section, "max_body_bytes", |value| integer(value, 1_024, 1 << 30));
    Some(AdminConfig { listen: listen?, max_body_bytes: max_body_bytes? as usize })
}

fn worker(reader: &mut Reader) -> Option<WorkerConfig> {
    let section = Section::fixed("worker");
    let grace_ms = reader.required(&section, "grace_ms", |value| integer(value, 0, 3_600_000));
    let lease_margin_ms = reader.required(&section, "lease_margin_ms", |value| integer(value, 500, 600_000));
    let poll_ms = reader.required(&section, "poll_ms", |value| integer(value, 10, 60_000));
    Some(WorkerConfig { grace_ms: grace_ms?, lease_margin_ms: lease_margin_ms?, poll_ms: poll_ms? })
}

fn alerts(reader: &mut Reader) -> Option<AlertsConfig> {
    let section = Section::fixed("alerts");
    let percent = |value: &Scalar| integer(value, 1, 100).map(|percent| percent as f64 / 100.0);
    let throttle_share = reader.required(&section, "throttle_percent", percent);
    let quota_share = reader.required(&section, "quota_percent", percent);
    let age = |value: &Scalar| integer(value, 1, 31_536_000);
    let oldest_due_s = reader.required(&section, "oldest_due_s", age);
    let oldest_pending_s = reader.required(&section, "oldest_pending_s", age);
    let repeat_s = reader.required(&section, "repeat_s", age);
    let webhook = reader.optional(&section, "webhook", base_url);
    Some(AlertsConfig {
        throttle_share: throttle_share?,
        oldest_due_s: oldest_due_s?,
        oldest_pending_s: oldest_pending_s?,
        quota_share: quota_share?,
        webhook,
        repeat_s: repeat_s?,
    })
}

fn tokens(reader: &mut Reader) -> BTreeMap<Name, Token> {
    each(reader, "token", |reader, section, _| {
        let role = reader.required(section, "role", |value| match text(value)?.as_str() {
            "viewer" => Ok(Role::Viewer),
            "producer" => Ok(Role::Producer),
            "operator" => Ok(Role::Operator),
            _ => Err("must be viewer, producer or operator".to_owned()),
        });
        let secret = reader.required(section, "secret", secret_ref);
        Some(Token { role: role?, secret: secret? })
    })
}

fn provider(reader: &mut Reader, section: &Section, _: &Name) -> Option<Provider> {
    let base_url = reader.required(section, "base_url", base_url);
    let deduplicates = reader.required(section, "deduplicates", boolean);
    let dedup_window_s = reader.required(section, "dedup_window_s", |value| integer(value, 1, 31_536_000));
    let idempotency_header = reader.required(section, "idempotency_header", text)?;
    if deduplicates == Some(true) && idempotency_header.is_empty() {
        reader.fault(section, "idempotency_header", "must be set where the provider deduplicates");
    }
    let pointer = reader.optional(section, "success_pointer", |value| Pointer::parse(&text(value)?));
    let wanted = reader.optional(section, "success_value", text);
    if pointer.is_some() != wanted.is_some() {
        reader.fault(section, "success_pointer", "and success_value are set together");
    }
    let success = pointer.zip(wanted).map(|(pointer, wanted)| Condition::body_is(pointer, wanted));
    let message_id = reader.optional(section, "message_id", |value| Locator::parse(&text(value)?));
    let request = request_form(reader, section);
    let connect_timeout_ms =
        reader.required(section, "connect_timeout_ms", |value| integer(value, 1, 600_000));
    let first_byte_timeout_ms =
        reader.required(section, "first_byte_timeout_ms", |value| integer(value, 1, 600_000));
    let max_answer_bytes =
        reader.required(section, "max_answer_bytes", |value| integer(value, 512, 16_777_216));
    Some(Provider {
        base_url: base_url?,
        request: request?,
        idempotency_header: Some(idempotency_header.to_lowercase()).filter(|header| !header.is_empty()),
        dedup_window_ms: dedup_window_s.filter(|_| deduplicates == Some(true)).map(|s| s * 1000),
        rules: ProviderRules::new(success, message_id, Vec::new()),
        connect_timeout_ms: connect_timeout_ms?,
        first_byte_timeout_ms: first_byte_timeout_ms?,
        max_answer_bytes: max_answer_bytes? as usize,
    })
}

fn request_form(reader: &mut Reader, section: &Section) -> Option<RequestForm> {
    let form = RequestForm {
        method: reader.optional(section, "method", text),
        path: reader.optional(section, "path", text),
        headers: reader.texts(section, "headers"),
        encoding: reader.optional(section, "encoding", |value| match text(value)?.as_str() {
            "json" => Ok(Encoding::Json),
            "form" => Ok(Encoding::Form),
            "raw" => Ok(Encoding::Raw),
            _ => Err("must be json, form or raw".to_owned()),
        }),
    };
    match form.check("") {
        Ok(()) => Some(form),
        Err(Fault { field, problem }) => {
            reader.fault(section, field.trim_start_matches('.'), problem);
            None
        }
    }
}

fn limits(reader: &mut Reader, section: &Section) -> Option<Limits> {
    let rate = reader.required(section, "rate", rate_of);
    let burst = reader.required(section, "burst", |value| integer(value, 1, 100_000));
    let max_in_flight = reader.required(section, "max_in_flight", |value| integer(value, 0, 1_000_000));
    let floor = reader.optional(section, "floor", rate_of);
    let start = reader.required(section, "start", |value| match text(value)?.as_str() {
        "ceiling" => Ok(Start::Ceiling),
        "modest" => Ok(Start::Modest),
        _ => Err("must be ceiling (the limit is known) or modest (it is a guess)".to_owned()),
    });
    let adapts = reader.required(section, "adapts", boolean);
    let quotas = reader.required(section, "quotas", |value| {
        list(value)?.iter().map(|quota| quota.parse::<Quota>().map_err(|fault| fault.problem)).collect()
    });
    if floor.zip(rate).is_some_and(|(floor, rate)| floor.per_s() > rate.per_s()) {
        reader.fault(section, "floor", "must not be above the rate");
    }
    Some(Limits {
        rate: rate?,
        burst: burst? as u32,
        floor: floor.unwrap_or(rate?.hundredth()),
        start: start?,
        adapts: adapts?,
        max_in_flight: max_in_flight? as u32,
        quotas: quotas?,
    })
}

fn rate_of(value: &Scalar) -> Result<Rate, String> {
    text(value)?.parse().map_err(|fault: Fault| fault.problem)
}

fn credential(reader: &mut Reader, section: &Section, _: &Name) -> Option<Credential> {
    let provider = reader.required(section, "provider", name);
    let account = reader.optional(section, "account", name);
    let kind = reader.required(section, "auth", text);
    let secret = reader.optional(section, "secret", secret_ref);
    let user = reader.optional(section, "auth_user", text);
    let label = reader.optional(section, "auth_name", text);
    let auth = match (kind?.as_str(), secret, user, label) {
        ("none", _, _, _) => Ok(Auth::None),
        (_, None, _, _) => Err(("secret", "is missing: env:NAME or file:PATH")),
        ("bearer", Some(secret), _, _) => Ok(Auth::Bearer(secret)),
        ("basic", Some(secret), Some(user), _) => Ok(Auth::Basic { user, secret }),
        ("basic", ..) => Err(("auth_user", "is missing for basic")),
        ("header", Some(secret), _, Some(name)) => Ok(Auth::Header { name: name.to_lowercase(), secret }),
        ("query", Some(secret), _, Some(name)) => Ok(Auth::Query { name, secret }),
        ("header" | "query", ..) => Err(("auth_name", "is missing: the name the secret goes under")),
        _ => Err(("auth", "must be none, bearer, basic, header or query")),
    };
    let auth = auth.map_err(|(key, problem)| reader.fault(section, key, problem)).ok();
    let limits = limits(reader, section);
    Some(Credential { provider: provider?, account, auth: auth?, limits: limits? })
}

fn check_references(
    reader: &mut Reader,
    providers: &BTreeMap<Name, Provider>,
    accounts: &BTreeMap<Name, Limits>,
    credentials: &BTreeMap<Name, Credential>,
) {
    for (name, credential) in credentials {
        let section = Section::named("credential", name);
        if !providers.contains_key(&credential.provider)
            && !reader.names("provider").contains(&credential.provider)
        {
            reader.fault(&section, "provider", format!("there is no [provider.{}]", credential.provider));
        }
        if let Some(account) = credential.account.as_ref().filter(|account| !accounts.contains_key(*account))
        {
            reader.fault(&section, "account", format!("there is no [account.{account}]"));
        }
        if accounts.contains_key(name) {
            reader.fault(
                &section,
                "account",
                "a credential and an account must not share a name: both name a budget",
            );
        }
    }
}

fn classes(
    reader: &mut Reader,
    providers: &BTreeMap<Name, Provider>,
    credentials: &BTreeMap<Name, Credential>,
) -> BTreeMap<Name, Class> {
    each(reader, "class", |reader, section, class_name| {
        let credential = reader.optional(section, "credential", name);
        let policy = policy(
            reader,
            section,
            credential.as_ref().and_then(|name| provider_of(name, providers, credentials)),
        );
        let class = class(reader, section, class_name, credential.clone(), policy);
        let Some(credential) = credential else {
            if reader.is_named("class", class_name) {
                reader.fault(section, "credential", "is missing: the credential its jobs leave with");
            }
            return None;
        };
        if !credentials.contains_key(&credential) {
            if !reader.names("credential").contains(&credential) {
                reader.fault(section, "credential", format!("there is no [credential.{credential}]"));
            }
            return None;
        }
        let mut class = class?;
        if let Some(provider) = provider_of(&credential, providers, credentials) {
            class.request = provider.request.overlaid(&class.request);
            check_windows(reader, section, &class, provider);
        }
        Some(class)
    })
}

fn provider_of<'a>(
    credential: &Name,
    providers: &'a BTreeMap<Name, Provider>,
    credentials: &BTreeMap<Name, Credential>,
) -> Option<&'a Provider> {
    providers.get(&credentials.get(credential)?.provider)
}

fn class(
    reader: &mut Reader,
    section: &Section,
    class_name: &Name,
    credential: Option<Name>,
    policy: Option<Policy>,
) -> Option<Class> {
    let group = reader.optional(section, "group", name).unwrap_or_else(|| class_name.clone());
    let concurrency = reader.required(section, "concurrency", |value| integer(value, 1, 10_000));
    let deadline_ms = reader.required(section, "deadline_ms", |value| integer(value, 10, 600_000));
    let share = reader.required(section, "share", |value| integer(value, 1, 1_000));
    let shed_order = reader.required(section, "shed_order", |value| integer(value, 1, 1_000));
    let windows = send_windows(reader, section);
    let max_waiting = reader.required(section, "max_waiting", |value| integer(value, 0, u64::MAX >> 1));
    let max_document_bytes =
        reader.required(section, "max_document_bytes", |value| integer(value, 64, 1 << 28));
    let receipt_retention_s =
        reader.required(section, "receipt_retention_s", |value| integer(value, 60, 315_360_000));
    let failed_retention_s =
        reader.required(section, "failed_retention_s", |value| integer(value, 60, 315_360_000));
    let request = request_form(reader, section);
    Some(Class {
        name: class_name.clone(),
        group,
        credential: credential?,
        concurrency: concurrency? as usize,
        deadline_ms: deadline_ms?,
        policy: policy?,
        request: request?,
        share: share? as u32,
        shed_order: shed_order? as u32,
        windows: windows?,
        max_waiting: max_waiting?,
        max_document_bytes: max_document_bytes? as usize,
        receipt_retention_ms: receipt_retention_s? * 1000,
        failed_retention_ms: failed_retention_s? * 1000,
    })
}

/// `Some(None)`: it may send always.
fn send_windows(reader: &mut Reader, section: &Section) -> Option<Option<Windows>> {
    let zone = reader.required(section, "window_zone", text)?;
    let windows = reader.required(section, "windows", list)?;
    if windows.is_empty() {
        return Some(None);
    }
    match Windows::new(&zone, &windows) {
        Ok(windows) => Some(Some(windows)),
        Err(Fault { field, problem }) => {
            reader.fault(section, &field, problem);
            None
        }
    }
}

fn policy(reader: &mut Reader, section: &Section, provider: Option<&Provider>) -> Option<Policy> {
    let small = |value: &Scalar| integer(value, 1, 250).map(|count| count as u8);
    let max_spent = reader.required(section, "max_spent", small);
    let max_unknown = reader.required(section, "max_unknown", small);
    let max_lapses = reader.required(section, "max_lapses", small);
    let throttle_horizon_s =
        reader.required(section, "throttle_horizon_s", |value| integer(value, 1, 31_536_000));
    let tries_per_hour = reader.required(section, "tries_per_hour", |value| integer(value, 1, 3_600));
    let base_ms = reader.required(section, "backoff_base_ms", |value| integer(value, 1, 3_600_000));
    let cap_ms = reader.required(section, "backoff_cap_ms", |value| integer(value, 1, 86_400_000));
    let on_ambiguous = reader.required(section, "on_ambiguous", |value| match text(value)?.as_str() {
        "ask" => Ok(OnAmbiguous::Ask),
        "retry" => Ok(OnAmbiguous::Retry),
        _ => Err("must be ask or retry".to_owned()),
    });
    let backoff = Backoff::new(base_ms?, cap_ms?)
        .map_err(|fault| reader.fault(section, &fault.field, fault.problem))
        .ok();
    Some(Policy {
        max_spent: max_spent?,
        max_unknown: max_unknown?,
        max_lapses: max_lapses?,
        solo_lapses: max_lapses?.saturating_sub(1).max(1),
        throttle_horizon_ms: throttle_horizon_s? * 1000,
        tries_per_hour: tries_per_hour? as usize,
        backoff: backoff?,
        on_ambiguous: on_ambiguous?,
        dedup_window_ms: provider.and_then(|provider| provider.dedup_window_ms),
        trips: Trips::default(),
    })
}

/// A receipt forgotten before the provider forgets the send id would let a repeated push send again.
fn check_windows(reader: &mut Reader, section: &Section, class: &Class, provider: &Provider) {
    let window_ms = provider.dedup_window_ms.unwrap_or(0);
    if class.receipt_retention_ms < window_ms {
        let problem = format!("must be at least the provider's dedup_window_s ({})", window_ms / 1000);
        reader.fault(section, "receipt_retention_s", problem);
    }
    if provider.connect_timeout_ms > class.deadline_ms {
        reader.fault(section, "deadline_ms", "must be at least the provider's connect_timeout_ms");
    }
}

/// One script touches one hash tag, so classes that share a budget need one group.
fn check_groups(
    reader: &mut Reader,
    classes: &BTreeMap<Name, Class>,
    credentials: &BTreeMap<Name, Credential>,
) {
    let mut group_of: BTreeMap<&Name, &Class> = BTreeMap::new();
    for class in classes.values() {
        let account = credentials.get(&class.credential).and_then(|credential| credential.account.as_ref());
        for budget in std::iter::once(&class.credential).chain(account) {
            let first = *group_of.entry(budget).or_insert(class);
            if first.group != class.group {
                let problem = format!(
                    "must be the same as of class {}: both spend from {budget}, and a shared budget needs one group",
                    first.name
                );
                reader.fault(&Section::named("class", &class.name), "group", problem);
            }
        }
    }
}

fn text(value: &Scalar) -> Result<String, String> {
    match value {
        Scalar::Text(text) => Ok(text.clone()),
        Scalar::Integer(_) | Scalar::Boolean(_) => Err("must be a string, in quotes".into()),
        Scalar::List(_) => Err("must be a string, not a list".into()),
        Scalar::Other(kind) => Err(format!("must be a string, not {kind}")),
    }
}

/// `["one", "two"]`; in the environment one string, split at semicolons.
fn list(value: &Scalar) -> Result<Vec<String>, String> {
    match value {
        Scalar::List(texts) => Ok(texts.clone()),
        Scalar::Text(line) => {
            Ok(line.split(';').map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect())
        }
        _ => Err("must be a list of strings: [\"…\", \"…\"]".into()),
    }
}

fn name(value: &Scalar) -> Result<Name, String> {
    Name::new(&text(value)?).map_err(|fault| fault.problem)
}

fn boolean(value: &Scalar) -> Result<bool, String> {
    match value {
        Scalar::Boolean(flag) => Ok(*flag),
        _ => Err("must be true or false".into()),
    }
}

fn integer(value: &Scalar, min: u64, max: u64) -> Result<u64, String> {
    match value {
        Scalar::Integer(integer) => u64::try_from(*integer).ok().filter(|n| (min..=max).contains(n)),
        _ => None,
    }
    .ok_or_else(|| format!("must be a whole number from {min} to {max}"))
}

fn base_url(value: &Scalar) -> Result<Url, String> {
    let url: Url = text(value)?.parse().map_err(|error| format!("is not a URL: {error}"))?;
    if !["http", "https"].contains(&url.scheme()) || url.host().is_none() {
        return Err("must be an http or https URL".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a credential: use [credential.*] with a secret reference".into());
    }
    Ok(url)
}

fn secret_ref(value: &Scalar) -> Result<SecretRef, String> {
    match text(value)?.split_once(':') {
        Some(("env", name)) if !name.is_empty() => Ok(SecretRef::Env(name.into())),
        Some(("file", path)) if !path.is_empty() => Ok(SecretRef::File(path.into())),
        // The value is not repeated: it may be the secret itself.
        _ => Err("must be a reference, env:NAME or file:PATH, never the secret itself".into()),
    }
}
