//! The conformance suite, run against every store: `redis::`, `cluster::` and `memory::`, one test per scenario.

use paceline_tests::conformance::{self, MemoryBench, RedisBench};
use paceline_tests::redis_server::{RedisCluster, RedisServer};
use std::path::Path;

fn redis() -> RedisBench {
    RedisBench::on(&RedisServer::shared().url())
}

fn cluster() -> RedisBench {
    RedisBench::on(&RedisCluster::shared().url())
}

fn memory() -> MemoryBench {
    MemoryBench::default()
}

/// Every scenario of these files as a test of its own on these stores.
macro_rules! on {
    ($store:ident { $($file:ident: $($scenario:ident)+;)+ }) => {
        mod $store {
            $(mod $file {
                $(#[tokio::test]
                async fn $scenario() {
                    super::super::conformance::$file::$scenario(super::super::$store()).await;
                })+
            })+
        }
    };
}

macro_rules! suite {
    ($($scenarios:tt)+) => {
        on! { redis { $($scenarios)+ } }
        on! { cluster { $($scenarios)+ } }
        on! { memory { $($scenarios)+ } }
    };
}

suite! {
    pushes:
        a_key_is_created_once
        a_key_named_twice_in_one_batch_is_settled_in_order
        a_field_that_would_break_a_record_is_named_and_the_others_go_on
        a_fingerprint_is_compared_and_not_the_bytes
        a_push_again_is_answered_with_the_state_it_is_in
        a_key_is_free_again_after_retention_and_its_birth_is_another
        one_key_in_two_classes_is_two_jobs
        a_large_document_lives_apart_and_leaves_with_the_receipt
        a_full_class_takes_all_of_a_batch_or_nothing
        a_class_that_nobody_declared_takes_nothing;
    claims:
        the_oldest_due_job_of_both_sets_goes_first
        a_retry_costs_what_four_first_attempts_earn
        a_scheduled_job_is_not_claimed_before_it_is_due
        nothing_at_all_has_no_next_time
        a_repeat_gives_the_same_jobs_and_takes_no_more_tokens
        a_repeat_gives_only_what_still_stands
        a_lease_never_has_the_token_of_one_that_was_settled
        an_expired_job_moves_without_token_or_slot
        an_expired_job_leaves_a_receipt_or_all_of_it_where_it_may_have_been_accepted
        a_job_that_lost_two_workers_comes_alone
        limits_that_are_lost_are_asked_for
        large_numbers_keep_exact;
    budgets:
        a_claim_takes_the_burst_and_then_waits_for_the_rate
        tokens_come_at_the_rate
        jobs_whose_tokens_come_soon_come_along_each_with_its_offset
        a_job_whose_token_is_to_come_does_not_go_alone
        the_credential_and_the_account_both_bind
        a_job_dearer_than_the_burst_goes_when_the_bucket_is_full_and_leaves_debt
        what_was_not_sent_gives_its_tokens_back
        in_flight_is_bounded_over_the_unexpired_leases_of_all_spenders
        budgets_of_one_name_in_two_groups_never_meet
        a_new_declaration_changes_limits_and_nothing_else;
    holds:
        a_person_holds_a_class_and_lifts_it
        a_pause_with_an_end_ends_by_itself
        a_hold_releases_at_the_pace_and_not_with_a_burst
        a_hold_on_a_budget_silences_every_class_that_spends_from_it
        at_the_end_of_a_probing_hold_one_job_goes_and_the_hold_stands_again
        an_acceptance_releases_what_probes_and_no_pause
        a_hold_that_does_not_probe_outlasts_an_acceptance
        automatic_holds_only_extend
        a_hold_goes_where_the_decision_says;
    paces:
        what_one_class_reserves_another_does_not_take
        whoever_is_shed_later_gets_what_overflows
        a_burst_of_one_is_shared_by_turns
        limits_by_hand_stand_against_the_configuration
        a_pace_is_adjusted_by_whoever_read_it_last
        the_law_hears_what_was_accepted_and_throttled_since_the_last_cut
        a_throttled_recipient_delays_its_job_only_until_there_are_many
        one_probe_is_out_at_a_time
        a_window_holds_the_class_and_a_person_opens_it
        an_expired_job_leaves_while_its_class_is_held
        explained_is_what_claim_would_say
        a_quota_binds_in_any_window_of_its_length;
    senders:
        the_third_refusal_suspects_the_credential_and_the_fourth_is_decided_again
        an_acceptance_between_ends_a_run_of_refusals
        twenty_terminal_ends_in_a_row_hold_the_class
        five_failing_ends_in_a_row_are_an_outage_that_stays_as_it_is
        any_word_from_the_remote_side_ends_an_outage_and_its_run
        an_end_that_tells_nothing_changes_no_run
        a_repeat_and_a_stale_end_change_no_run;
    leases:
        a_start_is_marked_for_the_lease_and_the_birth_it_was_claimed_under
        a_start_after_the_lease_has_lapsed_is_stale
        only_lapsed_leases_are_taken_over_and_the_new_one_fences_the_old_worker
        a_reap_whose_answer_is_lost_counts_nothing
        a_reap_is_bounded_and_takes_the_oldest_first
        the_mark_of_a_start_outlives_the_lease;
    settles:
        each_target_is_where_the_job_goes
        a_repeat_is_already_and_counts_nothing_twice
        a_repeat_behind_the_next_claim_is_already_too
        counters_marks_and_clocks_are_what_the_decision_says
        the_first_entry_into_pending_is_kept_until_it_leaves_for_good
        a_receipt_keeps_the_last_attempt_only
        an_end_behind_the_lease_counts_while_nobody_took_it_over
        the_end_of_a_lost_lease_that_is_no_acceptance_is_dropped
        an_end_of_an_earlier_life_is_gone_and_moves_nothing
        a_cancel_in_flight_takes_effect_with_the_next_end_that_is_no_acceptance
        a_cancel_outlives_a_lost_worker
        a_key_named_twice_is_settled_in_order
        nothing_to_settle_is_no_call;
    late:
        wherever_the_job_is_it_becomes_submitted
        in_flight_elsewhere_it_becomes_submitted_under_the_other_worker
        a_second_acceptance_under_another_id_keeps_both
        a_second_acceptance_under_the_same_id_or_none_is_already
        after_a_replay_it_is_still_the_same_job
        after_an_erase_it_is_still_known
        it_releases_no_hold_that_came_after_it
        a_decision_of_the_lost_lease_that_cancels_is_dropped;
    replays:
        counters_start_anew_and_what_happened_is_kept
        one_goes_per_interval_also_over_several_calls
        a_slot_of_long_ago_holds_nobody_up
        two_operators_at_once_replay_a_job_once
        only_dead_letters_and_failed_jobs_come_back
        a_job_whose_content_was_erased_stays_where_it_is;
    withdrawals:
        a_cancel_withdraws_what_waits_marks_what_flies_and_leaves_the_rest
        a_cancelled_job_that_may_have_been_accepted_is_unconfirmed
        an_erased_job_keeps_its_receipt_and_so_its_key
        an_erase_removes_every_word_of_the_content
        a_sweep_forgets_the_oldest_in_chunks
        a_sweep_touches_nothing_that_waits
        a_job_that_is_held_and_believed_to_wait_is_doubted
        a_person_says_what_became_of_a_job;
    looks:
        a_class_that_never_was_is_empty
        waiting_scheduled_and_ages_are_separate_numbers
        pages_go_on_within_one_score_by_the_bytes_of_the_key
        entries_that_leave_meanwhile_do_not_shift_the_pages
        thousands_of_one_moment_are_all_listed
        a_job_is_moved_only_while_it_is_as_it_was_seen;
    unreadable:
        they_are_claimed_with_the_others_and_parked_untouched
        they_are_reaped_like_any_other
        a_birth_of_zeros_parks_what_only_lua_can_read
        a_person_replays_them_once_someone_can_read_them
        nothing_else_touches_them
        an_entry_without_a_record_leaves_by_an_erase;
}

