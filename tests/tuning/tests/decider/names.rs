//! Identifiers of tunings, jobs and rulings: action IDs, words, keys. They are stored and must not change.

use tuning::log::fact::{Fact, JobEnd};
use tuning::log::reasons::{EndReason, RetryWhy, StopWhy, TrialEnd};
use tuning::log::ruling::{
    AttemptRuling, Booking, GrantOrder, NoticeOrder, Order, PoolOrder, ReadOrder, Ruling,
};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;

use crate::support::build::*;
use crate::support::run::Run;

#[test]
fn a_tuning_id_has_its_name_and_incarnation() {
    assert_eq!(hyperband().id(), "tuning-abc123");
}

#[test]
fn a_job_key_prints_trial_rung_and_attempt() {
    assert_eq!(attempt(12, 3).to_string(), "12-0-3");
}

/// "P2 no decision is performed twice with effect": each order of an action has the same ID.
#[test]
fn p2_every_action_has_a_unique_id_and_other_rulings_have_none() {
    let mut run = Run::new(&jobs(1, 1));
    let start = run.take(&[submitted()]).remove(0);
    let job = attempt(7, 2);
    let id = |ruling: Ruling| ruling.order().map(Order::action);
    assert_eq!(id(start).as_deref(), Some("start-0-0-1"));
    assert_eq!(
        id(Ruling::Order(Order::Stop { job, why: StopWhy::MaxResource, because: None })).as_deref(),
        Some("stop-7-0-2")
    );
    assert_eq!(id(Ruling::Order(Order::Read(ReadOrder::Bill { job }))).as_deref(), Some("bill-7-0-2"));
    assert_eq!(
        id(Ruling::Order(Order::Read(ReadOrder::Log { job, streams: 3 }))).as_deref(),
        Some("read-7-0-2-3")
    );
    assert_eq!(
        id(Ruling::Order(Order::Pool(PoolOrder::Read { job, n: 2, last: true }))).as_deref(),
        Some("pool-7-0-2-2")
    );
    assert_eq!(id(Ruling::Order(Order::Pool(PoolOrder::Release { job }))).as_deref(), Some("release-7-0-2"));
    assert_eq!(id(Ruling::Booking(Booking::PoolClosed { job, seconds: None, amount: MicroUsd(1) })), None);
    assert_eq!(
        id(Ruling::Order(Order::Read(ReadOrder::Silence { job, since: Time(9) }))).as_deref(),
        Some("look-7-0-2-9")
    );
    let (least, wanted) = (MicroUsd(1), MicroUsd(2));
    assert_eq!(
        id(Ruling::Order(Order::Grant(GrantOrder::Request { n: 4, least, wanted }))).as_deref(),
        Some("grant-4")
    );
    let month = || "2026-11".to_owned();
    let back = Ruling::Order(Order::Grant(GrantOrder::Return {
        n: 5,
        month: month(),
        amount: least,
        moved_to: None,
    }));
    assert_eq!(id(back).as_deref(), Some("return-5"));
    assert_eq!(
        id(Ruling::Order(Order::Notice(NoticeOrder::CapReached { percent: 80 }))).as_deref(),
        Some("notice-cap-80")
    );
    let reached = Ruling::Order(Order::Notice(NoticeOrder::MonthCapReached { month: month(), percent: 50 }));
    assert_eq!(id(reached).as_deref(), Some("notice-month-2026-11-50"));
    assert_eq!(id(Ruling::Order(Order::Notice(NoticeOrder::OverrunSeen))).as_deref(), Some("notice-overrun"));
    assert_eq!(
        id(Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why: EndReason::Stopped }))).as_deref(),
        Some("notice-ended")
    );
    assert_eq!(id(Ruling::TuningEnding { why: EndReason::Stopped }), None);
    let waits =
        Ruling::Attempt(AttemptRuling::AttemptAwaited { job, why: RetryWhy::Capacity, not_before: Time(0) });
    assert_eq!(waits.concludes(), Some(job));
    assert_eq!(id(waits), None);
    let finished = Ruling::Attempt(AttemptRuling::TrialFinished {
        job: Some(job),
        trial: TrialId(7),
        how: TrialEnd::Completed,
    });
    assert_eq!(finished.concludes(), Some(job));
    assert_eq!(id(finished), None);
    assert_eq!(Ruling::Order(Order::Read(ReadOrder::Bill { job })).concludes(), None);
}

