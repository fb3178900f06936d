//! The words for rulings, in one place: an explanation, the progress of a tuning and the log lines use them.
//!
//! A phrase has the trial or its job as the subject, which the caller puts before it.

use std::cmp::Ordering;

use hyperband::plan::Plan;
use hyperband::rung::MEDIAN_RIVALS;
use search::{Origin, SamplerKind, Saved};
use tuning::definition::Definition;
use tuning::log::reasons::{RetryWhy, StopWhy, TrialEnd};
use tuning::log::ruling::Verdict;
use tuning::state::failures::cause;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::RungId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use wire::events::timestamp::format_utc;

/// A job lasts longer than its reservation pays for, or its bill was higher.
pub const OVERRUN: &str =
    "a training job costs more than was reserved for it: running and later jobs reserve the excess too";

/// A job was stopped because it did not end after its last epoch.
pub const STOPPED_AFTER_LAST_EPOCH: &str = "stopped after its last epoch: the model may be missing";

/// No training job has got instances for long.
pub const CAPACITY_LACKING: &str = "no training job gets instances: the tuning waits for capacity";

/// Returns how the configuration of a trial was chosen. The origin is recorded where the sampler
/// learns or the user gave values.
pub fn drawn(definition: &Definition, origin: Option<Origin>) -> String {
    let warm_start = definition.warm_start.as_ref();
    let name = |parent| warm_start.and_then(|warm_start| warm_start.name(parent)).unwrap_or("unknown");
    match (origin, definition.sampler) {
        (Some(Origin::Model { near, expected, low, high, parent, saved, of_size }), _) => {
            let followed = parent.map(|followed| {
                format!(
                    ", and followed the parent {} with weight {:.2}",
                    name(followed.parent),
                    followed.weight
                )
            });
            let saved = saved.map(|Saved { cost, within }| {
                format!(
                    ". It looked for a lower cost: it expected {:.0} % of the lowest one within the tolerance, and a value \
                     within it with probability {within:.2}",
                    100.0 * cost
                )
            });
            let of_size = if of_size { ". Its cluster size had the fewest trials" } else { "" };
            format!(
                "by the model, near trial {near}: it expected a best value of {expected:.6} ({low:.6} to {high:.6}){}{}{of_size}",
                followed.unwrap_or_default(),
                saved.unwrap_or_default()
            )
        }
        (Some(Origin::Parent { parent, rank }), _) => {
            format!("taken over from the parent {}, where it ranked {}", name(parent), rank.saturating_add(1))
        }
        (Some(Origin::Initial), _) => "by InitialConfigurations; a value that it lacks is drawn".to_owned(),
        (Some(Origin::Grid), _) | (None, SamplerKind::Grid) => "the next combination of the grid".to_owned(),
        (Some(Origin::Random), _) | (None, SamplerKind::Random) => "at random".to_owned(),
        (Some(Origin::Spread), _) | (None, SamplerKind::Sobol | SamplerKind::Model) => {
            "from the Sobol sequence, which spreads points evenly".to_owned()
        }
    }
}

/// The rule of a rung, with its numbers.
pub fn rule(plan: &Plan, verdict: Verdict, is_number: bool) -> String {
    let Verdict { rank, seen, allowed, continues } = verdict;
    let place = rank.saturating_add(1);
    let result = if continues { "so it continued" } else { "so this trial does not continue" };
    if plan.is_median() && is_number {
        let others = seen.saturating_sub(1);
        let better = format!(
            "the running averages of {rank} of {others} earlier trials are better than its best value"
        );
        return if others < MEDIAN_RIVALS {
            format!("{better}; with fewer than {MEDIAN_RIVALS} all continue, {result}")
        } else {
            format!("{better}; at most {} may be, {result}", others / 2)
        };
    }
    let verb = if allowed == 1 { "continues" } else { "continue" };
    let share = if allowed == seen && seen > 1 {
        format!(
            "rank {place} of {seen} arrived trials; values here do not predict later ones, so each arrival continues now"
        )
    } else {
        format!("rank {place} of {seen} arrived trials; the best {allowed} of {seen} {verb}")
    };
    if is_number {
        format!("{share}, {result}")
    } else {
        format!("{share}, but a trial without a numeric value never does, {result}")
    }
}

/// Why the trial that reached the target is promoted, whatever its rank.
pub const FOR_TARGET: &str = "it reached the target value, so it trains to its end";

/// The rule of a promotion, with its numbers.
pub fn promotion_rule(verdict: Verdict) -> String {
    let Verdict { rank, seen, allowed, .. } = verdict;
    let may = if allowed == 1 { "may" } else { "may all" };
    format!(
        "rank {} of {seen} trials that ended there; the best {allowed} {may} continue",
        rank.saturating_add(1)
    )
}

