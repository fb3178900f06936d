//! Notes about the best model: it may be missing, or come from another epoch or trial than the best value. Also
//! explains how to keep it.

use hyperband::ranking::{Direction, improves};
use tuning::definition::Objective;
use use_cases::words::STOPPED_AFTER_LAST_EPOCH;
use wire::describe::{BestModel, TuningJob, request_from_description};
use wire::request::Request;

use crate::text::{clean, value};

/// Returns the notes, as sentences without a final point. Empty if the best model is that of the best value and its job
/// ended by itself.
pub fn notes(described: &TuningJob) -> Vec<String> {
    let Some(model) = &described.controller.best_model else { return Vec::new() };
    let request = request_from_description(described);
    let missing = may_be_missing(described, model, &request)
        .then(|| format!("warning: the training job of the best model was {STOPPED_AFTER_LAST_EPOCH}"));
    let mut notes: Vec<String> = missing.into_iter().chain(worse(described, model, &request)).collect();
    if !notes.is_empty() && !request.refits() {
        notes.push(format!(
            "to keep the best model, save it whenever {} improves, or set Controller.Refit to \"Best\"",
            clean(request.objective_metric())
        ));
    }
    notes
}

/// Returns whether the job was stopped, by the controller or by its time limit, because it did not end after its last
/// epoch.
fn may_be_missing(described: &TuningJob, model: &BestModel, request: &Request) -> bool {
    let most = request.hyperband().and_then(|settings| settings.max_resource);
    let best = described.best_training_job.as_ref().filter(|best| best.name == model.training_job_name);
    best.is_some_and(|best| {
        let own = &best.controller;
        own.level.or(most).is_some_and(|last| own.resource >= last)
            && best.status == "Stopped"
            && own.model.as_deref() != Some("Left")
    })
}

/// Returns how the value of the model differs from the best value at any epoch, if that is better.
fn worse(described: &TuningJob, model: &BestModel, request: &Request) -> Option<String> {
    let (seen, last) = (described.controller.totals.best_seen?, model.value?);
    let direction = match request.objective() {
        Objective::Maximize => Direction::Maximize,
        Objective::Minimize => Direction::Minimize,
    };
    let (same, ended) = (seen.trial == model.trial, described.base.is_ended());
    // Until the end, another trial may become the best, and a refit trains the best epoch again.
    let is_final = ended || same && !request.refits();
    if !is_final || !improves(direction, seen.value, last) || value(seen.value) == value(last) {
        return None;
    }
    let whose = if same {
        format!("its saved model is that of its last epoch {}", model.resource)
    } else {
        format!("the best model is that of the last epoch {} of trial {}", model.resource, model.trial)
    };
    Some(format!(
        "the best value is {} at epoch {} of trial {}; {whose}: {}",
        value(seen.value),
        seen.resource,
        seen.trial,
        value(last)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::describe::{BestSeen, JobController, TrainingJobSummary};

    use super::*;

    fn described(change: impl FnOnce(&mut TuningJob)) -> TuningJob {
        let objective = json!({"Type": "Maximize", "MetricName": "auc"});
        let mut described: TuningJob = serde_json::from_value(json!({
            "HyperParameterTuningJobName": "t",
            "HyperParameterTuningJobArn": "",
            "HyperParameterTuningJobStatus": "Completed",
            "CreationTime": 0,
            "LastModifiedTime": 0,
            "HyperParameterTuningJobConfig": {"HyperParameterTuningJobObjective": objective},
            "TrainingJobDefinition": {},
            "ConsumedResources": {"RuntimeInSeconds": 0},
            "Controller": {
                "SpentUsd": 0,
                "ReservedUsd": 0,
                "TrainingJobsLaunched": 1,
                "TrialsStarted": 1,
                "Brackets": [],
                "BestModel": {
                    "TrainingJobName": "t-7", "Trial": 7, "Resource": 27, "Value": 0.905, "Location": "s3://b/t-7",
                },
            },
        }))
        .unwrap();
        described.controller.totals.best_seen = Some(BestSeen { value: 0.912, trial: 7, resource: 14 });
        described.best_training_job = Some(TrainingJobSummary {
            name: "t-7".to_owned(),
            status: "Stopped".to_owned(),
            controller: JobController {
                model: Some("IfSaved".to_owned()),
                resource: 27,
                ..JobController::default()
            },
            ..TrainingJobSummary::default()
        });
        change(&mut described);
        described
    }

    fn stop_after_last_epoch(described: &mut TuningJob) {
        described.best_training_job.as_mut().unwrap().controller.level = Some(27);
    }

    const KEEP: &str =
        "to keep the best model, save it whenever auc improves, or set Controller.Refit to \"Best\"";

    #[test]
    fn a_model_of_a_worse_epoch_is_noted_with_both_values() {
        let of_its_trial = notes(&described(|_| {}));
        let note = "the best value is 0.912 at epoch 14 of trial 7; its saved model is that of its last epoch 27: 0.905";
        assert_eq!(of_its_trial, [note, KEEP]);
        let of_another = notes(&described(|described| {
            described.controller.totals.best_seen.as_mut().unwrap().trial = 3;
        }));
        let note = "the best value is 0.912 at epoch 14 of trial 3; the best model is that of the last epoch 27 of \
                    trial 7: 0.905";
        assert_eq!(of_another, [note, KEEP]);
    }

    #[test]
    fn nothing_is_noted_while_the_model_has_the_best_value_or_may_still_get_it() {
        let set = |seen: f64, status: &str, refits: bool, trial: u32| {
            notes(&described(|described| {
                described.controller.totals.best_seen = Some(BestSeen { value: seen, trial, resource: 14 });
                described.base.status = status.to_owned();
                if refits {
                    described.controller.settings.insert("Refit".to_owned(), "Best".into());
                }
            }))
        };
        assert_eq!(set(0.905, "Completed", false, 7), [""; 0]);
        assert_eq!(set(0.905_000_000_1, "Completed", false, 7), [""; 0], "both look equal");
        assert_eq!(set(0.912, "InProgress", false, 3), [""; 0], "trial 3 may still become the best");
        assert_eq!(set(0.912, "InProgress", true, 7), [""; 0], "the refit is to come");
        assert_eq!(set(0.912, "InProgress", false, 7).len(), 2);
        assert_eq!(set(0.912, "Completed", true, 7).len(), 1, "the request has a refit already");
    }

    #[test]
    fn a_model_of_a_job_that_was_stopped_after_its_last_epoch_may_be_missing() {
        let agree = |described: &mut TuningJob| described.controller.totals.best_seen = None;
        let stopped = described(|described| {
            agree(described);
            stop_after_last_epoch(described);
        });
        let note = "warning: the training job of the best model was stopped after its last epoch: the model may be missing";
        assert_eq!(notes(&stopped), [note, KEEP]);
        let completed = described(|described| {
            agree(described);
            stop_after_last_epoch(described);
            described.best_training_job.as_mut().unwrap().status = "Completed".to_owned();
        });
        assert_eq!(notes(&completed), [""; 0], "the job completed before the stop took effect");
        let saves = described(|described| {
            agree(described);
            stop_after_last_epoch(described);
            described.best_training_job.as_mut().unwrap().controller.model = Some("Left".to_owned());
        });
        assert_eq!(notes(&saves), [""; 0], "the algorithm saves its model when it is stopped");
        let refitted = described(|described| {
            agree(described);
            stop_after_last_epoch(described);
            described.controller.best_model.as_mut().unwrap().training_job_name = "t-9".to_owned();
        });
        assert_eq!(notes(&refitted), [""; 0], "the model is that of the refit");
    }
}
