//! The training service: the contract of SageMaker in virtual time.
//!
//! A name can be used only once. A stop is accepted at once and takes effect later. `describe` can show an earlier
//! state. The bill is known only after the end, possibly hours later. It exceeds the reservation (start-up, running
//! time, grace period, upload) only if the fault `BillAboveReservation`, `UploadLong`, `DownloadLong` or `LimitLate`
//! strikes.

use std::collections::BTreeMap;

use serde_json::Value;
use tuning::log::fact::JobKey;
use tuning::unit::ids::ChoiceId;
use tuning::unit::time::Time;
use use_cases::ports::training::{Description, Listed, LogLine, Paged, TrainingJobsError};
use wire::names::parse_training_job_name;

use super::World;
use super::fate::Fate;
use super::program::{Program, epoch_limit};
use super::queue::{Event, Tick};
use super::rates::Rates;
use crate::case::SCALED;
use crate::dice::Dice;
use crate::fault::Kind;
use crate::site::{Function, Op, Site};

/// Number of lines on a page of a log.
const PAGE_LINES: usize = 20;
/// Longest time after which a late create takes effect, in ms, including clock skew. An actuator considers a job lost
/// a minute after the claim under which it was created.
const LATE_MS_MAX: i64 = 50_000;
/// Shortest time between two creates of the account, in ms.
const CREATE_EVERY_MS: i64 = 1_000;
/// Number of jobs on a page of a listing.
const PAGE_JOBS: usize = 4;

/// All training jobs of the history.
#[derive(Debug, Default)]
pub(crate) struct Training {
    pub(crate) jobs: Vec<Job>,
    by_name: BTreeMap<String, usize>,
    /// Number of jobs that have not ended.
    pub(crate) alive: usize,
    /// Epochs of saved checkpoints, oldest first, by prefix.
    pub(crate) checkpoints: BTreeMap<String, Vec<u32>>,
    /// Time of the last create, in ms.
    created_at: i64,
    pub(super) rates: Rates,
    /// Kept instances, by the index of their job.
    pub(super) kept: BTreeMap<usize, Kept>,
    /// End of a capacity shortage, in ms, by tuning, choice of instances, and whether it is on spot.
    pub(crate) short_until: BTreeMap<(usize, ChoiceId, bool), i64>,
    /// Billed seconds that running processes have read: the process, the index of the job, and the seconds.
    readings: Vec<(u64, usize, u64)>,
}

/// The owner of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A tuning of this stack.
    Ours,
    /// This stack, but without a row in the table.
    Orphan,
    /// Another stack.
    Foreign,
}

/// A training job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) owner: Owner,
    pub(crate) key: JobKey,
    pub(crate) case: usize,
    /// Choice of instances on which it runs.
    pub(crate) choice: ChoiceId,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) max_runtime_ms: i64,
    pub(crate) max_wait_ms: Option<i64>,
    /// How much longer its reservation pays for, in seconds.
    pub(crate) beyond_seconds: i64,
    /// How long it may wait for its instances, in ms, if the request has a limit.
    pub(crate) max_pending_ms: Option<i64>,
    /// How long it waits for its instances besides its startup, in ms.
    pub(crate) pended_ms: i64,
    /// How long its instances are kept afterwards, in ms.
    pub(crate) keep_ms: i64,
    pub(crate) program: Program,
    pub(crate) fate: Fate,
    pub(crate) dice: Dice,
    /// Its current description.
    pub(crate) now: Description,
    /// Its descriptions so far, with the time (ms) of each.
    pub(crate) history: Vec<(i64, Description)>,
    pub(crate) transitions: Vec<(String, i64)>,
    /// Events of an earlier generation are void.
    pub(crate) generation: u32,
    /// Running time before the current run, in ms.
    pub(crate) ran_ms: i64,
    /// Start of the current run, in ms.
    pub(crate) runs_since: Option<i64>,
    pub(crate) epoch: u32,
    pub(crate) checkpoint: u32,
    /// Epoch of the checkpoint from which the current run continued.
    pub(crate) from: u32,
    /// Prefix of its checkpoints.
    pub(crate) checkpoints_at: String,
    /// Epoch limit in its hyperparameters.
    pub(crate) epoch_limit: Option<u32>,
    /// The hyperparameter that is multiplied by the number of instances, as it was sent.
    pub(crate) scaled: Option<u32>,
    /// The first and the last epoch for which it logged a value, in all its runs.
    pub(crate) logged: Option<(u32, u32)>,
    /// When it first logged a value for its last epoch so far, in ms.
    pub(crate) furthest_at: i64,
    pub(crate) streams: Vec<LogStream>,
    /// Whether the controller asked to stop it.
    pub(crate) stop_asked: bool,
    /// Time before which only creates see it, in ms.
    pub(crate) visible_at: i64,
    /// Whether it was deleted, so that no call finds it.
    pub(crate) deleted: bool,
    /// Time before which its bill is not shown, in ms.
    pub(crate) bill_at: i64,
    /// The billed seconds that it shows at first, and the time in ms at which the bill rises.
    pub(crate) first_bill: Option<(u64, i64)>,
    /// The highest billed seconds that a description showed to a process that ended well.
    pub(crate) shown_seconds: Option<u64>,
    /// Whether its bill exceeds its worst case.
    pub(crate) overran: bool,
}

