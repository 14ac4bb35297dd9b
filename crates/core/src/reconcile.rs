//! Where a job belongs when its record and the indexes disagree: after a lost file, a slot cut off half-way, a hand
//! in the data. What nobody can tell is asked of a person, never guessed.

use crate::job::Job;
use crate::state::State;

/// What is kept of a job.
#[derive(Debug, Clone, Copy)]
pub enum Kept<'a> {
    /// Nothing.
    Missing,
    /// Something that this version cannot read.
    Unreadable,
    /// All of it.
    Job(&'a Job),
    /// What is left of one that is over: the document is gone.
    Receipt(&'a Job),
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// It stands right, or will: a lease ends by itself.
    Right,
    /// Out of every index: nothing is known of it but its name.
    Out,
    /// Into this one alone.
    Into(State),
}

/// Where a job belongs that is found in these indexes.
pub fn placement(found: &[State], kept: Kept<'_>) -> Placement {
    match (found, kept) {
        ([], Kept::Missing) => Placement::Right,
        ([], _) => Placement::Into(lost(kept)),
        // Somebody holds it; its settle or its reaper moves it first.
        (states, _) if states.contains(&State::InFlight) => Placement::Right,
        ([only], Kept::Missing) => without_record(*only),
        ([_], _) => Placement::Right,
        (several, Kept::Missing) => Placement::Into(foremost(several, &DEAD)),
        (several, _) => Placement::Into(of_several(several, kept)),
    }
}

/// Where a person looks, then where nothing is sent from.
const DEAD: [State; 8] = [
    State::Unconfirmed,
    State::Deferred,
    State::Failed,
    State::Submitted,
    State::Expired,
    State::Cancelled,
    State::Pending,
    State::Queued,
];

/// A key that is still to be sent waits for a person, who may know what it was; of one that is over nothing is left.
fn without_record(state: State) -> Placement {
    match state {
        State::Queued | State::Pending => Placement::Into(State::Deferred),
        State::Deferred | State::Unconfirmed | State::InFlight => Placement::Right,
        State::Submitted | State::Failed | State::Expired | State::Cancelled => Placement::Out,
    }
}

/// In no index: what its record says happened to it.
fn lost(kept: Kept<'_>) -> State {
    match kept {
        Kept::Missing | Kept::Unreadable => State::Deferred,
        Kept::Receipt(job) if was_accepted(job) => State::Submitted,
        Kept::Receipt(_) => State::Expired,
        Kept::Job(job) if job.flags.ambiguous || job.flags.started => State::Unconfirmed,
        Kept::Job(job) if job.counters.attempts == 0 => State::Queued,
        Kept::Job(_) => State::Pending,
    }
}

/// In several: a push over a lost record leaves the old entry behind, so a record that was never tried is the new
/// one. Any other is where least can go wrong.
fn of_several(found: &[State], kept: Kept<'_>) -> State {
    match kept {
        Kept::Job(job)
            if job.counters.attempts == 0 && !job.flags.started && found.contains(&State::Queued) =>
        {
            State::Queued
        }
        Kept::Receipt(job) if was_accepted(job) && found.contains(&State::Submitted) => State::Submitted,
        _ => foremost(found, &DEAD),
    }
}

fn foremost(found: &[State], order: &[State]) -> State {
    order.iter().copied().find(|state| found.contains(state)).unwrap_or(State::Deferred)
}

fn was_accepted(job: &Job) -> bool {
    job.history.last().is_some_and(|attempt| attempt.outcome == "accepted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobKey;
    use crate::history::Attempt;

    fn job(change: impl Fn(&mut Job)) -> Job {
        let mut job = Job::new(JobKey::new("a").unwrap(), b"{}".to_vec(), 1);
        change(&mut job);
        job
    }

    #[test]
    fn what_stands_right_stays() {
        let new = job(|_| ());
        for state in State::ALL {
            assert_eq!(placement(&[state], Kept::Job(&new)), Placement::Right, "{state}");
        }
        assert_eq!(placement(&[State::InFlight, State::Queued], Kept::Job(&new)), Placement::Right, "held");
        assert_eq!(placement(&[State::Deferred], Kept::Missing), Placement::Right, "a person looks at it");
        assert_eq!(placement(&[], Kept::Missing), Placement::Right);
    }

    #[test]
    fn a_record_without_an_index_goes_where_its_past_says_and_never_where_it_could_double() {
        let place = |job: &Job| placement(&[], Kept::Job(job));
        assert_eq!(place(&job(|_| ())), Placement::Into(State::Queued));
        assert_eq!(place(&job(|job| job.counters.attempts = 2)), Placement::Into(State::Pending));
        assert_eq!(place(&job(|job| job.flags.ambiguous = true)), Placement::Into(State::Unconfirmed));
        assert_eq!(place(&job(|job| job.flags.started = true)), Placement::Into(State::Unconfirmed));
        assert_eq!(placement(&[], Kept::Unreadable), Placement::Into(State::Deferred));
    }

    #[test]
    fn a_receipt_is_submitted_only_where_it_says_so() {
        let accepted =
            job(|job| job.history.push(Attempt { outcome: "accepted".into(), ..Attempt::default() }));
        assert_eq!(placement(&[], Kept::Receipt(&accepted)), Placement::Into(State::Submitted));
        assert_eq!(placement(&[], Kept::Receipt(&job(|_| ()))), Placement::Into(State::Expired));
        let both = [State::Submitted, State::Deferred];
        assert_eq!(placement(&both, Kept::Receipt(&accepted)), Placement::Into(State::Submitted));
    }

    #[test]
    fn an_entry_without_a_record_waits_for_a_person_while_it_was_to_be_sent() {
        for state in [State::Queued, State::Pending] {
            assert_eq!(placement(&[state], Kept::Missing), Placement::Into(State::Deferred));
        }
        for state in [State::Submitted, State::Failed, State::Expired, State::Cancelled] {
            assert_eq!(placement(&[state], Kept::Missing), Placement::Out, "{state}");
        }
    }

    #[test]
    fn a_key_in_two_indexes_is_the_new_push_or_where_least_can_go_wrong() {
        let (new, tried) = (job(|_| ()), job(|job| job.counters.attempts = 1));
        let parked = [State::Queued, State::Deferred];
        assert_eq!(placement(&parked, Kept::Job(&new)), Placement::Into(State::Queued));
        assert_eq!(placement(&parked, Kept::Job(&tried)), Placement::Into(State::Deferred));
        let waiting = [State::Queued, State::Pending];
        assert_eq!(placement(&waiting, Kept::Job(&tried)), Placement::Into(State::Pending));
        assert_eq!(placement(&waiting, Kept::Missing), Placement::Into(State::Pending));
    }
}
