//! Definitions for a request that sets only the required fields. Callers change the other fields by name.

use search::{SamplerKind, Space};

use super::{
    Allowances, Definition, EpochRule, JobShape, Limits, Objective, RULES_VERSION, Settings, Silence,
    Strategy,
};
use crate::unit::money::Rate;
use crate::unit::time::Time;

impl Definition {
    /// Returns the definition of a tuning without a cap, whose trials run to their own end. Their log has the epoch,
    /// counted from 1, and the objective is maximized.
    pub fn new(
        (name, incarnation): (&str, &str),
        created: Time,
        space: Space,
        limits: Limits,
        job: JobShape,
    ) -> Self {
        Self {
            rules_version: RULES_VERSION,
            name: name.to_owned(),
            incarnation: incarnation.to_owned(),
            created,
            seed: 0,
            strategy: Strategy::Independent,
            objective: Objective::Maximize,
            space,
            others: Vec::new(),
            sampler: SamplerKind::Random,
            initial: Vec::new(),
            warm_start: None,
            limits,
            job,
            cap: None,
            epochs: EpochRule { captured: true, base: 1, per_attempt: false, is_base_assumed: false },
            settings: Settings::default(),
            spot_fallback: false,
            refit: false,
            best_buy: None,
            silence: Silence::Never,
            grants: false,
        }
    }
}

impl Limits {
    /// Returns limits without completion criteria.
    pub fn new(max_jobs: u32, max_parallel: u32) -> Self {
        Self {
            max_jobs,
            max_parallel,
            max_runtime_seconds: None,
            max_instances: None,
            target: None,
            not_improving: None,
        }
    }
}

impl JobShape {
    /// Returns a job on one on-demand instance without a volume.
    pub fn new(rate: Option<Rate>, max_runtime_seconds: u64) -> Self {
        Self {
            instance_count: 1,
            volume_gib: 0,
            rate,
            spot: false,
            max_runtime_seconds,
            max_wait_seconds: None,
            fallbacks: Vec::new(),
            sizes: Vec::new(),
            definitions: Vec::new(),
            keep_alive_seconds: 0,
            allowances: Allowances::usual(),
        }
    }
}
