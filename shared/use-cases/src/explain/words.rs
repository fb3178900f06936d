//! The sentences of an explanation. Values of the objective are not part of them: the entries contain them as numbers.

use tuning::definition::{Definition, JobLimits};
use tuning::log::fact::JobKey;
use tuning::log::reasons::{EndReason, RetryWhy, StopWhy, TrialEnd};
use tuning::state::{State, Status};
use tuning::trial::Trial;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{RungId, SizeId};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use wire::events::timestamp::format_utc;
use wire::explain::{Comparison, EpochValue, ExplainedJob};

use crate::words;
pub(super) use crate::words::{booked, drawn, extended, kept, promotion_rule, repeated, rule, settled};

pub(super) const BILL_ORDERED: &str = "the training job has ended: the controller reads its bill";
pub(super) const RELEASED: &str =
    "release ordered for its kept instances: no training job can use them, or the money for one is missing";
pub(super) const LOG_REST_ORDERED: &str =
    "the training job has ended: the controller reads its log for lines that did not arrive";
pub(super) const LOG_READ_ORDERED: &str = "the training program restarted: the controller reads the stored log before \
    it compares the trial, because a lost line would give a wrong epoch";

/// Returns that a trial has another cluster size than the one with which it was drawn; empty if it has the same.
pub(super) fn resized(definition: &Definition, drawn: Option<SizeId>, own: SizeId) -> String {
    let Some(drawn) = drawn.filter(|drawn| *drawn != own) else {
        return String::new();
    };
    let sizes = &definition.job.sizes;
    let count = |size: SizeId| sizes.get(size.index()).copied().unwrap_or(definition.job.instance_count);
    format!(
        "; drawn with {} instances, which the money, a quota or the capacity did not allow, so it has {}",
        count(drawn),
        count(own)
    )
}

pub(super) fn attempt(JobKey { rung, attempt, .. }: JobKey, retry: Option<RetryWhy>) -> String {
    match retry {
        None if rung > RungId(0) => format!("attempt {attempt}: promoted to rung {rung}"),
        None if attempt <= 1 => "first attempt".to_owned(),
        None => format!("attempt {attempt}"),
        Some(why) => format!("attempt {attempt}: {}", retried(why)),
    }
}

fn retried(why: RetryWhy) -> &'static str {
    match why {
        RetryWhy::Capacity => "the previous attempt got no capacity",
        RetryWhy::NextInstances => "the previous attempt got no capacity, so this one uses other instances",
        RetryWhy::Quota => "a quota of the account prevented the previous attempt from starting",
        RetryWhy::OnDemand => "the previous attempt failed on spot capacity, so this one runs on demand",
        RetryWhy::MaxWait => "the previous attempt reached MaxWaitTimeInSeconds",
        RetryWhy::ServiceError => "the training service failed during the previous attempt",
        RetryWhy::RuntimeCutTooShort => "the time limit of the previous attempt had been cut too short",
    }
}

pub(super) fn ordered(
    definition: &Definition,
    why: &str,
    limits: JobLimits,
    reservation: MicroUsd,
) -> String {
    let wait = limits.max_wait_seconds.map(|wait| format!(" ({wait} s with the wait for spot capacity)"));
    let money = definition.job.is_priced().then(|| format!("; ${reservation} reserved for the worst case"));
    let kept = Some(limits.keep_alive_seconds).filter(|seconds| *seconds > 0);
    let kept = kept.map(|seconds| format!(", its instances kept for at most {seconds} s"));
    format!(
        "training job ordered, {why}: at most {} s{}{}{}",
        limits.max_runtime_seconds,
        wait.unwrap_or_default(),
        kept.unwrap_or_default(),
        money.unwrap_or_default()
    )
}

/// The job's instances were interrupted.
pub(super) fn interrupted(times: u32) -> String {
    format!("the training service interrupted its instances (interruption {times})")
}

pub(super) fn judged(compared: &Comparison) -> String {
    let Comparison { rung, level, epoch, rule, .. } = compared;
    format!("{}: {rule}", words::place(*rung, *level, *epoch))
}

pub(super) fn promoted(compared: &Comparison, next: Epochs) -> String {
    format!("{}: {}", words::promoted(compared.rung, next), compared.rule)
}

/// A waiting trial was promoted because it reached the target, whatever its rank.
pub(super) fn promoted_for_target(compared: &Comparison, next: Epochs) -> String {
    format!("{}: {}", words::promoted(compared.rung, next), words::FOR_TARGET)
}

/// A waiting trial was not promoted.
pub(super) fn not_promoted(compared: &Comparison) -> String {
    format!("the trial is over: {}: {}", words::not_promoted(compared.rung), compared.rule)
}

pub(super) fn waits(rung: RungId, level: Epochs, resource: Epochs, job: Option<&ExplainedJob>) -> String {
    format!("{}{}", words::waits(rung, level, resource), billed(job))
}

