//! The sentences of an explanation. Values of the objective are not part of them: the entries contain them as numbers.

use tuning::definition::{Definition, JobLimits, Objective};
use tuning::fact::JobKey;
use tuning::ids::RungId;
use tuning::money::MicroUsd;
use tuning::ruling::{EndReason, RetryWhy, StopWhy, TrialEnd, Verdict};
use tuning::state::{State, Status, Trial};
use wire::events::timestamp::format_utc;
use wire::explain::{Compared, Comparison, EpochValue, ExplainedJob};

pub(super) const BILL_ORDERED: &str =
    "the training job has ended: the controller reads its bill and the rest of its log";
pub(super) const RELEASED: &str =
    "release ordered for its kept instances: no training job can use them, or the money for one is missing";
pub(super) const LOG_READ_ORDERED: &str = "the training program restarted: the controller reads the stored log before \
    it compares the trial, because a lost line would give a wrong epoch";

/// Returns the direction in which the objective improves.
pub(super) fn direction(objective: Objective) -> &'static str {
    match objective {
        Objective::Maximize => "Maximize",
        Objective::Minimize => "Minimize",
    }
}

/// Returns the reason for an attempt.
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
        RetryWhy::MaxWait => "the previous attempt got no spot capacity in time",
        RetryWhy::ServiceError => "the training service failed during the previous attempt",
        RetryWhy::RuntimeCutTooShort => "the time limit of the previous attempt had been cut too short",
    }
}

/// A training job was ordered.
pub(super) fn ordered(
    definition: &Definition,
    why: &str,
    limits: JobLimits,
    reservation: MicroUsd,
) -> String {
    let wait = limits.max_wait_seconds.map(|wait| format!(" ({wait} s with the wait for spot capacity)"));
    let money = definition.job.rate.map(|_| format!("; ${reservation} reserved for the worst case"));
    format!(
        "training job ordered, {why}: at most {} s{}{}",
        limits.max_runtime_seconds,
        wait.unwrap_or_default(),
        money.unwrap_or_default()
    )
}

/// The job's instances were interrupted.
pub(super) fn interrupted(times: u32) -> String {
    format!("the training service interrupted its instances (interruption {times})")
}

/// The rule of a rung, with its numbers.
pub(super) fn rule(verdict: Verdict, is_number: bool) -> String {
    let Verdict { rank, seen, allowed, continues } = verdict;
    let place = rank.saturating_add(1);
    let result = if continues { "so it continued" } else { "so it was stopped" };
    let verb = if allowed == 1 { "continues" } else { "continue" };
    let share = format!("rank {place} of {seen} arrived trials; the best {allowed} of {seen} {verb}");
    if is_number {
        format!("{share}, {result}")
    } else {
        format!("{share}, but a trial without a numeric value never does, {result}")
    }
}

/// The trial was compared at a rung.
pub(super) fn judged(compared: &Comparison) -> String {
    let Comparison { rung, level, epoch, rule, .. } = compared;
    let seen = match compared.compared {
        Compared::AtLevel => String::new(),
        Compared::Late => {
            format!(" (by its value of epoch {epoch}, the first one that arrived at or after the level)")
        }
        Compared::LastBeforeEnd => {
            format!(" (by its last value, of epoch {epoch}, because its program had ended)")
        }
    };
    format!("rung {rung} at epoch {level}{seen}: {rule}")
}

/// The rule of a promotion, with its numbers.
pub(super) fn promotion_rule(verdict: Verdict) -> String {
    let Verdict { rank, seen, allowed, .. } = verdict;
    let may = if allowed == 1 { "may" } else { "may all" };
    format!(
        "rank {} of {seen} trials that ended there; the best {allowed} {may} continue",
        rank.saturating_add(1)
    )
}

/// The trial was promoted.
pub(super) fn promoted(compared: &Comparison, next: u32) -> String {
    format!("promoted from rung {} to train to epoch {next}: {}", compared.rung, compared.rule)
}

/// A waiting trial was not promoted.
pub(super) fn not_promoted(compared: &Comparison) -> String {
    format!("the trial is over: not promoted from rung {}: {}", compared.rung, compared.rule)
}

/// The trial waits at a rung.
pub(super) fn waits(rung: RungId, level: u32, resource: u32, job: Option<&ExplainedJob>) -> String {
    let by = if resource == level {
        String::new()
    } else {
        format!(" (compared by its value of epoch {resource})")
    };
    let billed = job.map(billed).unwrap_or_default();
    format!("reached rung {rung} at epoch {level}{by} and waits for a promotion{billed}")
}

/// A job repeated epochs of its trial.
pub(super) fn repeated(had: u32, from: u32) -> String {
    format!(
        "the training job did not resume from the trial's checkpoint: it started at epoch {from} although the trial \
         had reached epoch {had}, so the epochs in between cost money again"
    )
}

/// A stop of a training job was ordered, in a tuning of this status.
pub(super) fn stop(why: StopWhy, status: &Status) -> String {
    match why {
        StopWhy::Rung { rung } => format!("stop ordered: the trial is not among the best at rung {rung}"),
        StopWhy::MaxResource => "stop ordered: the trial has trained for all its epochs".to_owned(),
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
        StopWhy::NoObjective { seconds } => {
            format!("stop ordered: no objective value for {seconds} s, and none in its stored log")
        }
        StopWhy::TuningEnding => {
            let why = match status {
                Status::Active => String::new(),
                Status::Ending(why) | Status::Ended { why, .. } => format!(" ({})", ending(why)),
            };
            format!("stop ordered: the tuning is ending{why}")
        }
    }
}

