//! The fields of a query or of a small JSON body, each read with its own message; unknown ones are refused.

use crate::classes::App;
use crate::incoming::{Form, Incoming};
use crate::problem::Problem;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Fields that were sent and not read yet.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    values: Map<String, Value>,
    /// A query has texts only, so its numbers and flags are texts.
    is_query: bool,
    known: Vec<&'static str>,
}

/// The fields of a query.
pub(crate) struct InQuery(pub(crate) Fields);

/// The fields of a JSON object; no body is an empty one.
pub(crate) struct InBody(pub(crate) Fields);

impl<S: Send + Sync> FromRequestParts<S> for InQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|_| Problem::invalid("query", "cannot be read"))?;
        Fields::of_texts(pairs, &[]).map(Self)
    }
}

impl FromRequest<Arc<App>> for InBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = Incoming::new(body, app.config.admin.max_body_bytes).whole().await?;
        if body.is_empty() {
            return Ok(Self(Fields::default()));
        }
        if Form::of(&parts.headers)? != Form::Json {
            return Err(Problem::invalid("body", "must be one JSON object here"));
        }
        let values: Map<String, Value> = serde_json::from_slice(&body)
            .map_err(|error| Problem::invalid("body", format!("must be a JSON object: {error}")))?;
        let values = values.into_iter().filter(|(_, value)| !value.is_null()).collect();
        Ok(Self(Fields { values, is_query: false, known: Vec::new() }))
    }
}

impl Fields {
    /// Of pairs that are all texts, as in a query or a form; what is empty was not filled in. `lists` may stand there
    /// several times.
    pub(crate) fn of_texts(pairs: Vec<(String, String)>, lists: &[&str]) -> Result<Self, Problem> {
        let mut values = Map::new();
        for (name, text) in pairs.into_iter().filter(|(_, text)| !text.is_empty()) {
            if lists.contains(&name.as_str()) {
                let list = values.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().expect("a list is made as one").push(Value::String(text));
            } else if values.contains_key(&name) {
                return Err(Problem::invalid(&name, "stands there twice"));
            } else {
                values.insert(name, Value::String(text));
            }
        }
        Ok(Self { values, is_query: true, known: Vec::new() })
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.values.remove(name)
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::invalid(name, "must be a string")),
        }
    }

    /// A text that must be there.
    pub(crate) fn required(&mut self, name: &'static str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| Problem::invalid(name, "is missing"))
    }

    /// A whole number within `range`.
    pub(crate) fn whole(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = match &value {
            Value::String(text) if self.is_query => text.parse().ok(),
            value => value.as_u64(),
        };
        let number = number.filter(|number| range.contains(number)).ok_or_else(|| {
            Problem::invalid(
                name,
                format!("must be a whole number from {} to {}", range.start(), range.end()),
            )
        })?;
        Ok(Some(number))
    }

    /// A flag; absent is false.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(Value::String(text)) if self.is_query && ["1", "true"].contains(&text.as_str()) => Ok(true),
            Some(Value::String(text)) if self.is_query && ["0", "false"].contains(&text.as_str()) => {
                Ok(false)
            }
            Some(_) => Err(Problem::invalid(name, "must be true or false")),
        }
    }

    /// Texts: in a body an array, or one text alone; in a query separated by commas.
    pub(crate) fn texts(&mut self, name: &'static str, max: usize) -> Result<Option<Vec<String>>, Problem> {
        let wrong = || Problem::invalid(name, format!("must be an array of 1 to {max} strings"));
        let texts: Vec<String> = match self.take(name) {
            None => return Ok(None),
            Some(Value::String(text)) if self.is_query => text.split(',').map(str::to_owned).collect(),
            Some(Value::String(text)) => vec![text],
            Some(value) => serde_json::from_value(value).map_err(|_| wrong())?,
        };
        if (1..=max).contains(&texts.len()) { Ok(Some(texts)) } else { Err(wrong()) }
    }

    /// Refuses what nobody asked for: a misspelt filter that is ignored would match everything.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.values.keys().next() {
            None => Ok(()),
            Some(unknown) if self.known.is_empty() => {
                Err(Problem::invalid(unknown, "is not known here; there are no fields"))
            }
            Some(unknown) => {
                let known = self.known.join(", ");
                Err(Problem::invalid(unknown, format!("is not known here; known are {known}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(values: Value, is_query: bool) -> Fields {
        let Value::Object(values) = values else { panic!("tests pass objects") };
        Fields { values, is_query, known: Vec::new() }
    }

    #[test]
    fn a_number_is_a_text_only_in_a_query() {
        let whole = |is_query| fields(json!({ "limit": "7" }), is_query).whole("limit", 1..=9);
        assert_eq!(whole(true).unwrap(), Some(7));
        assert!(whole(false).is_err());
        assert!(fields(json!({ "limit": 10 }), false).whole("limit", 1..=9).is_err());
    }

    #[test]
    fn a_field_that_nobody_asked_for_is_refused() {
        let mut fields = fields(json!({ "class": "bulk", "clas": "x" }), false);
        assert_eq!(fields.required("class").unwrap(), "bulk");
        assert!(fields.finish().is_err());
    }
}
