//! Short builders of definitions and facts. Times are in seconds after submission.

use search::{Domain, Parameter, Scaling, Space};
use tuning::definition::{
    Definition, EpochRule, JobShape, Limits, RungExecution, Scheduling, Settings, Silence, Strategy,
};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::unit::epochs::Epochs;
pub(crate) use tuning::unit::ids::{BracketId, ChoiceId, CohortId, Place, RungId, TrialId};
use tuning::unit::money::{MicroUsd, Rate};
use tuning::unit::time::{Millis, Time};

/// The submission time of every tuning in the tests, in ms since the epoch.
pub(crate) const CREATED: Time = Time(1_700_000_000_000);

/// The price of a job per second, in micro-dollars.
pub(crate) const SECOND: u64 = 100;

/// The reservation of a job in the tests: an hour, the stop grace and the upload, in micro-dollars.
pub(crate) const WORST_CASE: u64 = (3_600 + 120 + 180) * SECOND;

/// Returns a definition with rungs at 1, 3 and 9 epochs, three brackets, four parallel jobs, no cap, and epochs
/// captured from 1.
pub(crate) fn hyperband() -> Definition {
    let parameter = |name: &str, domain| Parameter { name: name.to_owned(), domain };
    let rate = Domain::Continuous { min: 0.001, max: 1.0, scaling: Scaling::Logarithmic };
    let depth = Domain::Integer { min: 1, max: 8, scaling: Scaling::Linear };
    let space = Space::new(vec![parameter("rate", rate), parameter("depth", depth)]).unwrap();
    let rate = Rate { instance_hour: SECOND * 3_600, volume_kilo_gib_hour: 0 };
    let (limits, job) = (Limits::new(100, 4), JobShape::new(Some(rate), 3_600));
    Definition {
        seed: 7,
        strategy: comparing(1, 9, 3),
        settings: Settings { max_diverged_epochs: 0, ..Settings::default() },
        ..Definition::new(("tuning", "abc123"), CREATED, space, limits, job)
    }
}

/// Returns a definition with other settings.
pub(crate) fn set(mut definition: Definition, set: impl FnOnce(&mut Settings)) -> Definition {
    set(&mut definition.settings);
    definition
}

/// Returns Hyperband that stops running trials, with these resources and reduction factor.
pub(crate) fn comparing(min_resource: u32, max_resource: u32, eta: u32) -> Strategy {
    Strategy::hyperband(Epochs(min_resource), Epochs(max_resource), eta, RungExecution::Stop).unwrap()
}

/// Returns a rung of a round of a bracket.
pub(crate) fn place(bracket: u32, round: u32, rung: u32) -> Place {
    Place { cohort: cohort(bracket, round), rung: RungId(rung) }
}

/// Returns the key of a round of a bracket.
pub(crate) fn cohort(bracket: u32, round: u32) -> CohortId {
    CohortId { bracket: BracketId(bracket), round }
}

/// Like [`hyperband`], with these limits of all jobs and of parallel jobs.
pub(crate) fn jobs(max_jobs: u32, max_parallel: u32) -> Definition {
    let mut definition = hyperband();
    definition.limits.max_jobs = max_jobs;
    definition.limits.max_parallel = max_parallel;
    definition
}

/// Changes the definition to promotion: the best trials of a rung get a new job for the next rung.
pub(crate) fn promoting(definition: Definition, scheduling: Scheduling) -> Definition {
    let strategy = match definition.strategy {
        Strategy::Hyperband { plan, .. } => {
            Strategy::Hyperband { plan, rungs: RungExecution::Promote(scheduling) }
        }
        other @ (Strategy::Independent | Strategy::Median) => other,
    };
    Definition { strategy, ..definition }
}

/// Like [`jobs`], without early stopping.
pub(crate) fn random(max_jobs: u32, max_parallel: u32) -> Definition {
    Definition { strategy: Strategy::Independent, ..jobs(max_jobs, max_parallel) }
}

/// Like [`random`], where the median rule stops trials.
pub(crate) fn median(max_jobs: u32, max_parallel: u32) -> Definition {
    Definition { strategy: Strategy::Median, ..jobs(max_jobs, max_parallel) }
}

/// Changes the definition to grants from a month's cap.
pub(crate) fn granting(definition: Definition) -> Definition {
    Definition { grants: true, ..definition }
}

/// Changes the definition to stop jobs after this many seconds of silence.
pub(crate) fn silent_for(definition: Definition, seconds: u64) -> Definition {
    Definition { silence: Silence::After(seconds), ..definition }
}

/// Changes the cap to the cost of `worst_cases` whole jobs.
pub(crate) fn capped(definition: Definition, worst_cases: u64) -> Definition {
    Definition { cap: Some(MicroUsd(worst_cases * WORST_CASE)), ..definition }
}

/// Changes the definition to epochs that are ranks of lines.
pub(crate) fn ranked(definition: Definition) -> Definition {
    Definition {
        epochs: EpochRule { captured: false, base: 1, per_attempt: true, is_base_assumed: false },
        ..definition
    }
}

/// Returns the key of the first attempt of `trial`.
pub(crate) fn job(trial: u32) -> JobKey {
    attempt(trial, 1)
}

/// Returns the key of an attempt of `trial` at a rung.
pub(crate) fn at_rung(trial: u32, rung: u32, attempt: u32) -> JobKey {
    JobKey { trial: TrialId(trial), rung: RungId(rung), attempt }
}

