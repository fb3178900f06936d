//! The size of a row is never above the bound of its parts.

use super::*;
use crate::definition::{JobLimits, JobShape, Limits};
use crate::log::fact::{JobEnd, JobKey, JobPhase, MetricLine};
use crate::log::problem::LogProblem;
use crate::log::reasons::{RetryWhy, StopWhy};
use crate::log::ruling::{Launch, Verdict};
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, ChoiceId, RungId, TrialId};
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

const JOB: JobKey = JobKey { trial: TrialId(u32::MAX), rung: RungId(u32::MAX), attempt: u32::MAX };

/// Returns the worst text: each of its bytes takes six in JSON.
fn worst(length: usize) -> String {
    "\u{1}".repeat(length)
}

#[test]
fn plain_bytes_count_twice_and_escaped_bytes_six_times() {
    assert_eq!(text("plain text, \"quoted\""), 2 * 20);
    assert_eq!(text("\u{1}"), 6);
    assert_eq!(text("\u{e4}"), 12, "each of its two bytes counts six");
    assert_eq!(text(""), 0);
}

#[test]
fn a_fact_is_never_larger_than_its_estimate() {
    let message = Some(worst(1_000));
    let line = MetricLine {
        id: worst(56),
        at: Time::MIN,
        index: Some(u64::MAX),
        value: Some(-1.234_567_890_123e-300),
    };
    let facts = [
        Fact::StartRefused { job: JOB, message: worst(1_000), name_is_foreign: true },
        Fact::ActionDeferred { job: JOB, not_before: Time::MIN, reason: worst(1_000), quota_exceeded: true },
        Fact::MetricsLogged { job: JOB, stream: worst(512), lines: vec![line; 500], began: None },
        Fact::JobStateChanged {
            job: JOB,
            phase: JobPhase::Downloading,
            started: Some(Time::MIN),
            ended: Some(Time::MIN),
            message: message.clone(),
        },
        Fact::JobDescribed {
            job: JOB,
            end: JobEnd::AlgorithmError,
            started: Some(Time::MIN),
            ended: Some(Time::MIN),
            billable_seconds: u64::MAX,
            message,
            interruptions: u32::MAX,
        },
        Fact::LogProblemSeen {
            job: JOB,
            problem: Box::new(LogProblem::NumberCut {
                captured: worst(300),
                whole: worst(300),
                line: worst(300),
                is_epoch: true,
            }),
        },
        Fact::LogProblemSeen { job: JOB, problem: Box::new(LogProblem::Redrawn { line: worst(300) }) },
        Fact::LogProblemSeen {
            job: JOB,
            problem: Box::new(LogProblem::NoValue { hint: worst(300), is_cause: true }),
        },
        Fact::FinalMetricsSeen { job: JOB, values: vec![(u8::MAX, f64::MIN_POSITIVE); 40] },
        Fact::TuningSubmitted,
    ];
    for fact in facts {
        let recorded = Recorded { key: worst(300), at: Time::MIN, fact };
        let stored = serde_json::to_string(&recorded).unwrap().len();
        assert!(stored <= fact_bytes(&recorded), "{stored} bytes: {:?}", recorded.fact.job());
    }
}

fn largest_start() -> Order {
    let configuration = Configuration([(worst(250), worst(250)), (worst(9), worst(9))].into());
    let limits = JobLimits {
        max_runtime_seconds: u64::MAX,
        max_wait_seconds: Some(u64::MAX),
        keep_alive_seconds: u64::MAX,
    };
    Order::Start {
        job: JOB,
        bracket: BracketId(u32::MAX),
        configuration,
        origin: Some(search::Origin::Model {
            near: u32::MAX,
            expected: -1.234_567_890_123e-300,
            low: -1.234_567_890_123e-300,
            high: -1.234_567_890_123e-300,
            parent: Some(search::Followed { parent: u32::MAX, weight: 1.234_567_890_123_456_7e-300 }),
            saved: Some(search::Saved {
                cost: 1.234_567_890_123_456_7e-300,
                within: 1.234_567_890_123_456_7e-300,
            }),
            of_size: true,
        }),
        limits,
        reservation: MicroUsd(u64::MAX),
        round: u32::MAX,
        launch: Launch {
            resource: Some(Epochs(u32::MAX)),
            on_demand: true,
            instances: ChoiceId(u32::MAX),
            refit: true,
        },
        promoted: Some(LARGEST_JUDGED),
    }
}

