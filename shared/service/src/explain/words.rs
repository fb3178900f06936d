//! The sentences of an explanation. Pure text; numbers of the objective stay numbers in the entries.

use tuning::definition::{Definition, JobLimits, Objective};
use tuning::fact::JobKey;
use tuning::money::MicroUsd;
use tuning::ruling::{EndReason, RetryWhy, StopWhy, TrialEnd, Verdict};
use tuning::state::{State, Status, Trial};
use wire::events::timestamp::format_utc;
use wire::explain::{Compared, Comparison, EpochValue, ExplainedJob};

pub(super) const BILL_ORDERED: &str = "it has ended: its bill and the rest of its log are read";
pub(super) const RELEASED: &str = "its instances were kept: no training job will take them, or one lacks the money for it, so they are let go";
pub(super) const LOG_READ_ORDERED: &str = "it began anew: its stored log is read before the trial is compared, so that no lost line gives a wrong epoch";

/// Which way the objective is better.
pub(super) fn direction(objective: Objective) -> &'static str {
    match objective {
        Objective::Maximize => "Maximize",
        Objective::Minimize => "Minimize",
    }
}

/// Why there is an attempt.
pub(super) fn attempt(JobKey { rung, attempt, .. }: JobKey, retry: Option<RetryWhy>) -> String {
    match retry {
        None if rung > 0 => format!("attempt {attempt}: it was promoted to rung {rung}"),
        None if attempt <= 1 => "first attempt".to_owned(),
        None => format!("attempt {attempt}"),
        Some(why) => format!("attempt {attempt}: {}", retried(why)),
    }
}

fn retried(why: RetryWhy) -> &'static str {
    match why {
        RetryWhy::Capacity => "there was no capacity for the one before",
        RetryWhy::NextInstances => "there was no capacity for the one before, so it runs on other instances",
        RetryWhy::Quota => "a quota of the account kept the one before from starting",
        RetryWhy::OnDemand => "spot capacity failed the one before, so it runs on demand",
        RetryWhy::MaxWait => "no spot capacity came in time for the one before",
        RetryWhy::ServiceError => "the training service failed the one before",
        RetryWhy::RuntimeCutTooShort => "the running time of the one before had been cut too short",
    }
}

/// A training job was ordered.
pub(super) fn ordered(
    definition: &Definition,
    why: &str,
    limits: JobLimits,
    reservation: MicroUsd,
) -> String {
    let wait = limits.max_wait_seconds.map(|wait| format!(" (waiting for spot capacity included, {wait} s)"));
    let money = definition.job.rate.map(|_| format!("; ${reservation} reserved for its worst case"));
    format!(
        "a training job is ordered, {why}: at most {} s{}{}",
        limits.max_runtime_seconds,
        wait.unwrap_or_default(),
        money.unwrap_or_default()
    )
}

/// Its instances were taken away.
pub(super) fn interrupted(times: u32) -> String {
    format!("its instances were taken away (interruption {times})")
}

/// The rule of a rung with its numbers.
pub(super) fn rule(verdict: Verdict, is_number: bool) -> String {
    let Verdict { rank, seen, allowed, goes_on } = verdict;
    let place = rank.saturating_add(1);
    let fate = if goes_on { "so it went on" } else { "so it was stopped" };
    let go = if allowed == 1 { "goes" } else { "go" };
    let share = format!("rank {place} of {seen} that had arrived; best {allowed} of {seen} {go} on");
    if is_number {
        format!("{share}, {fate}")
    } else {
        format!("{share}, but never without a number, {fate}")
    }
}

/// The trial was compared at a rung.
pub(super) fn judged(compared: &Comparison) -> String {
    let Comparison { rung, level, epoch, rule, .. } = compared;
    let seen = match compared.compared {
        Compared::AtLevel => String::new(),
        Compared::Late => {
            format!(" (by its value of epoch {epoch}, the first that had come at or after the level)")
        }
        Compared::LastBeforeEnd => format!(" (by its last value, of epoch {epoch}: its program had ended)"),
    };
    format!("rung {rung} at epoch {level}{seen}: {rule}")
}

