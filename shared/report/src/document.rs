//! The document of a tuning: all data of the page, as compact JSON.
//!
//! Times in a document are milliseconds since the submission, except those of [`Head`]. Amounts are micro-dollars.
//! Values that JSON lacks (NaN and infinities) are null. A reader ignores unknown members.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tuning::definition::Objective;
use tuning::unit::money::MicroUsd;
use wire::describe::{Bracket, Costs, FailureCause, WaitingFor};

/// A tuning as of its last step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// The state of the tuning as a whole.
    pub head: Head,
    /// The trials, by number, without gaps.
    pub trials: Vec<Trial>,
    /// Spent and reserved amounts over time.
    pub money: Money,
    /// Decisions and other events, oldest first.
    pub events: Vec<Event>,
}

/// The changes of a document since an earlier step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// The step of the document that this delta extends.
    pub after: u64,
    /// Replaces the head.
    pub head: Head,
    /// Each replaces the trial of its number, or is new.
    pub trials: Vec<Trial>,
    /// New points.
    pub money: Money,
    /// New events.
    pub events: Vec<Event>,
}

/// The state of a tuning as a whole. Its times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// Number of the last step.
    pub step: u64,
    /// Name of the tuning.
    pub name: String,
    /// Its ID, with which the names of its jobs begin.
    pub id: String,
    /// `HyperParameterTuningJobStatus`.
    pub status: String,
    /// Why the tuning ended or is ending, in words.
    pub reason: Option<String>,
    /// Time of submission.
    pub created: i64,
    /// Time of the last change.
    pub modified: i64,
    /// Time of the end. `None` while the tuning runs.
    pub ended: Option<i64>,
    /// Direction of the objective.
    pub objective: Objective,
    /// Name of the objective metric.
    pub metric: String,
    /// `Strategy` of the request.
    pub strategy: String,
    /// Whether trials are promoted from rung to rung. Otherwise rungs stop running jobs.
    pub promotes: bool,
    /// Epochs of a complete trial. `None` without brackets.
    pub max_epochs: Option<u32>,
    /// `MaxNumberOfTrainingJobs`.
    pub max_jobs: u32,
    /// Maximum number of jobs that run at the same time.
    pub max_parallel: u32,
    /// Number of launched jobs.
    pub jobs_launched: u32,
    /// Number of running jobs.
    pub jobs_running: u32,
    /// What a job waits for before it starts: "a slot" of this machine, or "instances".
    pub starts_need: String,
    /// Epochs that all jobs trained. Repeated epochs count again.
    pub epochs: u64,
    /// Billed seconds of all jobs.
    pub billed_seconds: u64,
    /// Sum of the booked bills.
    pub spent: MicroUsd,
    /// Sum of the reservations.
    pub reserved: MicroUsd,
    /// The cap. `None` without a cap.
    pub cap: Option<MicroUsd>,
    /// Whether the price of the instances is unknown. Then no amount has a meaning.
    pub price_unknown: bool,
    /// The best training job.
    pub best: Option<Best>,
    /// The best value at any epoch of any trial, also of trials that run or failed.
    pub best_seen: Option<Seen>,
    /// Why no job starts.
    pub waiting_for: Option<WaitingFor>,
    /// Since when the user has paused the start of jobs.
    pub paused_since: Option<i64>,
    /// Causes of failed jobs, most frequent first.
    pub failures: Vec<FailureCause>,
    /// The hyperparameters, in the order of [`Trial::values`].
    pub parameters: Vec<Parameter>,
    /// Brackets and their rungs, most exploring first. Empty without Hyperband.
    pub brackets: Vec<Bracket>,
    /// What a training costs.
    pub costs: Costs,
    /// Places at each rung of each bracket, in the plan of one round.
    pub plan: Vec<Vec<u32>>,
    /// Name of the job of the refit.
    pub refit: Option<String>,
    /// Folder or object of the best model, where the writer of the document knows it.
    pub model: Option<String>,
    /// Whose model that is.
    pub model_of: Option<ModelOf>,
    /// Notes about the best model: whether its value is not the best one, or whether it may be missing.
    pub model_notes: Vec<String>,
    /// The command that continues the tuning, if its `run` was interrupted.
    pub interrupted: Option<String>,
}

/// The best training job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Best {
    /// Name of the job.
    pub job: String,
    /// Its trial.
    pub trial: u32,
    /// The epochs that it trained.
    pub epochs: u32,
    /// Its last value, by which jobs are compared.
    pub last: Option<f64>,
    /// The best value of its trial.
    pub value: Option<f64>,
    /// Its hyperparameters, in the order of [`Head::parameters`].
    pub values: Vec<Option<String>>,
}

/// The job with the best model: the completed refit, else the best training job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelOf {
    /// Name of the job.
    pub job: String,
    /// Its trial.
    pub trial: u32,
    /// Its last epoch. The model is that of this epoch, unless the program saved another.
    pub epoch: u32,
    /// Its last value.
    pub value: Option<f64>,
}

/// The best value at any epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// The value.
    pub value: f64,
    /// Its trial.
    pub trial: u32,
    /// Its epoch.
    pub epoch: u32,
}

