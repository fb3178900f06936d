//! Reads the rest of an ended job's log: the lines that are still unknown when the job ends.

use crate::definition::Definition;
use crate::job::Job;
use crate::job::inquiry::Inquiry;
use crate::log::fact::JobEnd;
use crate::log::reasons::StopWhy;
use crate::log::ruling::{Order, ReadOrder, Ruling};
use crate::rules::{Rule, nothing};
use crate::state::State;
use crate::trial::log::is_known;
use crate::unit::time::Time;

/// Orders the rest of ended jobs' logs to be read.
pub(crate) const READ: Rule = Rule {
    next: |view| read(view.definition, view.state),
    wakes: |view| view.by_clock(deadlines(view.definition, view.state)),
    folds_first: nothing,
};

/// Orders the log of the next ended job to be read, once for each job.
pub(crate) fn read(definition: &Definition, state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, trial, job)| {
        let due = job.end().is_some()
            && job.final_log == Inquiry::Idle
            && !is_known(definition, state.clock, trial, job);
        let (ordered, ended) = (job.order.at, job.stopped_running_at()?);
        let order = Order::Read(ReadOrder::Rest { job: key, ordered, ended, at_once: is_over(job) });
        due.then_some(Ruling::Order(order))
    })
}

/// Returns when each job whose log cannot be read is concluded without it.
fn deadlines(definition: &Definition, state: &State) -> impl Iterator<Item = Time> {
    let awaited = state.jobs().filter_map(|(_, trial, job)| Some((trial, job, job.final_log.wakes_at()?)));
    let unread = awaited.filter(|(trial, job, _)| !is_known(definition, state.clock, trial, job));
    unread.map(|(_, _, time)| time)
}

/// Returns whether nothing is decided by the last lines: the program failed, or a decision stopped the trial. A job that
/// trained past its level is compared by its value there.
fn is_over(job: &Job) -> bool {
    let stopped = match job.stop_why() {
        None
        | Some(
            StopWhy::PastLevel { .. }
            | StopWhy::NextInstances
            | StopWhy::Quota
            | StopWhy::Interruptions { .. }
            | StopWhy::ReservationUsed { .. },
        ) => false,
        Some(
            StopWhy::Rung { .. }
            | StopWhy::MaxResource
            | StopWhy::TuningEnding
            | StopWhy::TargetReached { .. }
            | StopWhy::OutOfReach
            | StopWhy::Requested
            | StopWhy::NoObjective { .. }
            | StopWhy::Diverged { .. }
            | StopWhy::CapExceeded { .. },
        ) => true,
    };
    stopped || job.end() == Some(JobEnd::AlgorithmError)
}
