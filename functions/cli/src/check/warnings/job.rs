//! Warnings of what a training job runs on: spot, quotas, channels, time, and the cap.

use serde_json::Value;
use tuning::limits::SPOT_WAIT_ALLOWANCE_SECONDS;
use wire::request::Request;

use super::when;
use crate::warning::Warning;

/// Instances that a new account may have, and the usual quota of one training job.
const NEW_ACCOUNT_INSTANCES: u64 = 4;
const JOB_INSTANCES: u32 = 20;
/// The longest time for which SageMaker's guide keeps instances.
const KEEP_ALIVE_USUAL: u64 = 3_600;

pub(super) fn warnings(request: &Request) -> Vec<Warning> {
    let own = [
        no_cap(request),
        without_checkpoint(request),
        promotion_without_checkpoint(request),
        short_wait(request),
        quota(request),
        job_quota(request),
        warm_pool_quota(request),
        long_keep_alive(request),
        counted_epochs(request),
        sharded(request),
        sharded_validation(request),
    ];
    own.into_iter().flatten().collect()
}

fn no_cap(request: &Request) -> Option<Warning> {
    when(request.at("Controller.MaxCostUsd").is_none(), || {
        Warning::new(
            "NoCostCap",
            "Nothing bounds what the tuning may cost.",
            "Give Controller.MaxCostUsd; `hyperband plan` shows what to expect.",
        )
    })
}

fn without_checkpoint(request: &Request) -> Option<Warning> {
    when(request.is_spot() && request.checkpoint_uri().is_none(), || {
        Warning::new(
            "SpotWithoutCheckpoint",
            "Spot instances without CheckpointConfig: each interruption loses the whole job.",
            "Give CheckpointConfig.S3Uri, write checkpoints to LocalPath and go on from them, or train on demand.",
        )
    })
}

fn promotion_without_checkpoint(request: &Request) -> Option<Warning> {
    when(request.promotes() && request.checkpoint_uri().is_none(), || {
        Warning::new(
            "PromoteWithoutCheckpoint",
            "RungExecution Promote without CheckpointConfig: each promotion trains all its epochs from the beginning, and \
             pays them again.",
            "Give CheckpointConfig.S3Uri, write checkpoints to LocalPath and go on from them, or use RungExecution Stop.",
        )
    })
}

fn short_wait(request: &Request) -> Option<Warning> {
    let runtime = request.max_runtime_seconds();
    let wait = request.max_wait_seconds().filter(|_| request.is_spot())?;
    let wanted = runtime.saturating_add(SPOT_WAIT_ALLOWANCE_SECONDS);
    // Short jobs need less than the usual allowance; as long again as they run does.
    when(wait < wanted.min(runtime.saturating_mul(2)), || {
        Warning::new(
            "SpotWaitShort",
            format!(
                "MaxWaitTimeInSeconds leaves a spot job {} s to wait for capacity beyond its MaxRuntimeInSeconds.",
                wait.saturating_sub(runtime)
            ),
            format!("Give MaxWaitTimeInSeconds {wanted} or more."),
        )
    })
}

/// Instances of all jobs that may run together.
fn instances_at_once(request: &Request) -> u64 {
    let asked = u64::from(request.max_parallel()).saturating_mul(u64::from(request.instance_count()));
    asked.min(request.at("Controller.MaxInstances").and_then(Value::as_u64).unwrap_or(u64::MAX))
}

fn quota(request: &Request) -> Option<Warning> {
    let at_once = instances_at_once(request);
    let kind = if request.is_spot() { "spot training job" } else { "training job" };
    when(at_once > NEW_ACCOUNT_INSTANCES, || {
        Warning::new(
            "InstanceQuota",
            format!(
                "Up to {at_once} instances of {} run at once; a new account may have as few as {NEW_ACCOUNT_INSTANCES}, \
                 of some types none.",
                request.instance_type()
            ),
            format!(
                "Look up '{} for {kind} usage' in Service Quotas; if it is less, lower MaxParallelTrainingJobs or give \
                 Controller.MaxInstances.",
                request.instance_type()
            ),
        )
    })
}

fn job_quota(request: &Request) -> Option<Warning> {
    let count = request.instance_count();
    when(count > JOB_INSTANCES, || {
        Warning::new(
            "InstancesPerJobQuota",
            format!("A training job wants {count} instances; the usual quota of one job is {JOB_INSTANCES}."),
            "Have the quota raised, or lower InstanceCount.",
        )
    })
}

fn warm_pool_quota(request: &Request) -> Option<Warning> {
    when(request.keep_alive_seconds() > 0, || {
        Warning::new(
            "WarmPoolQuota",
            "KeepAlivePeriodInSeconds keeps instances after their training job, in a warm pool: that has a quota of its \
             own, 0 unless it was raised.",
            format!(
                "Have '{} for training warm pool usage' raised to {} in Service Quotas, or leave out \
                 KeepAlivePeriodInSeconds.",
                request.instance_type(),
                instances_at_once(request)
            ),
        )
    })
}

fn long_keep_alive(request: &Request) -> Option<Warning> {
    let seconds = request.keep_alive_seconds();
    when(seconds > KEEP_ALIVE_USUAL, || {
        Warning::new(
            "KeepAliveLong",
            format!(
                "Instances are kept for up to {seconds} s after a training job: until another takes them they are paid \
                 for, and as much is reserved under the cap."
            ),
            format!(
                "Give KeepAlivePeriodInSeconds {KEEP_ALIVE_USUAL} or less: the next training job usually starts at once."
            ),
        )
    })
}

fn counted_epochs(request: &Request) -> Option<Warning> {
    let counted = request.is_hyperband() && request.epoch_pattern().is_none() && request.is_spot();
    when(counted, || {
        Warning::new(
            "EpochsCountedOnSpot",
            "Without EpochPattern the epoch is a line's place in the log: a line that is lost or an interruption moves \
             the epochs after it.",
            "Print the epoch in the line of the objective and give Controller.EpochPattern.",
        )
    })
}

/// Names of the channels that are split among the hosts of a job of several.
fn sharded_channels(request: &Request) -> Vec<&str> {
    const KIND: &str = "/DataSource/S3DataSource/S3DataDistributionType";
    let channels = request.at("TrainingJobDefinition.InputDataConfig").and_then(Value::as_array);
    let several = channels.filter(|_| request.instance_count() > 1).into_iter().flatten();
    let sharded =
        several.filter(|channel| channel.pointer(KIND).is_some_and(|kind| kind == "ShardedByS3Key"));
    sharded.filter_map(|channel| channel.get("ChannelName")?.as_str()).collect()
}

fn sharded(request: &Request) -> Option<Warning> {
    let (channels, count) = (sharded_channels(request), request.instance_count());
    when(!channels.is_empty(), || {
        Warning::new(
            "ShardedNeedsObjects",
            format!(
                "ShardedByS3Key gives each of the {count} hosts objects of its own ({}): a host without one fails or \
                 drops out.",
                channels.join(", ")
            ),
            format!("Have at least {count} objects of about equal size under each prefix."),
        )
    })
}

fn sharded_validation(request: &Request) -> Option<Warning> {
    let evaluated = |name: &&str| ["validation", "test", "eval"].iter().any(|word| name.contains(word));
    let name = sharded_channels(request).into_iter().find(evaluated)?;
    Some(Warning::new(
        "ShardedValidation",
        format!(
            "The channel '{name}' is split among the hosts: the objective is then a mean over parts, or one host's own."
        ),
        "Give it S3DataDistributionType FullyReplicated, and shard training data only.",
    ))
}
