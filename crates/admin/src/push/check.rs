//! The door: what is refused here never reaches Redis, and the refusal names its field.

use crate::classes::{App, Known};
use paceline_core::document::fingerprint;
use paceline_core::request::address;
use paceline_core::{Document, Fault, JobKey};
use paceline_store::NewJob;
use uuid::Uuid;

/// A job that may be stored.
pub(super) struct Checked<'a> {
    pub(super) known: &'a Known,
    pub(super) job: NewJob,
    pub(super) not_before_ms: Option<u64>,
}

/// Why an item is refused.
pub(super) struct Refused {
    pub(super) fault: Fault,
    /// It is a limit of size: 413 rather than 400.
    pub(super) is_too_large: bool,
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self { fault, is_too_large: false }
    }
}

/// Checks one item; `item` is stored as it is.
pub(super) fn check<'a>(app: &'a App, item: &[u8]) -> Result<Checked<'a>, Refused> {
    let document = Document::parse(item, app.store.now_ms())?;
    let class = document.class.as_deref().ok_or_else(|| Fault::new("class", "is missing"))?;
    let known = app.find(class).ok_or_else(|| Fault::new("class", "there is no such class"))?;
    check_size(known, item)?;
    check_request(known, &document)?;
    let key = match document.key {
        Some(key) => key,
        None => JobKey::new(Uuid::now_v7().to_string())?,
    };
    let job = NewJob {
        key,
        at_ms: document.not_before_ms.unwrap_or(0),
        expires_at_ms: document.expires_at_ms.unwrap_or(0),
        cost: document.cost,
        campaign: document.campaign,
        fingerprint: fingerprint(item)?,
        document: item.to_vec(),
    };
    Ok(Checked { known, job, not_before_ms: document.not_before_ms })
}

fn check_size(known: &Known, item: &[u8]) -> Result<(), Refused> {
    let max_bytes = known.config.max_document_bytes;
    if item.len() <= max_bytes {
        return Ok(());
    }
    let problem = format!(
        "is {} bytes long; class {} takes at most {max_bytes} (max_document_bytes)",
        item.len(),
        known.name()
    );
    Err(Refused { fault: Fault::new("document", problem), is_too_large: true })
}

/// The request it would become: found out now, while somebody is there to hear it.
fn check_request(known: &Known, document: &Document) -> Result<(), Fault> {
    let request = known.config.request.overlaid(&document.request).render(&document.payload)?;
    address(&known.base_url, &request.path).map_err(|problem| Fault::new("request.path", problem))?;
    Ok(())
}
