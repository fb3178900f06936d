//! The instance configurations of a tuning, in the order of preference. A "choice" is the index of a configuration.
//! The request or the price list sets the prices, in whole micro-dollars.

use tuning::unit::ids::{ChoiceId, TrialId};

use super::{Case, Choices, OwnTerms};

/// Instance types of the choices, in their order, with the hourly prices of the request and of the price list, in
/// micro-dollars. The second is more expensive than the first, the third cheaper.
const TYPES: [(&str, u64, u64); 3] = [
    ("ml.m5.xlarge", 461_000, 230_000),
    ("ml.c5.2xlarge", 816_000, 408_000),
    ("ml.c5.large", 204_000, 102_000),
];

/// Maximum number of choices besides the first.
pub(crate) const OTHERS_MAX: u32 = 2;

/// The instances of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// Instance type.
    pub(crate) kind: &'static str,
    /// Number of instances.
    pub(crate) count: u32,
    /// Price of one instance, in micro-dollars per hour.
    pub(crate) instance_hour: u64,
}

/// Returns the price of an instance type in the price list, in micro-dollars per hour.
pub(crate) fn listed(kind: &str) -> Option<u64> {
    TYPES.iter().find(|(name, ..)| *name == kind).map(|(_, _, listed)| *listed)
}

impl Choices {
    /// Returns the instances of a choice; beyond the last choice, those of the last.
    ///
    /// A training job definition has three instances more than the one before it, so that its jobs show it.
    pub(super) fn cluster(&self, choice: ChoiceId) -> Cluster {
        let each = self.sizes.len().max(1);
        let of_one = (1 + self.others.len()) * each;
        let definition = u32::try_from(choice.index() / of_one).unwrap_or(0).min(self.definitions - 1);
        let choice = ChoiceId::at(choice.index() - definition as usize * of_one);
        let of_type = (choice.index() / each).min(self.others.len());
        let other = of_type.checked_sub(1).and_then(|other| self.others.get(other));
        let size = self.sizes.get(choice.index() % each);
        let (kind, own, listed) = TYPES[of_type.min(TYPES.len() - 1)];
        let instance_hour = if self.own_price { own } else { listed };
        let count = *size.or(other).unwrap_or(&self.instances) + 3 * definition;
        Cluster { kind, count, instance_hour }
    }

    /// Returns the running-time limit of the jobs of a training job definition, and the waiting-time limit of those on spot
    /// instances, in seconds.
    pub(super) fn limits_of(&self, definition: u32) -> (i64, Option<i64>) {
        let (runtime, wait) = (self.max_runtime_seconds, self.max_wait_seconds);
        match self.own_terms {
            OwnTerms::Shorter if definition > 0 => (runtime / 2, None),
            OwnTerms::Longer if definition > 0 => {
                let spot = (wait.is_none() && definition == 1).then_some(runtime * 2 + 1_800);
                (runtime * 2, wait.map(|wait| wait * 2).or(spot))
            }
            OwnTerms::Same | OwnTerms::Shorter | OwnTerms::Longer => (runtime, wait),
        }
    }

    /// Returns `KeepAlivePeriodInSeconds` of a training job definition.
    pub(super) fn keep_of(&self, definition: u32) -> u64 {
        match self.own_terms {
            OwnTerms::Shorter if definition > 0 => 0,
            OwnTerms::Longer if definition > 0 => {
                let can_keep = self.limits_of(definition).1.is_none() && self.others.is_empty();
                if can_keep { 900 } else { 0 }
            }
            OwnTerms::Same | OwnTerms::Shorter | OwnTerms::Longer => self.keep_alive_seconds,
        }
    }

    /// Returns the greatest time limit of a job of all definitions, in seconds.
    pub(crate) fn longest_seconds(&self) -> i64 {
        let all = (0..self.definitions).map(|of| self.limits_of(of));
        all.map(|(runtime, wait)| wait.unwrap_or(runtime)).max().unwrap_or(0)
    }

    /// Returns the greatest `KeepAlivePeriodInSeconds` of all definitions.
    pub(crate) fn longest_keep(&self) -> u64 {
        (0..self.definitions).map(|of| self.keep_of(of)).max().unwrap_or(0)
    }

