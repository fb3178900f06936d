//! Formats a tuning as text, for the result of `run` and for `describe`.
//!
//! Uses only the responses of Describe and of the listing of training jobs, so that local and remote tunings look the
//! same.

mod costs;
mod job;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;

use serde_json::{Value, json};
use wire::describe::{
    Bracket, FailureCause, Rung, TrainingJobSummary, TuningJob, WaitingFor, request_from_description,
};

use crate::arguments::{Output, folder_option};
use crate::best_model;
use crate::event_text::{end_words, rounded, uncut};
use crate::failure::Exit;
use crate::location::Location;
use crate::log_hint::LogHint;
use crate::output::show;
use crate::text::{clean, duration, exact, maybe, or_dash, short, table, usd, utc, value};
pub(crate) use job::configuration;
use job::{
    is_billed, is_over, is_whole, last_value, uncut_why, was_stopped_after_last_epoch, was_stopped_early, why,
};

/// Maximum characters of a reason in a table on a terminal.
const WHY_CHARACTERS: usize = 60;

#[derive(Debug)]
pub(crate) struct Page {
    /// The response of `DescribeHyperParameterTuningJob`.
    pub(crate) described: TuningJob,
    /// Its training jobs, ordered by trial and attempt.
    pub(crate) jobs: Vec<TrainingJobSummary>,
    /// The command that continues the tuning of a data directory, if no `run` is active.
    pub(crate) interrupted: Option<String>,
}

/// Returns whether a person reads the output. A file or another program gets whole texts.
fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

impl Page {
    /// Returns the response of `DescribeHyperParameterTuningJob`, with the best model, and marked if the tuning was
    /// interrupted.
    pub(crate) fn json(&self) -> Value {
        let mut shown = json!(self.described);
        if self.interrupted().is_some() {
            shown["Controller"]["Interrupted"] = json!(true);
        }
        if let Some((_, location)) = self.best_model() {
            shown["Controller"]["BestModel"]["Location"] = json!(location.path());
        }
        shown
    }

    /// Prints the result of the tuning, with its jobs or with `hints` below its summary, and returns the exit code.
    pub(crate) fn print_result(&self, output: Output, hints: impl FnOnce() -> String) -> Exit {
        let text = || format!("{}{}", self.summary(), hints());
        show(output, text, || json!({"TuningJob": self.json(), "TrainingJobs": self.jobs}));
        if self.status() == "Failed" { Exit::Failed } else { Exit::Done }
    }

    /// Returns the command that continues the tuning, if no `run` is active.
    pub(crate) fn interrupted(&self) -> Option<&str> {
        self.interrupted.as_deref()
    }

    /// Returns the name of the job with the best model, and the place of the model: that of the completed refit, else that
    /// of the best training job.
    pub(crate) fn best_model(&self) -> Option<(&str, Location)> {
        let best = self.described.controller.best_model.as_ref()?;
        Some((&best.training_job_name, Location::of_uri(&best.location)))
    }

    /// Returns the status, why the tuning does not train although it has not ended, and the command that continues it.
    fn status_text(&self) -> String {
        let mut text = clean(self.status());
        if let Some(why) = self.why() {
            let _ = write!(text, ", {}", clean(&why));
        }
        if let Some(since) = self.described.controller.totals.paused_since_ms {
            let _ = write!(text, ", paused by the user since {}", utc(since));
        }
        if let Some(resume) = self.interrupted() {
            let _ = write!(text, ", interrupted\n  to continue it: {resume}");
        }
        text
    }

    pub(crate) fn name(&self) -> &str {
        &self.described.base.name
    }

    /// Returns `HyperParameterTuningJobStatus`.
    pub(crate) fn status(&self) -> &str {
        &self.described.base.status
    }

    /// Returns why the tuning ended or is ending.
    pub(crate) fn why(&self) -> Option<String> {
        let own = &self.described.controller;
        let word = own.totals.end_reason.as_deref().or(own.ending_reason.as_deref())?;
        Some(end_words(word, self.described.failure_reason.as_deref()))
    }

    /// Returns the milliseconds from the submission to the end, or to the last change.
    pub(crate) fn wall_ms(&self) -> i64 {
        let base = &self.described.base;
        base.ended_ms.unwrap_or(base.modified_ms).saturating_sub(base.created_ms)
    }

    /// Returns the billed seconds of all jobs so far.
    pub(crate) fn billed_seconds(&self) -> u64 {
        self.jobs.iter().filter_map(|job| job.controller.billable_seconds).sum()
    }

