//! `GET /v1/codes?minutes=60&class=`: what the remote side said, beside what we stored.

use crate::classes::App;
use crate::fields::InQuery;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counts are kept for two days.
const MAX_MINUTES: u64 = 2_880;

/// One provider code, what it meant, and where the job went.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CodeRow {
    pub(crate) code: String,
    pub(crate) outcome: String,
    pub(crate) state: String,
    pub(crate) n: u64,
}

/// The sums, most frequent first.
#[derive(Debug, Serialize)]
pub(crate) struct Codes {
    minutes: u64,
    rows: Vec<CodeRow>,
}

/// The route.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    InQuery(mut fields): InQuery,
) -> Result<Json<Codes>, Problem> {
    let minutes = fields.whole("minutes", 1..=MAX_MINUTES)?.unwrap_or(60);
    let class = fields.text("class")?;
    fields.finish()?;
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for known in app.classes(class.as_deref())? {
        for (_, counts) in app.store.counts(&known.at, minutes).await? {
            for (count, n) in counts {
                *sums.entry(count).or_default() += n;
            }
        }
    }
    Ok(Json(Codes { minutes, rows: rows(sums) }))
}

/// `code|outcome|state`, read from its end: a code is the remote side's word and may hold anything.
pub(crate) fn rows(sums: BTreeMap<String, u64>) -> Vec<CodeRow> {
    let mut rows: Vec<CodeRow> = sums
        .into_iter()
        .map(|(count, n)| {
            let mut parts = count.rsplitn(3, '|').map(str::to_owned);
            let (state, outcome) = (parts.next(), parts.next());
            CodeRow {
                code: parts.next().unwrap_or_default(),
                outcome: outcome.unwrap_or_default(),
                state: state.unwrap_or_default(),
                n,
            }
        })
        .collect();
    rows.sort_by_key(|row| Reverse(row.n));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_from_its_end() {
        let rows = rows(BTreeMap::from([
            ("|replayed|pending".to_owned(), 1),
            ("a|b|throttled|pending".to_owned(), 2),
        ]));
        let row = |code: &str, outcome: &str, n| CodeRow {
            code: code.into(),
            outcome: outcome.into(),
            state: "pending".into(),
            n,
        };
        assert_eq!(rows, [row("a|b", "throttled", 2), row("", "replayed", 1)]);
    }
}
