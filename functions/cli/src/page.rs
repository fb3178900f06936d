//! A tuning as it is shown: what `run` prints at its end, and `describe`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use local::host::place;
use serde_json::Value;
use service::describe;
use service::ports::table::Table;
use service::store::{Loaded, Store};
use tuning::fact::{JobEnd, JobPhase};
use tuning::ruling::{EndReason, StopWhy};
use tuning::state::Status;
use tuning::summary::JobSummary;
use wire::names::training_job_name;

use crate::arguments::DATA_DIR;
use crate::failure::{Exit, Failure};
use crate::text::{clean, duration, maybe, quoted, short, table, usd, utc, value};
use crate::words::{parameters, reason, rounded, stop_reason};

/// A tuning with its jobs, as of one moment.
#[derive(Debug)]
pub(crate) struct Page {
    /// The answer of `DescribeHyperParameterTuningJob`.
    pub(crate) described: Value,
    pub(crate) loaded: Loaded,
    /// All training jobs, by trial and attempt.
    pub(crate) jobs: Vec<JobSummary>,
}

impl Page {
    /// Reads tuning `id`.
    pub(crate) async fn read<T: Table>(store: &Store<T>, id: &str) -> Result<Self, Failure> {
        let gone = || Failure::usage(format!("the tuning {id} was deleted"));
        let described = describe::describe(store, &place(), id).await?.ok_or_else(gone)?;
        let (loaded, jobs) = describe::summaries(store, id).await?.ok_or_else(gone)?;
        Ok(Self { described, loaded, jobs })
    }

    /// `HyperParameterTuningJobStatus`.
    pub(crate) fn status(&self) -> &str {
        self.described["HyperParameterTuningJobStatus"].as_str().unwrap_or_default()
    }

    /// Why the tuning ended or is ending.
    pub(crate) fn why(&self) -> Option<&EndReason> {
        match &self.loaded.state.status {
            Status::Active => None,
            Status::Ending(why) | Status::Ended { why, .. } => Some(why),
        }
    }

    /// The exit code that tells how the tuning ended.
    pub(crate) fn exit(&self) -> Exit {
        if self.status() == "Failed" { Exit::Failed } else { Exit::Done }
    }

    /// Milliseconds from the submission to the end, or to the last news.
    pub(crate) fn wall_ms(&self) -> i64 {
        let end = match self.loaded.state.status {
            Status::Ended { at, .. } => at,
            Status::Active | Status::Ending(_) => self.loaded.head.at,
        };
        end.saturating_sub(self.loaded.tuning.definition.created)
    }

    /// Seconds billed so far, over all jobs.
    pub(crate) fn billed_seconds(&self) -> u64 {
        self.jobs.iter().filter_map(|job| job.billable_seconds).sum()
    }

    /// Epochs trained so far: of each job those that its trial had not, or those that it repeats as well.
    pub(crate) fn epochs(&self) -> u64 {
        let (mut epochs, mut trial, mut had) = (0_u64, None, 0);
        for job in &self.jobs {
            if trial != Some(job.job.trial) {
                (trial, had) = (Some(job.job.trial), 0);
            }
            let from = job.repeats_from.unwrap_or(had);
            epochs = epochs.saturating_add(u64::from(job.resource.saturating_sub(from)));
            had = job.resource;
        }
        epochs
    }

    /// Name of the objective metric.
    pub(crate) fn metric(&self) -> &str {
        self.loaded.tuning.request.objective_metric()
    }

