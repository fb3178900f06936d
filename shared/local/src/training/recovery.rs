//! What an earlier controller left behind, and what becomes of it.
//!
//! Assumes that the folder is claimed. First no process of an earlier controller may be left, then each job that had
//! not ended is settled: its run was cut at the last sign of life. Must never touch a job that has ended.

use std::collections::BTreeSet;

use service::ports::Millis;

use super::config::OpenError;
use super::hosts::mark;
use super::processes;
use super::record::{End, Record, Secondary, Status};
use super::store::{self, Found, Layout};

/// Failure reason of an on-demand job that was cut.
const LOST: &str = "InternalServerError: the host was lost when the controller on this machine ended.";
/// A job that changed so shortly before the last sign of life may not have been heard of: its last event is repeated.
pub(crate) const UNHEARD: Millis = 5_000;

/// What the service has to do with a job that it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It has ended, long ago.
    Old,
    /// Its last event may be unheard.
    Recent,
    /// It ends now: save and announce.
    EndedNow,
    /// It goes on from its present state, which was announced perhaps.
    GoesOn,
    /// It goes on; it is interrupted now: save and announce.
    Interrupted,
}

/// Makes sure that no process of an earlier controller is left. Blocks for a few seconds at most.
pub(crate) fn end_old_processes(layout: &Layout, found: &[Found]) -> Result<(), OpenError> {
    let mut marks = BTreeSet::new();
    for job in found {
        match job {
            Found::Job(record, request) => {
                if let (false, Some(run)) = (record.status.ended(), record.runs.last()) {
                    store::wait_for_hosts(layout, &request.name)?;
                    marks.insert(mark(&run.attempt));
                }
            }
            Found::Damaged(job) => store::wait_for_hosts(layout, &job.name)?,
        }
    }
    if !marks.is_empty() {
        // Only if a shim was killed too can anything be found here.
        processes::kill_marked(&marks);
    }
    Ok(())
}

/// Settles one job, `alive` being the last sign of life of the controller that had it.
pub(crate) fn settle(record: &mut Record, alive: Option<Millis>, now: Millis) -> Settled {
    let cut_at =
        alive.map_or(record.modified, |alive| alive.clamp(record.modified, now.max(record.modified)));
    if record.status.ended() {
        let unheard = alive.is_some_and(|alive| record.modified.saturating_add(UNHEARD) >= alive);
        return if unheard { Settled::Recent } else { Settled::Old };
    }
    record.end_run(cut_at);
    if record.status == Status::Stopping {
        record.finish(End::Completed, now);
        return Settled::EndedNow;
    }
    match record.secondary {
        // Every process had ended well; only the upload, of which there is none, was cut.
        Secondary::Uploading => record.finish(End::Completed, now),
        Secondary::Interrupted | Secondary::Starting => return Settled::GoesOn,
        _ if record.spot => {
            record.interrupt(now);
            return Settled::Interrupted;
        }
        // Also an on-demand job that a shutdown ended.
        _ => record.finish(End::Failed(LOST.to_owned()), now),
    }
    Settled::EndedNow
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn training(spot: bool) -> Record {
        let mut record = Record::new(json!({}), spot, 1_000);
        record.begin_run(|number, _| number.to_string(), 1_500);
        record.enter(Secondary::Downloading, 2_000);
        record.enter(Secondary::Training, 3_000);
        record
    }

    #[test]
    fn a_cut_spot_job_is_billed_to_the_last_sign_of_life_and_waits() {
        let mut record = training(true);
        assert_eq!(settle(&mut record, Some(9_500), 60_000), Settled::Interrupted);
        assert_eq!((record.status, record.secondary), (Status::InProgress, Secondary::Interrupted));
        assert_eq!(record.ran(), 7_500);
        record.finish(End::MaxWait, 70_000);
        assert_eq!((record.billable_seconds, record.ended), (Some(8), Some(9_500)));
    }

    #[test]
    fn a_cut_on_demand_job_has_failed() {
        let mut record = training(false);
        assert_eq!(settle(&mut record, Some(9_500), 60_000), Settled::EndedNow);
        assert_eq!(record.status, Status::Failed);
        assert_eq!(record.failure_reason.as_deref(), Some(LOST));
        assert_eq!((record.ended, record.billable_seconds), (Some(9_500), Some(8)));
    }

    #[test]
    fn a_sign_of_life_before_the_last_change_or_after_now_is_not_believed() {
        let mut record = training(true);
        settle(&mut record, Some(100), 60_000);
        assert_eq!(record.ran(), 1_000);
        let mut record = training(true);
        settle(&mut record, Some(90_000), 60_000);
        assert_eq!(record.ran(), 58_000);
    }

    #[test]
    fn a_stopping_job_is_stopped_an_uploading_one_completed_a_starting_one_starts() {
        let mut record = training(true);
        record.request_stop(super::super::record::StopCause::MaxRuntime, 4_000);
        assert_eq!(settle(&mut record, Some(5_000), 60_000), Settled::EndedNow);
        assert_eq!((record.status, record.secondary), (Status::Stopped, Secondary::MaxRuntimeExceeded));

        let mut record = training(false);
        record.enter(Secondary::Uploading, 4_000);
        assert_eq!(settle(&mut record, Some(5_000), 60_000), Settled::EndedNow);
        assert_eq!(record.status, Status::Completed);

        let mut record = Record::new(json!({}), false, 1_000);
        assert_eq!(settle(&mut record, Some(5_000), 60_000), Settled::GoesOn);
        record.begin_run(|number, _| number.to_string(), 1_500);
        assert_eq!(settle(&mut record, Some(5_000), 60_000), Settled::GoesOn);
        assert_eq!(record.secondary, Secondary::Starting);
    }

    #[test]
    fn the_last_event_of_a_job_that_has_just_ended_is_repeated() {
        let mut record = training(false);
        record.finish(End::Completed, 4_000);
        assert_eq!(settle(&mut record.clone(), Some(4_500), 60_000), Settled::Recent);
        assert_eq!(settle(&mut record, Some(40_000), 60_000), Settled::Old);
    }
}
