//! Reads the rest of an ended job's log: the lines that are still unknown when the job ends.

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::JobEnd;
use crate::log::reasons::StopWhy;
use crate::log::ruling::{Order, ReadOrder, Ruling};
use crate::state::State;
use crate::trial::log::deadline_of;
use crate::trial::log::is_known;
use crate::unit::limits::BILL_USUAL;
use crate::unit::time::Time;

/// Orders the log of the next ended job to be read, once for each job.
pub(crate) fn read(definition: &Definition, state: &State) -> Option<Ruling> {
    state.jobs().find_map(|(key, trial, job)| {
        let due =
            job.end.is_some() && job.rest_ordered.is_none() && !is_known(definition, state.clock, trial, job);
        let (ordered, ended) = (job.ordered, job.ended.unwrap_or(job.end_at));
        let order = Order::Read(ReadOrder::Rest { job: key, ordered, ended, at_once: is_over(job) });
        due.then_some(Ruling::Order(order))
    })
}

/// Returns when the next job whose log cannot be read is concluded without it.
pub(crate) fn deadline(definition: &Definition, state: &State) -> Option<Time> {
    let unread = state.jobs().filter(|(_, trial, job)| !is_known(definition, state.clock, trial, job));
    // The hour begins with the first time that the sweeper reports: ask for one after a minute.
    let deadlines =
        unread.filter_map(|(_, _, job)| deadline_of(job).or(job.rest_ordered.map(|at| at + BILL_USUAL)));
    deadlines.filter(|deadline| *deadline > state.clock).min()
}

/// Returns whether nothing is decided by the last lines: the program failed, or a decision stopped the trial. A job that
/// trained past its level is compared by its value there.
fn is_over(job: &Job) -> bool {
    let stopped = match job.stop {
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
            | StopWhy::Requested
            | StopWhy::NoObjective { .. }
            | StopWhy::Diverged { .. }
            | StopWhy::CapExceeded { .. },
        ) => true,
    };
    stopped || job.end == Some(JobEnd::AlgorithmError)
}
