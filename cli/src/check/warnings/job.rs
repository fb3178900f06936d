//! Warnings about training jobs: cost cap, spot instances, quotas, input channels and time limits.

use tuning::unit::limits::SPOT_WAIT_ALLOWANCE_SECONDS;
use wire::request::Request;

use crate::warning::{Code, Warning};

/// A typical instance quota of a new account.
const NEW_ACCOUNT_INSTANCES: u64 = 4;
/// The default quota of instances per training job.
const JOB_INSTANCES: u32 = 20;
/// The maximum `KeepAlivePeriodInSeconds` in SageMaker's guide.
const KEEP_ALIVE_USUAL: u64 = 3_600;

/// Returns the warnings that apply on every machine.
pub(super) fn warnings(request: &Request) -> Vec<Warning> {
    let own = [
        without_checkpoint(request),
        promotion_without_checkpoint(request),
        counted_epochs(request),
        sharded_validation(request),
    ];
    own.into_iter().flatten().collect()
}

/// Returns the warnings about money, capacity and data of AWS.
pub(super) fn stack_warnings(request: &Request) -> Vec<Warning> {
    let own = [
        short_wait(request),
        quota(request),
        job_quota(request),
        warm_pool_quota(request),
        long_keep_alive(request),
        sharded(request),
    ];
    own.into_iter().flatten().collect()
}

pub(super) fn no_cap(request: &Request) -> Option<Warning> {
    Warning::when(
        !request.is_capped(),
        Code::NoCostCap,
        "The request has no cost cap: nothing limits the cost of the tuning.",
        "Set Controller.MaxCostUsd. `hyperband plan` shows the expected cost.",
    )
}

fn without_checkpoint(request: &Request) -> Option<Warning> {
    Warning::when(
        request.is_spot() && request.checkpoint_uri().is_none(),
        Code::SpotWithoutCheckpoint,
        "The request uses spot instances without CheckpointConfig: an interrupted job restarts from the beginning.",
        "Set CheckpointConfig.S3Uri, and save and load checkpoints in LocalPath. Or use on-demand instances.",
    )
}

fn promotion_without_checkpoint(request: &Request) -> Option<Warning> {
    Warning::when(
        request.is_promotion_given() && request.checkpoint_uri().is_none(),
        Code::PromoteWithoutCheckpoint,
        "The request uses RungExecution Promote without CheckpointConfig: each promoted trial restarts at its \
         first epoch, and you pay for the repeated epochs.",
        "Set CheckpointConfig.S3Uri, and save and load checkpoints in LocalPath. Or use RungExecution Stop.",
    )
}

fn short_wait(request: &Request) -> Option<Warning> {
    let runtime = request.max_runtime_seconds();
    let wait = request.max_wait_seconds().filter(|_| request.is_spot())?;
    let wanted = runtime.saturating_add(SPOT_WAIT_ALLOWANCE_SECONDS);
    // For short jobs, a wait as long as the run is enough.
    Warning::when(
        wait < wanted.min(runtime.saturating_mul(2)),
        Code::SpotWaitShort,
        format!(
            "MaxWaitTimeInSeconds is only {} s above MaxRuntimeInSeconds: a spot job that waits longer for \
             capacity is cut short.",
            wait.saturating_sub(runtime)
        ),
        format!("Set MaxWaitTimeInSeconds to {wanted} or more."),
    )
}

/// Returns the maximum number of instances of all parallel jobs.
fn instances_at_once(request: &Request) -> u64 {
    let asked = u64::from(request.max_parallel()).saturating_mul(u64::from(request.instance_count()));
    asked.min(request.max_instances().map_or(u64::MAX, u64::from))
}

fn quota(request: &Request) -> Option<Warning> {
    let at_once = instances_at_once(request);
    let kind = if request.is_spot() { "spot training job" } else { "training job" };
    Warning::when(
        at_once > NEW_ACCOUNT_INSTANCES,
        Code::InstanceQuota,
        format!(
            "The tuning uses up to {at_once} instances of {} at once. The quota of a new account can be \
             {NEW_ACCOUNT_INSTANCES} or less; jobs above the quota wait.",
            request.instance_type()
        ),
        format!(
            "Check '{} for {kind} usage' in Service Quotas. If it is below {at_once}, lower \
             MaxParallelTrainingJobs, or set Controller.MaxInstances.",
            request.instance_type()
        ),
    )
}

fn job_quota(request: &Request) -> Option<Warning> {
    let count = request.instance_count();
    Warning::when(
        count > JOB_INSTANCES,
        Code::InstancesPerJobQuota,
        format!(
            "A training job needs {count} instances, but the default quota is {JOB_INSTANCES} per training job: \
             SageMaker may reject the jobs."
        ),
        "Request a higher quota of instances per training job in Service Quotas, or lower InstanceCount.",
    )
}

fn warm_pool_quota(request: &Request) -> Option<Warning> {
    Warning::when(
        request.keep_alive_seconds() > 0,
        Code::WarmPoolQuota,
        "KeepAlivePeriodInSeconds keeps instances in a warm pool. Warm pools have their own quota, which is 0 by \
         default: SageMaker may reject the jobs.",
        format!(
            "Request '{} for training warm pool usage' of {} in Service Quotas, or remove \
             KeepAlivePeriodInSeconds.",
            request.instance_type(),
            instances_at_once(request)
        ),
    )
}

fn long_keep_alive(request: &Request) -> Option<Warning> {
    let seconds = request.keep_alive_seconds();
    Warning::when(
        seconds > KEEP_ALIVE_USUAL,
        Code::KeepAliveLong,
        format!(
            "Instances stay allocated for up to {seconds} s after a training job. You pay for them until the next \
             job uses them, and the cap reserves this cost for each job."
        ),
        format!(
            "Set KeepAlivePeriodInSeconds to {KEEP_ALIVE_USUAL} or less: the next training job usually starts at \
             once."
        ),
    )
}

fn counted_epochs(request: &Request) -> Option<Warning> {
    let counted =
        request.strategy().compares_trials() && request.epoch_pattern().is_none() && request.is_spot();
    Warning::when(
        counted,
        Code::EpochsCountedOnSpot,
        "Without EpochPattern, the controller counts lines to find the epoch: a lost line or an interruption \
         shifts all later epochs.",
        "Print the epoch in the line of the objective, and set Controller.EpochPattern.",
    )
}

fn sharded(request: &Request) -> Option<Warning> {
    let (channels, count) = (request.sharded_channels(), request.instance_count());
    Warning::when(
        !channels.is_empty(),
        Code::ShardedNeedsObjects,
        format!(
            "ShardedByS3Key splits the objects of these channels among {count} hosts: {}. A host without an object \
             fails or does no work.",
            channels.join(", ")
        ),
        format!("Put at least {count} objects of about equal size under each S3 prefix."),
    )
}

fn sharded_validation(request: &Request) -> Option<Warning> {
    let evaluated = |name: &&str| ["validation", "test", "eval"].iter().any(|word| name.contains(word));
    let name = request.sharded_channels().into_iter().find(evaluated)?;
    Some(Warning::new(
        Code::ShardedValidation,
        format!(
            "ShardedByS3Key splits the channel '{name}' among the hosts: the objective covers only a part of the data, \
             or is a mean over parts."
        ),
        format!(
            "Set S3DataDistributionType of '{name}' to FullyReplicated, and shard only the training data."
        ),
    ))
}