    /// Job counts in words.
    pub(crate) fn counts(&self) -> String {
        let count = |is: fn(&JobSummary) -> bool| self.jobs.iter().filter(|job| is(job)).count();
        let mut parts = Vec::new();
        for (count, word) in [
            (count(|job| job.cost.is_none() && !job.never_started), "running"),
            (count(|job| job.cost.is_some() && is_whole(job)), "ran to the end"),
            (count(|job| job.cost.is_some() && !is_whole(job) && job.stop.is_some()), "stopped early"),
            (count(|job| job.cost.is_some() && !is_whole(job) && job.stop.is_none()), "failed or cut short"),
            (count(|job| job.never_started), "never started"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        let launched = self.loaded.state.launched;
        if parts.is_empty() { format!("{launched}") } else { format!("{launched}: {}", parts.join(", ")) }
    }

    /// What has become of the trials, in words, where each has several jobs.
    pub(crate) fn trials(&self) -> Option<String> {
        if !self.promotes() {
            return None;
        }
        let definition = &self.loaded.tuning.definition;
        let all: BTreeSet<u32> = self.jobs.iter().map(|job| job.job.trial).collect();
        let at_the_top = self.jobs.iter().filter(|job| job.cost.is_some() && is_whole(job));
        let at_the_top = at_the_top.filter(|job| job.job.rung >= definition.last_rung(job.bracket)).count();
        let state = &self.loaded.state;
        let before = all.len().saturating_sub(at_the_top).saturating_sub(state.trials.len());
        let max = definition.plan().max_resource();
        let parts: Vec<String> = [
            (state.trials.len(), "training".to_owned()),
            (state.waiting.len(), "waiting for promotion".to_owned()),
            (at_the_top, format!("trained to epoch {max}")),
            (before.saturating_sub(state.waiting.len()), "ended before".to_owned()),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        Some(if parts.is_empty() { "0".to_owned() } else { format!("{}: {}", all.len(), parts.join(", ")) })
    }

    /// Spent money against the cap.
    pub(crate) fn cost(&self) -> String {
        let ledger = &self.loaded.state.ledger;
        if self.loaded.tuning.definition.job.rate.is_none() {
            return "unknown: the request gives no price (Controller.InstancePricesUsdPerHour)".to_owned();
        }
        let spent = usd(ledger.spent);
        let reserved = if ledger.reserved.0 > 0 {
            format!(" + {} reserved", usd(ledger.reserved))
        } else {
            String::new()
        };
        let cap = ledger.cap.map_or_else(|| ", no cap".to_owned(), |cap| format!(" of at most {}", usd(cap)));
        format!("{spent}{reserved}{cap}")
    }

    /// The summary.
    pub(crate) fn summary(&self) -> String {
        let definition = &self.loaded.tuning.definition;
        let mut text = format!("{}: {}", definition.name, self.status());
        if let Some(why) = self.why() {
            let _ = write!(text, ", {}", clean(&reason(why)));
        }
        text.push_str("\n\n");
        let mut line = |label: &str, content: &str| {
            let _ = writeln!(text, "  {label:<11}{content}");
        };
        match self.loaded.state.best.as_deref() {
            Some(best) => {
                let name = training_job_name(&self.loaded.tuning.id, best.job);
                line("best job", &format!("{name} (trial {}, {} epochs)", best.job.trial, best.resource));
                line("", &format!("{} = {}", self.metric(), maybe(best.last_value)));
                line("", &parameters(&best.configuration));
            }
            None => line("best job", "none yet"),
        }
        if let Some(seen) = self.better_on_the_way() {
            line("best seen", &seen);
        }
        if let Some(trials) = self.trials() {
            line("trials", &trials);
        }
        line("jobs", &self.counts());
        line("epochs", &self.epochs_text());
        line("billed", &format!("{} s", self.billed_seconds()));
        line("cost", &self.cost());
        line("wall time", &duration(self.wall_ms()));
        text
    }

    /// What to look at next.
    pub(crate) fn see_more(&self, data_dir: &Path) -> String {
        let name = &self.loaded.tuning.definition.name;
        let place = if data_dir == Path::new(DATA_DIR) {
            String::new()
        } else {
            format!(" --data-dir {}", quoted(&data_dir.to_string_lossy()))
        };
        format!("\n  hyperband describe {name}{place}\n  hyperband report {name}{place} -o {name}.html\n")
    }

    /// A value on the way that is better than the best job's last one.
    fn better_on_the_way(&self) -> Option<String> {
        let seen = self.loaded.state.incumbent.as_ref()?;
        let last = self.loaded.state.best.as_ref().and_then(|best| best.last_value);
        let differs = last.is_none_or(|last| last.to_bits() != seen.value.to_bits());
        differs.then(|| format!("{} (trial {}, epoch {})", value(seen.value), seen.trial, seen.resource))
    }

    fn epochs_text(&self) -> String {
        let epochs = self.epochs();
        let trials: BTreeSet<u32> = self.jobs.iter().map(|job| job.job.trial).collect();
        match self.loaded.tuning.request.max_resource() {
            Some(max) => {
                let full = u64::from(max).saturating_mul(u64::try_from(trials.len()).unwrap_or(u64::MAX));
                format!("{epochs}; without early stopping {full}")
            }
            None => format!("{epochs}"),
        }
    }

    /// Whether trials are promoted from rung to rung.
    fn promotes(&self) -> bool {
        self.loaded.tuning.definition.promotes().is_some()
    }

    /// A table of all jobs.
    pub(crate) fn job_table(&self) -> String {
        let row = |job: &JobSummary| {
            // Where trials are promoted, the epochs that the job went to, of those it was to go to.
            let epochs = job.level.map_or_else(String::new, |level| format!("/{level}"));
            vec![
                job.job.trial.to_string(),
                job.job.attempt.to_string(),
                job.bracket.to_string(),
                job_status(job).to_owned(),
                format!("{}{epochs}", job.resource),
                maybe(job.last_value),
                maybe(job.best_value),
                job.billable_seconds.map_or_else(|| "-".to_owned(), |seconds| seconds.to_string()),
                job.cost.map_or_else(|| "-".to_owned(), usd),
                rounded(&job.configuration),
                short(&stop_reason(job), 60),
            ]
        };
        let rows: Vec<Vec<String>> = self.jobs.iter().map(row).collect();
        let head = [
            "TRIAL",
            "TRY",
            "BRACKET",
            "STATUS",
            "EPOCH",
            "LAST",
            "BEST",
            "BILLED",
            "COST",
            "HYPERPARAMETERS",
            "WHY",
        ];
        table(&head, &rows, &[0, 1, 2, 4, 5, 6, 7, 8])
    }

    /// A table of brackets and rungs; `None` without Hyperband.
    pub(crate) fn rung_table(&self) -> Option<String> {
        let brackets = self.described["Controller"]["Brackets"].as_array().filter(|list| !list.is_empty())?;
        let mut rows = Vec::new();
        for (number, bracket) in brackets.iter().enumerate() {
            for rung in bracket["Rungs"].as_array().into_iter().flatten() {
                // The last rung compares nobody.
                let cell =
                    |member: &str| rung.get(member).map_or_else(|| "-".to_owned(), ToString::to_string);
                let trials = bracket["TrialsStarted"].to_string();
                let mut row =
                    vec![number.to_string(), trials, cell("Resource"), cell("Arrived"), cell("WentOn")];
                row.extend(self.promotes().then(|| cell("Waiting")));
                rows.push(row);
            }
        }
        let mut head = vec!["BRACKET", "TRIALS", "EPOCH", "ARRIVED", "WENT ON"];
        head.extend(self.promotes().then_some("WAITING"));
        Some(table(&head, &rows, &[0, 1, 2, 3, 4, 5]))
    }

    /// When the tuning was submitted.
    pub(crate) fn created(&self) -> String {
        utc(self.loaded.tuning.definition.created)
    }
}

/// Whether a job trained all that it could: stopped at its last epoch counts as well.
fn is_whole(job: &JobSummary) -> bool {
    job.end == Some(JobEnd::Completed) || job.stop == Some(StopWhy::MaxResource)
}

/// A job's status as people read it.
pub(crate) fn job_status(job: &JobSummary) -> &'static str {
    match (job.end, job.phase) {
        (Some(JobEnd::Completed), _) => "Completed",
        (Some(JobEnd::Stopped), _) => "Stopped",
        (Some(JobEnd::MaxRuntime), _) => "MaxRuntime",
        (Some(JobEnd::MaxWait), _) => "MaxWait",
        (Some(JobEnd::AlgorithmError), _) => "Failed",
        (Some(JobEnd::CapacityError), _) => "NoCapacity",
        (Some(JobEnd::ServiceError), _) => "ServiceError",
        (None, _) if job.never_started && job.message.is_some() => "Refused",
        (None, _) if job.never_started => "NotStarted",
        (None, _) if job.stop.is_some() => "Stopping",
        (None, JobPhase::Starting) => "Starting",
        (None, JobPhase::Downloading) => "Downloading",
        (None, JobPhase::Training) => "Training",
        (None, JobPhase::Interrupted) => "Interrupted",
        (None, JobPhase::Stopping) => "Stopping",
        (None, JobPhase::Uploading) => "Uploading",
        (None, JobPhase::Other | JobPhase::Ended(_)) => "InProgress",
    }
}
