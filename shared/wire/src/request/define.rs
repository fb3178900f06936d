//! Converts a request to the decider's [`Definition`], with the prices of its instances.
//!
//! The request must be validated. Prices are rounded up and the cap is rounded down. An unknown price is never guessed.

use std::collections::BTreeMap;

use search::{SamplerKind, Space};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tuning::definition::{
    self, Allowances, BestBuy, Definition, EpochRule, Instances, JobShape, Limits, Scheduling, Silence,
};
use tuning::unit::ids::ChoiceId;
use tuning::unit::limits::{MAX_RANKED_LINES, MAX_TRAINING_JOBS};
use tuning::unit::money::{MicroUsd, Rate};
use tuning::unit::time::Time;

use super::fields::{CompleteOnConvergence, EarlyStopping, EpochNumbering, Refit, SpotFallback};
use super::{
    InstanceChoice, Request, RequestError, RungExecution, Strategy, micro_usd_down, micro_usd_up, ranges,
};
use crate::forecast::Times;

/// Prices of the request's instance types and volume from the price list, in micro-dollars.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PriceAnswer {
    /// Price of one instance for one hour, by instance type. Types that the list lacks are absent.
    pub instance_hours: BTreeMap<String, u64>,
    /// Price of 1,000 GiB-hours of volume; `None` = unknown. Without it, an instance of the price list has no price,
    /// and a price that the request sets is assumed to include the volume.
    pub volume_kilo_gib_hour: Option<u64>,
    /// The least allowances of the stack.
    pub least_allowances: Allowances,
}

impl PriceAnswer {
    /// Returns the same price for every instance type of `request`, and a price of volumes.
    pub fn uniform(request: &Request, instance_hour: u64, volume_kilo_gib_hour: u64) -> Self {
        let choices = request.instance_choices().into_iter();
        let hours = choices.map(|choice| (choice.instance_type.to_owned(), instance_hour));
        let volume_kilo_gib_hour = Some(volume_kilo_gib_hour);
        Self { instance_hours: hours.collect(), volume_kilo_gib_hour, ..Self::default() }
    }
}

/// Returns the number of metric lines of `parallel` running trials if it exceeds [`MAX_RANKED_LINES`]. Without an epoch
/// pattern, the state keeps all of them.
pub fn excess_lines(definition: &Definition, parallel: u32) -> Option<u64> {
    let lines = u64::from(definition.max_resource()?.0).saturating_mul(u64::from(parallel));
    let fits = usize::try_from(lines).is_ok_and(|lines| lines <= MAX_RANKED_LINES);
    (!definition.epochs.captured && !fits).then_some(lines)
}

impl Request {
    /// Returns the definition of the tuning job that this request creates.
    pub fn definition(
        &self,
        created: Time,
        incarnation: &str,
        prices: &PriceAnswer,
    ) -> Result<Definition, RequestError> {
        let each = self.definitions().map(|one| one.of_one(created, incarnation, prices));
        let mut each = each.collect::<Result<Vec<_>, _>>()?.into_iter();
        let Some(mut definition) = each.next() else { return self.of_one(created, incarnation, prices) };
        each.for_each(|other| definition.join(other));
        if let Some(cap) = definition.cap {
            self.check_cap(&definition, cap)?;
        }
        Self::check_counted_epochs(&definition)?;
        Ok(definition)
    }

    /// Returns the definition of a tuning job with the first training job definition only.
    fn of_one(
        &self,
        created: Time,
        incarnation: &str,
        prices: &PriceAnswer,
    ) -> Result<Definition, RequestError> {
        let (parameters, _) = ranges::parameters(self);
        let space = Space::new(parameters).map_err(|error| {
            RequestError::field("HyperParameterTuningJobConfig.ParameterRanges", &error.to_string())
        })?;
        let cap = self.cap()?;
        let job = self.job(prices);
        let (execution, _) = self.rungs(&job, Times::ASSUMED);
        let strategy = self.defined_strategy(execution)?;
        let plain = Definition::new((self.name(), incarnation), created, space, self.limits(), job);
        Ok(Definition {
            seed: self.seed(incarnation),
            silence: self.silence(&strategy),
            strategy,
            objective: self.objective(),
            initial: self.initial_configurations(&plain.space)?,
            sampler: self.sampler(),
            cap,
            epochs: self.epochs(),
            settings: self.fields.settings,
            refit: self.refits(),
            best_buy: self.best_buy(),
            spot_fallback: self.fields.controller.spot_fallback == Some(SpotFallback::OnDemand),
            ..plain
        })
    }