const LARGEST_JUDGED: Judged = Judged {
    bracket: BracketId(u32::MAX),
    rung: RungId(u32::MAX),
    level: Epochs(u32::MAX),
    value: Some(-1.234_567_890_123e-300),
    verdict: Verdict { rank: u32::MAX, seen: u32::MAX, allowed: u32::MAX, continues: false },
};

#[test]
fn a_ruling_is_never_larger_than_its_estimate() {
    let message = worst(1_000);
    let Order::Start { configuration, origin, .. } = largest_start() else { panic!("no start") };
    let rulings = [
        Ruling::Order(largest_start()),
        Ruling::Search(SearchRuling::TrialDrawn { trial: TrialId(u32::MAX), configuration, origin }),
        Ruling::Search(SearchRuling::RungReached {
            job: Some(JOB),
            trial: TrialId(u32::MAX),
            bracket: BracketId(u32::MAX),
            round: u32::MAX,
            rung: RungId(u32::MAX),
            level: Epochs(u32::MAX),
            resource: Epochs(u32::MAX),
            value: Some(-1.234_567_890_123e-300),
        }),
        Ruling::Search(SearchRuling::TrialPromoted {
            reached_target: true,
            trial: TrialId(u32::MAX),
            bracket: BracketId(u32::MAX),
            round: u32::MAX,
            rung: RungId(u32::MAX),
            level: Epochs(u32::MAX),
            value: Some(-1.234_567_890_123e-300),
            verdict: Verdict { rank: u32::MAX, seen: u32::MAX, allowed: u32::MAX, continues: false },
        }),
        Ruling::Attempt(AttemptRuling::ResourceRepeated {
            job: JOB,
            had: Epochs(u32::MAX),
            from: Epochs(u32::MAX),
        }),
        Ruling::Attempt(AttemptRuling::TrialFinished {
            job: Some(JOB),
            trial: TrialId(u32::MAX),
            how: TrialEnd::Failed(message.clone()),
        }),
        Ruling::TuningEnding { why: EndReason::Failed(message.clone()) },
        Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why: EndReason::Failed(message) })),
        Ruling::Order(Order::Stop {
            job: JOB,
            why: StopWhy::Rung { rung: RungId(u32::MAX) },
            because: Some(LARGEST_JUDGED),
        }),
        Ruling::Attempt(AttemptRuling::AttemptAwaited {
            job: JOB,
            why: RetryWhy::RuntimeCutTooShort,
            not_before: Time::MIN,
        }),
    ];
    for ruling in rulings {
        let stored = serde_json::to_string(&ruling).unwrap().len();
        assert!(stored <= ruling_bytes(&ruling), "{stored} bytes: {:?}", ruling.order().map(Order::action));
    }
}

#[test]
fn a_fact_or_ruling_without_text_counts_as_its_frame() {
    let recorded = Recorded { key: String::new(), at: Time(0), fact: Fact::TimePassed };
    assert_eq!(fact_bytes(&recorded), FRAME_BYTES);
    assert_eq!(ruling_bytes(&Ruling::Order(Order::Notice(NoticeOrder::OverrunSeen))), FRAME_BYTES);
}

#[test]
fn only_a_job_that_keeps_its_instances_counts_bytes_for_their_period() {
    let mut start = largest_start();
    let kept = ruling_bytes(&Ruling::Order(start.clone()));
    if let Order::Start { limits, .. } = &mut start {
        limits.keep_alive_seconds = 0;
    }
    assert_eq!(ruling_bytes(&Ruling::Order(start)), kept - KEPT_BYTES);
}

/// Returns a definition whose only parameter has these values.
fn with_values(values: &[&str]) -> Definition {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    let parameter = Parameter { name: "optimizer".to_owned(), domain: Domain::Categorical { values } };
    let space = Space::new(vec![parameter]).unwrap();
    Definition::new(("a", "b"), Time(0), space, Limits::new(1, 1), JobShape::new(None, 60))
}

#[test]
fn the_row_of_an_action_counts_as_its_order_and_the_end_of_a_search_writes_none() {
    let definition = with_values(&["sgd"]);
    let start = Ruling::Order(largest_start());
    assert_eq!(row_bytes(&definition, &start), ruling_bytes(&start));
    let ending = Ruling::TuningEnding { why: EndReason::MaxJobs };
    assert_eq!(row_bytes(&definition, &ending), 0);
}
