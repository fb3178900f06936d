//! Capacity that is short for a time: of one choice of instances, on spot or on demand, while there is enough of others.
//!
//! Only where a tuning has something to turn to. An on-demand job then fails; a spot job fails or waits, for as long as it
//! may.

use super::World;
use super::life::Tick;
use super::training::Owner;
use crate::fault::Kind;
use crate::plan::MINUTE;

impl World {
    /// Whether there are no instances for a job that is to be launched now: whether it fails for that, or waits.
    pub(super) fn lacks_capacity(&mut self, index: usize) -> Option<bool> {
        let job = &self.training.jobs[index];
        if job.owner != Owner::Ours {
            return None;
        }
        let (case, choice, spot) = (job.case, job.choice, job.is_spot());
        let choices = &self.cases.get(case)?.choices;
        if choices.others.is_empty() && !choices.spot_fallback {
            return None;
        }
        let now = self.now;
        let place = (case, choice, spot);
        let short = self.training.short_until.get(&place).is_some_and(|until| *until > now);
        if !short {
            if !self.faults.strikes(Kind::CapacityShort) {
                return None;
            }
            let until = now + self.dice.between(5, 120) * MINUTE;
            self.training.short_until.insert(place, until);
        }
        let job = &mut self.training.jobs[index];
        // One that ran already waits for other instances.
        let ran = job.now.started.is_some();
        Some(!ran && (!spot || job.dice.chance(0.5)))
    }

    /// It asks again some time later.
    pub(super) fn waits_for_capacity(&mut self, index: usize) {
        let wait = self.training.jobs[index].dice.between(1, 10) * MINUTE;
        self.tick_after(index, wait, Tick::Launched);
    }
}
