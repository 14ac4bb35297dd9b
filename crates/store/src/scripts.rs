//! The scripts: the prelude, the parts a script names, then its own file, joined at build time.
//!
//! They are called by EVALSHA: content-addressed, so old and new workers coexist and a lost script cache heals
//! itself.

use crate::error::StoreError;
use std::sync::LazyLock;

/// What a script may do when Redis is at `maxmemory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flags {
    /// It adds: refused at `maxmemory`.
    Adds,
    /// It frees, or lets something be freed: still runs.
    Frees,
    /// It only reads.
    Reads,
}

/// One script.
#[derive(Debug)]
pub struct Script {
    /// `settle`: the movement, the file and the method.
    pub name: &'static str,
    /// What is sent.
    pub source: String,
    /// Its SHA-1 in hex, as in SLOWLOG.
    pub sha: String,
    /// Where each file begins in `source`, in lines.
    files: Vec<(usize, &'static str)>,
}

const PRELUDE: (&str, &str) = ("prelude.lua", include_str!("../../../lua/prelude.lua"));

macro_rules! scripts {
    ($($id:ident $name:literal: $flags:ident [$($part:literal)*];)*) => {
        $(
            #[doc = concat!("`lua/", $name, ".lua`")]
            pub(crate) static $id: LazyLock<Script> = LazyLock::new(|| Script::join(
                $name,
                Flags::$flags,
                &[
                    PRELUDE,
                    $((concat!("part/", $part, ".lua"), include_str!(concat!("../../../lua/part/", $part, ".lua"))),)*
                    (concat!($name, ".lua"), include_str!(concat!("../../../lua/", $name, ".lua"))),
                ],
            ));
        )*
        /// Every script, in alphabetical order.
        pub fn all() -> Vec<&'static Script> {
            vec![$(&$id),*]
        }
        /// Every script's parts, for the test that compares them with the files' own words.
        pub const PARTS: &[(&str, &[&str])] = &[$(($name, &[$($part),*])),*];
    };
}

scripts! {
    ADJUST "adjust": Frees ["budget"];
    CANCEL "cancel": Frees ["record" "find"];
    CLAIM "claim": Adds ["record" "hold" "budget" "share" "quota" "gate" "claimed" "heads" "expire" "repeat" "spend"];
    CONFIRM "confirm": Frees ["record" "find"];
    DECLARE "declare": Adds ["budget" "limits"];
    DEPTHS "depths": Reads [];
    DOUBT "doubt": Frees ["record" "find"];
    ERASE "erase": Frees ["record" "find"];
    EXPLAIN "explain": Reads ["record" "find" "hold" "budget" "share" "quota" "gate" "heads"];
    GET "get": Reads ["find"];
    HOLD "hold": Frees ["hold"];
    LIMIT "limit": Frees ["budget" "limits"];
    LIST "list": Reads [];
    PACE "pace": Reads ["budget" "quota"];
    PUSH "push": Adds ["record" "find" "fault"];
    REAP "reap": Frees ["record" "heads" "claimed"];
    RECONCILE "reconcile": Frees [];
    REPLAY "replay": Frees ["record" "find"];
    SETTLE "settle": Frees ["record" "find" "hold" "signal" "quota" "heard" "order" "moves" "live" "late"];
    START "start": Frees ["record"];
    SWEEP "sweep": Frees [];
    WINDOW "window": Frees ["hold"];
}

impl Script {
    fn join(name: &'static str, flags: Flags, files: &[(&'static str, &'static str)]) -> Self {
        let mut source = String::from(match flags {
            Flags::Adds => "#!lua\n",
            Flags::Frees => "#!lua flags=allow-oom\n",
            Flags::Reads => "#!lua flags=no-writes\n",
        });
        let mut starts = Vec::new();
        for (file, text) in files {
            starts.push((source.matches('\n').count(), *file));
            source.push_str(text);
        }
        let sha = sha1_smol(&source);
        Self { name, source, sha, files: starts }
    }

    /// An error of Redis with the file and the line it came from.
    pub(crate) fn bug(&self, problem: &str) -> StoreError {
        let line = problem
            .split("user_script:")
            .nth(1)
            .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok());
        let place = match line {
            Some(line) => {
                let (start, file) = self
                    .files
                    .iter()
                    .rev()
                    .find(|(start, _)| *start < line)
                    .copied()
                    .unwrap_or((0, self.name));
                format!("{file}:{}", line - start)
            }
            None => format!("{}.lua", self.name),
        };
        StoreError::Bug { place, problem: problem.to_owned() }
    }
}

/// The SHA-1 that Redis knows the script by.
fn sha1_smol(source: &str) -> String {
    redis::Script::new(source).get_hash().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_file_and_line() {
        let prelude_lines = PRELUDE.1.matches('\n').count();
        let problem = format!("ERR user_script:{}: attempt to index", prelude_lines + 1 + 3);
        assert_eq!(DEPTHS.bug(&problem).to_string(), format!("bug in depths.lua:3: {problem}"));
        assert!(
            matches!(DEPTHS.bug("ERR user_script:5: x"), StoreError::Bug { place, .. } if place == "prelude.lua:4")
        );
    }

    /// A script names its parts in its own file, in the order they are joined.
    #[test]
    fn every_script_says_which_parts_it_uses() {
        for script in all() {
            let (_, parts) = PARTS.iter().find(|(name, _)| *name == script.name).unwrap();
            let own = script.source.rsplit_once(&format!("-- parts: {}\n", parts.join(" ")));
            assert_eq!(own.is_some(), !parts.is_empty(), "{}: {parts:?}", script.name);
        }
    }

    #[test]
    fn what_frees_memory_runs_at_the_limit_and_what_adds_does_not() {
        assert!(SETTLE.source.starts_with("#!lua flags=allow-oom\n"));
        assert!(PUSH.source.starts_with("#!lua\n"));
        assert!(GET.source.starts_with("#!lua flags=no-writes\n"));
    }
}
