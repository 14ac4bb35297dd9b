//! The request a job becomes: the provider's form, the class's, the job's own on top.

use crate::Fault;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use url::Url;

/// How the payload becomes a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// The payload as it is, `application/json`.
    Json,
    /// A flat object, `application/x-www-form-urlencoded`.
    Form,
    /// A string, byte for byte; the content type comes from the headers.
    Raw,
}

/// A request form, each part optional so that forms can be laid over each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct RequestForm {
    /// `POST`, `PUT` or `PATCH`.
    #[serde(default)]
    pub method: Option<String>,
    /// A path on the provider's origin, with its query.
    #[serde(default)]
    pub path: Option<String>,
    /// Further headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How the payload becomes a body.
    #[serde(default)]
    pub encoding: Option<Encoding>,
}

/// A request ready to leave, but for its address and its credential, which the transport adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path, checked against the origin.
    pub path: String,
    /// Headers, names in lower case, `content-type` included.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Headers that belong to the transport and the connection: a job never sets them.
const RESERVED: [&str; 11] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl RequestForm {
    /// Refuses what could forge a header, name another host or hang a connection. `field` prefixes the faults.
    pub fn check(&self, field: &str) -> Result<(), Fault> {
        if let Some(method) = &self.method
            && !["POST", "PUT", "PATCH"].contains(&method.as_str())
        {
            return Err(Fault::new(format!("{field}.method"), "must be POST, PUT or PATCH"));
        }
        if let Some(path) = &self.path {
            check_path(path).map_err(|problem| Fault::new(format!("{field}.path"), problem))?;
        }
        for (name, value) in &self.headers {
            check_header(name, value)
                .map_err(|problem| Fault::new(format!("{field}.headers.{name:?}"), problem))?;
        }
        Ok(())
    }

    /// This form with `over` on top, part by part.
    pub fn overlaid(&self, over: &Self) -> Self {
        let mut headers = self.headers.clone();
        headers.extend(over.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())));
        Self {
            method: over.method.clone().or_else(|| self.method.clone()),
            path: over.path.clone().or_else(|| self.path.clone()),
            headers,
            encoding: over.encoding.or(self.encoding),
        }
    }

    /// The request for this payload.
    pub fn render(&self, payload: &RawValue) -> Result<Request, Fault> {
        let encoding = self.encoding.unwrap_or(Encoding::Json);
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        let content_type = match encoding {
            Encoding::Json => Some("application/json"),
            Encoding::Form => Some("application/x-www-form-urlencoded"),
            Encoding::Raw => None,
        };
        if let Some(content_type) = content_type
            && !headers.iter().any(|(name, _)| name == "content-type")
        {
            headers.push(("content-type".into(), content_type.into()));
        }
        Ok(Request {
            method: self.method.clone().unwrap_or_else(|| "POST".into()),
            path: self.path.clone().unwrap_or_else(|| "/".into()),
            headers,
            body: body(encoding, payload)?,
        })
    }
}

fn body(encoding: Encoding, payload: &RawValue) -> Result<Vec<u8>, Fault> {
    let text = payload.get();
    match encoding {
        Encoding::Json => Ok(text.as_bytes().to_vec()),
        Encoding::Raw => serde_json::from_str::<String>(text)
            .map(String::into_bytes)
            .map_err(|_| Fault::new("payload", "must be a string, because the request's encoding is raw")),
        Encoding::Form => form(text),
    }
}

fn form(text: &str) -> Result<Vec<u8>, Fault> {
    use serde_json::Value;
    let wrong = || {
        Fault::new(
            "payload",
            "must be an object of texts, numbers and booleans, because the request's encoding is form",
        )
    };
    let fields: serde_json::Map<String, Value> = serde_json::from_str(text).map_err(|_| wrong())?;
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in &fields {
        match value {
            Value::String(text) => form.append_pair(name, text),
            Value::Number(_) | Value::Bool(_) => form.append_pair(name, &value.to_string()),
            _ => return Err(wrong()),
        };
    }
    Ok(form.finish().into_bytes())
}

/// The address of `path` at `base`. A job names a path, never a host: the result must keep the origin.
pub fn address(base: &Url, path: &str) -> Result<Url, String> {
    let joined = format!("{}/{}", base.path().trim_end_matches('/'), path.trim_start_matches('/'));
    let url = base.join(&joined).map_err(|error| format!("is not a path: {error}"))?;
    if url.origin() != base.origin() || url.username() != base.username() || url.password() != base.password()
    {
        return Err("names another host; a job names a path on the provider's own origin".into());
    }
    Ok(url)
}