/// The rule by which a trial was promoted, with its numbers.
pub(super) fn promotion_rule(verdict: Verdict) -> String {
    let Verdict { rank, seen, allowed, .. } = verdict;
    let may = if allowed == 1 { "may" } else { "may all" };
    format!("rank {} of {seen} that have ended there; the best {allowed} {may} go on", rank.saturating_add(1))
}

/// The trial was promoted.
pub(super) fn promoted(compared: &Comparison, next: u32) -> String {
    format!("promoted from rung {} to train on to epoch {next}: {}", compared.rung, compared.rule)
}

/// A trial that waited was left out.
pub(super) fn left_out(compared: &Comparison) -> String {
    format!("the trial is over, it was not promoted from rung {}: {}", compared.rung, compared.rule)
}

/// The trial waits at its rung.
pub(super) fn waits(rung: u32, level: u32, resource: u32, job: Option<&ExplainedJob>) -> String {
    let by =
        if resource == level { String::new() } else { format!(" (its value is that of epoch {resource})") };
    let billed = job.map(billed).unwrap_or_default();
    format!("it has come to rung {rung} at epoch {level}{by}, and waits there to be promoted{billed}")
}

/// A job began with less than its trial had.
pub(super) fn repeated(had: u32, from: u32) -> String {
    format!(
        "it did not go on from the trial's checkpoint: it began at epoch {from} although the trial had {had}, and the \
         epochs between are paid again"
    )
}

