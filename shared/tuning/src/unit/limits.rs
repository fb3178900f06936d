//! Every bound of the decider, each with its reason.

use crate::unit::money::MicroUsd;
use crate::unit::time::Millis;

/// Maximum of rulings in one step: the step, the head, and the rows of ordered actions and concluded jobs must fit one
/// transaction of 100 writes. The next step makes the rulings that are left.
pub const MAX_RULINGS_PER_STEP: usize = 80;

/// Maximum of facts in one step: keeps a step far below the maximum row size.
pub const MAX_FACTS_PER_STEP: usize = 64;

/// Maximum of metric lines in one fact; a larger log batch becomes several facts.
pub const MAX_LINES_PER_FACT: usize = 500;

/// Maximum of bills in one fact that confirms them; more bills become several facts.
pub const MAX_BILLS_PER_FACT: usize = 100;
/// Maximum metrics of a training job, as in `MetricDefinitions` of SageMaker.
pub const MAX_METRICS: usize = 40;

/// Maximum length of a kept failure message, in characters (AMT allows 1,024 in `FailureReason`).
pub const MAX_MESSAGE_CHARS: usize = 1_000;

/// Maximum length of a cause of failures, in characters: one line of a message.
pub const MAX_CAUSE_CHARS: usize = 200;

/// The causes of failures that a state keeps: with more, no cause stands out.
pub const MAX_CAUSES: usize = 5;

/// Maximum of training jobs of one tuning (AMT's limit for random search).
pub const MAX_TRAINING_JOBS: u32 = 10_000;

/// Maximum of training jobs that run at once; AMT has 100. The state of a running job has a few kilobytes.
pub const MAX_PARALLEL_JOBS: u32 = 1_000;

/// Seconds that SageMaker gives a stopped container before it kills it; they are billed.
pub const STOP_GRACE_SECONDS: u64 = 120;

/// The time that a reservation contains for what is billed before a job's limit counts: the download of data and image.
/// Less than an interval of the sweep would end jobs before their own limits.
pub const STARTUP_ALLOWANCE_SECONDS: u64 = 60;

/// The time that a reservation contains for the upload of the model, which is billed too and has no limit. 120 s upload
/// some gigabytes.
pub const UPLOAD_ALLOWANCE_SECONDS: u64 = 120;

/// The decider's clock advances once in this time, so an order may come so much late.
pub const SWEEP_INTERVAL_SECONDS: u64 = 60;

/// A job past its reservation reserves at least so many seconds more: it is seen again within three minutes ...
pub const EXTENSION_SECONDS: u64 = 240;

/// ... or the time that it is billed so far, divided by this number: an upload of a day needs about a hundred extensions.
pub const EXTENSION_DIVISOR: u64 = 20;

/// Allowance for instances that are kept, and billed, longer than requested.
pub const POOL_ALLOWANCE_SECONDS: u64 = 60;

/// The longest that a spot job may wait for capacity beyond its running time, unless the user allows less. A job waits as
/// long as it may run: a longer wait of a short job would reserve more than the job costs.
pub const SPOT_WAIT_ALLOWANCE_SECONDS: u64 = 900;

/// The least such wait: the service needs a minute or two to launch instances.
pub const SPOT_WAIT_LEAST_SECONDS: u64 = 120;

/// Jobs that must have been timed before a silence counts by the time of an epoch, and before a tail can be too long.
pub const TIMED_JOBS_NEEDED: usize = 5;

/// Concluded jobs after which the times of running jobs add nothing.
pub const TIMED_JOBS_ENOUGH: usize = 20;

/// A trial that was timed itself is known as well as by so many timed jobs.
pub const TIMED_JOBS_OWN: usize = 20;

/// The usual time of an epoch or a start-up is this percentile of the timed jobs. A higher one depends on the slowest
/// configuration alone while few jobs were timed.
pub const USUAL_PERCENTILE: u32 = 80;

/// A running-time limit is so many percent of the usual time of a job ...
pub const MARGIN_PERCENT: u32 = 130;

/// ... and so many more, divided by the number of timed jobs.
pub const MARGIN_PERCENT_FEW: u32 = 150;

/// Where money is short, a running-time limit has at least so many percent of the usual time ...
pub const LEAST_PERCENT: u32 = 115;

/// ... and so many more, divided by the number of timed jobs.
pub const LEAST_PERCENT_FEW: u32 = 75;

/// The share of its epochs that the least limit covers, in percent, if a job may be stopped at a rung. Few jobs train
/// longer, and those continue under a longer limit.
pub const LEAST_EPOCHS_PERCENT: u32 = 70;

/// The number of latest timings kept; more would hardly change their percentiles.
pub const TIMINGS_KEPT: usize = 100;

/// The smallest running-time limit sent, unless the user's is smaller. SageMaker was seen to end a job with a limit of 60 s
/// after 350 s, and a shorter limit saves little beside the time for the stop and the upload.
pub const MIN_RUNTIME_SECONDS: u64 = 120;

