//! The fields of a request, read once from its JSON.
//!
//! Validation reads requests that may be invalid, so reading never fails. A field that is missing, null or of the wrong
//! type counts as absent, and the other fields are still read.

use search::{SamplerKind, ScalingType};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use tuning::definition::{Objective, Scheduling, Settings};

use super::rungs::GivenRungExecution;

/// Defines enumerations whose variants are the allowed values of a member. `WORDS` has them for the table of constraints.
macro_rules! words {
    ($($(#[$about:meta])* $visible:vis $name:ident { $($(#[$doc:meta])* $word:ident,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        $visible enum $name { $($(#[$doc])* $word),* }

        impl $name {
            pub(crate) const WORDS: &'static [&'static str] = &[$(stringify!($word)),*];
        }
    )*};
}

words! {
    /// `Strategy`.
    #[derive(Default, Serialize)]
    pub Strategy {
        /// Each trial runs to its end. The model chooses the configurations.
        Bayesian,
        /// Each trial runs to its end. The configurations are random points.
        #[default]
        Random,
        /// Trials are compared at rungs.
        Hyperband,
        /// Each trial runs to its end. Each combination of categorical values is one trial.
        Grid,
    }

    pub(crate) EpochNumbering {
        /// A restarted job continues its numbers.
        Absolute,
        /// A restarted job numbers its epochs from the base.
        PerAttempt,
    }

    /// What the late comparisons favor.
    pub(crate) Prefer {
        /// Better values, by more epochs.
        Value,
        /// Fewer epochs.
        Cost,
    }

    pub(crate) SpotFallback {
        /// Failing jobs are retried on demand.
        OnDemand,
        /// Failing jobs stay on spot instances.
        None,
    }

    pub(crate) Refit {
        /// No further training.
        None,
        /// The best configuration is trained again.
        Best,
        /// The cheapest configuration within `ValueTolerance` is trained again.
        BestBuy,
    }

    /// `TrainingJobEarlyStoppingType`.
    pub(crate) EarlyStopping {
        /// The service stops no job early.
        Off,
        /// The service stops jobs by its own rule.
        Auto,
    }

    pub(crate) CompleteOnConvergence {
        /// The tuning job goes on although it no longer improves.
        Disabled,
        /// The tuning job ends when it no longer improves.
        Enabled,
    }

    /// `S3DataDistributionType`.
    pub(crate) Distribution {
        /// Each host gets all objects.
        FullyReplicated,
        /// Each host gets a part of the objects.
        ShardedByS3Key,
    }
}

impl Strategy {
    /// Returns whether trials are compared at rungs.
    pub fn compares_trials(self) -> bool {
        match self {
            Self::Hyperband => true,
            Self::Bayesian | Self::Random | Self::Grid => false,
        }
    }

    /// Returns the sampler, and whether the request may choose another one.
    pub(crate) fn sampler(self) -> (SamplerKind, bool) {
        match self {
            Self::Hyperband => (SamplerKind::Model, true),
            Self::Random => (SamplerKind::Random, true),
            Self::Bayesian => (SamplerKind::Model, false),
            Self::Grid => (SamplerKind::Grid, false),
        }
    }

    /// Returns whether only the request can say how many training jobs there are.
    pub(crate) fn needs_jobs(self) -> bool {
        match self {
            Self::Bayesian | Self::Random => true,
            Self::Hyperband | Self::Grid => false,
        }
    }

    /// Returns the value of the member.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bayesian => "Bayesian",
            Self::Random => "Random",
            Self::Hyperband => "Hyperband",
            Self::Grid => "Grid",
        }
    }
}

/// A part of a request.
pub(super) trait Field {
    /// Reads the value of a member; `None` = the member is missing.
    fn from_member(value: Option<&Value>) -> Self;

    /// Appends the paths that it reads at `path`.
    #[cfg(test)]
    fn paths(path: &str, all: &mut Vec<String>) {
        all.push(path.to_owned());
    }
}

