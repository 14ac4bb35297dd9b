//! What a scenario may say.

use super::{ErrorAnswer, LimitStep, Scenario};
use axum::http::{HeaderName, HeaderValue};
use paceline_core::Fault;

const MAX_RATE_PER_S: f64 = 1e6;
const MAX_BURST: u32 = 1_000_000;
/// Long enough for any rehearsal, and it keeps every sum of times far from overflow.
const MAX_WAIT_S: f64 = 366.0 * 86_400.0;
const MAX_DELAY_MS: u64 = 3_600_000;
const MAX_STEPS: usize = 1_000;
const MAX_ERRORS: usize = 100;

pub(super) fn check(scenario: &Scenario) -> Result<(), Fault> {
    limit(scenario)?;
    throttling(scenario)?;
    delays(scenario)?;
    shares(scenario)?;
    for (index, error) in scenario.errors.iter().enumerate() {
        error_answer(&format!("errors[{index}]"), error)?;
    }
    scenario.always.as_ref().map_or(Ok(()), always)?;
    demand(HeaderName::try_from(&scenario.idempotency_header).is_ok(), "idempotency_header", || {
        format!("{:?} is not a header's name", scenario.idempotency_header)
    })
}

fn limit(scenario: &Scenario) -> Result<(), Fault> {
    rate("rate_per_s", scenario.rate_per_s)?;
    demand((1..=MAX_BURST).contains(&scenario.burst), "burst", || format!("must be from 1 to {MAX_BURST}"))?;
    let steps = &scenario.limit_schedule;
    demand(steps.len() <= MAX_STEPS, "limit_schedule", || format!("has more than {MAX_STEPS} steps"))?;
    let mut before_s = 0.0;
    for (index, LimitStep { at_s, rate_per_s }) in steps.iter().enumerate() {
        let field = format!("limit_schedule[{index}]");
        demand((before_s..=MAX_WAIT_S).contains(at_s), format!("{field}.at_s"), || {
            format!("must be from {before_s} (steps are in order) to {MAX_WAIT_S}")
        })?;
        rate(format!("{field}.rate_per_s"), *rate_per_s)?;
        before_s = *at_s;
    }
    Ok(())
}

fn rate(field: impl Into<String>, rate_per_s: f64) -> Result<(), Fault> {
    demand((0.0..=MAX_RATE_PER_S).contains(&rate_per_s), field, || {
        format!("must be a number from 0 to {MAX_RATE_PER_S}")
    })
}

fn throttling(scenario: &Scenario) -> Result<(), Fault> {
    demand((400..=599).contains(&scenario.throttle_status), "throttle_status", || {
        "must be from 400 to 599".into()
    })?;
    demand((0.0..=MAX_WAIT_S).contains(&scenario.retry_after_s), "retry_after_s", || {
        format!("must be a number from 0 to {MAX_WAIT_S}")
    })?;
    header_text("retry_after_raw", &scenario.retry_after_raw)
}

fn delays(scenario: &Scenario) -> Result<(), Fault> {
    let delays = [
        ("latency_ms", scenario.latency_ms),
        ("latency_jitter_ms", scenario.latency_jitter_ms),
        ("hang_ms", scenario.hang_ms),
    ];
    delays.into_iter().try_for_each(|(field, ms)| {
        demand(ms <= MAX_DELAY_MS, field, || format!("must be at most {MAX_DELAY_MS}"))
    })
}

/// One draw decides between all of them, so they are parts of one whole.
fn shares(scenario: &Scenario) -> Result<(), Fault> {
    let errors = &scenario.errors;
    demand(errors.len() <= MAX_ERRORS, "errors", || format!("are more than {MAX_ERRORS}"))?;
    let named = [
        ("unanswered_share".to_owned(), scenario.unanswered_share),
        ("hang_share".to_owned(), scenario.hang_share),
    ];
    let of_errors =
        errors.iter().enumerate().map(|(index, error)| (format!("errors[{index}].share"), error.share));
    let mut sum = 0.0;
    for (field, share) in named.into_iter().chain(of_errors) {
        demand((0.0..=1.0).contains(&share), &field, || "must be a share from 0 to 1".into())?;
        sum += share;
        // Ten shares of a tenth may come out a little above 1 in binary.
        demand(sum <= 1.0 + 1e-9, &field, || format!("brings the sum of all shares to {sum}, above 1"))?;
    }
    Ok(())
}

fn always(error: &ErrorAnswer) -> Result<(), Fault> {
    demand(error.share == 1.0, "always.share", || "is 1 by its meaning; leave it out".into())?;
    error_answer("always", error)
}

fn error_answer(field: &str, error: &ErrorAnswer) -> Result<(), Fault> {
    demand((200..=599).contains(&error.status), format!("{field}.status"), || {
        "must be from 200 to 599".into()
    })?;
    let retry_after = error.retry_after.as_deref().unwrap_or_default();
    header_text(format!("{field}.retry_after"), retry_after)
}

fn header_text(field: impl Into<String>, text: &str) -> Result<(), Fault> {
    demand(HeaderValue::from_str(text).is_ok(), field, || format!("{text:?} cannot be a header's value"))
}

fn demand(met: bool, field: impl Into<String>, problem: impl FnOnce() -> String) -> Result<(), Fault> {
    if met { Ok(()) } else { Err(Fault::new(field, problem())) }
}