/// The instances kept after one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(super) since: i64,
    /// End of the keeping, in ms.
    pub(super) until: i64,
    /// The job that took them.
    pub(super) taken_by: Option<usize>,
}

/// A log stream.
#[derive(Debug)]
pub(crate) struct LogStream {
    pub(crate) name: String,
    pub(crate) lines: Vec<LogLine>,
    /// Number of lines sent to the subscription.
    pub(crate) sent: usize,
    pub(crate) flush_due: bool,
}

impl Job {
    /// Returns a job that is created at `now` (ms).
    pub(crate) fn new(
        name: &str,
        key: JobKey,
        tag_list: &Value,
        program: Program,
        fate: Fate,
        now: i64,
    ) -> Self {
        Self {
            id: String::new(),
            owner: Owner::Ours,
            key,
            case: 0,
            choice: ChoiceId(0),
            tags: tags(tag_list),
            max_runtime_ms: 0,
            max_wait_ms: None,
            beyond_seconds: 0,
            max_pending_ms: None,
            pended_ms: 0,
            keep_ms: 0,
            program,
            fate,
            dice: Dice::new(0, name, 0),
            now: description(name, now),
            history: Vec::new(),
            transitions: Vec::new(),
            generation: 0,
            ran_ms: 0,
            runs_since: None,
            epoch: 0,
            checkpoint: 0,
            from: 0,
            checkpoints_at: String::new(),
            epoch_limit: None,
            scaled: None,
            logged: None,
            furthest_at: 0,
            streams: Vec::new(),
            stop_asked: false,
            visible_at: now,
            deleted: false,
            bill_at: 0,
            first_bill: None,
            shown_seconds: None,
            overran: false,
        }
    }

    /// Returns whether it runs on spot instances.
    pub(crate) fn is_spot(&self) -> bool {
        self.max_wait_ms.is_some()
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.now.status.as_str(), "Completed" | "Failed" | "Stopped")
    }

    /// Returns the billable seconds that its reservation pays for.
    pub(crate) fn worst_seconds(&self) -> i64 {
        self.max_wait_ms.unwrap_or(self.max_runtime_ms) / 1_000 + self.beyond_seconds
    }

    /// Returns the billable seconds, or those of the worst case while they are unknown. A rise after the first bill does
    /// not count: no decision can know it before.
    pub(crate) fn charged_seconds(&self) -> i64 {
        let first = self.first_bill.map(|(seconds, _)| seconds);
        match (self.is_ended(), first.or(self.now.billable_seconds)) {
            (true, Some(seconds)) => i64::try_from(seconds).unwrap_or(i64::MAX),
            (true, None) if self.now.started.is_none() => 0,
            _ => self.worst_seconds(),
        }
    }
}