    /// Returns the epochs that all jobs trained so far. Repeated epochs count again.
    pub(crate) fn epochs(&self) -> u64 {
        let (mut epochs, mut trial, mut had) = (0_u64, None, 0);
        for job in &self.jobs {
            let own = &job.controller;
            if trial != Some(own.trial) {
                (trial, had) = (Some(own.trial), 0);
            }
            let from = own.repeated_from.unwrap_or(had);
            epochs = epochs.saturating_add(u64::from(own.resource.saturating_sub(from)));
            had = own.resource;
        }
        epochs
    }

    pub(crate) fn metric(&self) -> String {
        request_from_description(&self.described).objective_metric().to_owned()
    }

    /// Returns the number of jobs and their states as text.
    pub(crate) fn counts(&self) -> String {
        let count = |is: fn(&TrainingJobSummary) -> bool| self.jobs.iter().filter(|job| is(job)).count();
        let mut parts = Vec::new();
        for (count, word) in [
            (
                count(|job| !is_over(job)),
                if self.interrupted().is_some() { "interrupted" } else { "running" },
            ),
            (count(|job| is_billed(job) && is_whole(job)), "ran to the end"),
            (
                count(|job| is_billed(job) && was_stopped_after_last_epoch(job)),
                "stopped after the last epoch (the models may be missing)",
            ),
            (count(|job| is_billed(job) && was_stopped_early(job)), "stopped early"),
            (
                count(|job| is_billed(job) && !is_whole(job) && job.controller.stop_reason.is_none()),
                "failed or cut short",
            ),
            (count(|job| is_over(job) && !is_billed(job)), "never started"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        let launched = self.described.controller.totals.training_jobs_launched;
        if parts.is_empty() { format!("{launched}") } else { format!("{launched}: {}", parts.join(", ")) }
    }

    /// Returns the causes of failed jobs, most frequent first.
    fn failures(&self) -> Vec<String> {
        let jobs = self.jobs.len();
        let line = |cause: &FailureCause| {
            let (count, reason) = (cause.count, clean(&cause.reason));
            format!("{count} of {jobs} jobs failed: {reason}")
        };
        self.described.controller.failures.iter().map(line).collect()
    }

    /// Returns the number of trials and their states as text. `None` unless trials are promoted.
    pub(crate) fn trials(&self) -> Option<String> {
        if !self.promotes() {
            return None;
        }
        let all = self.trial_numbers().len();
        let top = self.max_resource().unwrap_or(u32::MAX);
        let is_at_top = |job: &&TrainingJobSummary| {
            let has_all = is_whole(job) || was_stopped_after_last_epoch(job);
            is_billed(job) && has_all && job.controller.level.is_none_or(|to| to >= top)
        };
        let at_top = self.jobs.iter().filter(is_at_top).count();
        let number = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let training = number(self.described.controller.trials_training.unwrap_or(0));
        let waiting = self.rungs().filter_map(|(_, _, rung)| rung.compared?.waiting).map(number).sum();
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

    /// Returns the spent and reserved amounts and the cap as text. `None` without a price, and so without a cap.
    pub(crate) fn cost(&self) -> Option<String> {
        let totals = &self.described.controller.totals;
        if totals.price_unknown {
            return None;
        }
        let reserved = Some(totals.reserved_usd).filter(|amount| amount.0 > 0);
        let reserved = reserved.map_or_else(String::new, |amount| format!(" + {} reserved", usd(amount)));
        let cap = totals.cap_usd.map_or_else(|| ", no cap".to_owned(), |cap| format!(", cap {}", usd(cap)));
        Some(format!("{}{reserved}{cap}", usd(totals.spent_usd)))
    }

    /// Returns the best training job of all parents, if it is better than those of this tuning, and its tuning.
    fn better_parent(&self) -> Option<(&TrainingJobSummary, &str)> {
        let job = self.described.overall_best_training_job.as_deref()?;
        let tuning = job.tuning_job_name.as_deref().filter(|tuning| *tuning != self.name())?;
        Some((job, tuning))
    }

    pub(crate) fn summary(&self) -> String {
        let mut text = format!("{}: {}\n\n", clean(self.name()), self.status_text());
        let mut line = |label: &str, content: &str| {
            let _ = writeln!(text, "  {label:<11}{content}");
        };
        match &self.described.best_training_job {
            Some(best) => {
                let (name, trial, epochs) =
                    (clean(&best.name), best.controller.trial, best.controller.resource);
                line("best job", &format!("{name} (trial {trial}, {epochs} epochs)"));
                line("", &self.best_text(best));
                line("", &if is_terminal() { rounded } else { uncut }(&configuration(best)));
            }
            None => line("best job", "none yet"),
        }
        if let Some((job, tuning)) = self.better_parent() {
            line("better", &format!("{} of the parent {}", clean(&job.name), clean(tuning)));
            line("", &format!("{} = {}", clean(&self.metric()), maybe(last_value(job))));
        }
        if let Some((job, location)) = self.best_model() {
            let best = self.described.best_training_job.as_ref().map(|best| best.name.as_str());
            let refit = if best == Some(job) { String::new() } else { format!(" (refit {})", clean(job)) };
            line("best model", &format!("{}{refit}", clean(&location.text())));
        }
        for note in self.model_notes() {
            line("", &note);
        }
        if let Some(seen) = self.better_on_the_way() {
            line("best seen", &seen);
        }
        if let Some(trials) = self.trials() {
            line("trials", &trials);
        }
        line("jobs", &self.counts());
        if let Some(waiting) = &self.described.controller.waiting_for {
            line("waiting", &waits(waiting));
        }
        for (number, cause) in self.failures().iter().enumerate() {
            line(if number == 0 { "failures" } else { "" }, cause);
        }
        line("epochs", &self.epochs_text());
        line("billed", &format!("{} s", self.billed_seconds()));
        if let Some(cost) = self.cost() {
            line("cost", &cost);
        }
        line("wall time", &duration(self.wall_ms()));
        text
    }

    /// Returns the output of `describe`: the summary and the tables of rungs and jobs. Cuts texts only on a terminal.
    pub(crate) fn full_text(&self) -> String {
        let rungs = self.rung_table().map_or_else(String::new, |table| format!("\n{table}"));
        let submitted = utc(self.described.base.created_ms);
        let costs = &self.described.controller.costs;
        let costs = [costs::front_table(costs), costs::size_table(costs)].into_iter().flatten();
        let costs = costs.fold(String::new(), |text, table| text + "\n" + &table);
        let jobs = self.job_table(is_terminal());
        format!("{}  {:<11}{submitted}\n{rungs}{costs}\n{jobs}", self.summary(), "submitted")
    }

    /// Returns where the log of a failed job is, as an example of the most frequent cause. Empty without failures.
    pub(crate) fn see_log(&self, logs: &LogHint) -> String {
        let example =
            self.described.controller.failures.first().and_then(|cause| cause.training_job_name.as_ref());
        let job =
            self.jobs.iter().find(|job| Some(&job.name) == example && job.controller.state != "Refused");
        job.map_or_else(String::new, |job| {
            format!("\n{}", logs.lines(self.name(), job.controller.trial, &job.name, "  "))
        })
    }

    /// Returns commands to inspect the tuning further.
    pub(crate) fn see_more(&self, data_dir: &Path) -> String {
        let (name, place) = (self.name(), folder_option(data_dir));
        format!("\n  hyperband describe {name}{place}\n  hyperband report {name}{place} -o {name}.html\n")
    }

    /// Returns the best value of the best job with its epoch, and its last value if that is another.
    pub(crate) fn best_text(&self, best: &TrainingJobSummary) -> String {
        let last = last_value(best);
        let seen =
            self.described.controller.totals.best_seen.filter(|seen| seen.trial == best.controller.trial);
        let metric = clean(&self.metric());
        let Some(seen) = seen else { return format!("{metric} = {}", maybe(last)) };
        let last = last.filter(|last| last.to_bits() != seen.value.to_bits());
        let last = last.map_or_else(String::new, |last| format!(" ({} at the end)", value(last)));
        format!("{metric} = {} at epoch {}{last}", value(seen.value), seen.resource)
    }

    pub(crate) fn model_notes(&self) -> Vec<String> {
        best_model::notes(&self.described)
    }

    /// Returns the best value so far if another trial than that of the best job has it. After the end,
    /// [`Page::model_notes`] has it.
    pub(crate) fn better_on_the_way(&self) -> Option<String> {
        let seen = self.described.controller.totals.best_seen?;
        let best = self.described.best_training_job.as_ref().map(|best| best.controller.trial);
        if best == Some(seen.trial) || self.described.base.is_ended() && best.is_some() {
            return None;
        }
        let job = self.jobs.iter().rfind(|job| job.controller.trial == seen.trial && is_over(job));
        let last = job.filter(|job| job.objective_status == "Succeeded").and_then(last_value);
        let why = match (last, job) {
            (Some(last), _) => format!("its last value is {}", value(last)),
            (None, Some(_)) => "its training job failed, so it does not count".to_owned(),
            (None, None) => "it counts when its training job ends".to_owned(),
        };
        Some(format!("{} (trial {}, epoch {}), {why}", value(seen.value), seen.trial, seen.resource))
    }

    fn epochs_text(&self) -> String {
        let epochs = self.epochs();
        match self.max_resource() {
            Some(max) => {
                let trials = u64::try_from(self.trial_numbers().len()).unwrap_or(u64::MAX);
                format!("{epochs} ({} without early stopping)", u64::from(max).saturating_mul(trials))
            }
            None => format!("{epochs}"),
        }
    }

    pub(crate) fn state(&self, job: &TrainingJobSummary) -> String {
        let interrupted = self.interrupted().is_some() && !is_over(job) && !is_billed(job);
        if interrupted { "Interrupted".to_owned() } else { clean(&job.controller.state) }
    }

    fn job_table(&self, cut: bool) -> String {
        let priced = !self.described.controller.totals.price_unknown;
        let row = |job: &TrainingJobSummary| {
            let own = &job.controller;
            // With promotion, the reached epoch and the target epoch of the job.
            let epochs = own.level.map_or_else(String::new, |level| format!("/{level}"));
            let mut row = vec![
                own.trial.to_string(),
                own.attempt.to_string(),
                own.bracket.to_string(),
                self.state(job),
                format!("{}{epochs}", own.resource),
                maybe(last_value(job)),
                maybe(own.best_value),
                or_dash(own.billable_seconds, |seconds| seconds.to_string()),
                or_dash(own.cost_usd.filter(|_| priced), exact),
            ];
            row.extend(job.training_job_definition_name.as_deref().map(clean));
            row.push(if cut { rounded } else { uncut }(&configuration(job)));
            row.push(if cut { short(&why(job), WHY_CHARACTERS) } else { uncut_why(job) });
            row
        };
        let rows: Vec<Vec<String>> = self.jobs.iter().map(row).collect();
        let mut head = vec!["TRIAL", "TRY", "BRACKET", "STATUS", "EPOCH", "LAST", "BEST", "BILLED", "COST"];
        // All jobs of a tuning have a definition name, or none has.
        let has_names = self.jobs.iter().any(|job| job.training_job_definition_name.is_some());
        head.extend(has_names.then_some("DEFINITION"));
        head.extend(["HYPERPARAMETERS", "WHY"]);
        table(&head, &rows, &[0, 1, 2, 4, 5, 6, 7, 8])
    }

    /// Returns the table of brackets and rungs. `None` without Hyperband.
    fn rung_table(&self) -> Option<String> {
        let mut rows = Vec::new();
        for (number, bracket, rung) in self.rungs() {
            // The last rung has no comparison.
            let cell = |number: Option<u32>| or_dash(number, |count| count.to_string());
            let compared = rung.compared;
            let mut row = vec![
                number.to_string(),
                bracket.trials_started.to_string(),
                rung.resource.to_string(),
                cell(compared.map(|compared| compared.arrived)),
                cell(compared.map(|compared| compared.went_on)),
            ];
            row.extend(self.promotes().then(|| cell(compared.and_then(|compared| compared.waiting))));
            rows.push(row);
        }
        let mut head = vec!["BRACKET", "TRIALS", "EPOCH", "ARRIVED", "CONTINUED"];
        head.extend(self.promotes().then_some("WAITING"));
        (!rows.is_empty()).then(|| table(&head, &rows, &[0, 1, 2, 3, 4, 5]))
    }

    fn trial_numbers(&self) -> BTreeSet<u32> {
        self.jobs.iter().map(|job| job.controller.trial).collect()
    }

    /// Returns whether trials are promoted from rung to rung.
    fn promotes(&self) -> bool {
        self.described.controller.trials_training.is_some()
    }

    /// Returns the rungs, each with the number of its bracket and its bracket.
    fn rungs(&self) -> impl Iterator<Item = (usize, &Bracket, &Rung)> {
        let brackets = self.described.controller.brackets.iter().enumerate();
        brackets.flat_map(|(number, bracket)| bracket.rungs.iter().map(move |rung| (number, bracket, rung)))
    }

    /// Returns the epochs of a complete trial. `None` without Hyperband.
    fn max_resource(&self) -> Option<u32> {
        self.rungs().map(|(_, _, rung)| rung.resource).max()
    }
}

fn waits(waiting: &WaitingFor) -> String {
    let why = match waiting.reason.as_str() {
        "Capacity" => "no training job gets instances",
        "Quota" => "a quota of the account blocks training jobs",
        "Starts" => "ordered starts wait for the rate of starts that all tunings share, or for SageMaker",
        "MonthlyCap" => "the cap of the month is spent",
        "RunningTrials" => "no new trial starts before a running one logs a value",
        "Bills" => "the last bills are read once more",
        other => other,
    };
    let message =
        waiting.message.as_ref().map_or_else(String::new, |message| format!(": {}", clean(message)));
    format!("{why}{message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_of_a_wait_has_words() {
        for reason in ["Capacity", "Quota", "Starts", "MonthlyCap", "RunningTrials", "Bills"] {
            let message = Some("no memory".to_owned());
            let waiting =
                WaitingFor { reason: reason.to_owned(), since_ms: 0, next_attempt_ms: None, message };
            let text = waits(&waiting);
            assert!(!text.contains(reason) && text.ends_with(": no memory"), "{text}");
        }
    }
}
