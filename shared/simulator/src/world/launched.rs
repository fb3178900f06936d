//! Checks of what a job runs on that need to see both sides: what the training service was sent and did, and what was
//! ordered.

use tuning::ruling::{Ruling, StopWhy};

use super::World;
use super::training::Job;

/// Whether a job waited for spot capacity for as long as it may.
fn waited(job: &Job) -> bool {
    job.history.iter().any(|(_, then)| then.secondary_status == "MaxWaitTimeExceeded")
}

impl World {
    /// What is wrong with what a job runs on that was created just now.
    pub(super) fn wrongly_launched(&self, index: usize) -> Option<String> {
        let job = &self.training.jobs[index];
        let book = self.check.books.get(&job.id)?;
        let (name, launch) = (&job.now.name, book.jobs.get(&job.key)?.launch);
        let spot = book.case.choices.max_wait_seconds.is_some() && !launch.on_demand;
        if (job.choice, job.is_spot()) != (launch.instances, spot) {
            return Some(format!(
                "Instances: {name} runs on choice {}, spot: {}; ordered {launch:?}",
                job.choice,
                job.is_spot()
            ));
        }
        let most = book.case.choices.max_interruptions;
        let mut earlier = self.training.of(&job.id).filter(|other| other.key.trial == job.key.trial);
        let failed =
            earlier.any(|other| other.is_spot() && (other.now.interruptions > most || waited(other)));
        (launch.on_demand && !failed)
            .then(|| format!("SpotFallback: {name} runs on demand, spot capacity has not failed its trial"))
    }

    /// A job is to be stopped for more interruptions than it had.
    pub(super) fn wrongly_interrupted(&self, id: &str, ruling: &Ruling) -> Option<String> {
        let Ruling::StopOrdered { job: key, why: StopWhy::Interruptions { count } } = ruling else {
            return None;
        };
        let job = self.training.of(id).find(|job| job.key == *key)?;
        (!job.is_spot() || job.now.interruptions < *count).then(|| {
            let (name, had) = (&job.now.name, job.now.interruptions);
            format!("SpotFallback: {name} is stopped after {count} interruptions, it had {had}")
        })
    }
}
