//! What one training job runs on: instance choices, limits and allowances.

use search::Space;
use serde::{Deserialize, Serialize};

use crate::unit::ids::{ChoiceId, SizeId};
use crate::unit::limits::{STARTUP_ALLOWANCE_SECONDS, STOP_GRACE_SECONDS, UPLOAD_ALLOWANCE_SECONDS};
use crate::unit::money::{MicroUsd, Rate};

/// What one training job runs on, and its limits as the user set them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobShape {
    /// Instances of one job.
    pub instance_count: u32,
    /// The volume of each instance, in GiB.
    pub volume_gib: u32,
    /// The price; `None` = unknown, allowed only without a cap.
    pub rate: Option<Rate>,
    /// Whether jobs use managed spot training.
    pub spot: bool,
    /// `StoppingCondition.MaxRuntimeInSeconds`.
    pub max_runtime_seconds: u64,
    /// `StoppingCondition.MaxWaitTimeInSeconds` (spot only).
    pub max_wait_seconds: Option<u64>,
    /// Further instance choices. Each instance type has one choice for each cluster size, in the order of `sizes`. The
    /// types are in the order in which they are tried when those before lack capacity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Instances>,
    /// The cluster sizes among which the search chooses, in instances, ascending. Empty: jobs have one size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u32>,
    /// The first instance choice of each further training job definition, ascending. Those before the first of them
    /// are the choices of the first definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub definitions: Vec<ChoiceId>,
    /// `ResourceConfig.KeepAlivePeriodInSeconds`: how long its instances are kept for the next job; 0 = not at all.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub keep_alive_seconds: u64,
    /// What a reservation contains beside the limits of the job.
    #[serde(default = "Allowances::usual", skip_serializing_if = "Allowances::are_usual")]
    pub allowances: Allowances,
}

/// When a training job is stopped, and on what capacity it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTerms {
    /// See [`JobShape::spot`].
    pub spot: bool,
    /// See [`JobShape::max_runtime_seconds`].
    pub max_runtime_seconds: u64,
    /// See [`JobShape::max_wait_seconds`].
    pub max_wait_seconds: Option<u64>,
    /// See [`JobShape::keep_alive_seconds`].
    pub keep_alive_seconds: u64,
}

/// What a further training job definition has of its own, beside its instances ([`JobShape::definitions`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherDefinition {
    /// Its search space.
    pub space: Space,
    /// When its jobs are stopped, and on what capacity they run.
    pub terms: JobTerms,
}

/// Billed time around the running time of a job that no limit of the service bounds, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Allowances {
    /// Before the limit of the job counts: the download of data and image.
    pub startup_seconds: u64,
    /// After the end of the program: the upload of the model.
    pub upload_seconds: u64,
}

impl Allowances {
    /// Returns those of a request that sets none.
    pub const fn usual() -> Self {
        Self { startup_seconds: STARTUP_ALLOWANCE_SECONDS, upload_seconds: UPLOAD_ALLOWANCE_SECONDS }
    }

    fn are_usual(&self) -> bool {
        *self == Self::usual()
    }

    /// Returns how long a stop may take: the time that the program gets, and the upload.
    pub fn stop_seconds(self) -> u64 {
        STOP_GRACE_SECONDS.saturating_add(self.upload_seconds)
    }
}

/// The instances of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instances {
    /// How many.
    pub count: u32,
    /// The volume of each, in GiB.
    pub volume_gib: u32,
    /// The price; `None` = unknown, allowed only without a cap.
    pub rate: Option<Rate>,
}

impl Instances {
    /// Returns the cost of `seconds` of them; `None` when the price is unknown.
    pub fn cost(self, seconds: u64) -> Option<MicroUsd> {
        self.rate.map(|rate| rate.cost(seconds, self.count, self.volume_gib))
    }
}

impl JobShape {
    /// Returns the instances of a choice; a choice beyond the last gives the last.
    pub fn instances(&self, choice: ChoiceId) -> Instances {
        let first = Instances { count: self.instance_count, volume_gib: self.volume_gib, rate: self.rate };
        let Some(other) = choice.index().checked_sub(1) else { return first };
        self.fallbacks.get(other).or(self.fallbacks.last()).copied().unwrap_or(first)
    }

    /// Returns the terms of the jobs of the first training job definition.
    pub fn terms(&self) -> JobTerms {
        let Self { spot, max_runtime_seconds, max_wait_seconds, keep_alive_seconds, .. } = *self;
        JobTerms { spot, max_runtime_seconds, max_wait_seconds, keep_alive_seconds }
    }

    /// Returns all instance choices.
    pub fn choices(&self) -> impl Iterator<Item = ChoiceId> + use<> {
        (0..=self.fallbacks.len()).map(ChoiceId::at)
    }

    /// Returns the instance choices of a cluster size, in the order in which they are tried.
    pub fn choices_of(&self, size: SizeId) -> impl Iterator<Item = ChoiceId> + use<> {
        let (from, to) = if self.definitions.is_empty() {
            (size.index(), None)
        } else {
            let first =
                |definition: Option<usize>| self.definitions.get(definition?).map(|first| first.index());
            (first(size.index().checked_sub(1)).unwrap_or(0), first(Some(size.index())))
        };
        let all = self.choices().take(to.unwrap_or(usize::MAX));
        all.skip(from).step_by(self.sizes.len().max(1))
    }

    /// Returns whether the price of the first instance type is known, for each training job definition.
    pub fn is_priced(&self) -> bool {
        self.all_sizes().all(|size| self.instances_of(size).rate.is_some())
    }

    /// Returns the instances of the first instance type of a cluster size.
    pub fn instances_of(&self, size: SizeId) -> Instances {
        self.instances(self.choices_of(size).next().unwrap_or_default())
    }

    /// Returns the cluster size of an instance choice.
    pub fn size(&self, choice: ChoiceId) -> SizeId {
        if !self.definitions.is_empty() {
            return SizeId::at(self.definitions.iter().filter(|first| **first <= choice).count());
        }
        SizeId::at(choice.index().checked_rem(self.sizes.len()).unwrap_or(0))
    }

    /// Returns all cluster sizes, the smallest first.
    pub fn all_sizes(&self) -> impl DoubleEndedIterator<Item = SizeId> + use<> {
        let definitions = self.definitions.len().saturating_add(1);
        (0..self.sizes.len().max(definitions)).map(SizeId::at)
    }

    /// Returns whether jobs have different sizes: the search chooses them, or there are several training job definitions.
    pub fn has_sizes(&self) -> bool {
        !self.sizes.is_empty() || !self.definitions.is_empty()
    }

    /// Returns the choice of the first instance type whose jobs cost most.
    pub fn largest(&self) -> ChoiceId {
        let firsts = self.all_sizes().filter_map(|size| self.choices_of(size).next());
        let cost = |choice: &ChoiceId| (self.instances(*choice).cost(3_600), self.instances(*choice).count);
        firsts.max_by_key(cost).unwrap_or_default()
    }

    /// Returns whether a size has several instance types.
    pub fn has_fallbacks(&self) -> bool {
        self.all_sizes().any(|size| self.choices_of(size).nth(1).is_some())
    }
}