/// A hyperparameter and its range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its range.
    #[serde(flatten)]
    pub range: search::Domain,
}

/// A trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// Its number.
    pub number: u32,
    /// Its bracket.
    pub bracket: u32,
    /// Whether it trains the best configuration once more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refit: bool,
    /// Its hyperparameters, in the order of [`Head::parameters`].
    pub values: Vec<Option<String>>,
    /// How its configuration was chosen.
    pub chosen: String,
    /// Its present or final state.
    pub outcome: Outcome,
    /// How it ended, or what it waits for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The highest epoch that it reached.
    pub epochs: u32,
    /// Its best value.
    pub best: Option<f64>,
    /// Its last value.
    pub last: Option<f64>,
    /// The last values of the metrics beside the objective, of its last ended job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Its learning curve.
    pub curve: Curve,
    /// Its comparisons at rungs, lowest rung first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judged: Vec<Judged>,
    /// Its jobs, oldest first.
    pub jobs: Vec<Job>,
}

/// The state of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// A job of it runs.
    Running,
    /// Its job waits for a slot of this machine, or for instances.
    Queued,
    /// It waits at a rung for its promotion.
    Waiting,
    /// It waits for a further attempt.
    Retrying,
    /// It trained all its epochs, or its program completed.
    Complete,
    /// It was not among the best at a rung.
    Stopped,
    /// It ended early for another reason.
    Cut,
    /// It failed.
    Failed,
}

/// A learning curve. Values have seven digits. A long curve has only some of its epochs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Curve {
    /// The epochs of the values. Empty if they are 1, 2, 3 and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<u32>,
    /// The values; null = not a number.
    pub values: Vec<Option<f64>>,
}

/// A comparison at a rung.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judged {
    /// The rung in its bracket; 0 = the lowest.
    pub rung: u32,
    /// The level of the rung, in epochs.
    pub level: u32,
    /// The epoch of the compared value.
    pub epoch: u32,
    /// The compared value; null = not a number.
    pub value: Option<f64>,
    /// Rank among the arrived trials; 1 = best. `None` while the trial waits for its promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Number of arrived trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// Number of trials that may continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<u32>,
    /// Whether the trial continued. `None` while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<bool>,
}

/// A training job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its key, which ends its name: trial, rung and attempt.
    pub key: String,
    /// How it ended, or its present state, as one word.
    pub state: String,
    /// Why it was stopped or failed, in a few words. Empty without a reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The epoch at which it ends, where trials are promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// When it was ordered.
    pub ordered: i64,
    /// When it ended. `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<i64>,
    /// The phases that it entered, with their times, oldest first.
    pub phases: Vec<(i64, Phase)>,
    /// Billed seconds. `None` until they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_seconds: Option<u64>,
    /// Its cost. `None` until the bill is booked, or without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// The reservation for its bill, until that is booked. `None` without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<MicroUsd>,
    /// How often it lost its instances.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interruptions: u32,
    /// Whether it ran on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
}

/// A phase of a job on the timeline. A job that was ordered waits before its first phase too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It waits for a slot of this machine, or for instances.
    #[serde(rename = "w")]
    Waiting,
    /// It downloads its data and its image.
    #[serde(rename = "s")]
    Starting,
    /// It trains.
    #[serde(rename = "t")]
    Training,
    /// It has lost its instances and waits for new ones.
    #[serde(rename = "i")]
    Interrupted,
    /// It was ordered to stop, or saves its model.
    #[serde(rename = "e")]
    Ending,
}

/// Spent and reserved amounts after each step that changed them, as columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Money {
    /// The times.
    pub at: Vec<i64>,
    /// The spent amounts.
    pub spent: Vec<MicroUsd>,
    /// The reserved amounts.
    pub reserved: Vec<MicroUsd>,
    /// The caps; null = no cap. A user can change the cap.
    pub cap: Vec<Option<MicroUsd>>,
}

/// An event of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its time.
    pub at: i64,
    /// The trial that it is about. `None` for the tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// One line.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Document {
    /// Extends the document by a delta. Returns `false`, without a change, if the delta does not follow this document.
    pub fn extend(&mut self, delta: Delta) -> bool {
        if delta.after != self.head.step {
            return false;
        }
        self.head = delta.head;
        for trial in delta.trials {
            let known = self.trials.iter_mut().find(|known| known.number == trial.number);
            match known {
                Some(known) => *known = trial,
                None => self.trials.push(trial),
            }
        }
        self.money.append(delta.money);
        self.events.extend(delta.events);
        true
    }
}

impl Money {
    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Returns whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    fn append(&mut self, mut later: Self) {
        self.at.append(&mut later.at);
        self.spent.append(&mut later.spent);
        self.reserved.append(&mut later.reserved);
        self.cap.append(&mut later.cap);
    }

    /// Returns the points from number `first`.
    pub(crate) fn since(&self, first: usize) -> Self {
        fn tail<T: Clone>(all: &[T], first: usize) -> Vec<T> {
            all.get(first..).unwrap_or_default().to_vec()
        }
        Self {
            at: tail(&self.at, first),
            spent: tail(&self.spent, first),
            reserved: tail(&self.reserved, first),
            cap: tail(&self.cap, first),
        }
    }
}