    /// Returns the instances of all choices.
    pub(super) fn clusters(&self) -> impl Iterator<Item = Cluster> + '_ {
        self.ids().map(|choice| self.cluster(choice))
    }

    fn ids(&self) -> impl Iterator<Item = ChoiceId> + use<> {
        let definitions = self.definitions as usize;
        (0..definitions * (1 + self.others.len()) * self.sizes.len().max(1)).map(ChoiceId::at)
    }

    /// Returns the instances of the choices of a training job definition.
    pub(super) fn clusters_of(&self, definition: u32) -> impl Iterator<Item = Cluster> + '_ {
        let each = (1 + self.others.len()) * self.sizes.len().max(1);
        self.clusters().skip(definition as usize * each).take(each)
    }
}

impl Case {
    /// Returns the number of choices for one trial: the instance types.
    pub(crate) fn types(&self) -> u32 {
        u32::try_from(self.choices.others.len()).unwrap_or(0) + 1
    }

    /// Returns all choices.
    pub(crate) fn choice_ids(&self) -> impl Iterator<Item = ChoiceId> + use<> {
        self.choices.ids()
    }

    /// Returns the choices for a trial of this size ([`Case::size_of`]).
    pub(crate) fn choices_of(&self, size: Option<u32>) -> impl Iterator<Item = ChoiceId> + '_ {
        self.choice_ids().filter(move |choice| size.is_none_or(|size| self.size_of(*choice) == Some(size)))
    }

    /// Returns the size of a trial that has run on this choice: the number of instances, where the search chooses it, or
    /// the training job definition, where there are several.
    pub(crate) fn size_of(&self, choice: ChoiceId) -> Option<u32> {
        if self.choices.definitions > 1 {
            return u32::try_from(choice.index()).ok().map(|choice| choice / self.types());
        }
        (!self.choices.sizes.is_empty()).then(|| self.cluster(choice).count)
    }

    /// Returns the training job definition of a trial, by its number.
    pub(crate) fn definition_of(&self, trial: TrialId) -> u32 {
        trial.0 % self.choices.definitions
    }

    /// Returns the running-time limit of a job of a trial, in seconds.
    pub(crate) fn runtime_limit(&self, trial: TrialId) -> i64 {
        self.choices.limits_of(self.definition_of(trial)).0
    }

    /// Returns whether the jobs of a trial run on spot instances, unless these fail it too often.
    pub(crate) fn is_spot(&self, trial: TrialId) -> bool {
        self.choices.limits_of(self.definition_of(trial)).1.is_some()
    }

    /// Returns how long the instances of a job of a trial may be kept, in seconds.
    pub(crate) fn kept_seconds(&self, trial: TrialId) -> u64 {
        self.choices.keep_of(self.definition_of(trial))
    }

    /// Returns the answer of the service if a quota of the account is smaller than a job on a choice.
    pub(crate) fn quota(&self, choice: ChoiceId) -> Result<(), String> {
        let Cluster { kind, count, .. } = self.cluster(choice);
        let of_first = self.cluster(ChoiceId(choice.0 % self.types())).count;
        let least = self.choices.sizes.first().copied().unwrap_or(of_first);
        let quota = Some(least).filter(|least| self.choices.small_quota && count > *least);
        quota.map_or(Ok(()), |quota| {
            Err(format!(
                "The account-level service limit '{kind} for training job usage' is {quota} Instances, with current \
                 utilization of 0 Instances and a request delta of {count} Instances."
            ))
        })
    }

    /// Returns the instances of a job on a choice.
    pub(crate) fn cluster(&self, choice: ChoiceId) -> Cluster {
        self.choices.cluster(choice)
    }

    /// Returns the choice with this instance type and this number of instances.
    pub(crate) fn choice_of(&self, kind: &str, count: u64) -> Option<ChoiceId> {
        self.choice_ids().find(|choice| {
            let cluster = self.cluster(*choice);
            cluster.kind == kind && u64::from(cluster.count) == count
        })
    }

    /// Returns the cost of `seconds` of a job on a choice, in micro-dollars, rounded up.
    pub(crate) fn cost(&self, choice: ChoiceId, seconds: i64) -> u64 {
        let Cluster { count, instance_hour, .. } = self.cluster(choice);
        let per_hour =
            u128::from(instance_hour) * 1_000 + u128::from(self.volume_gib) * u128::from(self.kilo_gib_hour);
        let seconds = u128::try_from(seconds).unwrap_or(0);
        let milli = per_hour * u128::from(count) * seconds;
        u64::try_from(milli.div_ceil(3_600_000)).unwrap_or(u64::MAX)
    }

    /// Like [`Self::cost`], but of the most expensive choice.
    pub(crate) fn dearest(&self, seconds: i64) -> u64 {
        self.choice_ids().map(|choice| self.cost(choice, seconds)).max().unwrap_or(0)
    }
}
