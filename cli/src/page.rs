//! Formats a tuning as text, for the result of `run` and for `describe`.
//!
//! Uses only the responses of Describe and of the listing of training jobs, so that local and remote tunings look the
//! same. Shows missing values as unknown.

mod job;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use local::host::place;
use serde_json::Value;
use tuning::money::MicroUsd;
use use_cases::describe;
use use_cases::ports::table::Table;
use use_cases::store::Store;
use wire::request::micro_usd_down;

use crate::arguments::DATA_DIR;
use crate::event_text::{end_words, parameters, rounded};
use crate::failure::{Exit, Failure};
use crate::text::{clean, duration, maybe, quoted, short, table, usd, utc, value};
use job::Job;

/// A tuning with its jobs.
#[derive(Debug)]
pub(crate) struct Page {
    /// The response of `DescribeHyperParameterTuningJob`.
    pub(crate) described: Value,
    /// Its training jobs, ordered by trial and attempt.
    pub(crate) jobs: Vec<Value>,
}

/// Returns the error for a deleted tuning.
pub(crate) fn gone(id: &str) -> Failure {
    Failure::usage(format!("the tuning {id} was deleted"))
}

impl Page {
    /// Reads tuning `id`.
    pub(crate) async fn read<T: Table>(store: &Store<T>, id: &str) -> Result<Self, Failure> {
        let described = describe::describe(store, &place(), id).await?.ok_or_else(|| gone(id))?;
        let jobs = describe::jobs(store, &place(), id).await?.ok_or_else(|| gone(id))?;
        Ok(Self { described, jobs })
    }

    /// Returns the name of the tuning.
    pub(crate) fn name(&self) -> &str {
        self.described["HyperParameterTuningJobName"].as_str().unwrap_or_default()
    }

    /// Returns `HyperParameterTuningJobStatus`.
    pub(crate) fn status(&self) -> &str {
        self.described["HyperParameterTuningJobStatus"].as_str().unwrap_or_default()
    }

    /// Returns why the tuning ended or is ending.
    pub(crate) fn why(&self) -> Option<String> {
        let own = self.own();
        let word = own["EndReason"].as_str().or_else(|| own["EndingReason"].as_str())?;
        Some(end_words(word, self.described["FailureReason"].as_str()))
    }

    /// Returns the exit code for the end of the tuning.
    pub(crate) fn exit(&self) -> Exit {
        if self.status() == "Failed" { Exit::Failed } else { Exit::Done }
    }

    /// Returns the milliseconds from the submission to the end, or to the last change.
    pub(crate) fn wall_ms(&self) -> i64 {
        let time = |member: &str| milliseconds(&self.described[member]);
        let end = time("HyperParameterTuningEndTime").or_else(|| time("LastModifiedTime"));
        end.unwrap_or(0).saturating_sub(time("CreationTime").unwrap_or(0))
    }

    /// Returns the billed seconds of all jobs so far.
    pub(crate) fn billed_seconds(&self) -> u64 {
        self.all().filter_map(Job::billed).sum()
    }

    /// Returns the epochs that all jobs trained so far. Repeated epochs count again.
    pub(crate) fn epochs(&self) -> u64 {
        let (mut epochs, mut trial, mut had) = (0_u64, None, 0);
        for job in self.all() {
            if trial != Some(job.trial()) {
                (trial, had) = (Some(job.trial()), 0);
            }
            let from = job.repeated_from().unwrap_or(had);
            epochs = epochs.saturating_add(job.resource().saturating_sub(from));
            had = job.resource();
        }
        epochs
    }

    /// Returns the name of the objective metric.
    pub(crate) fn metric(&self) -> &str {
        let objective = &self.described["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"];
        objective["MetricName"].as_str().unwrap_or_default()
    }

