//! Runs the checks of a stack: submits the tuning, observes it until it ends, queries the ended jobs, and cleans up.
//!
//! Only collects observations. Errors of SageMaker and CloudWatch Logs are observations too; only an error of the
//! stack's API ends the run. Must never return without stopping the tuning, unless the tuning has ended.

use std::time::Duration;

use api_client::{Address, ClientError};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;
use tuning::log::fact::Recorded;
use wire::describe::{DecisionPage, first_difference};
use wire::names::parse_training_job_name;
use wire::request::Request;

use super::account::Account;
use super::evidence::{Evidence, Job, now};
use super::jobs::has_our_tags;
use super::request::duplicate_job;
use super::verdict::not_answered;
use crate::arguments::Doctor;
use crate::failure::Failure;
use crate::output::print_err;
use crate::remote::{Remote, failed};
use crate::request::is_about_prices;
use crate::text::clean;

/// The part of a stored step that the doctor reads.
#[derive(Deserialize)]
struct StepPart {
    n: u64,
    /// Facts as JSON: those of a newer stack that are unknown here are not needed.
    facts: Vec<Value>,
}

/// Name of a job that does not exist.
const UNKNOWN_JOB: &str = "hyperband-doctor-unknown-job";
/// Maximum duration of the examination. All jobs end long before.
const EXAMINATION_MAX_MS: i64 = 3_600_000;
/// Maximum wait for bills after the end of the tuning.
const BILL_WAIT_MAX_MS: i64 = 600_000;

#[derive(Debug)]
pub(super) struct Examination<'a> {
    remote: &'a Remote,
    account: &'a Account<'a>,
    request: &'a Request,
    interval: Duration,
    cap_micro: u64,
    pub(super) evidence: Evidence,
    /// Whether a submitted tuning may still be running.
    open: bool,
    /// A job that SageMaker may have created under a name in use.
    stray: Option<String>,
    /// Number of the last step read.
    step: u64,
    stop_ordered: bool,
    /// Maximum reserved amount so far: the worst case of one job.
    reserved_micro: u64,
}

impl<'a> Examination<'a> {
    pub(super) fn new(
        remote: &'a Remote,
        account: &'a Account<'a>,
        request: &'a Request,
        options: &Doctor,
    ) -> Self {
        let evidence = Evidence {
            spot: options.spot,
            image: options.image.clone().unwrap_or_default(),
            ..Evidence::default()
        };
        Self {
            remote,
            account,
            request,
            interval: options.interval,
            cap_micro: options.max_cost.micro,
            evidence,
            open: false,
            stray: None,
            step: 0,
            stop_ordered: false,
            reserved_micro: 0,
        }
    }

    /// Makes the observations that need no tuning.
    pub(super) async fn prepare(&mut self) -> Result<(), Failure> {
        let stack = &self.remote.stack;
        let is_http = matches!(stack.address(), Address::Http(_));
        self.evidence.signed = is_http && stack.is_signed().await.map_err(failed)?;
        self.evidence.absent =
            Some((self.account.describe(UNKNOWN_JOB).await, self.account.stop(UNKNOWN_JOB).await));
        Ok(())
    }

    /// Observes the tuning until it ends, then queries its ended jobs.
    pub(super) async fn follow(&mut self) -> Result<(), Failure> {
        let (began, mut ended) = (now(), None);
        loop {
            self.observe().await?;
            if self.evidence.over {
                self.open = false;
                let ended = *ended.get_or_insert_with(now);
                let settled = self.evidence.jobs.values().all(Job::is_settled);
                if settled || now().saturating_sub(ended) > BILL_WAIT_MAX_MS {
                    break;
                }
            } else if now().saturating_sub(began) > EXAMINATION_MAX_MS {
                break;
            }
            sleep(self.interval).await;
        }
        self.ask_of_ended().await;
        Ok(())
    }

    /// Submits the tuning. Returns whether the stack accepted it: a missing price is an observation, not an error.
    pub(super) async fn submit(&mut self) -> Result<bool, Failure> {
        let before = now();
        // From here on the response can be lost.
        self.open = true;
        match self.remote.client.create(self.request).await {
            Ok(created) => {
                print_err(&format!("submitted {}: {}\n", self.request.name(), clean(&created.arn)));
                self.evidence.submitted = Some((before, now()));
                Ok(true)
            }
            Err(ClientError::Refused(refusal)) if is_about_prices(&refusal.violations) => {
                self.open = false;
                self.evidence.unpriced = Some(refusal.message);
                Ok(false)
            }
            Err(error) => {
                // Rejected, or the name belongs to another tuning: nothing to stop.
                self.open = !error.is_usage() && !matches!(error, ClientError::Denied { .. });
                Err(failed(error))
            }
        }
    }