/// Returns the rung at which a trial was compared by its value of `epoch`.
pub fn place(rung: RungId, level: Epochs, epoch: Epochs) -> String {
    let by = match epoch.cmp(&level) {
        Ordering::Equal => String::new(),
        Ordering::Greater => {
            format!(" (by its value of epoch {epoch}, the first one that arrived at or after the level)")
        }
        Ordering::Less => {
            format!(" (by its best value up to there, of epoch {epoch})")
        }
    };
    format!("rung {rung} at epoch {level}{by}")
}

/// The trial was promoted from `rung`, to train to epoch `next`.
pub fn promoted(rung: RungId, next: Epochs) -> String {
    format!("promoted from rung {rung} to train to epoch {next}")
}

/// The trial waited at `rung` and was not promoted.
pub fn not_promoted(rung: RungId) -> String {
    format!("not promoted from rung {rung}")
}

/// The trial waits at a rung, with its value of epoch `resource`.
pub fn waits(rung: RungId, level: Epochs, resource: Epochs) -> String {
    let by = if resource == level {
        String::new()
    } else {
        format!(" (compared by its value of epoch {resource})")
    };
    format!("reached rung {rung} at epoch {level}{by} and waits for a promotion")
}

/// A job repeated the epochs of its trial from epoch `from`, although it had `had` epochs.
pub fn repeated(had: Epochs, from: Epochs) -> String {
    format!(
        "the training job did not resume from the trial's checkpoint: it started at epoch {from} although the trial \
         had reached epoch {had}, so the epochs in between cost money again"
    )
}

/// A stop of a training job was ordered.
pub fn stop(why: StopWhy) -> String {
    match why {
        StopWhy::Rung { rung } => format!("stop ordered: the trial is not among the best at rung {rung}"),
        StopWhy::MaxResource => {
            "stop ordered: the training job trained beyond its last epoch, or did not end in time after it, so its model may \
             be missing"
                .to_owned()
        }
        StopWhy::PastLevel { level } => {
            format!("stop ordered: the program trains beyond epoch {level}, the last epoch that it was given")
        }
        StopWhy::Interruptions { count } => {
            format!(
                "stop ordered: its spot instances were interrupted {count} times, so the trial continues on demand"
            )
        }
        StopWhy::NextInstances => {
            "start cancelled: a quota blocks it, and the tuning can use other instances".to_owned()
        }
        StopWhy::Quota => {
            "start cancelled: a quota of the account has blocked all starts for a long time; another training job \
             stays ordered to detect when the quota allows starts again"
                .to_owned()
        }
        StopWhy::OutOfReach => {
            "start cancelled: a quota of the account is smaller than its number of instances".to_owned()
        }
        StopWhy::NoObjective { seconds } => {
            format!("stop ordered: no objective value for {seconds} s, and none in its stored log")
        }
        StopWhy::Diverged { epochs } => {
            format!("stop ordered: the objective was NaN or infinite for {epochs} epochs in a row")
        }
        StopWhy::ReservationUsed { seconds } => {
            format!(
                "stop ordered: the training job is billed for {seconds} s, which is its time limit with \
                 StartupAllowanceSeconds"
            )
        }
        StopWhy::CapExceeded { by } => {
            format!("stop ordered: job {by} costs more than was reserved, and the cap does not pay for both")
        }
        StopWhy::TuningEnding => "stop ordered: the tuning is ending".to_owned(),
        StopWhy::TargetReached { trial } => {
            format!("stop ordered: trial {trial} reached the target value and trains to its end")
        }
        StopWhy::Requested => "stop ordered: a user asked to stop the training job".to_owned(),
    }
}

/// More was reserved for a job that lasts longer than its reservation pays for.
pub fn extended(definition: &Definition, seconds: u64, amount: MicroUsd) -> String {
    let more = if definition.job.is_priced() { format!(" (${amount} more)") } else { String::new() };
    format!("it lasts longer than its reservation pays for, so {seconds} s are reserved now{more}")
}

/// The bill of a job never arrived.
pub fn settled(definition: &Definition, amount: MicroUsd) -> String {
    format!("its bill never arrived: the full reservation counts as spent{}", priced(definition, amount))
}

/// The bill of a job was booked after its trial had arrived at a rung, or a higher one replaced it.
pub fn booked(definition: &Definition, seconds: u64, amount: MicroUsd) -> String {
    format!("its bill shows {seconds} billed s{}", priced(definition, amount))
}

