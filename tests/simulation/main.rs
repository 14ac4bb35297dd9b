//! Whole lives of jobs against a simulated clock: the pure core decides, the memory store moves, a provider with moods
//! answers, and workers die, sleep and lose replies at any step. Many schedules a second, each from its seed, and
//! after every step what must always hold is looked at. A failure prints the seed; `SIMULATION_SEED=<seed>` walks that
//! one alone, `SIMULATION_SCHEDULES=<n>` walks more.

mod dice;
mod invariants;
mod provider;
mod schedule;
mod worker;

use provider::Terms;
use schedule::Schedule;

/// Schedules per kind of provider in every run of the tests.
const SCHEDULES: u64 = 150;
/// Steps of a schedule, before its faults end and it has to come to rest.
const STEPS: usize = 250;

/// Names the seed when something in its schedule fails.
struct Named(Terms, u64);

impl Drop for Named {
    #[expect(clippy::print_stderr, reason = "the seed has to reach whoever reads the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}: SIMULATION_SEED={} walks this schedule again", self.0, self.1);
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// What happened in all schedules together, so that a test can tell that it tested something.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    pushed: usize,
    submitted: u64,
    unconfirmed: u64,
    lapses: u64,
    late: u64,
    lost_replies: u64,
    restores: u64,
}

fn walk(terms: Terms) -> Tally {
    let seeds = match variable("SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("SIMULATION_SCHEDULES").unwrap_or(SCHEDULES),
    };
    let mut tally = Tally::default();
    for seed in seeds {
        let named = Named(terms, seed);
        let mut schedule = Schedule::new(terms, seed);
        for _ in 0..STEPS {
            schedule.step();
            schedule.assert_always();
        }
        schedule.come_to_rest();
        schedule.assert_at_rest();
        schedule.add_to(&mut tally);
        drop(named);
    }
    tally
}

/// Every fault that the schedules are about did happen.
fn assert_eventful(tally: &Tally) {
    if variable("SIMULATION_SEED").is_some() {
        return;
    }
    assert!(tally.pushed > 1_000 && tally.submitted > 500, "{tally:?}");
    assert!(tally.lapses > 50 && tally.late > 5 && tally.lost_replies > 100, "{tally:?}");
}

#[test]
fn where_the_provider_deduplicates_nothing_is_lost_or_doubled() {
    let tally = walk(Terms::Deduplicates);
    assert_eventful(&tally);
}

#[test]
fn where_it_does_not_and_a_person_is_asked_nothing_is_lost_or_doubled() {
    let tally = walk(Terms::Asks);
    assert_eventful(&tally);
    assert!(tally.unconfirmed > 100 || variable("SIMULATION_SEED").is_some(), "{tally:?}");
}

#[test]
fn where_the_class_chose_to_repeat_nothing_is_lost() {
    let tally = walk(Terms::Repeats);
    assert_eventful(&tally);
}

/// Redis comes back as it was up to a second ago: pushes of that second are gone, and nothing else.
#[test]
fn a_redis_that_lost_its_last_second_doubles_nothing_where_the_provider_deduplicates() {
    let tally = walk(Terms::LosesSeconds);
    assert_eventful(&tally);
    assert!(tally.restores > 50 || variable("SIMULATION_SEED").is_some(), "{tally:?}");
}
