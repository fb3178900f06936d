//! The read of a bill: what it stores, and which bills it does not believe.

use serde_json::json;
use tuning::log::fact::{Fact, JobPhase, MetricLine};
use tuning::log::ruling::{Order, ReadOrder};
use tuning::unit::time::Time;
use use_cases::perform::{Effect, Performed};
use use_cases::ports::training::Description;
use wire::stored;

use crate::performing::{NOW, Stack, completed, is_deferred, job};
use crate::support::description;

/// Reads the bill of the first job, as the service describes it.
fn bill(stack: &Stack, described: Description) -> Performed {
    stack.service.lock().describe = Some(Ok(described));
    let action = stack.order(Order::Read(ReadOrder::Bill { job: job(0) }));
    stack.perform(&action)
}

/// Returns the stored last values of the metrics, by their place in the request.
fn final_values(stack: &Stack) -> Option<Vec<(u8, f64)>> {
    let facts = stack.table.rows().into_iter().filter_map(|row| stored::fact(&row).ok());
    let mut values = facts.filter_map(|recorded| match recorded.fact {
        Fact::FinalMetricsSeen { values, .. } => Some(values),
        _ => None,
    });
    values.next()
}

#[test]
fn a_bill_comes_with_the_last_values_of_all_metrics_if_there_are_others_than_the_objective() {
    let cases = [
        (vec![("validation:auc", 0.9), ("loss", 0.1)], Some(vec![(0, 0.9), (2, 0.1)])),
        (vec![("train:auc", 0.8)], Some(vec![(1, 0.8)])),
        (vec![("loss", f64::NAN), ("train:auc", 0.8)], Some(vec![(1, 0.8)])),
        (vec![("validation:auc", 0.9), ("unknown", 0.1)], None),
        (vec![("loss", f64::INFINITY)], None),
        (vec![], None),
    ];
    for (reported, expected) in cases {
        let stack = Stack::with(|request| {
            let metric = |name: &str| json!({"Name": name, "Regex": format!(r"{name}=([0-9.]+)")});
            request["TrainingJobDefinition"]["AlgorithmSpecification"]["MetricDefinitions"] =
                json!([metric("validation:auc"), metric("train:auc"), metric("loss")]);
        });
        let final_metrics = reported.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let billed = bill(&stack, Description { final_metrics, ..completed() });
        assert_eq!(billed, Performed::Done(Effect::Other));
        assert!(stack.knows("described#0-0-1"));
        assert_eq!(final_values(&stack), expected, "{reported:?}");
    }
}

/// The decider has seen each job run: by its state, or only by a line of its log.
#[test]
fn a_job_that_ran_has_a_bill_as_soon_as_the_description_shows_its_start_or_its_seconds() {
    let state = Fact::JobStateChanged {
        job: job(0),
        phase: JobPhase::Training,
        started: Some(Time(NOW - 800_000)),
        ended: None,
        message: None,
    };
    let line = |trial: u32| Fact::MetricsLogged {
        job: job(trial),
        stream: "algo-1-1".to_owned(),
        lines: vec![MetricLine { id: "1".to_owned(), at: Time(NOW), index: Some(1), value: Some(0.5) }],
        began: None,
    };
    let seen = [("a state", state), ("a line", line(0))];
    let start = Some(Time(NOW - 800_000));
    for (started, seconds, is_billed) in
        [(None, Some(0), false), (None, None, false), (None, Some(700), true), (start, Some(0), true)]
    {
        for (by, fact) in &seen {
            let stack = Stack::new();
            stack.decide(vec![Fact::TuningSubmitted]);
            stack.decide(vec![Fact::JobStarted { job: job(0) }, fact.clone()]);
            let ended = Some(Time(NOW - 100_000));
            let described = Description {
                started,
                ended,
                billable_seconds: seconds,
                ..description("job", "Stopped", NOW - 900_000)
            };
            let performed = bill(&stack, described);
            assert_eq!(is_deferred(&performed), !is_billed, "{by}, {started:?}, {seconds:?}: {performed:?}");
            assert_eq!(stack.knows("described#0-0-1"), is_billed, "{by}, {started:?}, {seconds:?}");
        }
    }
    // A line of another job shows nothing about this one.
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.decide(vec![Fact::JobStarted { job: job(0) }, Fact::JobStarted { job: job(1) }, line(1)]);
    let never =
        Description { ended: Some(Time(NOW - 100_000)), ..description("job", "Stopped", NOW - 900_000) };
    assert_eq!(bill(&stack, never), Performed::Done(Effect::Other));
}
