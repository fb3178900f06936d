//! The examination: submits, looks until everything has ended, asks what can be asked of ended jobs, cleans up.
//!
//! Only gathers. What the account does not let the caller ask is kept as the answer that it is; only what the API does not
//! answer ends it. Must never end without the tuning ordered to stop unless it has ended.

use std::time::Duration;

use client::ClientError;
use tokio::time::sleep;
use tuning::fact::Recorded;
use wire::describe::first_difference;
use wire::names::parse_training_job_name;
use wire::request::Request;

use super::account::Account;
use super::jobs::has_our_tags;
use super::request::again;
use super::seen::{Job, Seen, now};
use crate::arguments::Doctor;
use crate::failure::Failure;
use crate::output::tell;
use crate::page::dollars;
use crate::remote::{Remote, failed};
use crate::submit::is_about_prices;
use crate::text::clean;

/// A job that nobody started.
const NOBODYS: &str = "doctor-looks-for-a-job-that-nobody-started";
/// The examination ends after this, whatever runs; every job has ended long before.
const PATIENCE_MS: i64 = 3_600_000;
/// Bills are waited for so long after the tuning's end.
const BILL_PATIENCE_MS: i64 = 600_000;

/// An examination.
#[derive(Debug)]
pub(super) struct Visit<'a> {
    remote: &'a Remote,
    account: &'a Account<'a>,
    request: &'a Request,
    interval: Duration,
    cap_micro: u64,
    pub(super) seen: Seen,
    /// Whether a tuning may be there that is not known to have ended.
    open: bool,
    /// A job that was started by mistake.
    stray: Option<String>,
    step: u64,
    stop_ordered: bool,
    /// The most that was reserved at once: the worst case of one job.
    reserved_micro: u64,
}

impl<'a> Visit<'a> {
    pub(super) fn new(
        remote: &'a Remote,
        account: &'a Account<'a>,
        request: &'a Request,
        options: &Doctor,
    ) -> Self {
        let seen = Seen { spot: options.spot, image: options.image.clone(), ..Seen::default() };
        Self {
            remote,
            account,
            request,
            interval: options.interval,
            cap_micro: options.max_cost.micro,
            seen,
            open: false,
            stray: None,
            step: 0,
            stop_ordered: false,
            reserved_micro: 0,
        }
    }

    /// What can be asked before anything is started.
    pub(super) async fn prepare(&mut self) -> Result<(), Failure> {
        self.seen.signed = self.remote.client.is_signed().await.map_err(failed)?;
        self.seen.absent = Some((self.account.describe(NOBODYS).await, self.account.stop(NOBODYS).await));
        Ok(())
    }

    /// From the submission to the last question.
    pub(super) async fn follow(&mut self) -> Result<(), Failure> {
        let (began, mut ended) = (now(), None);
        loop {
            self.look().await?;
            if self.seen.over {
                self.open = false;
                let ended = *ended.get_or_insert_with(now);
                let settled = self.seen.jobs.values().all(Job::is_settled);
                if settled || now().saturating_sub(ended) > BILL_PATIENCE_MS {
                    break;
                }
            } else if now().saturating_sub(began) > PATIENCE_MS {
                break;
            }
            sleep(self.interval).await;
        }
        self.ask_of_ended().await;
        Ok(())
    }

    /// Whether the tuning was taken; where there is no price for it, it was not, and that is an answer.
    pub(super) async fn submit(&mut self) -> Result<bool, Failure> {
        let before = now();
        // From here on an answer may be lost.
        self.open = true;
        match self.remote.client.create(self.request).await {
            Ok(created) => {
                tell(&format!("submitted {}: {}\n", self.request.name(), clean(&created.arn)));
                self.seen.submitted = Some((before, now()));
                Ok(true)
            }
            Err(ClientError::Refused(refusal)) if is_about_prices(&refusal.violations) => {
                self.open = false;
                self.seen.unpriced = Some(refusal.message);
                Ok(false)
            }
            Err(error) => {
                // Taken for somebody else's, or never taken: not ours to stop.
                self.open = !error.is_usage() && !matches!(error, ClientError::Denied { .. });
                Err(failed(error))
            }
        }
    }

    /// One look at everything.
    async fn look(&mut self) -> Result<(), Failure> {
        let (client, name) = (&self.remote.client, self.request.name());
        // Before the decisions: once it has ended there are no further ones.
        let tuning = client.describe(name).await.map_err(failed)?;
        let reserved = dollars(&tuning["Controller"]["ReservedUsd"]).map_or(0, |usd| usd.0);
        self.reserved_micro = self.reserved_micro.max(reserved);
        let status = tuning["HyperParameterTuningJobStatus"].as_str().unwrap_or_default();
        self.seen.over = !matches!(status, "InProgress" | "Stopping");
        self.seen.tuning = tuning;
        loop {
            let page = client.decisions(name, self.step).await.map_err(failed)?;
            let at = now();
            for step in &page.steps {
                self.step = self.step.max(step["n"].as_u64().unwrap_or(0));
                let facts = step["facts"].as_array().into_iter().flatten();
                // Facts that only a newer stack knows are none that is looked for.
                let known = facts.filter_map(|fact| serde_json::from_value::<Recorded>(fact.clone()).ok());
                self.seen.facts.extend(known.map(|fact| (at, fact)));
            }
            if !page.more || page.steps.is_empty() {
                break;
            }
        }
        for job in client.training_jobs(name).await.map_err(failed)? {
            if let Some(job) = job["TrainingJobName"].as_str() {
                self.look_at(job).await;
            }
        }
        self.stop_second().await
    }