fn check_path(path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err("must start with \"/\": a path on the provider's own origin, never a host".into());
    }
    if path.starts_with("//") || path.starts_with("/\\") || path.contains('\\') {
        return Err(
            "must not start with \"//\" nor hold a backslash: a job names a path, never a host".into()
        );
    }
    if path.len() > 2_000 || !path.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("must be at most 2000 printable ASCII characters; escape others with %".into());
    }
    let base = Url::parse("https://provider.invalid").expect("a constant URL parses");
    address(&base, path).map(|_| ())
}

fn check_header(name: &str, value: &str) -> Result<(), String> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > 100 || !name.bytes().all(token) {
        return Err("is not a header name (RFC 9110 §5.1)".into());
    }
    if RESERVED.contains(&name.to_lowercase().as_str()) {
        return Err("belongs to the transport and cannot be set".into());
    }
    if value.len() > 4_000 || !value.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) {
        return Err("must be at most 4000 printable ASCII characters, no line breaks (RFC 9110 §5.5)".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with_path(path: &str) -> RequestForm {
        RequestForm { path: Some(path.into()), ..RequestForm::default() }
    }

    fn with_header(name: &str, value: &str) -> RequestForm {
        RequestForm { headers: BTreeMap::from([(name.into(), value.into())]), ..RequestForm::default() }
    }

    #[test]
    fn a_path_cannot_name_a_host() {
        for good in ["/v1/send", "/v1/send?x=1&y=%20", "/a/../b", "/@user", "/v1/http://x"] {
            assert_eq!(with_path(good).check("request"), Ok(()), "{good}");
        }
        for bad in [
            "//evil.example",
            "@evil.example",
            "/\\evil.example",
            "http://evil.example",
            "",
            "/a b",
            "/a\r\nb",
        ] {
            assert_eq!(with_path(bad).check("request").unwrap_err().field, "request.path", "{bad:?}");
        }
    }

    /// failures 98: refused at the door, never stripped in silence.
    #[test]
    fn a_header_cannot_be_forged() {
        assert_eq!(with_header("X-Tag", "1:2").check("request"), Ok(()));
        for (name, value) in [
            ("X", "a\r\nX-Injected: 1"),
            ("X", "a\nb"),
            ("X", "a\0b"),
            ("X", "عبدالله"),
            ("X Y", "a"),
            ("", "a"),
            ("Host", "evil.example"),
            ("Authorization", "x"),
            ("content-length", "5"),
        ] {
            let fault = with_header(name, value).check("request").unwrap_err();
            assert!(fault.field.starts_with("request.headers"), "{name} {value:?}");
        }
    }

    #[test]
    fn payloads_become_bodies() {
        let render = |encoding, payload: &str| {
            let form = RequestForm { encoding: Some(encoding), ..RequestForm::default() };
            form.render(&RawValue::from_string(payload.into()).unwrap())
                .map(|r| String::from_utf8(r.body).unwrap())
        };
        assert_eq!(
            render(Encoding::Json, r#"{"n":12345678901234567890123}"#).unwrap(),
            r#"{"n":12345678901234567890123}"#
        );
        assert_eq!(render(Encoding::Form, r#"{"to":"+49 1","n":2}"#).unwrap(), "n=2&to=%2B49+1");
        assert_eq!(render(Encoding::Raw, r#""a\nb""#).unwrap(), "a\nb");
        assert_eq!(render(Encoding::Form, r#"{"to":[1]}"#).unwrap_err().field, "payload");
        assert_eq!(render(Encoding::Raw, "{}").unwrap_err().field, "payload");
    }

    #[test]
    fn a_job_lays_its_own_form_on_top() {
        let provider =
            RequestForm { method: Some("POST".into()), path: Some("/a".into()), ..with_header("x-a", "1") };
        let over = RequestForm { path: Some("/b".into()), ..with_header("X-A", "2") };
        let both = provider.overlaid(&over);
        assert_eq!((both.path.as_deref(), both.headers["x-a"].as_str()), (Some("/b"), "2"));
    }

    proptest! {
        #[test]
        fn whatever_passes_keeps_the_origin(path in "\\PC{0,60}") {
            let base = Url::parse("https://user@api.example:8443/base").unwrap();
            if with_path(&path).check("request").is_ok() {
                let url = address(&base, &path).unwrap();
                prop_assert_eq!(url.origin(), base.origin());
            }
        }
    }
}