impl Training {
    /// Returns the index of a job that is visible at `now` (ms).
    pub(super) fn find(&self, name: &str, now: i64) -> Result<usize, TrainingJobsError> {
        let index = self.by_name.get(name).copied();
        let visible = |index: &usize| {
            let job = &self.jobs[*index];
            job.visible_at <= now && !job.deleted
        };
        index.filter(visible).ok_or_else(|| TrainingJobsError::NotFound(name.to_owned()))
    }

    /// Adds a job and returns its index.
    pub(crate) fn enter(&mut self, job: Job) -> usize {
        let index = self.jobs.len();
        self.by_name.insert(job.now.name.clone(), index);
        self.alive += 1;
        self.jobs.push(job);
        index
    }

    pub(crate) fn of(&self, id: &str) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(move |job| job.id == id)
    }
}

impl World {
    /// Draws whether a create that is sent now takes effect late. Returns the time until its caller times out, in ms,
    /// and whether the caller crashes then.
    pub(crate) fn create_late(&mut self, request: &Value) -> Option<(i64, bool)> {
        let site = self.site_of(Op::Create);
        if !self.faults.strikes_at(Kind::CreateLate, site) {
            return None;
        }
        let longest = LATE_MS_MAX - 2 * self.plan.skew_ms_max;
        let at = self.now + self.dice.between(1_000, longest);
        self.queue.push(at, Event::CreateLands(self.function, request.clone()));
        Some((self.dice.between(100, 20_000), self.dice.chance(0.5)))
    }

    /// Returns a job of `case` that has not ended, if there is one. The time decides which, not a draw.
    pub(crate) fn running_job(&self, case: usize) -> Option<JobKey> {
        let is_running = |job: &&Job| job.owner == Owner::Ours && job.case == case && job.now.ended.is_none();
        let running: Vec<JobKey> = self.training.jobs.iter().filter(is_running).map(|job| job.key).collect();
        let count = i64::try_from(running.len()).ok().filter(|count| *count > 0)?;
        running.get(usize::try_from(self.now.rem_euclid(count)).ok()?).copied()
    }

    /// Performs a late create. Its caller has timed out or crashed and does not see the result.
    pub(crate) fn create_lands(&mut self, function: Function, request: &Value) {
        self.function = function;
        let result = self.create_job(request);
        self.trace
            .line(self.now, || format!("create {} arrives late: {result:?}", request["TrainingJobName"]));
    }

    /// Checks the quotas of the account.
    fn quota(&mut self) -> Result<(), TrainingJobsError> {
        let site = Site::Call(self.function, Op::Create);
        if self.plan.one_create_a_second && self.now < self.training.created_at + CREATE_EVERY_MS {
            self.faults.count(Kind::CreateTooFast, site);
            return Err(TrainingJobsError::Throttled);
        }
        if self.plan.account_jobs.is_some_and(|most| self.training.alive >= most) {
            self.faults.count(Kind::AccountQuota, site);
            return Err(TrainingJobsError::LimitExceeded("ResourceLimitExceeded".to_owned()));
        }
        Ok(())
    }

