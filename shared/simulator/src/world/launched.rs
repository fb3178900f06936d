//! Checks of launches that need data of both sides: the requests and jobs of the training service, and the orders of
//! the steps.

use tuning::log::reasons::StopWhy;
use tuning::log::ruling::{Order, Ruling};

use crate::case::SCALED;

use super::World;
use super::training::Job;

/// Returns whether a job waited for spot capacity up to its limit.
fn waited(job: &Job) -> bool {
    job.history.iter().any(|(_, then)| then.secondary_status == "MaxWaitTimeExceeded")
}

impl World {
    /// Checks the instances of a job that was just created. Returns a violation.
    pub(super) fn wrong_launch(&self, index: usize) -> Option<String> {
        let job = &self.training.jobs[index];
        let book = self.check.books.get(&job.id)?;
        let (name, launch) = (&job.now.name, book.jobs.get(&job.key)?.launch);
        let spot = book.case.is_spot(job.key.trial) && !launch.on_demand;
        if (job.choice, job.is_spot()) != (launch.instances, spot) {
            return Some(format!(
                "Instances: job {name} was created on choice {} (spot: {}), ordered was {launch:?}",
                job.choice,
                job.is_spot()
            ));
        }
        let configuration = &book.trials.get(&job.key.trial)?.configuration;
        let configured = configuration.get(SCALED).and_then(|value| value.parse::<u32>().ok());
        let size = book.case.size_of(job.choice);
        let definition = (book.case.choices.definitions > 1).then(|| book.case.definition_of(job.key.trial));
        let factor = size.filter(|_| definition.is_none()).unwrap_or(1);
        let own = definition.map(Ok).or(configuration.get("InstanceCount").map(str::parse));
        let product = configured.map(|value| value * factor);
        if job.scaled != product || own != size.map(Ok) {
            return Some(format!(
                "Size: job {name} runs with {SCALED} {:?} on {factor} instances, its trial has {configuration:?}",
                job.scaled
            ));
        }
        let most = book.case.choices.max_interruptions;
        let mut earlier = self.training.of(&job.id).filter(|other| other.key.trial == job.key.trial);
        let failed =
            earlier.any(|other| other.is_spot() && (other.now.interruptions > most || waited(other)));
        (launch.on_demand && !failed).then(|| {
            format!("SpotFallback: job {name} runs on demand although spot capacity never failed its trial")
        })
    }

    /// Checks an order to stop a job because of its interruptions. Returns a violation if it had fewer.
    pub(super) fn wrong_interruption_stop(&self, id: &str, ruling: &Ruling) -> Option<String> {
        let Ruling::Order(Order::Stop { job: key, why: StopWhy::Interruptions { count }, .. }) = ruling
        else {
            return None;
        };
        let job = self.training.of(id).find(|job| job.key == *key)?;
        (!job.is_spot() || job.now.interruptions < *count).then(|| {
            let (name, had) = (&job.now.name, job.now.interruptions);
            format!("SpotFallback: job {name} was stopped for {count} interruptions, but it had {had}")
        })
    }
}