    /// Returns the search for a cheaper configuration, by `Controller.ValueTolerance`.
    fn best_buy(&self) -> Option<BestBuy> {
        let tolerance = self.fields.controller.value_tolerance?;
        Some(BestBuy { tolerance, is_refitted: self.refit() == Refit::BestBuy })
    }

    /// Returns `Controller.MaxCostUsd`, rounded down to whole micro-dollars.
    pub fn cap(&self) -> Result<Option<MicroUsd>, RequestError> {
        let Some(number) = &self.fields.controller.max_cost_usd else { return Ok(None) };
        let micro = micro_usd_down(number).ok_or_else(|| {
            let message = format!(
                "Invalid MaxCostUsd {number}: expected a number of US dollars above 0, for example 20"
            );
            RequestError::field("Controller.MaxCostUsd", &message)
        })?;
        Ok(Some(MicroUsd(micro)))
    }

    /// Returns whether the request sets `MaxCostUsd`.
    pub fn is_capped(&self) -> bool {
        self.fields.controller.max_cost_usd.is_some()
    }

    /// Returns the price that the request sets for an instance type, rounded up to whole micro-dollars. It overrides
    /// the price list.
    pub fn given_price(&self, instance_type: &str) -> Option<u64> {
        self.given_prices()?.get(instance_type).and_then(Value::as_number).and_then(micro_usd_up)
    }

    /// Returns the first instance type without a price in the request; the first one if all have one.
    pub fn unpriced_type(&self) -> &str {
        let mut types = self.instance_choices().into_iter().map(|choice| choice.instance_type);
        types.find(|kind| self.given_price(kind).is_none()).unwrap_or(self.instance_type())
    }

    /// Returns `InstancePricesUsdPerHour`.
    pub fn given_prices(&self) -> Option<&Map<String, Value>> {
        self.fields.controller.instance_prices.as_ref()
    }

    /// Bounds the number of epochs if they are counted.
    fn check_counted_epochs(definition: &Definition) -> Result<(), RequestError> {
        let Some(lines) = excess_lines(definition, definition.limits.max_parallel) else { return Ok(()) };
        let message = format!(
            "Missing EpochPattern: without it, MaxResource times MaxParallelTrainingJobs must be at most \
             {MAX_RANKED_LINES}, but is {lines}; set EpochPattern to capture the epoch from the log line, for example \
             'epoch=([0-9]+)'"
        );
        Err(RequestError::field("Controller.EpochPattern", &message))
    }

    /// Requires a known price and a cap that allows at least one training job.
    ///
    /// # Errors
    ///
    /// If the price is unknown, or if `cap` is below the worst case of a single job.
    pub fn check_cap(&self, definition: &Definition, cap: MicroUsd) -> Result<(), RequestError> {
        let Some(least) = definition.least_cap() else {
            return Err(self.price_unknown(definition, "MaxCostUsd"));
        };
        if least <= cap {
            return Ok(());
        }
        let cents = least.0.div_ceil(10_000);
        let cost =
            |choice| definition.worst_case(definition.longest_limits(definition.job.size(choice)), choice);
        let choices = self.instance_choices().into_iter().zip(definition.job.choices());
        let dearest = choices.max_by_key(|(_, choice)| cost(*choice));
        let (dearest, choice) = dearest.unwrap_or((self.first_choice(), ChoiceId::default()));
        let own = self.definitions().nth(definition.job.size(choice).index()).unwrap_or(self);
        let jobs = if self.refits() { "a training job and of the refit" } else { "a single training job" };
        let message = format!(
            "Invalid MaxCostUsd {cap}: expected at least {}.{:02}, the maximum cost of {jobs} ({} x {} at its time \
             limits, with {} s for the start-up and {} s for the stop and the upload); raise MaxCostUsd, or set \
             StoppingCondition.{} to the seconds that a job needs, now {}",
            cents / 100,
            cents % 100,
            dearest.count,
            dearest.instance_type,
            definition.job.allowances.startup_seconds,
            definition.job.allowances.stop_seconds(),
            own.longest_limit(),
            own.max_wait_seconds().filter(|_| own.is_spot()).unwrap_or(own.max_runtime_seconds()),
        );
        Err(RequestError::field("Controller.MaxCostUsd", &message))
    }