impl<T: DeserializeOwned> Field for Option<T> {
    fn from_member(value: Option<&Value>) -> Self {
        value.and_then(|value| T::deserialize(value).ok())
    }
}

impl<T: Field> Field for Vec<T> {
    fn from_member(value: Option<&Value>) -> Self {
        let elements = value.and_then(Value::as_array).into_iter().flatten();
        elements.map(|element| T::from_member(Some(element))).collect()
    }

    #[cfg(test)]
    fn paths(path: &str, all: &mut Vec<String>) {
        T::paths(&format!("{path}[]"), all);
    }
}

impl Field for Settings {
    fn from_member(value: Option<&Value>) -> Self {
        Self::given(|member| value.and_then(|value| value.get(member)).and_then(Value::as_u64))
    }
}

/// Defines structures whose fields are members of a JSON object.
macro_rules! fields {
    ($($(#[$about:meta])* $structure:ident { $($field:ident: $type:ty = $member:literal),* $(,)? })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct $structure {
            $(pub(crate) $field: $type),*
        }

        impl Field for $structure {
            fn from_member(value: Option<&Value>) -> Self {
                Self { $($field: Field::from_member(value.and_then(|value| value.get($member)))),* }
            }

            #[cfg(test)]
            fn paths(path: &str, all: &mut Vec<String>) {
                $(<$type>::paths(format!("{path}.{}", $member).trim_start_matches('.'), all);)*
            }
        }
    )*};
}