    /// What SageMaker says of a job.
    async fn look_at(&mut self, name: &str) {
        let Some((tuning, key)) = parse_training_job_name(name) else { return };
        let account = self.account;
        let job = self.seen.jobs.entry(key).or_default();
        name.clone_into(&mut job.name);
        if job.has_ended() && job.is_settled() {
            return;
        }
        match account.describe(name).await {
            Ok(described) => {
                let at = now();
                job.first.get_or_insert(at);
                job.hidden = None;
                let bill = described["BillableTimeInSeconds"].as_u64();
                job.bill = job.bill.or(bill.map(|bill| (at, bill)));
                let (old, new) = (job.text("SecondaryStatus"), &described["SecondaryStatus"]);
                if *new != *old {
                    tell(&format!("{name}: {}\n", clean(new.as_str().unwrap_or_default())));
                }
                job.last = described;
            }
            // It is not there yet, or never will be: the stack says which.
            Err(error) if super::verdict::unanswered(&error).is_none() => return,
            Err(error) => {
                job.hidden = Some(error);
                return;
            }
        }
        if job.tagged.is_none() {
            let tags = account.tags(job.text("TrainingJobArn")).await;
            job.tagged = has_our_tags(&tags).then(now);
            job.tags.get_or_insert(tags);
        }
        if job.listed.is_none() && !job.has_ended() {
            match account.running(&tuning).await {
                Ok(page) => {
                    let mut shown = page["TrainingJobSummaries"].as_array().into_iter().flatten();
                    job.listed = shown.any(|shown| shown["TrainingJobName"] == name).then(|| Ok(now()));
                }
                Err(error) => job.listed = Some(Err(error)),
            }
        }
    }

    /// Stops the tuning once its second job is there.
    async fn stop_second(&mut self) -> Result<(), Failure> {
        if self.stop_ordered || self.seen.over {
            return Ok(());
        }
        let Some((_, job)) = self.seen.jobs.iter_mut().nth(1) else { return Ok(()) };
        if job.first.is_none() && job.hidden.is_none() {
            return Ok(());
        }
        job.before_stop = Some(job.last.clone());
        self.stop_ordered = true;
        tell(&format!("{}: ordered to stop\n", self.request.name()));
        self.stop().await
    }

    async fn stop(&self) -> Result<(), Failure> {
        match self.remote.client.stop(self.request.name()).await {
            // It has ended meanwhile, or never was.
            Ok(()) | Err(ClientError::Refused(_)) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Whatever can be asked only of a job that has ended.
    async fn ask_of_ended(&mut self) {
        for job in self.seen.jobs.values_mut().filter(|job| job.has_ended()) {
            if let Ok(described) = self.account.describe(&job.name).await {
                job.final_bill = described["BillableTimeInSeconds"].as_u64();
            }
        }
        self.list().await;
        let Some((_, job)) = self.seen.first_ended() else { return };
        let name = job.name.clone();
        self.seen.streams = Some(self.account.streams(&name).await);
        self.seen.lines = Some(self.account.lines(&name).await);
        self.seen.ended_stop = Some(self.account.stop(&name).await);
        self.take_again(&name).await;
    }

    /// Lists the jobs that were created since the first one.
    async fn list(&mut self) {
        let created = self.seen.jobs.values().filter_map(|job| job.time("CreationTime"));
        let (Some(first), Some(last)) = (created.clone().min(), created.max()) else { return };
        // As a sweep does: a whole second before.
        let after = first.div_euclid(1_000).saturating_sub(1);
        let pages = self.account.created(after, last.div_euclid(1_000).saturating_add(2)).await;
        self.seen.listed = Some((after, pages));
    }

    /// Tries to take a taken name, if the cap has room for a job in case it is given.
    async fn take_again(&mut self, name: &str) {
        let spent = dollars(&self.seen.tuning["Controller"]["SpentUsd"]).map(|usd| usd.0);
        let Some(spent) = spent.filter(|_| self.reserved_micro > 0 && self.seen.over) else {
            self.seen.taken_not = Some("nobody knows what a job costs at most".to_owned());
            return;
        };
        if spent.saturating_add(self.reserved_micro) > self.cap_micro {
            let why = "if the name were free, the job could exceed --max-cost";
            self.seen.taken_not = Some(why.to_owned());
            return;
        }
        // Before it is sent: its answer may be lost.
        self.stray = Some(name.to_owned());
        let taken = self.account.create(&again(self.request, name)).await;
        if matches!(taken, Err(client::ServiceError::Refused { .. })) {
            self.stray = None;
        }
        self.seen.taken = Some(taken);
    }

    /// Stops whatever was started and is not known to have ended.
    pub(super) async fn clean_up(&mut self) -> Result<(), Failure> {
        if let Some(name) = self.stray.take() {
            // One that has ended is no stray; there is nothing to stop then.
            let _ = self.account.stop(&name).await;
        }
        if !self.open || self.seen.submitted.is_none() && !self.is_there().await? {
            return Ok(());
        }
        self.stop().await?;
        self.open = false;
        Ok(())
    }

    /// Whether a submission whose answers were lost was taken. Another's tuning of that name is not to be stopped.
    async fn is_there(&self) -> Result<bool, Failure> {
        match self.remote.client.describe(self.request.name()).await {
            Ok(described) => Ok(first_difference(&described, self.request).is_none()),
            Err(ClientError::Refused(_)) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}