    /// Returns the number of jobs and their states as text.
    pub(crate) fn counts(&self) -> String {
        let count = |is: fn(&Job<'_>) -> bool| self.all().filter(is).count();
        let mut parts = Vec::new();
        for (count, word) in [
            (count(|job| !job.is_over()), "running"),
            (count(|job| job.is_billed() && job.is_whole()), "ran to the end"),
            (count(|job| job.is_billed() && !job.is_whole() && job.was_stopped()), "stopped early"),
            (count(|job| job.is_billed() && !job.is_whole() && !job.was_stopped()), "failed or cut short"),
            (count(|job| job.is_over() && !job.is_billed()), "never started"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        let launched = self.own()["TrainingJobsLaunched"].as_u64().unwrap_or(0);
        if parts.is_empty() { format!("{launched}") } else { format!("{launched}: {}", parts.join(", ")) }
    }

    /// Returns the number of trials and their states as text. `None` unless trials are promoted.
    pub(crate) fn trials(&self) -> Option<String> {
        if !self.promotes() {
            return None;
        }
        let all = self.trial_numbers().len();
        let top = self.max_resource().unwrap_or(u64::MAX);
        let is_at_top =
            |job: &Job<'_>| job.is_billed() && job.is_whole() && job.level().is_none_or(|to| to >= top);
        let at_top = self.all().filter(is_at_top).count();
        let number =
            |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        let training = number(&self.own()["TrialsTraining"]);
        let waiting = self.rungs().map(|(_, _, rung)| number(&rung["Waiting"])).sum();
        let before = all.saturating_sub(at_top).saturating_sub(training);
        let parts: Vec<String> = [
            (training, "training".to_owned()),
            (waiting, "waiting for promotion".to_owned()),
            (at_top, format!("trained to epoch {top}")),
            (before.saturating_sub(waiting), "ended earlier".to_owned()),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        Some(if parts.is_empty() { "0".to_owned() } else { format!("{all}: {}", parts.join(", ")) })
    }

    /// Returns the spent and reserved amounts and the cap as text.
    pub(crate) fn cost(&self) -> String {
        let own = self.own();
        if own["PriceUnknown"] == true {
            return "unknown; set Controller.InstancePricesUsdPerHour in the request to see costs".to_owned();
        }
        let spent = dollars(&own["SpentUsd"]).map_or_else(|| "unknown".to_owned(), usd);
        let reserved = dollars(&own["ReservedUsd"]).filter(|amount| amount.0 > 0);
        let reserved = reserved.map_or_else(String::new, |amount| format!(" + {} reserved", usd(amount)));
        let cap = dollars(&own["CapUsd"]);
        let cap = cap.map_or_else(|| ", no cap".to_owned(), |cap| format!(", cap {}", usd(cap)));
        format!("{spent}{reserved}{cap}")
    }

    /// Returns the summary of the tuning.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!("{}: {}", clean(self.name()), clean(self.status()));
        if let Some(why) = self.why() {
            let _ = write!(text, ", {}", clean(&why));
        }
        text.push_str("\n\n");
        let mut line = |label: &str, content: &str| {
            let _ = writeln!(text, "  {label:<11}{content}");
        };
        match self.described.get("BestTrainingJob").map(Job) {
            Some(best) => {
                let (name, trial, epochs) = (clean(best.name()), best.trial(), best.resource());
                line("best job", &format!("{name} (trial {trial}, {epochs} epochs)"));
                line("", &format!("{} = {}", clean(self.metric()), maybe(best.last_value())));
                line("", &parameters(&best.configuration()));
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

    /// Returns the output of `describe`: the summary and the tables of rungs and jobs.
    pub(crate) fn whole(&self) -> String {
        let rungs = self.rung_table().map_or_else(String::new, |table| format!("\n{table}"));
        let submitted = milliseconds(&self.described["CreationTime"]).map_or_else(|| "-".to_owned(), utc);
        format!("{}  {:<11}{submitted}\n{rungs}\n{}", self.summary(), "submitted", self.job_table())
    }

    /// Returns commands to inspect the tuning further.
    pub(crate) fn see_more(&self, data_dir: &Path) -> String {
        let name = self.name();
        let place = if data_dir == Path::new(DATA_DIR) {
            String::new()
        } else {
            format!(" --data-dir {}", quoted(&data_dir.to_string_lossy()))
        };
        format!("\n  hyperband describe {name}{place}\n  hyperband report {name}{place} -o {name}.html\n")
    }

    /// Returns the best value of all epochs if it differs from the last value of the best job.
    fn better_on_the_way(&self) -> Option<String> {
        let seen = &self.own()["BestSeen"];
        let best = seen["Value"].as_f64()?;
        let last = self.described.get("BestTrainingJob").and_then(|best| Job(best).last_value());
        let differs = last.is_none_or(|last| last.to_bits() != best.to_bits());
        differs.then(|| format!("{} (trial {}, epoch {})", value(best), seen["Trial"], seen["Resource"]))
    }

    fn epochs_text(&self) -> String {
        let epochs = self.epochs();
        match self.max_resource() {
            Some(max) => {
                let trials = u64::try_from(self.trial_numbers().len()).unwrap_or(u64::MAX);
                format!("{epochs} ({} without early stopping)", max.saturating_mul(trials))
            }
            None => format!("{epochs}"),
        }
    }

    fn job_table(&self) -> String {
        let row = |job: Job<'_>| {
            // With promotion, the reached epoch and the target epoch of the job.
            let epochs = job.level().map_or_else(String::new, |level| format!("/{level}"));
            vec![
                job.trial().to_string(),
                job.attempt().to_string(),
                job.bracket().to_string(),
                clean(job.state()),
                format!("{}{epochs}", job.resource()),
                maybe(job.last_value()),
                maybe(job.best_value()),
                job.billed().map_or_else(|| "-".to_owned(), |seconds| seconds.to_string()),
                job.cost().map_or_else(|| "-".to_owned(), usd),
                rounded(&job.configuration()),
                short(&job.why(), 60),
            ]
        };
        let rows: Vec<Vec<String>> = self.all().map(row).collect();
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

    /// Returns the table of brackets and rungs. `None` without Hyperband.
    fn rung_table(&self) -> Option<String> {
        let mut rows = Vec::new();
        for (number, bracket, rung) in self.rungs() {
            // The last rung has no comparison.
            let cell = |member: &str| rung.get(member).map_or_else(|| "-".to_owned(), ToString::to_string);
            let trials = bracket["TrialsStarted"].to_string();
            let mut row = vec![number.to_string(), trials, cell("Resource"), cell("Arrived"), cell("WentOn")];
            row.extend(self.promotes().then(|| cell("Waiting")));
            rows.push(row);
        }
        let mut head = vec!["BRACKET", "TRIALS", "EPOCH", "ARRIVED", "CONTINUED"];
        head.extend(self.promotes().then_some("WAITING"));
        (!rows.is_empty()).then(|| table(&head, &rows, &[0, 1, 2, 3, 4, 5]))
    }

    /// Returns the `Controller` member of Describe.
    fn own(&self) -> &Value {
        &self.described["Controller"]
    }

    fn all(&self) -> impl Iterator<Item = Job<'_>> {
        self.jobs.iter().map(Job)
    }

    fn trial_numbers(&self) -> BTreeSet<u64> {
        self.all().map(Job::trial).collect()
    }

    /// Returns whether trials are promoted from rung to rung.
    fn promotes(&self) -> bool {
        self.own()["RungExecution"] == "Promote"
    }

    /// Returns the rungs, each with the number of its bracket and its bracket.
    fn rungs(&self) -> impl Iterator<Item = (usize, &Value, &Value)> {
        let brackets = self.own()["Brackets"].as_array().into_iter().flatten().enumerate();
        brackets.flat_map(|(number, bracket)| {
            let rungs = bracket["Rungs"].as_array().into_iter().flatten();
            rungs.map(move |rung| (number, bracket, rung))
        })
    }

    /// Returns the epochs of a complete trial. `None` without Hyperband.
    fn max_resource(&self) -> Option<u64> {
        self.rungs().filter_map(|(_, _, rung)| rung["Resource"].as_u64()).max()
    }
}

/// Converts dollars of a response to micro-dollars.
pub(crate) fn dollars(number: &Value) -> Option<MicroUsd> {
    let Value::Number(number) = number else { return None };
    micro_usd_down(number).map(MicroUsd)
}

/// Converts a time of a response, in seconds since 1970, to milliseconds.
pub(crate) fn milliseconds(seconds: &Value) -> Option<i64> {
    let seconds = seconds.as_f64().filter(|seconds| (0.0..253_402_300_800.0).contains(seconds))?;
    #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
    let milliseconds = (seconds * 1_000.0).round() as i64;
    Some(milliseconds)
}