fields! {
    Fields {
        name: Option<String> = "HyperParameterTuningJobName",
        config: Config = "HyperParameterTuningJobConfig",
        job: Job = "TrainingJobDefinition",
        controller: Controller = "Controller",
        settings: Settings = "Controller",
        tags: Vec<Tag> = "Tags",
    }

    Tag {
        key: Option<String> = "Key",
        value: Option<String> = "Value",
    }

    Config {
        strategy: Option<Strategy> = "Strategy",
        settings: StrategyConfig = "StrategyConfig",
        objective: ObjectiveConfig = "HyperParameterTuningJobObjective",
        limits: ResourceLimits = "ResourceLimits",
        ranges: ParameterRanges = "ParameterRanges",
        early_stopping: Option<EarlyStopping> = "TrainingJobEarlyStoppingType",
        criteria: CompletionCriteria = "TuningJobCompletionCriteria",
        random_seed: Option<u64> = "RandomSeed",
    }

    StrategyConfig {
        hyperband: HyperbandConfig = "HyperbandStrategyConfig",
    }

    HyperbandConfig {
        min_resource: Option<u32> = "MinResource",
        max_resource: Option<u32> = "MaxResource",
    }

    ObjectiveConfig {
        direction: Option<Objective> = "Type",
        metric_name: Option<String> = "MetricName",
    }

    ResourceLimits {
        jobs: Option<u32> = "MaxNumberOfTrainingJobs",
        parallel: Option<u32> = "MaxParallelTrainingJobs",
        runtime_seconds: Option<u64> = "MaxRuntimeInSeconds",
    }

    ParameterRanges {
        integer: Vec<Range> = "IntegerParameterRanges",
        continuous: Vec<Range> = "ContinuousParameterRanges",
        categorical: Vec<Range> = "CategoricalParameterRanges",
    }

    /// A range of any kind: a categorical one has `Values`, the others have bounds.
    Range {
        name: Option<String> = "Name",
        min_value: Option<String> = "MinValue",
        max_value: Option<String> = "MaxValue",
        scaling_type: Option<ScalingType> = "ScalingType",
        values: Vec<Option<String>> = "Values",
    }

    CompletionCriteria {
        target: Option<f64> = "TargetObjectiveMetricValue",
        best_not_improving: BestNotImproving = "BestObjectiveNotImproving",
        convergence: Convergence = "ConvergenceDetected",
    }

    BestNotImproving {
        max_jobs: Option<u32> = "MaxNumberOfTrainingJobsNotImproving",
    }

    Convergence {
        complete: Option<CompleteOnConvergence> = "CompleteOnConvergence",
    }

    /// `TrainingJobDefinition`.
    Job {
        static_hyperparameters: Option<Map<String, Value>> = "StaticHyperParameters",
        algorithm: AlgorithmSpecification = "AlgorithmSpecification",
        role_arn: Option<String> = "RoleArn",
        channels: Vec<Channel> = "InputDataConfig",
        vpc: VpcConfig = "VpcConfig",
        instances: Instances = "ResourceConfig",
        warm_pool: WarmPool = "ResourceConfig",
        tuning_instances: Instances = "HyperParameterTuningResourceConfig",
        tuning_resources: TuningResources = "HyperParameterTuningResourceConfig",
        stopping_condition: StoppingCondition = "StoppingCondition",
        spot: Option<bool> = "EnableManagedSpotTraining",
        checkpoints: CheckpointConfig = "CheckpointConfig",
    }

    AlgorithmSpecification {
        training_image: Option<String> = "TrainingImage",
        algorithm_name: Option<String> = "AlgorithmName",
        metric_definitions: Vec<MetricDefinition> = "MetricDefinitions",
    }

    MetricDefinition {
        name: Option<String> = "Name",
        regex: Option<String> = "Regex",
    }

    Channel {
        name: Option<String> = "ChannelName",
        source: DataSource = "DataSource",
    }

    DataSource {
        s3: S3DataSource = "S3DataSource",
    }

    S3DataSource {
        distribution: Option<Distribution> = "S3DataDistributionType",
    }

    VpcConfig {
        subnets: Vec<Option<String>> = "Subnets",
        security_groups: Vec<Option<String>> = "SecurityGroupIds",
    }

    Instances {
        instance_type: Option<String> = "InstanceType",
        count: Option<u32> = "InstanceCount",
        volume_gib: Option<u32> = "VolumeSizeInGB",
    }

    WarmPool {
        keep_alive_seconds: Option<u64> = "KeepAlivePeriodInSeconds",
    }

    TuningResources {
        choices: Vec<Instances> = "InstanceConfigs",
        volume_kms_key_id: Option<String> = "VolumeKmsKeyId",
    }

    /// Time limits of a job, in seconds.
    StoppingCondition {
        runtime: Option<u64> = "MaxRuntimeInSeconds",
        wait: Option<u64> = "MaxWaitTimeInSeconds",
        pending: Option<u64> = "MaxPendingTimeInSeconds",
    }

    CheckpointConfig {
        s3_uri: Option<String> = "S3Uri",
    }

    Controller {
        max_cost_usd: Option<Number> = "MaxCostUsd",
        instance_prices: Option<Map<String, Value>> = "InstancePricesUsdPerHour",
        reduction_factor: Option<u32> = "ReductionFactor",
        prefer: Option<Prefer> = "Prefer",
        rung_execution: Option<GivenRungExecution> = "RungExecution",
        scheduling: Option<Scheduling> = "Scheduling",
        sampler: Option<SamplerKind> = "Sampler",
        resource_hyperparameter: Option<String> = "ResourceHyperParameter",
        epoch_pattern: Option<String> = "EpochPattern",
        epoch_base: Option<u32> = "EpochBase",
        epoch_numbering: Option<EpochNumbering> = "EpochNumbering",
        metric_host: Option<String> = "MetricHost",
        max_instances: Option<u32> = "MaxInstances",
        spot_fallback: Option<SpotFallback> = "SpotFallback",
        no_objective_seconds: Option<u64> = "NoObjectiveSeconds",
        startup_allowance: Option<u64> = "StartupAllowanceSeconds",
        upload_allowance: Option<u64> = "UploadAllowanceSeconds",
        refit: Option<Refit> = "Refit",
        value_tolerance: Option<f64> = "ValueTolerance",
        initial: Option<Vec<Map<String, Value>>> = "InitialConfigurations",
        known_results: Option<Vec<Map<String, Value>>> = "KnownResults",
        instance_counts: Option<Vec<u32>> = "InstanceCounts",
        scaled: Option<Vec<String>> = "ScaleWithInstances",
    }
}