#[test]
fn each_end_reason_has_a_stable_word() {
    // The error for an unknown reason lists all of them.
    let error = serde_json::from_str::<EndReason>("\"?\"").unwrap_err().to_string();
    let words: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
    let expected =
        ["CostCap", "MaxJobs", "Target", "NotImproving", "NoCapacity", "MaxRuntime", "Stopped", "Failed"];
    assert_eq!(words, expected);
    let documents = include_str!("../../../../docs/REQUEST.md");
    for word in words {
        let reason = serde_json::from_value(word.into());
        let reason = reason.unwrap_or_else(|_| EndReason::Failed(String::new()));
        assert_eq!(reason.word(), word);
        assert!(documents.contains(&format!("`{word}`")), "docs/REQUEST.md lacks the EndReason {word}");
    }
}

#[test]
fn an_order_about_a_job_has_its_key_and_an_order_about_the_tuning_has_none() {
    let job = attempt(7, 2);
    let of_job = [
        Order::Stop { job, why: StopWhy::MaxResource, because: None },
        Order::Read(ReadOrder::Bill { job }),
        Order::Read(ReadOrder::Silence { job, since: Time(9) }),
        Order::Pool(PoolOrder::Release { job }),
    ];
    assert!(of_job.iter().all(|order| order.job() == Some(job)));
    let (least, wanted) = (MicroUsd(1), MicroUsd(2));
    let others =
        [Order::Grant(GrantOrder::Request { n: 4, least, wanted }), Order::Notice(NoticeOrder::OverrunSeen)];
    assert!(others.iter().all(|order| order.job().is_none()));
}

#[test]
fn a_refusal_has_its_message_and_comes_first_if_another_job_has_the_name() {
    let refusal = |name_is_foreign| {
        let message = "no such role".to_owned();
        Fact::StartRefused { job: job(0), message, name_is_foreign }
    };
    assert_eq!(refusal(true).refusal(), Some("no such role"));
    assert_eq!((started(1, job(0)).fact.refusal(), never_started(1, job(0)).fact.refusal()), (None, None));
    assert_eq!((refusal(true).comes_first(), refusal(false).comes_first()), (true, false));
    assert!(!started(1, job(0)).fact.comes_first());
}

/// All stored facts of a job are folded before one of these facts.
#[test]
fn a_bill_a_log_read_and_a_silence_complete_the_facts_of_a_job() {
    let bill = described(1, job(0), JobEnd::Completed, 1).fact;
    let facts = [bill, Fact::LogRead { job: job(0), streams: 1 }, silence_seen(1, job(0), 0).fact];
    assert!(facts.iter().all(Fact::completes));
    let others =
        [submitted(), started(1, job(0)), ended(1, job(0), JobEnd::Completed), logged(1, job(0), 1, 0.5)];
    assert!(others.iter().all(|other| !other.fact.completes()));
}

#[test]
fn every_fact_except_those_of_the_tuning_has_its_job() {
    let facts = [
        started(1, job(3)),
        refused(1, job(3)),
        never_started(1, job(3)),
        stop_accepted(1, job(3)),
        deferred(1, job(3), 9),
        logged(1, job(3), 1, 0.5),
        ended(1, job(3), JobEnd::Completed),
        described(1, job(3), JobEnd::Completed, 1),
        recorded(1, Fact::LogRead { job: job(3), streams: 1 }),
        silence_seen(1, job(3), 0),
    ];
    assert!(facts.iter().all(|fact| fact.fact.job() == Some(job(3))));
    let given = recorded(1, Fact::NoticeGiven { notice: "notice-overrun".to_owned() });
    let others = [submitted(), stop_requested(1), time_passed(1), granted(1, 1, 1), returned(1, 1), given];
    assert!(others.iter().all(|fact| fact.fact.job().is_none()));
}
