//! The record of a job: a packed header, the campaign, the document, then the history as JSON lines.
//!
//! `lua/part/record.lua` is the same in Lua. Numbers are big-endian; times are six bytes of ms.

use paceline_core::JobKey;
use paceline_core::history::History;
use paceline_core::job::{Counters, Flags, Job};

/// The version this code writes and reads.
pub const VERSION: u8 = 1;
/// The length of the header.
pub const HEADER_BYTES: usize = 73;

pub(crate) const AMBIGUOUS: u8 = 1;
pub(crate) const STARTED: u8 = 2;
pub(crate) const CANCEL: u8 = 4;
pub(crate) const BODY: u8 = 8;
pub(crate) const RECEIPT: u8 = 16;
pub(crate) const LATE: u8 = 32;
pub(crate) const ERASED: u8 = 64;

/// What a record is to this version.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A job.
    Job(Box<Job>),
    /// There is an index entry and no record.
    Missing,
    /// A newer version wrote it: kept as it is until someone can read it.
    Newer(u8),
    /// It cannot be read.
    Odd,
}

impl Record {
    /// Reads a record; `body` is the document where it lives apart.
    pub fn parse(key: &str, record: &[u8], body: &[u8]) -> Self {
        match record.first() {
            None => Self::Missing,
            Some(&version) if version > VERSION => Self::Newer(version),
            Some(&VERSION) => parse(key, record, body).map_or(Self::Odd, |job| Self::Job(Box::new(job))),
            Some(_) => Self::Odd,
        }
    }

    /// Why it cannot be sent, for a person; `None` for a job.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Job(_) => None,
            Self::Missing => Some("record_missing: the index names a job that has no record".into()),
            Self::Newer(version) => {
                Some(format!("record_newer: written by version {version}, this is {VERSION}"))
            }
            Self::Odd => Some("record_odd: the record cannot be read".into()),
        }
    }
}

/// A header in full words, as `paceline get --raw` prints it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[expect(missing_docs, reason = "the fields are the words of DESIGN §4 and of paceline_core::Job")]
pub struct Header {
    pub version: u8,
    pub flags: Vec<&'static str>,
    pub birth: String,
    pub fingerprint: String,
    pub spent: u8,
    pub throttles: u16,
    pub lapses: u8,
    pub run: u8,
    pub attempts: u16,
    pub cost: u16,
    pub revision: u8,
    pub replays: u16,
    pub expires_at_ms: u64,
    pub created_at_ms: u64,
    pub throttled_since_ms: u64,
    pub sent_since_ms: u64,
    pub last_settled_ms: u64,
    #[serde(skip)]
    flag_bits: u8,
    #[serde(skip)]
    birth_bytes: [u8; 8],
    #[serde(skip)]
    campaign_len: usize,
    #[serde(skip)]
    document_len: usize,
}

/// Takes big-endian numbers off the front of a slice.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    fn number(&mut self, n: usize) -> Option<u64> {
        Some(self.take(n)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn u8(&mut self) -> Option<u8> {
        self.number(1).map(|n| n as u8)
    }

    fn u16(&mut self) -> Option<u16> {
        self.number(2).map(|n| n as u16)
    }

    fn time(&mut self) -> Option<u64> {
        self.number(6)
    }
}

impl Header {
    /// Reads the header of a record of this version.
    pub fn read(record: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(record);
        let (version, flag_bits) = (bytes.u8()?, bytes.u8()?);
        let birth_bytes: [u8; 8] = bytes.take(8)?.try_into().ok()?;
        let fingerprint = String::from_utf8_lossy(bytes.take(16)?).into_owned();
        Some(Self {
            version,
            flags: flag_words(flag_bits),
            birth: birth_bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            fingerprint,
            spent: bytes.u8()?,
            throttles: bytes.u16()?,
            lapses: bytes.u8()?,
            run: bytes.u8()?,
            attempts: bytes.u16()?,
            cost: bytes.u16()?,
            revision: bytes.u8()?,
            replays: bytes.u16()?,
            expires_at_ms: bytes.time()?,
            created_at_ms: bytes.time()?,
            throttled_since_ms: bytes.time()?,
            sent_since_ms: bytes.time()?,
            last_settled_ms: bytes.time()?,
            campaign_len: bytes.number(1)? as usize,
            document_len: bytes.number(4)? as usize,
            flag_bits,
            birth_bytes,
        })
    }
}

fn flag_words(bits: u8) -> Vec<&'static str> {
    let words = [
        (AMBIGUOUS, "ambiguous"),
        (STARTED, "started"),
        (CANCEL, "cancel"),
        (BODY, "body"),
        (RECEIPT, "receipt"),
        (LATE, "late"),
        (ERASED, "erased"),
    ];
    words.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, word)| word).collect()
}

fn parse(key: &str, record: &[u8], body: &[u8]) -> Option<Job> {
    let header = Header::read(record)?;
    let mut rest = Bytes(record.get(HEADER_BYTES..)?);
    let campaign = String::from_utf8(rest.take(header.campaign_len)?.to_vec()).ok()?;
    let packed = rest.take(header.document_len)?;
    let document = if header.flag_bits & BODY != 0 { body } else { packed };
    let some = |ms: u64| Some(ms).filter(|&ms| ms > 0);
    Some(Job {
        key: JobKey::new(key).ok()?,
        birth: header.birth_bytes,
        counters: Counters {
            spent: header.spent,
            throttles: header.throttles,
            lapses: header.lapses,
            run: header.run,
            attempts: header.attempts,
        },
        flags: Flags {
            ambiguous: header.flag_bits & AMBIGUOUS != 0,
            started: header.flag_bits & STARTED != 0,
            cancel: header.flag_bits & CANCEL != 0,
            late: header.flag_bits & LATE != 0,
        },
        revision: header.revision,
        replays: header.replays,
        cost: header.cost,
        expires_at_ms: some(header.expires_at_ms),
        created_at_ms: header.created_at_ms,
        throttled_since_ms: some(header.throttled_since_ms),
        sent_since_ms: some(header.sent_since_ms),
        campaign,
        document: document.to_vec(),
        history: History::parse(rest.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_apart_and_never_panics() {
        assert_eq!(Record::parse("k", b"", b""), Record::Missing);
        assert_eq!(Record::parse("k", &[9, 0, 0], b""), Record::Newer(9));
        assert_eq!(Record::parse("k", &[0; HEADER_BYTES], b""), Record::Odd, "no version is zero");
        for len in 1..HEADER_BYTES {
            assert_eq!(Record::parse("k", &vec![VERSION; len], b""), Record::Odd, "{len}");
        }
        assert_eq!(
            Record::parse("k", &[VERSION; HEADER_BYTES], b""),
            Record::Odd,
            "lengths beyond the record"
        );
    }
}
