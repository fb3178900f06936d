//! Failures that the simulator found, each as a history of its own. The named seed found the failure with the plan
//! that was drawn from it at that time. Here the faults that it needs are chosen, with high rates.

use simulator::Run;
use simulator::case::{Case, Choices, Rungs};
use simulator::fault::Kind;
use simulator::plan::Plan;

fn check(plan: &Plan, choices: &Choices, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let cases = vec![Case::of("sim0", choices)];
        let history = Run { seed, plan: plan.clone(), cases, trace: false }.history();
        assert!(history.violations.is_empty(), "seed {seed}: {:#?}", history.violations);
    }
}

fn check_recorded(text: &str) {
    let history = simulator::encode::parse(text).expect("the text of a run").history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

fn plan(faults: &[(Kind, f64)]) -> Plan {
    faults.iter().fold(Plan::calm(), |plan, (kind, rate)| plan.with(*kind, *rate))
}

/// Two concurrent deciders wrote different steps with the same number under the same transaction token. The table
/// refused the second as a misuse of the token, so that decider did not learn that it had lost. Found by seed 3.
#[test]
fn regression_two_deciders_use_two_tokens() {
    check(&plan(&[(Kind::StreamDuplicated, 1.0), (Kind::LogDuplicated, 1.0)]), &Choices::plain(), 0..6);
}

/// A start was accepted, its response was lost, and the retry was refused. The job was abandoned and its money
/// released while it ran (above the cap, and above `MaxParallel`). Found by seed 1236.
#[test]
fn regression_a_refusal_after_a_lost_response_abandons_no_running_job() {
    let faults = plan(&[(Kind::TrainingLostAnswer, 0.5), (Kind::CreateRefused, 0.5), (Kind::EventLost, 0.5)]);
    check(&faults, &Choices { cap_jobs: Some(2.5), ..Choices::plain() }, 0..20);
}

/// A start was refused, and the actuator crashed before it updated the row. The next actuator created the job although
/// its money was already released. Found by seed 4734.
#[test]
fn regression_a_refused_start_is_not_performed_again() {
    let faults = [(Kind::CreateRefused, 0.5), (Kind::CrashAfter, 0.1), (Kind::StreamDuplicated, 1.0)];
    check(&plan(&faults), &Choices { cap_jobs: Some(2.5), ..Choices::plain() }, 0..10);
}

/// While the decider received no records, not even of the submission, the sweeper wrote a new fact every minute.
#[test]
fn regression_a_silent_stream_does_not_fill_the_table() {
    let stream_outage = Some((0, 12 * simulator::plan::HOUR));
    let run = Run {
        seed: 0,
        plan: Plan { stream_outage, ..Plan::calm() },
        cases: vec![Case::of("sim0", &Choices::plain())],
        trace: false,
    };
    let history = run.history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
    assert!(history.time_facts < 20, "{} TimePassed facts", history.time_facts);
}

/// A create was still under way when its caller timed out. The next attempt was refused, and no job of that name
/// existed yet. The job was abandoned and its money released, and then it appeared.
#[test]
fn regression_a_refusal_while_an_earlier_create_is_under_way_abandons_no_job() {
    // Retries happen at any time, not only at full minutes, and some events of the job are lost.
    let more = [(Kind::StreamDuplicated, 1.0), (Kind::SweepLate, 0.8), (Kind::EventLost, 0.5)];
    let faults = plan(&[&[(Kind::CreateLate, 0.4), (Kind::CreateRefused, 0.4)], &more[..]].concat());
    check(&faults, &Choices { cap_jobs: Some(2.5), ..Choices::plain() }, 0..20);
}

/// The notice of a bill above its reservation was lost with its stream record and never sent again.
#[test]
fn regression_the_notice_of_an_overrun_is_sent_although_its_stream_record_is_lost() {
    let faults = plan(&[(Kind::BillAboveReservation, 0.3), (Kind::StreamLost, 0.5)]);
    check(&faults, &Choices::plain(), 0..6);
}

/// Two deciders wrote the same step. One of them had read the row of a job after a later step had changed it, so their
/// writes differed under one token. The table refused the second as a misuse of the token.
#[test]
fn regression_deciders_that_read_different_rows_use_two_tokens() {
    let history = Run::drawn(1_795_431_717_595).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

/// A promoted trial arrived at its rung before the bill of its job, and before a stored line was folded that showed
/// that the job had started again from the beginning.
#[test]
fn regression_a_promoted_trial_arrives_after_its_stored_lines() {
    let history = Run::drawn(1_795_431_711_557).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

/// A job failed and was deleted within seconds, before any fact showed it. The checker took the end of its trial as
/// never started for a broken promise.
#[test]
fn regression_a_job_deleted_before_it_was_known_never_started() {
    let history = Run::drawn(1_795_431_719_362).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

/// "Every bill is read once more before the tuning ends, and a rise is booked." Checked for tunings with and without
/// promotion, whose bills also come late.
#[test]
fn bills_that_rise_after_they_were_read_are_booked() {
    let faults = plan(&[(Kind::BillRises, 0.7), (Kind::BillLate, 0.2), (Kind::StreamLost, 0.2)]);
    for rungs in [Rungs::Stop, Rungs::Asynchronous, Rungs::Synchronous] {
        let choices = Choices { cap_jobs: Some(6.0), rungs, ..Choices::plain() };
        check(&faults, &choices, 0..6);
        let cases = vec![Case::of("sim0", &choices)];
        let history = Run { seed: 0, plan: faults.clone(), cases, trace: false }.history();
        assert!(history.rulings.contains_key("BillBooked"), "{rungs:?}: {:?}", history.rulings);
    }
}

/// A confirmation and then a higher bill were stored while the decider received nothing for hours. It received the
/// confirmation first, and the tuning ended without the higher bill. Found by seed 700416625.
#[test]
fn regression_a_confirmation_follows_the_stored_bills_of_its_jobs() {
    check_recorded(include_str!("histories/confirmed_too_early.json"));
}

/// A job had trained its last epoch long before the fifth tail was known. The check expected the order to stop it at
/// the same moment, although the next sweep gives it. Found by seed 1796034241635.
#[test]
fn regression_a_tail_is_too_long_once_enough_tails_are_known() {
    check_recorded(include_str!("histories/tails_known_late.json"));
}

/// The service stopped a job at its time limit and uploaded its checkpoints for longer than the history lasted. The check
/// expected a stop order for a job that stopped already. Found by seed 1796400000491.
#[test]
fn regression_a_job_that_its_limit_stops_may_upload_beyond_the_end() {
    check_recorded(include_str!("histories/stopped_by_its_limit.json"));
}

/// A create took effect although its response was lost, and the job was deleted before the retry. The name was taken,
/// but the job did not exist and no fact ever showed it, so the tuning waited forever.
#[test]
fn regression_a_job_deleted_before_it_was_known_does_not_block_the_tuning() {
    let faults = [
        (Kind::JobDeleted, 0.7),
        (Kind::TrainingLostAnswer, 0.5),
        (Kind::EventLost, 0.9),
        (Kind::LogLost, 0.9),
        (Kind::CrashAfter, 0.05),
    ];
    let plan = Plan { epoch_ms: 2_000, ..plan(&faults) };
    check(&plan, &Choices { max_runtime_seconds: 900, ..Choices::plain() }, 0..20);
}

/// Hours of late sweeps came all at once after the end of two jobs. Both jobs were settled in full 82 seconds after
/// their end, while their instances were still kept.
#[test]
fn regression_late_sweeps_do_not_settle_a_job_that_has_just_ended() {
    let history = Run::drawn(1_795_289_900_252).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

/// A function's clock was seconds behind, and it cut the time of an interruption to its own time. Then an older state
/// arrived late, and the interruption, now with its true time, counted twice.
#[test]
fn regression_an_interruption_recorded_by_a_slow_clock_counts_once() {
    let history = Run::drawn(1_795_302_273_455).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

/// A job waited hours for its instances while every sweep crashed before it looked at the job, so the job was settled
/// in full. The checker excused that ruling, but it still counted the job against `MaxParallel`, and as a running job at
/// the end of its tuning. In the second history it also expected a judgement by lines that were never read.
#[test]
fn regression_a_job_excused_as_settled_in_full_breaks_no_other_promise() {
    for seed in [1_795_381_575_474, 1_795_381_577_152] {
        let history = Run::drawn(seed).history();
        assert!(history.violations.is_empty(), "{:#?}", history.violations);
    }
}

/// A stop cancelled a start whose job had run and was deleted; a tuning ended at its cap although a raised cap was
/// stored, since the stream was hours late; and a frozen actuator cancelled a start by an answer that was minutes old.
#[test]
fn regression_late_knowledge_neither_releases_money_nor_ends_a_tuning() {
    for seed in [1_795_400_000_261, 1_795_400_006_852, 1_795_410_005_712] {
        let history = Run::drawn(seed).history();
        assert!(history.violations.is_empty(), "{:#?}", history.violations);
    }
}

/// A notice that no job gets instances came although a job had had instances minutes before: only its end was reported.
#[test]
fn regression_a_job_that_ends_unseen_shows_capacity() {
    let history = Run::drawn(1_795_397_050_133).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

/// A checker expected that a job which completes early has logged the last epoch of its trial. The job had started
/// again without its checkpoint, and an earlier job of the trial had logged more.
#[test]
fn regression_an_earlier_job_may_have_logged_the_last_epoch() {
    let history = Run::drawn(1_795_640_002_276).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

/// A checker expected the report of a repeat whose only line was lost. All epochs of the trial were known, or became
/// known after the read of the rest of the log was ordered. So the log of the job was not read.
#[test]
fn regression_a_lost_line_may_hide_a_repeat() {
    for seed in [1_796_100_003_020, 1_796_700_001_243] {
        let history = Run::drawn(seed).history();
        assert!(history.violations.is_empty(), "{:#?}", history.violations);
    }
}

/// A checker expected two minutes for the model of a job, less ten seconds. The decider's clock was 20 seconds ahead.
#[test]
fn regression_a_fast_clock_shortens_the_time_to_save_a_model() {
    let history = Run::drawn(1_796_500_009_494).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

/// The trial that reached the target waited for more money than the cap had left. Another trial waited for its end, so the
/// tuning had no job and did not end.
#[test]
fn regression_a_finalist_without_money_blocks_no_trial() {
    let history = Run::drawn(1_795_839_458_129).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}

/// A checker took a cap for unused although it did not pay for the next trial. A job of the first rung had saved its model
/// for two hours, so the next one reserved its full time limit.
#[test]
fn regression_a_long_tail_at_the_first_rung_raises_the_next_reservation() {
    for seed in [1_795_847_960_847, 1_795_847_960_901] {
        let history = Run::drawn(seed).history();
        assert!(history.violations.is_empty(), "{:#?}", history.violations);
    }
}

/// A checker expected the value of an earlier job that had failed. The lines of that job had no known epochs, and the next
/// job, which completed at its level, logged no finite value.
#[test]
fn regression_the_lines_of_a_failed_job_enter_no_curve() {
    let history = Run::drawn(1_795_955_822_557).history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
}