    /// `CreateTrainingJob`.
    pub(crate) fn create_job(&mut self, request: &Value) -> Result<(), TrainingJobsError> {
        let refused = |message: &str| TrainingJobsError::Refused {
            code: "ValidationException".to_owned(),
            message: message.to_owned(),
        };
        let name = request["TrainingJobName"].as_str().unwrap_or_default().to_owned();
        self.check_create_rate();
        self.quota()?;
        if self.training.by_name.contains_key(&name) {
            return Err(TrainingJobsError::NameTaken(name));
        }
        let Some((id, key)) = parse_training_job_name(&name) else {
            return Err(refused("invalid TrainingJobName"));
        };
        let Some(case) =
            self.cases.iter().position(|case| id.rsplit_once('-').is_some_and(|(n, _)| n == case.name))
        else {
            return Err(refused("invalid TrainingJobName: no such tuning"));
        };
        let seconds = |limit: &str| request["StoppingCondition"][limit].as_i64();
        let Some(max_runtime) = seconds("MaxRuntimeInSeconds").filter(|limit| *limit > 0) else {
            return Err(refused("invalid MaxRuntimeInSeconds"));
        };
        let max_wait = seconds("MaxWaitTimeInSeconds");
        let spot = request["EnableManagedSpotTraining"] == true;
        if spot != max_wait.is_some() || max_wait.is_some_and(|wait| wait < max_runtime) {
            return Err(refused("invalid MaxWaitTimeInSeconds"));
        }
        let resources = &request["ResourceConfig"];
        let (kind, count) = (&resources["InstanceType"], &resources["InstanceCount"]);
        let choice = kind.as_str().zip(count.as_u64());
        let choice = choice.and_then(|(kind, count)| self.cases[case].choice_of(kind, count));
        let Some(choice) = choice.filter(|_| resources["VolumeSizeInGB"] == self.cases[case].volume_gib)
        else {
            return Err(refused("invalid ResourceConfig"));
        };
        self.cases[case].quota(choice).map_err(TrainingJobsError::LimitExceeded)?;
        let keep = resources["KeepAlivePeriodInSeconds"].as_i64().unwrap_or(0);
        if spot && keep > 0 {
            return Err(refused("KeepAlivePeriodInSeconds is not allowed with spot training"));
        }
        let program = Program::new(self, &self.cases[case], &request["HyperParameters"], choice);
        for kind in program.traits() {
            self.faults.count(kind, Site::World);
        }
        let mut dice = Dice::new(self.seed, "job", crate::dice::fnv(&name));
        let fate = Fate::drawn(self, &program, spot, &mut dice);
        let unseen = if self.faults.strikes(Kind::NotVisibleYet) { self.dice.between(500, 5_000) } else { 0 };
        let job = Job {
            id,
            case,
            choice,
            max_runtime_ms: max_runtime * 1_000,
            max_wait_ms: max_wait.map(|wait| wait * 1_000),
            beyond_seconds: self.cases[case].beyond_seconds(),
            pended_ms: 0,
            max_pending_ms: seconds("MaxPendingTimeInSeconds").map(|pending| pending * 1_000),
            keep_ms: keep * 1_000,
            dice,
            visible_at: self.now + unseen,
            checkpoints_at: request["CheckpointConfig"]["S3Uri"].as_str().unwrap_or_default().to_owned(),
            epoch_limit: epoch_limit(&request["HyperParameters"]),
            scaled: request["HyperParameters"][SCALED].as_str().and_then(|sent| sent.parse().ok()),
            ..Job::new(&name, key, &request["Tags"], program, fate, self.now)
        };
        self.training.created_at = self.now;
        let index = self.training.enter(job);
        self.check_created(index);
        self.enter(index, "InProgress", "Starting");
        self.begin_job(index);
        Ok(())
    }

    /// `StopTrainingJob`.
    pub(crate) fn stop_job(&mut self, name: &str) -> Result<(), TrainingJobsError> {
        let index = self.training.find(name, self.now)?;
        if self.training.jobs[index].owner == Owner::Foreign {
            self.check.violation(self.now, &format!("P7: job {name} of another stack was stopped"));
        }
        let job = &mut self.training.jobs[index];
        job.stop_asked = true;
        if job.is_ended() {
            return Err(TrainingJobsError::AlreadyEnded(name.to_owned()));
        }
        if job.now.status == "Stopping" || (job.now.secondary_status == "Uploading" && job.dice.chance(0.5)) {
            return Ok(());
        }
        self.stopping(index, Tick::Stopped("Stopped"));
        Ok(())
    }

    /// `DescribeTrainingJob`; can show an earlier state.
    pub(crate) fn describe_job(&mut self, name: &str) -> Result<Description, TrainingJobsError> {
        let index = self.training.find(name, self.now)?;
        let site = Site::Call(self.function, Op::Describe);
        let lag =
            if self.faults.strikes_at(Kind::DescribeLag, site) { self.dice.between(1, 300_000) } else { 0 };
        let as_of = self.now - lag;
        let job = &self.training.jobs[index];
        let seen = job.history.iter().rev().find(|(at, _)| *at <= as_of).or_else(|| job.history.first());
        let mut seen = seen.map_or_else(|| job.now.clone(), |(_, description)| description.clone());
        if as_of < job.bill_at {
            seen.billable_seconds = None;
        }
        if let Some((seconds, until)) = job.first_bill.filter(|_| seen.billable_seconds.is_some())
            && as_of < until
        {
            seen.billable_seconds = Some(seconds);
        }
        Ok(self.with_warm_pool(index, as_of, seen))
    }

