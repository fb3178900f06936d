//! Capacity shortages: for a while, one choice of instances has no capacity on spot or on demand, while others have.
//!
//! A shortage strikes only tunings with a fallback. An outage of the plan strikes all tunings on all instances. An
//! on-demand job then fails. A spot job fails, or waits up to its limit.

use super::World;
use super::queue::Tick;
use super::training::Owner;
use crate::fault::Kind;
use crate::plan::MINUTE;

impl World {
    /// Returns `None` if there are instances for a job that launches now; otherwise whether the job fails (true) or
    /// waits (false).
    pub(super) fn lacks_capacity(&mut self, index: usize) -> Option<bool> {
        let job = &self.training.jobs[index];
        if job.owner != Owner::Ours {
            return None;
        }
        let (case, choice, spot) = (job.case, job.choice, job.is_spot());
        let since_start = self.now - self.start;
        if self.plan.capacity_outage.is_some_and(|(from, to)| (from..to).contains(&since_start)) {
            let job = &mut self.training.jobs[index];
            let ran = job.now.started.is_some();
            return Some(!ran && (!spot || job.dice.chance(0.5)));
        }
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
        // A job that has already run waits for new instances.
        let ran = job.now.started.is_some();
        Some(!ran && (!spot || job.dice.chance(0.5)))
    }

    /// Schedules the next attempt to launch the job.
    pub(super) fn waits_for_capacity(&mut self, index: usize) {
        let wait = self.training.jobs[index].dice.between(1, 10) * MINUTE;
        self.tick_after(index, wait, Tick::Launched);
    }
}
