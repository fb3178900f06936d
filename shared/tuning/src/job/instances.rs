//! Whether a job has instances, as far as facts show.

use crate::job::Job;
use crate::unit::time::Time;

/// Whether a job has instances, as far as facts show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instances {
    pub(crate) had: bool,
    /// It has had instances since its last interruption.
    pub(crate) regained: bool,
    /// It has instances now.
    pub(crate) has: bool,
}

impl Instances {
    pub(crate) fn of(job: &Job) -> Self {
        Self { had: job.had_instances(), regained: job.regained_instances(), has: job.has_instances() }
    }
}

impl Job {
    /// Returns the latest time at which facts show that the job had instances.
    pub(crate) fn instances_at(&self) -> Option<Time> {
        self.run.trace()?.instances_at
    }

    /// Returns whether the job has had instances, as far as facts show.
    pub(crate) fn had_instances(&self) -> bool {
        self.instances_at().is_some()
    }

    /// Returns whether the job has had instances since its last interruption, as far as facts show.
    fn regained_instances(&self) -> bool {
        self.run.trace().is_some_and(|trace| trace.instances_at > trace.interrupted_at)
    }

    /// Returns whether the job has instances now, as far as facts show.
    pub fn has_instances(&self) -> bool {
        self.holds_slot() && self.regained_instances()
    }
}