    async fn observe(&mut self) -> Result<(), Failure> {
        let (client, name) = (&self.remote.client, self.request.name());
        // Before the decisions: an ended tuning makes no more decisions.
        let tuning = client.describe(name).await.map_err(failed)?;
        self.reserved_micro = self.reserved_micro.max(tuning.controller.totals.reserved_usd.0);
        self.evidence.over = tuning.base.is_ended();
        self.evidence.tuning = Some(tuning);
        loop {
            let page: DecisionPage<StepPart> = client.decisions(name, self.step).await.map_err(failed)?;
            let at = now();
            for step in &page.steps {
                self.step = self.step.max(step.n);
                let known = step.facts.iter().filter_map(|fact| Recorded::deserialize(fact).ok());
                self.evidence.facts.extend(known.map(|fact| (at, fact)));
            }
            if page.next_token.is_none() || page.steps.is_empty() {
                break;
            }
        }
        for job in client.training_jobs(name).await.map_err(failed)? {
            self.look_at(&job.name).await;
        }
        self.stop_second().await
    }

    /// Updates the observations of a job.
    async fn look_at(&mut self, name: &str) {
        let Some((tuning, key)) = parse_training_job_name(name) else { return };
        let account = self.account;
        let job = self.evidence.jobs.entry(key).or_default();
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
                    print_err(&format!("{name}: {}\n", clean(new.as_str().unwrap_or_default())));
                }
                job.last = described;
            }
            // The job does not exist yet, or never will.
            Err(error) if not_answered(&error).is_none() => return,
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

    /// Stops the tuning once its second job exists.
    async fn stop_second(&mut self) -> Result<(), Failure> {
        if self.stop_ordered || self.evidence.over {
            return Ok(());
        }
        let Some((_, job)) = self.evidence.jobs.iter_mut().nth(1) else { return Ok(()) };
        if job.first.is_none() && job.hidden.is_none() {
            return Ok(());
        }
        job.before_stop = Some(job.last.clone());
        self.stop_ordered = true;
        print_err(&format!("stopping {}\n", self.request.name()));
        self.stop().await
    }

    async fn stop(&self) -> Result<(), Failure> {
        match self.remote.client.stop(self.request.name()).await {
            // The tuning has ended, or does not exist.
            Ok(()) | Err(ClientError::Refused(_)) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Makes the observations that need an ended job.
    async fn ask_of_ended(&mut self) {
        for job in self.evidence.jobs.values_mut().filter(|job| job.has_ended()) {
            if let Ok(described) = self.account.describe(&job.name).await {
                job.final_bill = described["BillableTimeInSeconds"].as_u64();
            }
        }
        self.list().await;
        let Some((_, job)) = self.evidence.first_ended() else { return };
        let name = job.name.clone();
        self.evidence.streams = Some(self.account.streams(&name).await);
        self.evidence.lines = Some(self.account.lines(&name).await);
        self.evidence.ended_stop = Some(self.account.stop(&name).await);
        self.take_again(&name).await;
    }

    /// Lists the jobs created since the first job of the tuning.
    async fn list(&mut self) {
        let created = self.evidence.jobs.values().filter_map(|job| job.time("CreationTime"));
        let (Some(first), Some(last)) = (created.clone().min(), created.max()) else { return };
        // One second earlier, like the sweeper.
        let after = first.div_euclid(1_000).saturating_sub(1);
        let pages = self.account.created(after, last.div_euclid(1_000).saturating_add(2)).await;
        self.evidence.listed = Some((after, pages));
    }

    /// Tries to create a job under a name in use, if the cap could pay for the job.
    async fn take_again(&mut self, name: &str) {
        let spent = self.evidence.spent().map(|usd| usd.0);
        let Some(spent) = spent.filter(|_| self.reserved_micro > 0 && self.evidence.over) else {
            self.evidence.taken_skipped = Some("the maximum cost of a job is unknown".to_owned());
            return;
        };
        if spent.saturating_add(self.reserved_micro) > self.cap_micro {
            let why = "if SageMaker accepted the job, its cost could exceed --max-cost";
            self.evidence.taken_skipped = Some(why.to_owned());
            return;
        }
        // Set before the call, because the response can be lost.
        self.stray = Some(name.to_owned());
        let taken = self.account.create(&duplicate_job(self.request, name)).await;
        if matches!(taken, Err(api_client::ServiceError::Refused { .. })) {
            self.stray = None;
        }
        self.evidence.taken = Some(taken);
    }

    /// Stops everything that the doctor started and that may still be running.
    pub(super) async fn clean_up(&mut self) -> Result<(), Failure> {
        if let Some(name) = self.stray.take() {
            // The stop fails if the job has ended or does not exist; then there is nothing to do.
            let _ = self.account.stop(&name).await;
        }
        if !self.open || self.evidence.submitted.is_none() && !self.is_there().await? {
            return Ok(());
        }
        self.stop().await?;
        self.open = false;
        Ok(())
    }

    /// Returns whether the stack has this tuning, after a lost response. A different tuning with its name is not ours
    /// to stop.
    async fn is_there(&self) -> Result<bool, Failure> {
        match self.remote.client.describe(self.request.name()).await {
            Ok(described) => Ok(first_difference(&described, self.request).is_none()),
            Err(ClientError::Refused(_)) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}
