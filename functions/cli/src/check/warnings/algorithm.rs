//! Warnings of the algorithm that trains: what its log tells, how far it trains, and what it leaves.

use wire::algorithm::{Algorithm, Resume, StoppedModel, Told, Unsure};
use wire::request::{RESOURCE_NAMES, Request};

use super::when;
use crate::plan::simulate::Execution;
use crate::warning::Warning;

/// Longest waiting time of a spot job of a built-in algorithm that keeps no checkpoints.
const WAIT_SECONDS_MAX: u64 = 3_600;

pub(super) fn warnings(request: &Request) -> Vec<Warning> {
    let mut found: Vec<Warning> = too_few_epochs(request).into_iter().collect();
    if let Some(algorithm) = request.built_in() {
        let own = [
            direction(request),
            told(request, algorithm),
            resume(request, algorithm),
            long_wait(request, algorithm),
            stopped_model(request, algorithm),
            definitions(request, algorithm),
            unsure(request, algorithm),
        ];
        found.extend(own.into_iter().flatten());
    }
    found
}

/// Jobs that end by themselves before the last rung.
fn too_few_epochs(request: &Request) -> Option<Warning> {
    let max = request.max_resource()?;
    if request.resource_hyperparameter().is_some() {
        return None;
    }
    let own = request.built_in().and_then(|algorithm| algorithm.resource).map(|resource| resource.name);
    let mut names = own.into_iter().chain(RESOURCE_NAMES.iter().copied());
    let (name, epochs) = names.find_map(|name| Some((name, request.static_epochs(name)?)))?;
    when(epochs < max, || {
        Warning::new(
            "MaxResourceNotReached",
            format!(
                "Static hyperparameter '{name}' ends a job after {epochs} epochs, and MaxResource is {max}: no trial \
                 reaches the last rung."
            ),
            format!(
                "Give MaxResource {epochs}, or Controller.ResourceHyperParameter '{name}', which is then set to what a \
                 job is to train."
            ),
        )
    })
}

fn direction(request: &Request) -> Option<Warning> {
    let metric = request.built_in_metric().filter(|metric| metric.objective != request.objective())?;
    Some(Warning::new(
        "ObjectiveDirection",
        format!(
            "The request asks to {:?} '{}', which is better the other way.",
            request.objective(),
            metric.name
        ),
        format!("Give HyperParameterTuningJobObjective.Type {:?}.", metric.objective),
    ))
}

fn told(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    if !request.is_hyperband() {
        return None;
    }
    if !algorithm.tells_while_running() {
        return Some(Warning::new(
            "NoValuesPerEpoch",
            format!(
                "{algorithm} tells its metrics at the end of a job only: Hyperband has nothing to stop by."
            ),
            "Use Strategy Random.",
        ));
    }
    let metric = request.built_in_metric()?;
    match metric.told {
        Told::EveryEpoch => None,
        Told::EveryCheckpoint => Some(Warning::new(
            "ResourceIsCheckpoints",
            format!(
                "{algorithm} tells '{}' once a checkpoint: MinResource and MaxResource count checkpoints.",
                metric.name
            ),
            "Give MaxResource as the number of checkpoints of a whole job.",
        )),
        Told::AtEnd => {
            let running = algorithm.metrics.iter().filter(|metric| metric.told != Told::AtEnd);
            let names: Vec<&str> = running.map(|metric| metric.name).collect();
            Some(Warning::new(
                "ObjectiveAtEnd",
                format!(
                    "{algorithm} tells '{}' at the end of a job only: Hyperband has nothing to stop by.",
                    metric.name
                ),
                format!("Use {}, or Strategy Random.", names.join(" or ")),
            ))
        }
    }
}

fn resume(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    let restarts = request.is_spot() || Execution::of(request) == Execution::Promote;
    match algorithm.resume {
        Resume::Works => None,
        Resume::Broken => when(restarts, || {
            Warning::new(
                "ResumeBroken",
                format!(
                    "Current images of {algorithm} write checkpoints that they do not find again: after an \
                     interruption or a promotion training begins at round 0."
                ),
                "Train on demand, or in script mode with checkpoints of your own; reckon with lost rounds on spot.",
            )
        }),
        Resume::None => when(restarts, || {
            Warning::new(
                "NoCheckpoints",
                format!(
                    "{algorithm} is not known to keep checkpoints: after an interruption or a promotion training \
                     begins anew."
                ),
                "Train on demand if jobs are long.",
            )
        }),
    }
}

fn long_wait(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    let none = algorithm.resume == Resume::None;
    let wait = request.max_wait_seconds().filter(|_| request.is_spot() && none)?;
    when(wait > WAIT_SECONDS_MAX, || {
        Warning::new(
            "SpotWaitAboveHour",
            format!(
                "SageMaker allows spot jobs of algorithms without checkpoints, such as {algorithm}, \
                 {WAIT_SECONDS_MAX} s of MaxWaitTimeInSeconds, not {wait}."
            ),
            format!("Give MaxWaitTimeInSeconds {WAIT_SECONDS_MAX} or less."),
        )
    })
}

fn stopped_model(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    const CODE: &str = "StoppedJobsLeaveNoModel";
    let (why, advice) = match algorithm.stopped_model {
        StoppedModel::Unknown => return None,
        StoppedModel::None => (
            String::new(),
            "When the tuning is over, train the best configuration once more to its end.".to_owned(),
        ),
        StoppedModel::With(name) => {
            let value = request.static_hyperparameter(name)?.trim_matches('"');
            if value == "true" {
                return None;
            }
            (format!(", since '{name}' is not true"), format!("Leave '{name}' out: it is set for you."))
        }
    };
    when(request.is_hyperband(), || {
        Warning::new(CODE, format!("A stopped job of {algorithm} leaves no model{why}."), advice)
    })
}

fn definitions(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    when(!request.metric_definitions().is_empty(), || {
        Warning::new(
            "BuiltInDefinitions",
            format!(
                "The request defines metrics of {algorithm}; SageMaker refuses that for its own algorithms."
            ),
            "Leave MetricDefinitions out: those of the algorithm are filled in. Keep them only if the program in the \
             image is your own.",
        )
    })
}

fn unsure(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    let open = algorithm.unsure.contains(&Unsure::Line) && request.metric_definitions().is_empty();
    when(open, || {
        Warning::new(
            "LineNotCertain",
            format!("No document settles how {algorithm} prints '{}'.", request.objective_metric()),
            "Try the log of one job with --log before the tuning.",
        )
    })
}