/// A training job was ordered to stop, in a tuning of this status.
pub(super) fn stop(why: StopWhy, status: &Status) -> String {
    match why {
        StopWhy::Rung { rung } => {
            format!("it is ordered to stop: the trial was not among the best at rung {rung}")
        }
        StopWhy::MaxResource => "it is ordered to stop: the trial has all its epochs".to_owned(),
        StopWhy::PastLevel { level } => {
            format!("it is ordered to stop: it trains beyond the {level} epochs that it was told")
        }
        StopWhy::Interruptions { count } => {
            format!(
                "it is ordered to stop: its instances were taken away {count} times, it goes on on demand"
            )
        }
        StopWhy::NextInstances => {
            "it is called off: a quota keeps it from starting, and there are other instances to choose from"
                .to_owned()
        }
        StopWhy::Quota => {
            "it is called off: a quota of the account lets nothing start for long, and another job stays ordered to see when it \
             does"
                .to_owned()
        }
        StopWhy::NoObjective { seconds } => {
            format!(
                "it is ordered to stop: no value of the objective for {seconds} s, and none in its stored log"
            )
        }
        StopWhy::TuningEnding => {
            let why = match status {
                Status::Active => String::new(),
                Status::Ending(why) | Status::Ended { why, .. } => format!(" ({})", ending(why)),
            };
            format!("it is ordered to stop: the tuning ends{why}")
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

/// A silent job was ordered to be looked at.
pub(super) fn look(since: i64) -> String {
    format!("no value since {}: its stored log is read before it is ended for that", format_utc(since))
}

/// A bill never came.
pub(super) fn settled(definition: &Definition, amount: MicroUsd) -> String {
    let amount = definition.job.rate.map(|_| format!(" (${amount})")).unwrap_or_default();
    format!("its bill never came: all that was reserved for it counts as spent{amount}")
}

/// What keeping a job's instances cost.
pub(super) fn kept(definition: &Definition, seconds: Option<u64>, amount: MicroUsd) -> String {
    let amount = definition.job.rate.map(|_| format!(" (${amount})")).unwrap_or_default();
    match seconds {
        Some(seconds) => format!("its instances were kept for {seconds} s after its end{amount}"),
        None => format!(
            "nobody could tell how long its instances were kept: all that was reserved for it counts as spent{amount}"
        ),
    }
}

/// A job is over and its trial waits for a further attempt.
pub(super) fn awaited(why: RetryWhy, not_before: i64, job: Option<&ExplainedJob>) -> String {
    let why = match why {
        RetryWhy::Capacity => "there was no capacity",
        RetryWhy::NextInstances => "there was no capacity, and other instances to choose from",
        RetryWhy::Quota => "a quota of the account kept it from starting",
        RetryWhy::OnDemand => "spot capacity failed it, so it goes on on demand",
        RetryWhy::MaxWait => "no spot capacity came in time",
        RetryWhy::ServiceError => "the training service failed",
        RetryWhy::RuntimeCutTooShort => "its running time had been cut too short",
    };
    let message = job.and_then(|job| job.failure_reason.as_deref());
    let message = message.map(|message| format!(" ({})", message.trim())).unwrap_or_default();
    let billed = job.map(billed).unwrap_or_default();
    format!("{why}{message}: it is tried again, not before {}{billed}", format_utc(not_before))
}

/// The trial is over.
pub(super) fn finished(how: &TrialEnd, job: Option<&ExplainedJob>) -> String {
    let how = match how {
        TrialEnd::Completed => "the trial is over: its program ended well".to_owned(),
        TrialEnd::Stopped(StopWhy::Rung { rung }) => format!("the trial is over: stopped at rung {rung}"),
        TrialEnd::Stopped(StopWhy::PastLevel { .. }) => {
            "the trial is over: stopped beyond its rung's level".to_owned()
        }
        TrialEnd::Stopped(StopWhy::Interruptions { .. }) => {
            "the trial is over: its instances were taken away too often".to_owned()
        }
        TrialEnd::Stopped(StopWhy::NextInstances | StopWhy::Quota) => {
            "the trial is over: its training job was called off for a quota".to_owned()
        }
        TrialEnd::Stopped(StopWhy::MaxResource) => "the trial is over: it has all its epochs".to_owned(),
        TrialEnd::Stopped(StopWhy::TuningEnding) => "the trial is over: it ended with the tuning".to_owned(),
        TrialEnd::Stopped(StopWhy::NoObjective { .. }) => {
            "the trial is over: stopped for its silence".to_owned()
        }
        TrialEnd::StoppedOutside => "the trial is over: somebody else stopped its training job".to_owned(),
        TrialEnd::MaxRuntime => "the trial is over: it ran to its running-time limit".to_owned(),
        TrialEnd::Failed(message) => format!("the trial is over: it failed: {}", message.trim()),
        TrialEnd::NeverStarted => {
            "the trial is over: its training job was called off before it started".to_owned()
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

/// Values came after the trial was let go.
pub(super) fn late(values: &[EpochValue]) -> String {
    let epochs = || values.iter().filter_map(|value| value.epoch);
    match (epochs().min(), epochs().max()) {
        (Some(first), Some(last)) if first < last => format!(
            "the values of epochs {first} to {last} came after that decision: they count as seen, and change nothing of it"
        ),
        (Some(epoch), _) => {
            format!(
                "the value of epoch {epoch} came after that decision: it counts as seen, and changes nothing of it"
            )
        }
        (None, _) => after_the_end(values.len()),
    }
}

/// A value came below the epoch that a rung had taken in its place.
pub(super) fn late_at_rung(rung: u32, epoch: u32, taken: u32) -> String {
    format!(
        "the value of epoch {epoch} came after rung {rung} had compared that of epoch {taken}, and changes nothing there"
    )
}

/// Lines came after the trial was over.
pub(super) fn after_the_end(count: usize) -> String {
    let lines = if count == 1 { "a value".to_owned() } else { format!("{count} values") };
    format!("{lines} came after the trial was over, and changed nothing")
}

/// How a trial that is not over stands.
pub(super) fn standing(definition: &Definition, state: &State, trial: &Trial) -> String {
    let epoch = trial.resource();
    let Some(job) = &trial.job else {
        let at = trial.retry_at.unwrap_or(state.now);
        return format!("it waits for a further attempt, not before {}", format_utc(at));
    };
    if job.end.is_some() {
        return format!("its training job has ended at epoch {epoch}; its bill is awaited");
    }
    if job.stop.is_some() {
        return format!("it is at epoch {epoch} and is being stopped");
    }
    let plan = definition.plan();
    let index = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let bracket = plan.brackets().get(index(trial.bracket));
    let next = bracket.and_then(|bracket| bracket.rungs().get(index(trial.next_rung)));
    match next {
        Some(rung) if rung.resource < plan.max_resource() => {
            format!("it is at epoch {epoch}; it is compared next at epoch {}", rung.resource)
        }
        Some(_) | None if plan.max_resource() < u32::MAX => {
            format!("it is at epoch {epoch} of {}; it is compared no more", plan.max_resource())
        }
        Some(_) | None => format!("it is at epoch {epoch}"),
    }
}