    /// Returns the field of `StoppingCondition` with the longest time limit of a job.
    pub fn longest_limit(&self) -> &'static str {
        if self.is_spot() { "MaxWaitTimeInSeconds" } else { "MaxRuntimeInSeconds" }
    }

    /// Returns the error for an unknown price. `needed_by` names what requires the price, for example `MaxCostUsd`.
    pub fn price_unknown(&self, definition: &Definition, needed_by: &str) -> RequestError {
        let mut choices = self.instance_choices().into_iter().zip(definition.job.choices());
        let unknown = choices.find(|(_, choice)| definition.job.instances(*choice).rate.is_none());
        let unknown = unknown.map_or(self.first_choice(), |(choice, _)| choice);
        let message = format!(
            "{needed_by} needs the price of instance type '{0}' and of its volume, but the price list lacks at least \
             one of them; set the price of both for one hour in Controller.InstancePricesUsdPerHour, for example \
             {{\"{0}\": <USD per hour>}}; on a stack, ask its owner to set InstancePrices",
            unknown.instance_type
        );
        RequestError::field("Controller.InstancePricesUsdPerHour", &message)
    }

    /// Returns `RandomSeed`, or a hash of the tuning ID.
    fn seed(&self, incarnation: &str) -> u64 {
        if let Some(seed) = self.random_seed() {
            return seed;
        }
        let digest = Sha256::digest(format!("{}-{incarnation}", self.name()));
        digest.iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
    }

    fn defined_strategy(&self, execution: RungExecution) -> Result<definition::Strategy, RequestError> {
        let Some(hyperband) = self.hyperband() else {
            return Ok(if self.stops_early() {
                definition::Strategy::Median
            } else {
                definition::Strategy::Independent
            });
        };
        let path = "HyperParameterTuningJobConfig.StrategyConfig.HyperbandStrategyConfig";
        let plan = hyperband
            .plan()
            .ok_or_else(|| RequestError::field(path, "MaxResource parameter is not provided"))?
            .map_err(|error| RequestError::field(path, &error.to_string()))?;
        let rungs = match execution {
            RungExecution::Promote => {
                let scheduling = self.fields.controller.scheduling;
                definition::RungExecution::Promote(scheduling.unwrap_or(Scheduling::Asynchronous))
            }
            RungExecution::Stop => definition::RungExecution::Stop,
        };
        Ok(definition::Strategy::Hyperband { plan: self.fitting(&plan), rungs })
    }

    /// Returns `Sampler`. The default is Model for the strategies Hyperband and Bayesian, and Random for strategy Random.
    pub(crate) fn sampler(&self) -> SamplerKind {
        self.fields.controller.sampler.unwrap_or(self.strategy().sampler().0)
    }

    /// Returns `NoObjectiveSeconds`. By default the decider ends only silent jobs of Hyperband, which must emit a value
    /// every epoch; other jobs may emit their only value at the end.
    fn silence(&self, strategy: &definition::Strategy) -> Silence {
        let epochs = match strategy {
            definition::Strategy::Hyperband { plan, .. } => plan.max_resource(),
            definition::Strategy::Independent | definition::Strategy::Median => 1,
        };
        match self.fields.controller.no_objective_seconds {
            Some(0) => Silence::Never,
            Some(seconds) => Silence::After(seconds),
            None if epochs > 1 => Silence::Adaptive,
            None => Silence::Never,
        }
    }

    /// Returns whether the median rule stops training jobs: `TrainingJobEarlyStoppingType` `Auto`.
    pub fn stops_early(&self) -> bool {
        self.fields.config.early_stopping == Some(EarlyStopping::Auto)
    }

    /// Returns the results without a better value after which a tuning job with `CompleteOnConvergence` `Enabled` has
    /// converged: 50, or ten for each range if that is more. `None` if the request does not enable it. AWS publishes no
    /// rule. This one makes no assumption about the sampler, and a single number explains the end.
    pub fn convergence_jobs(&self) -> Option<u32> {
        let enabled =
            self.fields.config.criteria.convergence.complete == Some(CompleteOnConvergence::Enabled);
        let ranges = u32::try_from(self.ranges().count()).unwrap_or(u32::MAX);
        enabled.then(|| ranges.saturating_mul(10).max(50))
    }

    /// Returns the most training jobs, retries included. Those of a grid must not replace combinations, so it has one
    /// more job for each. Each retry costs money, so they are bounded like those of other strategies.
    fn jobs_with_retries(&self) -> u32 {
        let per_job = if self.strategy() == Strategy::Grid { 2 } else { 1 };
        self.max_jobs().saturating_mul(per_job).min(MAX_TRAINING_JOBS)
    }

    fn limits(&self) -> Limits {
        let config = &self.fields.config;
        Limits {
            max_jobs: self.jobs_with_retries(),
            max_parallel: self.max_parallel(),
            max_runtime_seconds: config.limits.runtime_seconds,
            max_instances: self.max_instances(),
            target: config.criteria.target,
            not_improving: [config.criteria.best_not_improving.max_jobs, self.convergence_jobs()]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    fn job(&self, prices: &PriceAnswer) -> JobShape {
        let volume = prices.volume_kilo_gib_hour;
        let instances = |choice: InstanceChoice<'_>| {
            let listed = || prices.instance_hours.get(choice.instance_type).copied().zip(volume);
            let given = self.given_price(choice.instance_type).map(|hour| (hour, volume.unwrap_or(0)));
            let rate = given.or_else(listed);
            let rate = rate
                .map(|(instance_hour, volume_kilo_gib_hour)| Rate { instance_hour, volume_kilo_gib_hour });
            Instances { count: choice.count, volume_gib: choice.volume_gib, rate }
        };
        let mut choices = self.own_choices().into_iter().map(instances);
        let first = choices.next().unwrap_or(instances(self.first_choice()));
        JobShape {
            instance_count: first.count,
            volume_gib: first.volume_gib,
            rate: first.rate,
            spot: self.is_spot(),
            max_runtime_seconds: self.max_runtime_seconds(),
            max_wait_seconds: self.max_wait_seconds().filter(|_| self.is_spot()),
            fallbacks: choices.collect(),
            sizes: self.instance_counts(),
            definitions: Vec::new(),
            keep_alive_seconds: self.keep_alive_seconds(),
            allowances: self.allowances(prices.least_allowances),
        }
    }

    /// Returns the allowances of the request, or the usual ones, at least `least`.
    fn allowances(&self, least: Allowances) -> Allowances {
        let (usual, controller) = (Allowances::usual(), &self.fields.controller);
        let startup_seconds = controller.startup_allowance.unwrap_or(usual.startup_seconds);
        let upload_seconds = controller.upload_allowance.unwrap_or(usual.upload_seconds);
        Allowances {
            startup_seconds: startup_seconds.max(least.startup_seconds),
            upload_seconds: upload_seconds.max(least.upload_seconds),
        }
    }

    /// Returns `StartupAllowanceSeconds` and `UploadAllowanceSeconds`, with their paths, as far as the request has them.
    pub fn given_allowances(&self) -> [(&'static str, Option<u64>); 2] {
        let controller = &self.fields.controller;
        [
            ("Controller.StartupAllowanceSeconds", controller.startup_allowance),
            ("Controller.UploadAllowanceSeconds", controller.upload_allowance),
        ]
    }

    pub(super) fn epochs(&self) -> EpochRule {
        let numbering = self.epoch_numbering();
        let captured = self.epoch_pattern().is_some();
        let base = self.fields.controller.epoch_base.or(numbering.map(|epochs| epochs.base));
        EpochRule {
            captured,
            base: base.unwrap_or(1),
            is_base_assumed: captured && base.is_none(),
            per_attempt: match self.fields.controller.epoch_numbering {
                Some(EpochNumbering::PerAttempt) => true,
                Some(EpochNumbering::Absolute) => false,
                None => numbering.is_some_and(|epochs| epochs.per_attempt),
            },
        }
    }
}
