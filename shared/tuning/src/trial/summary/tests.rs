//! The row of a job is never larger than the bound by which a step counts it.

use search::{Domain, Parameter, Space};

use super::*;
use crate::definition::{JobShape, Limits};
use crate::log::reasons::RetryWhy;
use crate::log::ruling::AttemptRuling;
use crate::log::size::row_bytes;
use crate::unit::ids::{RungId, TrialId};
use crate::unit::limits::{MAX_MESSAGE_CHARS, MAX_METRICS};

/// No float has a longer text.
const LONGEST: f64 = -2.225_073_858_507_201_4e-308;

const JOB: JobKey = JobKey { trial: TrialId(u32::MAX), rung: RungId(u32::MAX), attempt: u32::MAX };

/// Returns a definition whose only parameter has these values.
fn with_values(values: &[&str]) -> Definition {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    let parameter = Parameter { name: "optimizer".to_owned(), domain: Domain::Categorical { values } };
    let space = Space::new(vec![parameter]).unwrap();
    Definition::new(("a", "b"), Time(0), space, Limits::new(1, 1), JobShape::new(None, 60))
}

fn largest_summary(definition: &Definition) -> JobSummary {
    let point = |epoch| (Epochs(u32::MAX - epoch), Some(LONGEST));
    let parameter = &definition.space.parameters()[0];
    let Domain::Categorical { values } = &parameter.domain else { panic!("{parameter:?}") };
    let longest = values.iter().max_by_key(|value| value.len()).unwrap();
    JobSummary {
        job: JOB,
        bracket: BracketId(u32::MAX),
        configuration: Configuration([(parameter.name.clone(), longest.clone())].into()),
        phase: JobPhase::Ended(JobEnd::AlgorithmError),
        end: Some(JobEnd::AlgorithmError),
        ordered: Time::MIN,
        started: Some(Time::MIN),
        ended: Some(Time::MIN),
        stop: Some(StopWhy::CapExceeded { by: JOB }),
        message: Some("\u{1}".repeat(MAX_MESSAGE_CHARS)),
        never_started: false,
        last_value: Some(LONGEST),
        best_value: Some(LONGEST),
        resource: Epochs(u32::MAX),
        rungs_passed: u32::MAX,
        level: Some(Epochs(u32::MAX)),
        resumed_from: Some(Epochs(u32::MAX)),
        repeats_from: Some(Epochs(u32::MAX)),
        concluded: false,
        limits: JobLimits {
            max_runtime_seconds: u64::MAX,
            max_wait_seconds: Some(u64::MAX),
            keep_alive_seconds: u64::MAX,
        },
        on_demand: true,
        instances: ChoiceId(u32::MAX),
        reservation: MicroUsd(u64::MAX),
        billable_seconds: Some(u64::MAX),
        cost: Some(MicroUsd(u64::MAX)),
        retained_seconds: Some(u64::MAX),
        retained_cost: Some(MicroUsd(u64::MAX)),
        settled_in_full: false,
        interruptions: u32::MAX,
        metrics: vec![(u8::MAX, LONGEST); MAX_METRICS],
        curve: (0..=u32::try_from(CURVE_POINTS_KEPT).unwrap()).map(point).collect(),
    }
}

#[test]
fn the_row_of_a_job_is_never_larger_than_its_estimate() {
    let long = "\"".repeat(2_000);
    for values in [["sgd", "adam"], ["sgd", &long]] {
        let definition = with_values(&values);
        let summary = largest_summary(&definition);
        let stored = serde_json::to_string(&summary).unwrap().len();
        let concluding = Ruling::Attempt(AttemptRuling::AttemptAwaited {
            job: JOB,
            why: RetryWhy::Capacity,
            not_before: Time(0),
        });
        let estimate = row_bytes(&definition, &concluding);
        assert!(stored <= estimate, "{stored} bytes of {estimate}");
    }
}