/// What other programs rely on in Redis itself.
mod contract {
    macro_rules! contract {
        ($($scenario:ident)+) => {
            $(#[tokio::test]
            async fn $scenario() {
                super::conformance::contract::$scenario(super::redis()).await;
            })+
        };
    }

    contract! {
        a_producer_in_any_language_is_refused_what_nobody_could_read
        a_record_that_only_lua_can_read_is_parked
        a_class_on_the_move_takes_nothing
        a_lost_script_cache_heals_itself
        a_body_goes_with_its_job_whichever_way_it_ends
        a_swept_job_leaves_no_key_behind
    }
}

/// Walks of this many steps; `WALKS=500` walks more of them.
const STEPS: usize = 100;

#[tokio::test]
async fn a_random_walk_finds_no_difference_between_redis_and_the_memory_store() {
    let walks = std::env::var("WALKS").map_or(2, |walks| walks.parse().expect("a number"));
    for seed in 0..walks {
        conformance::walk::both_stay_the_same(redis(), memory(), seed, STEPS).await;
    }
}

#[tokio::test]
async fn a_random_walk_finds_no_difference_between_a_cluster_and_the_memory_store() {
    conformance::walk::both_stay_the_same(cluster(), memory(), 1_000, STEPS).await;
}

/// A scenario that nobody runs would prove nothing.
#[test]
fn every_scenario_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    let run: Vec<&str> = include_str!("store.rs").split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let scenarios = text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
        for scenario in scenarios.filter_map(|line| line.split(['<', '(']).next()) {
            assert!(run.contains(&scenario), "{scenario} is not run");
        }
    }
}
