//! Every bound of the decider, each with its reason.

/// Most rulings in one step: a step, the head, the rows of ordered actions and of concluded jobs must fit one
/// transaction of 100 writes. What is left stays owed in the state and is taken up by the next step.
pub const MAX_RULINGS_PER_STEP: usize = 80;

/// Most facts in one step, so that a step stays far below the largest row.
pub const MAX_FACTS_PER_STEP: usize = 64;

/// Most metric lines in one fact (a log batch is cut into several facts above it).
pub const MAX_LINES_PER_FACT: usize = 500;

/// Longest failure message kept, in characters (AMT's `FailureReason` is at most 1,024).
pub const MAX_MESSAGE_CHARS: usize = 1_000;

/// Most training jobs of one tuning (AMT's limit for random search).
pub const MAX_TRAINING_JOBS: u32 = 10_000;

/// Most training jobs at once (AMT's highest quota).
pub const MAX_PARALLEL_JOBS: u32 = 100;

/// SageMaker gives a stopped container so many seconds before it is killed; they are billed.
pub const STOP_GRACE_SECONDS: u64 = 120;

/// Allowance for uploading the model after the end, which is billed too.
pub const UPLOAD_ALLOWANCE_SECONDS: u64 = 180;

/// Instances may be kept, and billed, so much longer than asked for.
pub const POOL_ALLOWANCE_SECONDS: u64 = 60;

/// What a spot job may wait for capacity beyond its running time, unless the user allows less.
pub const SPOT_WAIT_ALLOWANCE_SECONDS: u64 = 900;

/// Jobs whose epochs must have been timed before the running time sent is cut below the user's limit.
pub const TIMED_JOBS_NEEDED: usize = 5;

/// Timings kept (the latest); more would not change the 95th percentile much.
pub const TIMINGS_KEPT: usize = 100;

/// Least running time ever sent, in seconds: below it a slow image or data set would end every job.
pub const MIN_RUNTIME_SECONDS: u64 = 120;

/// A finished job whose bill is missing for so long is settled at its whole reservation.
pub const SETTLE_DEADLINE_MS: i64 = 3_600_000;

/// A bill usually comes within this time after it was ordered.
pub const BILL_USUAL_MS: i64 = 60_000;

/// First wait before another attempt after a lack of capacity; doubles with each attempt.
pub const RETRY_BACKOFF_MS: i64 = 30_000;

/// Longest such wait: doubling without a bound would keep a tuning with many attempts waiting for months.
pub const RETRY_BACKOFF_MAX_MS: i64 = 3_600_000;

/// Instances for which there was no capacity are not asked for again for so long, if there are others to choose from.
pub const CAPACITY_MEMORY_MS: i64 = 600_000;

/// Trials that end without an objective value, none ever having had one, before the tuning is given up.
pub const FRUITLESS_TRIALS_MAX: u32 = 5;

/// No further fact is taken into a step that holds so many bytes: one fact more (500 lines) still fits the row.
pub const STEP_FACT_BYTES: usize = 110_000;

/// No further ruling is made in a step that holds so many bytes, facts included; the rest is owed.
pub const STEP_BYTES: usize = 250_000;

/// Nor one that would make it larger than this, unless it is alone: the largest configurations take 100 KB.
pub const STEP_BYTES_MAX: usize = 300_000;

/// A notice is given of these shares of a cap, in percent; the last one means that no further job fits.
pub const CAP_LEVELS: [u32; 3] = [50, 80, 100];

/// Least silence after which a job is ended when the time is not the user's own, once epochs were timed.
pub const MIN_SILENCE_MS: i64 = 600_000;

/// The same before any was timed; half of the running-time limit if that is more.
pub const MIN_SILENCE_UNTIMED_MS: i64 = 1_800_000;

/// A job that has been silent for so many times the usual time of an epoch is ended.
pub const SILENCE_EPOCHS: u64 = 10;

/// The month's cap had nothing left: it is asked again after this time, since other tunings give back what they do not
/// need.
pub const GRANT_RETRY_MS: i64 = 300_000;

/// After this time without a grant, a tuning of which nothing runs ends.
pub const GRANT_PATIENCE_MS: i64 = 3_600_000;

/// A tuning that can start nothing for so long gives back what it does not use, and keeps one job ordered.
pub const IDLE_MS: i64 = 600_000;

/// A tuning of which nothing runs waits so long for a quota of the account: longer than most jobs of others that use it up.
pub const QUOTA_PATIENCE_MS: i64 = 86_400_000;

/// Lines kept over all running trials where the epoch is a line's rank (about 25 MB of state); there, `MaxResource` times
/// the jobs at once must not be above it.
pub const MAX_RANKED_LINES: usize = 200_000;

/// Log streams remembered per trial; a job restarted more often than this has other problems.
pub const MAX_STREAMS_PER_TRIAL: usize = 64;
