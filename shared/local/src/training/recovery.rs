//! Recovers the jobs of an earlier controller.
//!
//! Needs the lock of the folder. First ends the processes of the earlier controller. Then settles each unfinished job,
//! whose run ended before the next heartbeat was due. Ended jobs do not change.

use std::collections::BTreeSet;

use super::config::OpenError;
use super::hosts::mark;
use super::processes;
use super::record::{End, Record, Secondary, Status, StopCause};
use super::store::{self, Found, Layout};
use tuning::unit::time::{Millis, Time};

/// The failure reason of an on-demand job whose controller was killed.
const LOST: &str = "InternalServerError: the host was lost when the controller on this machine ended.";
/// The event of a change this close to the last heartbeat may have been lost, so it is sent again. In milliseconds.
pub(crate) const RECENT: Millis = Millis::from_seconds(5);

/// The time between two heartbeats of a controller.
pub(crate) const HEARTBEAT_EVERY: Millis = Millis::from_seconds(1);

/// What the service must do with a job that it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing: the job ended long ago.
    Old,
    /// Announce: the event of the job's end may have been lost.
    Recent,
    /// Save and announce: the job ends now.
    JustEnded,
    /// Announce and drive: the job continues from its current state.
    Continues,
    /// Save, announce and drive: the job is interrupted now.
    Interrupted,
}

/// Ends the processes of an earlier controller. Blocks for a few seconds at most.
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
        // Finds processes only if their shim was killed too.
        processes::kill_marked(&marks);
    }
    Ok(())
}

