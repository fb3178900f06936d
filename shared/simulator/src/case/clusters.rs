//! What the jobs of a tuning may run on: one choice of instances, or several in the order of preference. Their prices, in
//! whole micro-dollars, are told by the request or by the price list.

use super::{Case, Choices};

/// Instance types of the choices, in their order: what a request says an hour of one costs, and what the price list says
/// (micro-dollars). What comes next is dearer, or cheaper.
const TYPES: [(&str, u64, u64); 3] = [
    ("ml.m5.xlarge", 461_000, 230_000),
    ("ml.c5.2xlarge", 816_000, 408_000),
    ("ml.c5.large", 204_000, 102_000),
];

/// Most choices besides the first.
pub(crate) const OTHERS_MAX: u32 = 2;

/// What one job runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// Instance type.
    pub(crate) kind: &'static str,
    /// How many instances.
    pub(crate) count: u32,
    /// Micro-dollars an hour of one.
    pub(crate) instance_hour: u64,
}

/// What the price list says of an instance type: micro-dollars an hour.
pub(crate) fn listed(kind: &str) -> Option<u64> {
    TYPES.iter().find(|(name, ..)| *name == kind).map(|(_, _, listed)| *listed)
}

fn index(choice: u32) -> usize {
    usize::try_from(choice).unwrap_or(usize::MAX)
}

impl Choices {
    /// Choice number `choice`, the last one beyond it.
    pub(super) fn cluster(&self, choice: u32) -> Cluster {
        let choice = index(choice).min(self.others.len());
        let count = choice.checked_sub(1).and_then(|other| self.others.get(other)).copied();
        let (kind, own, listed) = TYPES[choice.min(TYPES.len() - 1)];
        let instance_hour = if self.own_price { own } else { listed };
        Cluster { kind, count: count.unwrap_or(self.instances), instance_hour }
    }

    /// All of them.
    pub(super) fn clusters(&self) -> impl Iterator<Item = Cluster> + '_ {
        (0..=u32::try_from(self.others.len()).unwrap_or(0)).map(|choice| self.cluster(choice))
    }
}

impl Case {
    /// How many choices of instances there are.
    pub(crate) fn clusters(&self) -> u32 {
        u32::try_from(self.choices.others.len()).unwrap_or(0) + 1
    }

    /// What a job of choice number `choice` runs on.
    pub(crate) fn cluster(&self, choice: u32) -> Cluster {
        self.choices.cluster(choice)
    }

    /// Which choice has this instance type and this number of instances.
    pub(crate) fn choice_of(&self, kind: &str, count: u64) -> Option<u32> {
        (0..self.clusters()).find(|choice| {
            let cluster = self.cluster(*choice);
            cluster.kind == kind && u64::from(cluster.count) == count
        })
    }

    /// What `seconds` of a job on choice number `choice` cost, in micro-dollars, rounded up.
    pub(crate) fn cost(&self, choice: u32, seconds: i64) -> u64 {
        let Cluster { count, instance_hour, .. } = self.cluster(choice);
        let per_hour =
            u128::from(instance_hour) * 1_000 + u128::from(self.volume_gib) * u128::from(self.kilo_gib_hour);
        let seconds = u128::try_from(seconds).unwrap_or(0);
        let milli = per_hour * u128::from(count) * seconds;
        u64::try_from(milli.div_ceil(3_600_000)).unwrap_or(u64::MAX)
    }

    /// The same of the choice that costs most.
    pub(crate) fn dearest(&self, seconds: i64) -> u64 {
        (0..self.clusters()).map(|choice| self.cost(choice, seconds)).max().unwrap_or(0)
    }
}
