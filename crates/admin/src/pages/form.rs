//! What a form sends, and queries that lead to a page.

use super::fault::Fault;
use crate::fields::Fields;
use crate::problem::Problem;
use axum::Form;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use url::form_urlencoded;

/// The pairs of a query or of a form's body, as sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

/// The pairs of a query.
pub(super) struct InQuery(pub(super) Pairs);

/// The pairs of a form's body.
pub(super) struct InForm(pub(super) Pairs);

/// What may stand there several times.
const LISTS: [&str; 2] = ["keys", "state"];

impl<S: Send + Sync> FromRequestParts<S> for InQuery {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Fault> {
        let Query(pairs) =
            Query::try_from_uri(&parts.uri).map_err(|_| Problem::invalid("query", "cannot be read"))?;
        Ok(Self(Pairs(pairs)))
    }
}

impl<S: Send + Sync> FromRequest<S> for InForm {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let form = Form::<Vec<(String, String)>>::from_request(request, state).await;
        let Form(pairs) =
            form.map_err(|refused| Problem::new(refused.status(), "the form cannot be read"))?;
        Ok(Self(Pairs(pairs)))
    }
}

impl Pairs {
    /// The first of that name that was filled in.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All of that name that were filled in.
    pub(super) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(of, text)| of == name && !text.is_empty()).map(|(_, text)| text.as_str())
    }

    /// A number; what is none counts as 0: it only tells how far a page came.
    pub(super) fn number(&self, name: &str) -> usize {
        self.get(name).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Those of these names, as the API's own readers take them.
    pub(super) fn fields(&self, names: &[&str]) -> Result<Fields, Problem> {
        let asked = self.0.iter().filter(|(name, _)| names.contains(&name.as_str())).cloned();
        Fields::of_texts(asked.collect(), &LISTS)
    }

    /// Those of these names, to be sent along.
    pub(super) fn only<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .iter()
            .filter(|(name, text)| names.contains(&name.as_str()) && !text.is_empty())
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

/// A path with a query; what is empty is left out.
pub(super) fn link<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.into_iter().filter(|(_, text)| !text.is_empty()));
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Where one job is shown. A key may hold dots and slashes that browsers tidy away in a path, so it is a query.
pub(super) fn job_link(class: &str, key: &str) -> String {
    link("/job", [("class", class), ("key", key)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_through_a_link_whole() {
        assert_eq!(job_link("bulk", "../a b&c=<d>"), "/job?class=bulk&key=..%2Fa+b%26c%3D%3Cd%3E");
        assert_eq!(link("/", [("a", "")]), "/");
    }
}