/// Settles one job. `is_stopping`: a user has stopped its tuning. `heartbeat` is the last heartbeat of the earlier
/// controller.
pub(crate) fn settle(record: &mut Record, is_stopping: bool, heartbeat: Option<Time>, now: Time) -> Settled {
    // The processes may have run until the heartbeat that was missed, so the bill includes it.
    let run_end = heartbeat.map_or(record.modified, |heartbeat| {
        (heartbeat + HEARTBEAT_EVERY).clamp(record.modified, now.max(record.modified))
    });
    if record.status.ended() {
        let is_recent = heartbeat.is_some_and(|heartbeat| record.modified + RECENT >= heartbeat);
        return if is_recent { Settled::Recent } else { Settled::Old };
    }
    record.end_run(run_end);
    record.closed = record.closed + (now - run_end).or_zero();
    // An uploading job has trained to its end.
    if is_stopping && record.status == Status::InProgress && record.secondary != Secondary::Uploading {
        record.request_stop(StopCause::User, now);
    }
    if record.status == Status::Stopping {
        record.finish(End::Completed, now);
        return Settled::JustEnded;
    }
    match record.secondary {
        // Every process had succeeded, and there is no real upload.
        Secondary::Uploading => record.finish(End::Completed, now),
        Secondary::Interrupted | Secondary::Starting => return Settled::Continues,
        Secondary::Downloading
        | Secondary::Training
        | Secondary::Stopping
        | Secondary::Completed
        | Secondary::Failed
        | Secondary::Stopped
        | Secondary::MaxRuntimeExceeded
        | Secondary::MaxWaitTimeExceeded => {
            if record.spot {
                record.interrupt(run_end);
                return Settled::Interrupted;
            }
            // Only a kill leaves an on-demand job in these states: a shutdown interrupts it.
            record.finish(End::Failed(LOST.to_owned()), now);
        }
    }
    Settled::JustEnded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn training(spot: bool) -> Record {
        let mut record = Record::new(json!({}), None, spot, Time(1_000));
        record.begin_run(|number, _| number.to_string(), Time(1_500));
        record.enter(Secondary::Downloading, Time(2_000));
        record.enter(Secondary::Training, Time(3_000));
        record
    }

    #[test]
    fn a_running_spot_job_is_billed_until_the_missed_heartbeat_and_interrupted() {
        let mut record = training(true);
        assert_eq!(settle(&mut record, false, Some(Time(8_500)), Time(60_000)), Settled::Interrupted);
        assert_eq!((record.status, record.secondary), (Status::InProgress, Secondary::Interrupted));
        assert_eq!(record.ran(), Millis(7_500));
        record.finish(End::MaxWait, Time(70_000));
        assert_eq!((record.billable_seconds, record.ended), (Some(8), Some(Time(9_500))));
    }

    /// The pause counted as a wait for capacity, and the time after a kill as billed.
    #[test]
    fn regression_the_time_without_a_service_is_no_wait_and_begins_with_the_interruption() {
        let mut record = training(true);
        settle(&mut record, false, Some(Time(8_500)), Time(60_000));
        assert_eq!(record.closed, Millis(50_500));
        assert_eq!(record.transitions.last().map(|last| last.start), Some(Time(9_500)));
        assert_eq!(settle(&mut record, false, Some(Time(69_000)), Time(71_000)), Settled::Continues);
        assert_eq!(record.closed, Millis(51_500));
    }

    /// Its bill never came, so its tuning waited forever.
    #[test]
    fn regression_a_job_that_was_refused_before_its_start_is_billed_nothing() {
        let mut record = Record::new(json!({}), None, false, Time(1_000));
        record.finish(End::Failed("ClientError: too few devices".to_owned()), Time(2_000));
        assert_eq!((record.started, record.billable_seconds), (None, Some(0)));
    }

    /// The processes ran on after the last heartbeat: 2.5 s of training were billed as 2 s.
    #[test]
    fn regression_the_time_between_the_last_heartbeat_and_a_kill_is_billed() {
        let mut record = training(false);
        settle(&mut record, false, Some(Time(9_500)), Time(9_900));
        assert_eq!(record.ended, Some(Time(9_900)));
        let mut record = training(false);
        settle(&mut record, false, Some(Time(9_500)), Time(60_000));
        assert_eq!(record.ended, Some(Time(10_500)));
    }

    #[test]
    fn a_running_on_demand_job_fails() {
        let mut record = training(false);
        assert_eq!(settle(&mut record, false, Some(Time(8_500)), Time(60_000)), Settled::JustEnded);
        assert_eq!(record.status, Status::Failed);
        assert_eq!(record.failure_reason.as_deref(), Some(LOST));
        assert_eq!((record.ended, record.billable_seconds), (Some(Time(9_500)), Some(8)));
    }

    #[test]
    fn a_job_of_a_stopped_tuning_stops_where_it_was() {
        for spot in [true, false] {
            let mut record = training(spot);
            assert_eq!(settle(&mut record, true, Some(Time(8_500)), Time(60_000)), Settled::JustEnded);
            assert_eq!((record.status, record.billable_seconds), (Status::Stopped, Some(8)));
        }
        let mut waits = Record::new(json!({}), None, true, Time(1_000));
        assert_eq!(settle(&mut waits, true, Some(Time(8_500)), Time(60_000)), Settled::JustEnded);
        assert_eq!((waits.status, waits.started), (Status::Stopped, None));
        let mut uploads = training(true);
        uploads.enter(Secondary::Uploading, Time(4_000));
        assert_eq!(settle(&mut uploads, true, Some(Time(8_500)), Time(60_000)), Settled::JustEnded);
        assert_eq!(uploads.status, Status::Completed);
    }

    #[test]
    fn a_heartbeat_is_clamped_between_the_last_change_and_now() {
        let mut record = training(true);
        settle(&mut record, false, Some(Time(100)), Time(60_000));
        assert_eq!(record.ran(), Millis(1_000));
        let mut record = training(true);
        settle(&mut record, false, Some(Time(90_000)), Time(60_000));
        assert_eq!(record.ran(), Millis(58_000));
    }

    #[test]
    fn a_stopping_job_stops_an_uploading_job_completes_and_a_starting_job_starts() {
        let mut record = training(true);
        record.request_stop(StopCause::MaxRuntime, Time(4_000));
        assert_eq!(settle(&mut record, false, Some(Time(5_000)), Time(60_000)), Settled::JustEnded);
        assert_eq!((record.status, record.secondary), (Status::Stopped, Secondary::MaxRuntimeExceeded));

        let mut record = training(false);
        record.enter(Secondary::Uploading, Time(4_000));
        assert_eq!(settle(&mut record, false, Some(Time(5_000)), Time(60_000)), Settled::JustEnded);
        assert_eq!(record.status, Status::Completed);

        let mut record = Record::new(json!({}), None, false, Time(1_000));
        assert_eq!(settle(&mut record, false, Some(Time(5_000)), Time(60_000)), Settled::Continues);
        record.begin_run(|number, _| number.to_string(), Time(1_500));
        assert_eq!(settle(&mut record, false, Some(Time(5_000)), Time(60_000)), Settled::Continues);
        assert_eq!(record.secondary, Secondary::Starting);
    }

    #[test]
    fn the_last_event_of_a_recently_ended_job_is_repeated() {
        let mut record = training(false);
        record.finish(End::Completed, Time(4_000));
        assert_eq!(settle(&mut record.clone(), false, Some(Time(4_500)), Time(60_000)), Settled::Recent);
        assert_eq!(settle(&mut record, false, Some(Time(40_000)), Time(60_000)), Settled::Old);
    }
}
