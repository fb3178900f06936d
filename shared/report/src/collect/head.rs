//! The head of a document, from the response of Describe and the jobs.

use std::collections::BTreeMap;

use hyperband::plan::Plan;
use tuning::unit::ids::TrialId;
use use_cases::describe::Place;
use wire::describe::{TrainingJobSummary, TuningJob};

use super::parameters;
use super::trial::Record;
use crate::best_model;
use crate::document::{Best, Head, ModelOf, Seen};
use crate::event_text::end_words;
use crate::follow::Follower;

/// The Region in the ARNs of tunings on one machine.
const LOCAL: &str = "local";

/// Returns the head after the last step of `follower`.
pub(super) fn head(follower: &Follower, described: &TuningJob, trials: &BTreeMap<TrialId, Record>) -> Head {
    let definition = &follower.tuning.definition;
    let request = &follower.tuning.request;
    let TuningJob { base, controller: own, .. } = described;
    let totals = &own.totals;
    let (epochs, billed_seconds) = trained(follower, trials);
    let end_word = totals.end_reason.as_deref().or(own.ending_reason.as_deref());
    let plan = definition.compared().map(Plan::brackets).unwrap_or_default();
    let plan = || definition.brackets().filter_map(|bracket| plan.get(definition.in_plan(bracket)));
    Head {
        step: follower.step,
        name: base.name.clone(),
        id: follower.tuning.id.clone(),
        status: base.status.clone(),
        reason: end_word.map(|word| end_words(word, described.failure_reason.as_deref())),
        created: base.created_ms,
        modified: base.modified_ms,
        ended: base.ended_ms,
        objective: definition.objective,
        metric: request.objective_metric().to_owned(),
        strategy: request.strategy().word().to_owned(),
        promotes: definition.promotes().is_some(),
        max_epochs: definition.max_resource().map(|most| most.0),
        max_jobs: definition.planned_jobs(),
        max_parallel: own.max_parallel_training_jobs.unwrap_or(definition.limits.max_parallel),
        jobs_launched: totals.training_jobs_launched,
        jobs_running: base.counters.map_or(0, |counters| counters.in_progress),
        starts_need: if Place::of_arn(&base.arn).region == LOCAL { "a slot" } else { "instances" }.to_owned(),
        epochs,
        billed_seconds,
        spent: totals.spent_usd,
        reserved: totals.reserved_usd,
        cap: totals.cap_usd,
        price_unknown: totals.price_unknown,
        best: described.best_training_job.as_ref().map(|job| best(follower, described, job)),
        best_seen: totals.best_seen.map(|seen| Seen {
            value: seen.value,
            trial: seen.trial,
            epoch: seen.resource,
        }),
        waiting_for: own.waiting_for.clone(),
        paused_since: totals.paused_since_ms,
        failures: own.failures.clone(),
        parameters: parameters::columns(&follower.tuning),
        brackets: own.brackets.clone(),
        costs: own.costs.clone(),
        plan: plan().map(|bracket| bracket.rungs().iter().map(|rung| rung.slots).collect()).collect(),
        refit: own.refit_training_job_name.clone(),
        model: own.best_model.as_ref().map(|model| model.location.clone()),
        model_of: own.best_model.as_ref().map(|model| ModelOf {
            job: model.training_job_name.clone(),
            trial: model.trial,
            epoch: model.resource,
            value: model.value,
        }),
        model_notes: best_model::notes(described),
        interrupted: None,
    }
}

fn best(follower: &Follower, described: &TuningJob, job: &TrainingJobSummary) -> Best {
    let seen = described.controller.totals.best_seen.filter(|seen| seen.trial == job.controller.trial);
    let last = job.final_objective.as_ref().map(|last| last.value);
    let (tuning, trial) = (&follower.tuning, TrialId(job.controller.trial));
    Best {
        job: job.name.clone(),
        trial: job.controller.trial,
        epochs: job.controller.resource,
        last,
        value: seen.map(|seen| seen.value).or(job.controller.best_value).or(last),
        values: parameters::values(tuning, &parameters::columns(tuning), trial, &job.tuned),
    }
}

/// Returns the epochs that all jobs trained, and their billed seconds.
fn trained(follower: &Follower, trials: &BTreeMap<TrialId, Record>) -> (u64, u64) {
    let (mut epochs, mut billed) = (0_u64, 0_u64);
    for (number, record) in trials {
        let mut had = 0;
        for job in record.summaries(*number, follower) {
            let from = job.repeats_from.map_or(had, |from| from.0);
            epochs = epochs.saturating_add(u64::from(job.resource.0.saturating_sub(from)));
            billed = billed.saturating_add(job.billable_seconds.unwrap_or(0));
            had = job.resource.0;
        }
    }
    (epochs, billed)
}