/// Returns the key of an attempt of `trial`.
pub(crate) fn attempt(trial: u32, attempt: u32) -> JobKey {
    at_rung(trial, 0, attempt)
}

/// Returns the time `seconds` after submission, in ms since the epoch.
pub(crate) fn at(seconds: i64) -> Time {
    CREATED + Millis(seconds * 1_000)
}

/// Returns `fact` at `seconds`, with a natural key.
pub(crate) fn recorded(seconds: i64, fact: Fact) -> Recorded {
    let job = fact.job().map_or_else(|| "tuning".to_owned(), |job| job.to_string());
    Recorded { key: format!("{job}#{seconds}"), at: at(seconds), fact }
}

pub(crate) fn submitted() -> Recorded {
    recorded(0, Fact::TuningSubmitted)
}

pub(crate) fn stop_requested(seconds: i64) -> Recorded {
    recorded(seconds, Fact::StopRequested)
}

/// Returns a request that pauses the starts or continues them.
pub(crate) fn paused(seconds: i64, paused: bool) -> Recorded {
    recorded(seconds, Fact::LimitsChanged { cap: None, max_parallel: None, paused: Some(paused) })
}

pub(crate) fn time_passed(seconds: i64) -> Recorded {
    recorded(seconds, Fact::TimePassed)
}

pub(crate) fn granted(seconds: i64, n: u32, jobs: u64) -> Recorded {
    granted_amount(seconds, n, jobs * WORST_CASE)
}

pub(crate) fn granted_amount(seconds: i64, n: u32, amount: u64) -> Recorded {
    let (month, amount) = ("2026-11".to_owned(), MicroUsd(amount));
    recorded(seconds, Fact::BudgetGranted { n, month, amount, reached: None })
}

pub(crate) fn returned(seconds: i64, n: u32) -> Recorded {
    recorded(seconds, Fact::GrantReturned { n })
}

pub(crate) fn silence_seen(seconds: i64, job: JobKey, since: i64) -> Recorded {
    recorded(seconds, Fact::SilenceSeen { job, since: at(since) })
}

pub(crate) fn started(seconds: i64, job: JobKey) -> Recorded {
    recorded(seconds, Fact::JobStarted { job })
}

/// Returns the fact that the sweeper found the job at the service.
pub(crate) fn seen(seconds: i64, job: JobKey) -> Recorded {
    recorded(seconds, Fact::JobSeen { job })
}

pub(crate) fn refused(seconds: i64, job: JobKey) -> Recorded {
    recorded(seconds, Fact::StartRefused { job, message: "no such role".to_owned(), name_is_foreign: false })
}

pub(crate) fn never_started(seconds: i64, job: JobKey) -> Recorded {
    recorded(seconds, Fact::JobNeverStarted { job })
}

pub(crate) fn stop_accepted(seconds: i64, job: JobKey) -> Recorded {
    recorded(seconds, Fact::StopAccepted { job })
}

pub(crate) fn deferred(seconds: i64, job: JobKey, until: i64) -> Recorded {
    recorded(
        seconds,
        Fact::ActionDeferred {
            job,
            not_before: at(until),
            reason: "throttled".to_owned(),
            quota_exceeded: false,
        },
    )
}

pub(crate) fn phase(seconds: i64, job: JobKey, phase: JobPhase) -> Recorded {
    recorded(seconds, Fact::JobStateChanged { job, phase, started: None, ended: None, message: None })
}

/// Returns the end of a job as in its event, without a bill.
pub(crate) fn ended(seconds: i64, job: JobKey, end: JobEnd) -> Recorded {
    phase(seconds, job, JobPhase::Ended(end))
}

/// Returns the end of a job with its bill.
pub(crate) fn described(seconds: i64, job: JobKey, end: JobEnd, billable_seconds: u64) -> Recorded {
    let message = (end == JobEnd::AlgorithmError).then(|| "exit code 1".to_owned());
    let fact = Fact::JobDescribed {
        job,
        end,
        started: None,
        ended: Some(at(seconds)),
        billable_seconds,
        message,
        interruptions: 0,
    };
    recorded(seconds, fact)
}

/// Returns a line with a captured epoch.
pub(crate) fn line(seconds: i64, id: &str, index: u64, value: f64) -> MetricLine {
    MetricLine { id: id.to_owned(), at: at(seconds), index: Some(index), value: Some(value) }
}

/// Returns lines of a stream.
pub(crate) fn lines(seconds: i64, job: JobKey, stream: &str, lines: Vec<MetricLine>) -> Recorded {
    recorded(seconds, Fact::MetricsLogged { job, stream: stream.to_owned(), lines, began: None })
}

/// Returns one line with a captured epoch.
pub(crate) fn logged(seconds: i64, job: JobKey, epoch: u64, value: f64) -> Recorded {
    lines(seconds, job, "algo-1", vec![line(seconds, &format!("e{epoch:05}"), epoch, value)])
}

/// Returns one line whose value is not a number.
pub(crate) fn logged_nan(seconds: i64, job: JobKey, epoch: u64) -> Recorded {
    let line = MetricLine { value: None, ..line(seconds, &format!("e{epoch:05}"), epoch, 0.0) };
    lines(seconds, job, "algo-1", vec![line])
}