    /// Records that process `task` has received this bill.
    pub(crate) fn begin_reading(&mut self, task: u64, description: &Description) {
        let Ok(index) = self.training.find(&description.name, self.now) else { return };
        let job = &self.training.jobs[index];
        // A bill that rises after its confirmation was stored is not read again.
        let confirmed = self.check.confirmed.contains(&(job.id.clone(), job.key));
        if let Some(seconds) = description.billable_seconds.filter(|_| !confirmed) {
            self.training.readings.push((task, index, seconds));
        }
    }

    /// Ends the readings of bills by process `task`. A process that crashed or failed may have stored none of them.
    pub(crate) fn end_readings(&mut self, task: u64, is_whole: bool) {
        let readings = std::mem::take(&mut self.training.readings);
        for (reader, index, seconds) in readings {
            let job = &mut self.training.jobs[index];
            if reader != task {
                self.training.readings.push((reader, index, seconds));
            } else if is_whole {
                job.shown_seconds = job.shown_seconds.max(Some(seconds));
            }
        }
    }

    /// `ListTags`.
    pub(crate) fn tags_of_job(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        Ok(self.training.jobs[self.training.find(name, self.now)?].tags.clone())
    }

    /// `ListTrainingJobs`: jobs in progress that were created at `created_from` or later, oldest first.
    pub(crate) fn list_jobs(&self, created_from: i64, page: Option<&str>) -> Paged<Listed> {
        let from = page.and_then(|page| page.parse().ok()).unwrap_or(0);
        let running = self.training.jobs.iter().enumerate().skip(from);
        let running =
            running.filter(|(_, job)| job.now.status == "InProgress" && job.now.created.0 >= created_from);
        let mut running = running.filter(|(_, job)| job.visible_at <= self.now);
        let listed =
            |(_, job): (usize, &Job)| Listed { name: job.now.name.clone(), created: job.now.created };
        let items: Vec<Listed> = running.by_ref().take(PAGE_JOBS).map(listed).collect();
        Paged { items, next: running.next().map(|(index, _)| index.to_string()) }
    }

    /// `FilterLogEvents`; the latest lines can be missing.
    pub(crate) fn read_log(
        &mut self,
        name: &str,
        host: &str,
        from: i64,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        self.check_read_rate();
        let index = self.training.find(name, self.now)?;
        let site = Site::Call(self.function, Op::ReadLog);
        let lag =
            if self.faults.strikes_at(Kind::LogReadLag, site) { self.dice.between(1_000, 60_000) } else { 0 };
        let as_of = self.now - lag;
        let streams = self.training.jobs[index].streams.iter();
        let streams = streams.filter(|stream| stream.name.contains(&format!("/{host}-")));
        let skip: usize = page.and_then(|page| page.parse().ok()).unwrap_or(0);
        let lines = streams.flat_map(|stream| &stream.lines);
        let mut lines = lines.filter(|line| (from..=as_of).contains(&line.timestamp.0)).skip(skip);
        let items: Vec<LogLine> = lines.by_ref().take(PAGE_LINES).cloned().collect();
        let next = lines.next().map(|_| (skip + PAGE_LINES).to_string());
        Ok(Paged { items, next })
    }
}

fn tags(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    pairs.filter_map(|tag| Some((text(&tag["Key"])?, text(&tag["Value"])?))).collect()
}

fn description(name: &str, now: i64) -> Description {
    Description {
        name: name.to_owned(),
        status: "InProgress".to_owned(),
        secondary_status: "Starting".to_owned(),
        created: Time(now),
        started: None,
        ended: None,
        modified: Time(now),
        billable_seconds: None,
        failure_reason: None,
        interruptions: 0,
        final_metrics: Vec::new(),
        warm_pool: None,
    }
}
