//! Outcomes that could not be written, on this machine's own disk: a worker that ends while Redis is away leaves them to
//! the next one, so that what was accepted is known as such.
//!
//! One file per process, one JSON line per end, without payloads. It is written only while Redis refuses, synced
//! before anything else happens, and emptied once everything stuck. A file that nobody locks belonged to a process
//! that is gone, and whoever starts next adopts it.

use crate::backoff::RedisBackoff;
use crate::lane::Lane;
use paceline_core::policy::Trips;
use paceline_store::{ClassRef, RedisStore, Settled, Settlement, Store};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Beyond this nothing more is kept here: the leases lapse, as they would without a journal.
const MAX_BYTES: u64 = 64 << 20;
/// Settlements per call.
const MAX_BATCH: usize = 50;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    class: String,
    settlement: Settlement,
}

/// This process's file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Mutex<File>,
}

impl Journal {
    /// A file of its own in `folder`, locked for as long as the process lives.
    pub(crate) fn open(folder: &Path, worker: &str) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("{worker}.jsonl"));
        let file = OpenOptions::new().create_new(true).read(true).append(true).open(path)?;
        file.lock()?;
        Ok(Self { file: Mutex::new(file) })
    }

    /// Appends ends and waits until they are on the disk.
    pub(crate) fn keep(&self, class: &str, settlements: &[Settlement]) -> std::io::Result<()> {
        let mut lines = Vec::new();
        for settlement in settlements {
            let line = Line { class: class.to_owned(), settlement: settlement.clone() };
            serde_json::to_writer(&mut lines, &line)?;
            lines.push(b'\n');
        }
        let mut file = self.file.lock().expect("no holder panics");
        if file.metadata()?.len() + lines.len() as u64 > MAX_BYTES {
            return Err(std::io::Error::other("the journal is full"));
        }
        file.write_all(&lines)?;
        file.sync_data()
    }

    /// Everything in it is in Redis.
    pub(crate) fn clear(&self) -> std::io::Result<()> {
        let mut file = self.file.lock().expect("no holder panics");
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0)).map(|_| ())
    }
}

/// A file that a process left behind.
pub(crate) struct Orphan {
    path: PathBuf,
    /// Held, so that no other process adopts it as well.
    _file: File,
    lines: Vec<Line>,
}

/// The files in `folder` whose processes are gone. Empty ones are removed on the way.
pub(crate) fn orphans(folder: &Path) -> Vec<Orphan> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| adopt(entry.path())).collect()
}

fn adopt(path: PathBuf) -> Option<Orphan> {
    if path.extension().is_none_or(|extension| extension != "jsonl") {
        return None;
    }
    let file = File::open(&path).ok()?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return None,
        Err(TryLockError::Error(error)) => {
            tracing::warn!(%error, path = %path.display(), "a journal cannot be locked and is left alone");
            return None;
        }
    }
    // A line that was cut by the end of its process says nothing.
    let read = BufReader::new(&file).split(b'\n').map_while(Result::ok);
    let lines: Vec<Line> = read.filter_map(|line| serde_json::from_slice(&line).ok()).collect();
    if lines.is_empty() {
        let _ = std::fs::remove_file(&path);
        return None;
    }
    Some(Orphan { path, _file: file, lines })
}

/// Writes what earlier processes left, however long Redis takes to come back. An acceptance is told late, a repeat is
/// answered as one, and anything else whose lease has lapsed meanwhile is dropped.
pub(crate) async fn inherit(folder: PathBuf, store: RedisStore, lanes: Vec<Lane>) {
    let classes: Vec<(ClassRef, Trips)> =
        lanes.into_iter().map(|lane| (lane.at, lane.class.policy.trips)).collect();
    for mut orphan in orphans(&folder) {
        let (left, mut backoff) = (orphan.lines.len(), RedisBackoff::default());
        loop {
            match orphan.settle(&store, &classes).await {
                Ok(written) => {
                    tracing::warn!(left, written, "outcomes that an earlier worker could not write");
                    metrics::counter!("paceline_inherited_outcomes_total").increment(written as u64);
                    break;
                }
                Err(_) => backoff.pause().await,
            }
        }
    }
}

impl Orphan {
    /// Writes the ends of the classes that are known here; an error leaves everything for another try. Once all of
    /// them stuck the file is removed; ends of classes that nobody here knows stay in it.
    pub(crate) async fn settle(
        &mut self,
        store: &RedisStore,
        classes: &[(ClassRef, Trips)],
    ) -> paceline_store::movement::Result<usize> {
        let mut written = 0;
        for (class, trips) in classes {
            let own = |line: &Line| line.class == class.class.as_str();
            let settlements: Vec<Settlement> =
                self.lines.iter().filter(|line| own(line)).map(|line| line.settlement.clone()).collect();
            for batch in settlements.chunks(MAX_BATCH) {
                let settled = store.settle(class, trips, batch).await?;
                written += settled
                    .iter()
                    .filter(|word| matches!(word, Settled::Moved(_) | Settled::Late(_)))
                    .count();
            }
            self.lines.retain(|line| !own(line));
        }
        if self.lines.is_empty()
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "a journal that was written cannot be removed");
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_core::decide::{Draws, Seen};
    use paceline_core::{Job, JobKey, Outcome, decide};

    fn settlement(key: &str) -> Settlement {
        let job = Job::new(JobKey::new(key).unwrap(), b"{\"secret\":1}".to_vec(), 1);
        let accepted = Outcome::Accepted { message_id: Some("m".into()) };
        let draws = Draws { spread: 0.0, jitter: 0.0 };
        Settlement {
            key: key.into(),
            birth: [1; 8],
            deadline_ms: 5,
            claimed_ms: 4,
            probed: false,
            decision: decide(&job, &accepted, &test_policy(), Seen::default(), 4, draws),
            decided_again: false,
            count: "202|accepted".into(),
            history: b"{\"at_ms\":1}\n".to_vec(),
        }
    }

    fn test_policy() -> paceline_core::policy::Policy {
        paceline_core::policy::Policy {
            max_spent: 10,
            max_unknown: 3,
            max_lapses: 3,
            solo_lapses: 2,
            throttle_horizon_ms: 1,
            tries_per_hour: 60,
            backoff: paceline_core::backoff::Backoff::new(1, 2).unwrap(),
            on_ambiguous: paceline_core::policy::OnAmbiguous::Ask,
            dedup_window_ms: None,
            trips: Trips::default(),
        }
    }

    #[test]
    fn what_a_process_left_is_found_whole_once_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path(), "one").unwrap();
        journal.keep("bulk", &[settlement("a"), settlement("b")]).unwrap();
        assert!(orphans(folder.path()).is_empty(), "its process lives");
        journal.file.lock().unwrap().write_all(b"{\"class\":\"bu").unwrap();
        drop(journal);
        let found = orphans(folder.path());
        assert_eq!(found.len(), 1);
        let expected = |key: &str| Line { class: "bulk".into(), settlement: settlement(key) };
        assert_eq!(found[0].lines, [expected("a"), expected("b")], "but for the line that was cut");
        assert!(orphans(folder.path()).is_empty(), "and by one process only");
    }

    #[test]
    fn what_stuck_is_forgotten_and_no_payload_is_ever_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path(), "one").unwrap();
        journal.keep("bulk", &[settlement("a")]).unwrap();
        let text = std::fs::read_to_string(folder.path().join("one.jsonl")).unwrap();
        assert!(!text.contains("secret"), "{text}");
        journal.clear().unwrap();
        drop(journal);
        assert!(orphans(folder.path()).is_empty());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "an empty one is removed");
    }
}
