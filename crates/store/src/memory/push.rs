//! `push.lua`

use super::card::Card;
use super::world::World;
use crate::error::StoreError;
use crate::keys::ClassRef;
use crate::movement::*;
use paceline_core::document::{MAX_CAMPAIGN_BYTES, MAX_COST};
use paceline_core::{Job, State};
use sha1::{Digest, Sha1};

/// No time lies behind the year 2100.
const LAST_MS: u64 = 4_102_444_800_000;

impl World {
    pub(super) fn push(&mut self, class: &ClassRef, jobs: &[NewJob]) -> Result<Vec<Pushed>> {
        let line = self.line(class);
        if !line.declared {
            return Err(StoreError::UnknownClass);
        }
        let waiting = line.jobs.depth(State::Queued) + line.jobs.depth(State::Pending);
        if line.max_waiting > 0 && waiting + jobs.len() as u64 > line.max_waiting {
            return Err(StoreError::Full { waiting });
        }
        Ok(jobs.iter().map(|job| self.push_one(class, job)).collect())
    }

    fn push_one(&mut self, class: &ClassRef, new: &NewJob) -> Pushed {
        if let Some(field) = fault(new) {
            return Pushed::Invalid(field.into());
        }
        let (now_ms, birth, fingerprint) = (self.now_ms, self.births + 1, fingerprint(new));
        let jobs = &mut self.line(class).jobs;
        let key = new.key.as_str();
        if let Some(kept) = jobs.kept(key) {
            let state = jobs.state_of(key).unwrap_or(State::Queued);
            let same = kept.card().is_some_and(|card| card.fingerprint == fingerprint);
            return if same { Pushed::Duplicate(state) } else { Pushed::Conflict(state) };
        }
        let job = Job {
            birth: birth.to_be_bytes(),
            cost: new.cost,
            expires_at_ms: Some(new.expires_at_ms).filter(|&at_ms| at_ms > 0),
            campaign: new.campaign.clone(),
            ..Job::new(new.key.clone(), new.document.clone(), now_ms)
        };
        jobs.write(key, Card::new(job, fingerprint));
        jobs.put(key, State::Queued, new.at_ms.max(now_ms), now_ms);
        self.births = birth;
        Pushed::Created
    }
}

/// `part/fault.lua`; a key is valid by its type.
fn fault(new: &NewJob) -> Option<&'static str> {
    if new.at_ms > LAST_MS {
        Some("at_ms")
    } else if new.expires_at_ms > LAST_MS {
        Some("expires_at_ms")
    } else if !(1..=MAX_COST).contains(&new.cost) {
        Some("cost")
    } else if new.campaign.len() > MAX_CAMPAIGN_BYTES || new.campaign.chars().any(char::is_control) {
        Some("campaign")
    } else {
        None
    }
}

/// The first sixteen bytes of what was given, or of the document's SHA-1 in hex; short ones filled with zeros.
fn fingerprint(new: &NewJob) -> [u8; 16] {
    let hex = if new.fingerprint.is_empty() {
        Sha1::digest(&new.document).iter().map(|byte| format!("{byte:02x}")).collect()
    } else {
        new.fingerprint.clone()
    };
    let mut kept = [b'0'; 16];
    kept.iter_mut().zip(hex.bytes()).for_each(|(kept, byte)| *kept = byte);
    kept
}