/// The cost of a job's kept instances was booked. `seconds` is `None` if the time is unknown.
pub fn kept(definition: &Definition, seconds: Option<u64>, amount: MicroUsd) -> String {
    let amount = priced(definition, amount);
    match seconds {
        Some(seconds) => format!("its instances were kept for {seconds} s after it ended{amount}"),
        None => format!(
            "the time for which its instances were kept is unknown: the full reservation for it counts as spent{amount}"
        ),
    }
}

/// Returns an amount in parentheses. Without a price it means nothing.
fn priced(definition: &Definition, amount: MicroUsd) -> String {
    if definition.job.is_priced() { format!(" (${amount})") } else { String::new() }
}

/// A job is over with this message, and its trial waits for a further attempt until `not_before`.
pub fn awaited(why: RetryWhy, not_before: Time, message: Option<&str>) -> String {
    let why = match why {
        RetryWhy::Capacity => "no capacity was available",
        RetryWhy::NextInstances => "no capacity was available, so the next attempt uses other instances",
        RetryWhy::Quota => "a quota of the account prevented the start",
        RetryWhy::OnDemand => "spot capacity failed, so the next attempt runs on demand",
        RetryWhy::MaxWait => {
            "its wait for spot capacity and its training together reached MaxWaitTimeInSeconds"
        }
        RetryWhy::ServiceError => "the training service failed",
        RetryWhy::RuntimeCutTooShort => "its time limit had been cut too short",
    };
    let message = message.map(|message| format!(" ({})", cause(message))).unwrap_or_default();
    format!("{why}{message}: retried not before {}", format_utc(not_before))
}

/// Returns how a trial ended. `max_runtime` is the running-time limit of its last job, in seconds.
pub fn end(how: &TrialEnd, max_runtime: Option<u64>) -> String {
    match how {
        TrialEnd::Stopped(StopWhy::Rung { rung }) => return format!("stopped at rung {rung}"),
        TrialEnd::Failed(message) => return format!("it failed: {}", cause(message)),
        TrialEnd::MaxRuntime => {
            let seconds = max_runtime.map(|seconds| format!(" of {seconds} s")).unwrap_or_default();
            return format!("it reached its running-time limit{seconds}");
        }
        TrialEnd::Completed => "its program completed",
        TrialEnd::Stopped(StopWhy::PastLevel { .. }) => "stopped beyond its rung's level",
        TrialEnd::Stopped(StopWhy::Interruptions { .. }) => "its instances were interrupted too often",
        TrialEnd::Stopped(StopWhy::NextInstances | StopWhy::Quota) => {
            "its training job was cancelled because of a quota"
        }
        TrialEnd::Stopped(StopWhy::OutOfReach) => {
            "not continued because the rest of the cap or a quota of the account is too small for its next training job"
        }
        TrialEnd::Stopped(StopWhy::MaxResource) => STOPPED_AFTER_LAST_EPOCH,
        TrialEnd::Stopped(StopWhy::ReservationUsed { .. }) => "it reached its running-time limit",
        TrialEnd::Stopped(StopWhy::CapExceeded { .. }) => {
            "stopped because another training job cost more than was reserved, and the cap did not pay for both"
        }
        TrialEnd::Stopped(StopWhy::TuningEnding) => "the tuning ended",
        TrialEnd::Stopped(StopWhy::TargetReached { .. }) => {
            "stopped because another trial reached the target value"
        }
        TrialEnd::Stopped(StopWhy::Requested) => "a user stopped its training job",
        TrialEnd::Stopped(StopWhy::NoObjective { .. }) => "stopped because it reported no objective value",
        TrialEnd::Stopped(StopWhy::Diverged { .. }) => "stopped because its objective was NaN or infinite",
        TrialEnd::StoppedOutside => "its training job was stopped outside the tuning",
        TrialEnd::NeverStarted => "its training job was cancelled before it started",
    }
    .to_owned()
}

/// Returns the billed time and cost of a job, as far as they are known, to follow another phrase.
pub fn billed(seconds: Option<u64>, cost: Option<MicroUsd>) -> String {
    let seconds = seconds.map(|seconds| format!("; {seconds} s billed"));
    let cost = cost.map(|cost| format!(", ${cost}"));
    format!("{}{}", seconds.unwrap_or_default(), cost.unwrap_or_default())
}

/// A level of the tuning's cap is spent.
pub fn cap_reached(percent: u32) -> String {
    if percent == 100 {
        "the rest of the tuning's cap is too small for another job".to_owned()
    } else {
        format!("{percent} % of the tuning's cap is spent")
    }
}

/// A level of the stack's cap for a month is granted.
pub fn month_cap_reached(month: &str, percent: u32) -> String {
    format!("{percent} % of the stack's cap for {month} is granted")
}