fn ending(why: &EndReason) -> String {
    match why {
        EndReason::Failed(message) => format!("{}: {}", why.word(), message.trim()),
        EndReason::CostCap
        | EndReason::MaxJobs
        | EndReason::Target
        | EndReason::NotImproving
        | EndReason::MaxRuntime
        | EndReason::Stopped => why.word().to_owned(),
    }
}

/// A read of the log of a silent job was ordered.
pub(super) fn look(since: i64) -> String {
    format!(
        "no objective value since {}: the controller reads the stored log before it stops the training job for that",
        format_utc(since)
    )
}

/// The bill of a job never arrived.
pub(super) fn settled(definition: &Definition, amount: MicroUsd) -> String {
    let amount = definition.job.rate.map(|_| format!(" (${amount})")).unwrap_or_default();
    format!("its bill never arrived: the full reservation counts as spent{amount}")
}

/// The cost of a job's kept instances was booked.
pub(super) fn kept(definition: &Definition, seconds: Option<u64>, amount: MicroUsd) -> String {
    let amount = definition.job.rate.map(|_| format!(" (${amount})")).unwrap_or_default();
    match seconds {
        Some(seconds) => format!("its instances were kept for {seconds} s after it ended{amount}"),
        None => format!(
            "the time for which its instances were kept is unknown: the full reservation for it counts as spent{amount}"
        ),
    }
}

/// A job is over and its trial waits for a further attempt.
pub(super) fn awaited(why: RetryWhy, not_before: i64, job: Option<&ExplainedJob>) -> String {
    let why = match why {
        RetryWhy::Capacity => "no capacity was available",
        RetryWhy::NextInstances => "no capacity was available, so the next attempt uses other instances",
        RetryWhy::Quota => "a quota of the account prevented the start",
        RetryWhy::OnDemand => "spot capacity failed, so the next attempt runs on demand",
        RetryWhy::MaxWait => "no spot capacity was available in time",
        RetryWhy::ServiceError => "the training service failed",
        RetryWhy::RuntimeCutTooShort => "its time limit had been cut too short",
    };
    let message = job.and_then(|job| job.failure_reason.as_deref());
    let message = message.map(|message| format!(" ({})", message.trim())).unwrap_or_default();
    let billed = job.map(billed).unwrap_or_default();
    format!("{why}{message}: retried not before {}{billed}", format_utc(not_before))
}

/// The trial is over.
pub(super) fn finished(how: &TrialEnd, job: Option<&ExplainedJob>) -> String {
    let how = match how {
        TrialEnd::Completed => "the trial is over: its program completed".to_owned(),
        TrialEnd::Stopped(StopWhy::Rung { rung }) => format!("the trial is over: stopped at rung {rung}"),
        TrialEnd::Stopped(StopWhy::PastLevel { .. }) => {
            "the trial is over: stopped beyond its rung's level".to_owned()
        }
        TrialEnd::Stopped(StopWhy::Interruptions { .. }) => {
            "the trial is over: its instances were interrupted too often".to_owned()
        }
        TrialEnd::Stopped(StopWhy::NextInstances | StopWhy::Quota) => {
            "the trial is over: its training job was cancelled because of a quota".to_owned()
        }
        TrialEnd::Stopped(StopWhy::MaxResource) => {
            "the trial is over: it trained for all its epochs".to_owned()
        }
        TrialEnd::Stopped(StopWhy::TuningEnding) => "the trial is over: the tuning ended".to_owned(),
        TrialEnd::Stopped(StopWhy::NoObjective { .. }) => {
            "the trial is over: stopped because it reported no objective value".to_owned()
        }
        TrialEnd::StoppedOutside => {
            "the trial is over: its training job was stopped outside the tuning".to_owned()
        }
        TrialEnd::MaxRuntime => "the trial is over: it reached its time limit".to_owned(),
        TrialEnd::Failed(message) => format!("the trial is over: it failed: {}", message.trim()),
        TrialEnd::NeverStarted => {
            "the trial is over: its training job was cancelled before it started".to_owned()
        }
    };
    let billed = job.map(billed).unwrap_or_default();
    format!("{how}{billed}")
}

fn billed(job: &ExplainedJob) -> String {
    let seconds = job.billable_seconds.map(|seconds| format!("; {seconds} s billed"));
    let cost = job.cost_usd.map(|cost| format!(", ${cost}"));
    format!("{}{}", seconds.unwrap_or_default(), cost.unwrap_or_default())
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
pub(super) fn late_at_rung(rung: RungId, epoch: u32, taken: u32) -> String {
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
    let Some(job) = &trial.job else {
        let at = trial.retry_at.unwrap_or(state.now);
        return format!("it waits for its next attempt, not before {}", format_utc(at));
    };
    if job.end.is_some() {
        return format!("its training job ended at epoch {epoch} and waits for its bill");
    }
    if job.stop.is_some() {
        return format!("it is at epoch {epoch} and is being stopped");
    }
    let plan = definition.plan();
    let bracket = plan.brackets().get(trial.bracket.index());
    let next = bracket.and_then(|bracket| bracket.rungs().get(trial.next_rung.index()));
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
