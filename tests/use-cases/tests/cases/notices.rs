//! Notices and events that each happen once: what the decider learns of them, and which job triggers them.

use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{NoticeOrder, Order};
use tuning::unit::time::Time;
use use_cases::perform::{Effect, Performed};

use crate::performing::{NOW, Stack, job};

/// Takes the statuses in the events published since the last call.
fn statuses(stack: &Stack) -> Vec<String> {
    let published = std::mem::take(&mut *stack.actuator.bus.published.lock().unwrap());
    let status =
        |event: &serde_json::Value| event["HyperParameterTuningJobStatus"].as_str().map(str::to_owned);
    published.iter().map(|event| status(event).expect("an event about the status")).collect()
}

/// After the end of a tuning no fact is folded any more.
#[test]
fn the_decider_learns_of_every_notice_but_the_last() {
    let why = EndReason::MaxJobs;
    for (notice, is_stored) in
        [(NoticeOrder::CapReached { percent: 50 }, true), (NoticeOrder::TuningEnded { why }, false)]
    {
        let stack = Stack::new();
        let action = stack.order(Order::Notice(notice));
        assert_eq!(stack.perform(&action), Performed::Done(Effect::Other));
        assert_eq!(stack.actuator.bus.published.lock().unwrap().len(), 1, "{action}");
        assert_eq!(stack.knows(&format!("given#{action}")), is_stored, "{action}");
    }
}

/// Returns a stack with four running jobs.
fn running() -> Stack {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    for trial in 0..4 {
        let started = stack.handle(&[&format!("start-{}", job(trial))]);
        assert_eq!(started[0].1, Performed::Done(Effect::Started { promoted: None }));
        stack.decide(vec![Fact::JobStarted { job: job(trial) }]);
    }
    stack
}

#[test]
fn only_the_first_job_of_a_tuning_reports_that_it_begins() {
    assert_eq!(statuses(&running()), ["InProgress"]);
}

#[test]
fn a_tuning_reports_once_that_it_is_being_stopped_by_the_first_job_that_still_runs() {
    for ended in [0, 1] {
        let stack = running();
        statuses(&stack);
        stack.decide(vec![Fact::StopRequested]);
        for trial in 0..ended {
            stack.decide(vec![end(job(trial))]);
        }
        for trial in (ended..4).rev() {
            let stopped = &stack.handle(&[&format!("stop-{}", job(trial))])[0].1;
            assert!(matches!(stopped, Performed::Done(Effect::Stopped { .. })), "{stopped:?}");
            let expected: &[&str] = if trial == ended { &["Stopping"] } else { &[] };
            assert_eq!(statuses(&stack), expected, "trial {trial}, {ended} ended");
        }
    }
}

/// The job ended by itself just before its stop.
fn end(job: JobKey) -> Fact {
    Fact::JobStateChanged {
        job,
        phase: JobPhase::Ended(JobEnd::Completed),
        started: Some(Time(NOW - 1_000)),
        ended: Some(Time(NOW)),
        message: None,
    }
}
