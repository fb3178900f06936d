//! The fate of a training job: the faults that will strike it.

use super::World;
use super::program::Program;
use crate::dice::Dice;
use crate::fault::Kind;
use crate::plan::{HOUR, MINUTE};

/// The faults that will strike a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    /// Whether it fails for lack of capacity.
    pub(super) capacity_error: bool,
    /// Epoch after which it fails, and the failure reason.
    pub(super) fails: Option<(u32, &'static str)>,
    /// Epoch after which its spot instances are interrupted.
    pub(super) interrupted_after: Option<u32>,
    /// Epoch after which it hangs.
    pub(super) hangs_after: Option<u32>,
    /// Epoch after which its program ends.
    pub(super) ends_after: u32,
    /// Epoch after which it is stopped outside the controller.
    pub(super) stopped_after: Option<u32>,
    /// Epoch after which, or at its end, it is deleted outside the controller.
    pub(super) deleted_after: Option<u32>,
    /// Delay of its bill, in ms.
    pub(super) bill_late_ms: Option<i64>,
    /// Time after which its first bill rises, in ms.
    pub(super) bill_rises_ms: Option<i64>,
    /// Seconds by which its bill exceeds its worst case.
    pub(super) overrun_seconds: Option<i64>,
    /// Whether its program uses the whole grace period of a stop.
    pub(super) stops_slowly: bool,
    /// How long its model is uploaded, in ms; `None` = for seconds.
    pub(super) upload_ms: Option<i64>,
    /// How long data and image are downloaded, in ms, without counting in its limit; `None` = for seconds.
    pub(super) download_ms: Option<i64>,
    /// How much later than its limit the service ends it, in ms.
    pub(super) limit_late_ms: i64,
}

impl Fate {
    pub(crate) fn drawn(world: &mut World, program: &Program, spot: bool, dice: &mut Dice) -> Self {
        let last = program.epochs.max(1);
        let (late, above) =
            (world.faults.strikes(Kind::BillLate), world.faults.strikes(Kind::BillAboveReservation));
        let rises = world.faults.strikes(Kind::BillRises);
        let uploads = world.faults.strikes(Kind::UploadLong);
        let downloads = world.faults.strikes(Kind::DownloadLong);
        let limit_late = world.faults.strikes(Kind::LimitLate);
        let mut after = |dice: &mut Dice, kind: Kind| world.faults.strikes(kind).then(|| dice.count(0, last));
        let algorithm =
            after(dice, Kind::JobAlgorithmError).map(|epoch| (epoch, "AlgorithmError: exit code 1"));
        let out_of_memory =
            program.out_of_memory.then_some((0, "AlgorithmError: CUDA out of memory, exit code: 1"));
        let service =
            after(dice, Kind::JobServiceError).map(|epoch| (epoch, "InternalServerError: try again"));
        Self {
            fails: out_of_memory.or(algorithm).or(service),
            interrupted_after: after(dice, Kind::JobInterrupted).filter(|_| spot),
            hangs_after: after(dice, Kind::JobHangs),
            ends_after: after(dice, Kind::JobEndsEarly).unwrap_or(program.epochs),
            stopped_after: after(dice, Kind::StoppedOutside),
            deleted_after: after(dice, Kind::JobDeleted),
            capacity_error: world.faults.strikes(Kind::JobCapacityError),
            stops_slowly: world.faults.strikes(Kind::StopSlow),
            bill_late_ms: late.then(|| dice.between(MINUTE, 4 * HOUR)),
            bill_rises_ms: rises.then(|| dice.between(1_000, 45_000)),
            overrun_seconds: above.then(|| dice.between(1, 3_600)),
            upload_ms: uploads.then(|| dice.between(MINUTE, 6 * HOUR)),
            download_ms: downloads.then(|| dice.between(30_000, 20 * MINUTE)),
            limit_late_ms: if limit_late { dice.between(1_000, HOUR) } else { 0 },
        }
    }

    /// Returns whether the service may bill more than a reservation pays for.
    pub(crate) fn is_unbounded(self) -> bool {
        self.upload_ms.is_some() || self.download_ms.is_some() || self.limit_late_ms > 0
    }

    /// Returns the fate of a job without faults.
    pub(crate) fn calm(program: &Program) -> Self {
        Self {
            capacity_error: false,
            fails: None,
            interrupted_after: None,
            hangs_after: None,
            ends_after: program.epochs,
            stopped_after: None,
            deleted_after: None,
            bill_late_ms: None,
            bill_rises_ms: None,
            overrun_seconds: None,
            stops_slowly: false,
            upload_ms: None,
            download_ms: None,
            limit_late_ms: 0,
        }
    }
}