/// A stop of a training job was ordered, in a tuning of this status.
pub(super) fn stop(why: StopWhy, status: &Status) -> String {
    let reason = match status {
        Status::Ending(reason) | Status::Ended { why: reason, .. } if why == StopWhy::TuningEnding => reason,
        Status::Active | Status::Ending(_) | Status::Ended { .. } => return words::stop(why),
    };
    let failed = matches!(reason, EndReason::Failed(_)).then(|| format!(": {}", reason.message()));
    format!("{} ({}{})", words::stop(why), reason.word(), failed.unwrap_or_default())
}

/// A job is over and its trial waits for a further attempt.
pub(super) fn awaited(why: RetryWhy, not_before: Time, job: Option<&ExplainedJob>) -> String {
    let message = job.and_then(|job| job.failure_reason.as_deref());
    format!("{}{}", words::awaited(why, not_before, message), billed(job))
}

pub(super) fn finished(how: &TrialEnd, job: Option<&ExplainedJob>) -> String {
    let limit = job.map(|job| job.max_runtime_in_seconds);
    format!("the trial is over: {}{}", words::end(how, limit), billed(job))
}

fn billed(job: Option<&ExplainedJob>) -> String {
    job.map(|job| words::billed(job.billable_seconds, job.cost_usd)).unwrap_or_default()
}

/// A read of the log of a silent job was ordered.
pub(super) fn silence_checked(since: Time) -> String {
    format!(
        "no objective value since {}: the controller reads the stored log before it stops the training job for that",
        format_utc(since)
    )
}

/// Values arrived after the decision to end the trial.
pub(super) fn late(values: &[EpochValue]) -> String {
    let epochs = || values.iter().filter_map(|value| value.epoch);
    match (epochs().min(), epochs().max()) {
        (Some(first), Some(last)) if first < last => format!(
            "the values of epochs {first} to {last} arrived after that decision: they count as seen, but do not change \
             it"
        ),
        (Some(epoch), _) => {
            format!(
                "the value of epoch {epoch} arrived after that decision: it counts as seen, but does not change it"
            )
        }
        (None, _) => after_the_end(values.len()),
    }
}

/// A value of an epoch below the compared one arrived after the comparison at a rung.
pub(super) fn late_at_rung(rung: RungId, epoch: Epochs, taken: Epochs) -> String {
    format!(
        "the value of epoch {epoch} arrived after rung {rung} had compared that of epoch {taken}: the comparison stands"
    )
}

/// Lines arrived after the trial was over.
pub(super) fn after_the_end(count: usize) -> String {
    let lines = if count == 1 { "a value".to_owned() } else { format!("{count} values") };
    format!("{lines} arrived after the trial was over and changed nothing")
}

/// Returns the present state of a trial that is not over.
pub(super) fn standing(definition: &Definition, state: &State, trial: &Trial) -> String {
    let epoch = trial.resource();
    let Some(job) = trial.job() else {
        let at = trial.not_before().unwrap_or(state.now);
        return format!("it waits for its next attempt, not before {}", format_utc(at));
    };
    if job.end().is_some() {
        let missing = if job.is_closed() { "the rest of its log" } else { "its bill" };
        return format!("its training job ended at epoch {epoch} and waits for {missing}");
    }
    if job.stop.is_some() {
        return format!("it is at epoch {epoch} and is being stopped");
    }
    let plan = definition.plan();
    let bracket = plan.brackets().get(definition.in_plan(trial.bracket(definition)));
    let next = bracket.and_then(|bracket| bracket.rungs().get(trial.next_rung().index()));
    match next {
        Some(rung) if rung.resource < plan.max_resource() => {
            format!("it is at epoch {epoch}; the next comparison is at epoch {}", rung.resource)
        }
        Some(_) | None if plan.max_resource() < u32::MAX => {
            format!("it is at epoch {epoch} of {}, after its last comparison", plan.max_resource())
        }
        Some(_) | None => format!("it is at epoch {epoch}"),
    }
}

#[cfg(test)]
mod tests {
    use search::Configuration;
    use serde_json::json;
    use tuning::definition::INSTANCE_COUNT;
    use tuning::unit::ids::TrialId;
    use wire::request::{PriceAnswer, Request};

    use super::*;

    /// Nothing said why a trial had fewer instances than the model chose.
    #[test]
    fn an_explanation_names_the_size_with_which_a_trial_was_drawn() {
        let body = wire::sample::with(
            wire::sample::request("t"),
            json!({"Controller": {"InstanceCounts": [1, 2, 4], "MaxCostUsd": null}}),
        );
        let request = Request::check(body).unwrap();
        let definition = request.definition(Time(0), "000000", &PriceAnswer::default()).unwrap();
        let of = |count: &str| {
            let configuration = Configuration([(INSTANCE_COUNT.to_owned(), count.to_owned())].into());
            definition.size_of(TrialId(0), &configuration)
        };
        let (two, four) = (of("2"), Some(of("4")));
        assert_eq!(
            resized(&definition, four, two),
            "; drawn with 4 instances, which the money, a quota or the capacity did not allow, so it has 2"
        );
        assert_eq!(resized(&definition, four, of("4")), "");
        assert_eq!(resized(&definition, None, two), "");
    }
}