/// A job may take so many times the longest known tail from its last epoch to its end: a larger model takes longer to
/// evaluate and to export ...
pub const TAIL_FACTOR: u32 = 3;

/// ... and at least this long.
pub const LAST_EPOCH_GRACE: Millis = Millis::from_seconds(120);

/// After how many epochs in a row without a finite value a trial is stopped, unless the user sets it: one can be a glitch of
/// the metric.
pub const MAX_DIVERGED_EPOCHS: u32 = 3;

/// The most that a bill above its reservation adds to other reservations, so that an absurd bill overflows no sum.
pub const MAX_MARGIN: MicroUsd = MicroUsd(1_000_000_000_000_000);

/// A trial whose limit was cut too short is tried again with so many times that limit, at most the user's.
pub const CUT_LIMIT_FACTOR: u64 = 2;

/// A job whose bill is missing for this long is settled at its whole reservation.
pub const SETTLE_DEADLINE: Millis = Millis::from_seconds(3_600);

/// A bill usually comes within this time after its order.
pub const BILL_USUAL: Millis = Millis::from_seconds(60);

/// The first wait before a retry after a lack of capacity or a failure of the service; doubles with each retry.
pub const RETRY_BACKOFF: Millis = Millis::from_seconds(30);

/// The longest such wait: unbounded doubling would make a tuning with many retries wait for months.
pub const RETRY_BACKOFF_MAX: Millis = Millis::from_seconds(3_600);

/// How long instances without capacity are not requested again, if there are other choices.
pub const CAPACITY_MEMORY: Millis = Millis::from_seconds(600);

/// New trials wait after so many trials that ended before any trial logged the objective. A tuning whose program cannot
/// succeed launches at most five jobs more than run at once. With 60 % failing configurations, fewer than 5 % of the
/// sequences of six trials fail.
pub const MAX_TRIALS_WITHOUT_LINE: u32 = 6;

/// New trials wait after so many trials in a row that ended without a finite value, although the program has logged the
/// objective. With 60 % failing configurations, one in 27,000 such sequences fails.
pub const MAX_TRIALS_WITHOUT_VALUE: u32 = 20;

/// New trials wait after so many refused starts in a row.
pub const MAX_REFUSALS: u32 = 5;

/// A step of this size takes no further fact: one more fact (500 lines) still fits the row.
pub const STEP_FACT_BYTES: usize = 110_000;

/// A step of this size, facts included, takes no further ruling; the next step makes the rest.
pub const STEP_BYTES: usize = 250_000;

/// A ruling that would make a step larger than this goes into the next step: the largest configurations take 100 KB.
pub const STEP_BYTES_MAX: usize = 300_000;

/// The rows of actions and jobs that a step writes beside itself have at most this size: a transaction has 4 MB.
pub const STEP_ROWS_BYTES: usize = 3_500_000;

/// The number of curve points kept in a summary.
pub const CURVE_POINTS_KEPT: usize = 200;

/// The number of points kept of the front of value against cost. A request has at most 30 cluster sizes.
pub const FRONT_POINTS_MAX: usize = 32;

/// The levels of a cap for which a notice is published, in percent; the last means that no further job fits.
pub const CAP_LEVELS: [u32; 3] = [50, 80, 100];

/// The least silence after which a job is stopped, once epochs were timed, unless the user sets another.
pub const MIN_SILENCE: Millis = Millis::from_seconds(600);

/// Like [`MIN_SILENCE`], but before any epoch was timed; half of the running-time limit if that is longer.
pub const MIN_SILENCE_UNTIMED: Millis = Millis::from_seconds(1_800);

/// A job is stopped after a silence of this many times the usual time of an epoch.
pub const SILENCE_EPOCHS: u32 = 10;

/// The month's cap is asked again this long after a denial, since other tunings return money.
pub const GRANT_RETRY: Millis = Millis::from_seconds(300);

/// A tuning without running jobs ends after this time without a grant.
pub const GRANT_WAIT_MAX: Millis = Millis::from_seconds(3_600);

/// A tuning that can start nothing for this long returns its unused money and keeps only one job ordered.
pub const IDLE: Millis = Millis::from_seconds(600);

/// A tuning without running jobs fails after this wait for a quota: longer than most jobs that use the quota up.
pub const QUOTA_WAIT_MAX: Millis = Millis::from_seconds(86_400);

/// Lines kept over all running trials where the epoch is the rank of a line (about 25 MB of state). There,
/// `MaxResource` times the number of parallel jobs must not exceed it.
pub const MAX_RANKED_LINES: usize = 200_000;

/// Epochs remembered per trial that lines without a value began, and lines that wait for such a line. Deliveries overtake
/// each other by a few lines only.
pub const MAX_BEGUN_EPOCHS: usize = 16;

/// Log streams remembered per trial; a job that restarts more often has other problems.
pub const MAX_STREAMS_PER_TRIAL: usize = 64;
