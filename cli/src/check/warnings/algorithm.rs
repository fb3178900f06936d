//! Warnings about the training algorithm: its metrics, its epochs, its checkpoints and its models.

use wire::algorithm::{Algorithm, Emission, Resume, StoppedModel, Unverified};
use wire::request::{RESOURCE_NAMES, Request};

use crate::warning::{Code, Warning};

/// SageMaker's maximum of `MaxWaitTimeInSeconds` for built-in algorithms without checkpoints.
const WAIT_SECONDS_MAX: u64 = 3_600;

pub(super) fn warnings(request: &Request) -> Vec<Warning> {
    let mut found: Vec<Warning> = too_few_epochs(request).into_iter().collect();
    if let Some(algorithm) = request.built_in() {
        let own = [
            direction(request),
            metric_frequency(request, algorithm),
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

/// Warns of jobs that end before the last rung.
fn too_few_epochs(request: &Request) -> Option<Warning> {
    let max = request.hyperband()?.max_resource?;
    if request.resource_hyperparameter().is_some() {
        return None;
    }
    let own = request.built_in().and_then(|algorithm| algorithm.resource).map(|resource| resource.name);
    let mut names = own.into_iter().chain(RESOURCE_NAMES.iter().copied());
    let (name, epochs) = names.find_map(|name| Some((name, request.static_epochs(name)?)))?;
    Warning::when(
        epochs < max,
        Code::MaxResourceNotReached,
        format!(
            "The static hyperparameter '{name}' ends a job after {epochs} epochs, but MaxResource is {max}: no \
             trial reaches the last rung."
        ),
        format!(
            "Set MaxResource to {epochs}, or set Controller.ResourceHyperParameter to '{name}': the controller \
             then sets '{name}' for each job."
        ),
    )
}

fn direction(request: &Request) -> Option<Warning> {
    let metric = request.built_in_metric().filter(|metric| metric.objective != request.objective())?;
    Some(Warning::new(
        Code::ObjectiveDirection,
        format!(
            "The objective type of '{}' is {:?}, the wrong direction: the tuning would keep the worst trials.",
            metric.name,
            request.objective()
        ),
        format!("Set HyperParameterTuningJobObjective.Type to {:?}.", metric.objective),
    ))
}

fn metric_frequency(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    if !request.strategy().compares_trials() {
        return None;
    }
    if !algorithm.emits_while_running() {
        return Some(Warning::new(
            Code::NoValuesPerEpoch,
            format!(
                "{algorithm} prints its metrics only at the end of a job: Hyperband cannot stop bad trials early."
            ),
            "Use Strategy Random.",
        ));
    }
    let metric = request.built_in_metric()?;
    match metric.emission {
        Emission::EveryEpoch => None,
        Emission::EveryCheckpoint => Some(Warning::new(
            Code::ResourceIsCheckpoints,
            format!(
                "{algorithm} prints '{}' once per checkpoint: MinResource and MaxResource count checkpoints, not \
                 epochs.",
                metric.name
            ),
            "Set MaxResource to the number of checkpoints of a complete job.",
        )),
        Emission::AtEnd => {
            let running = algorithm.metrics.iter().filter(|metric| metric.emission != Emission::AtEnd);
            let names: Vec<&str> = running.map(|metric| metric.name).collect();
            Some(Warning::new(
                Code::ObjectiveAtEnd,
                format!(
                    "{algorithm} prints '{}' only at the end of a job: Hyperband cannot stop bad trials early.",
                    metric.name
                ),
                format!("Use the objective {}, or Strategy Random.", names.join(" or ")),
            ))
        }
    }
}

fn resume(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    let restarts = request.is_spot() || request.may_promote();
    match algorithm.resume {
        Resume::Works => None,
        Resume::Broken => Warning::when(
            restarts,
            Code::ResumeBroken,
            format!(
                "Current images of {algorithm} do not find their own checkpoints: after an interruption or a \
                 promotion, training restarts at round 0."
            ),
            "Use on-demand instances and RungExecution Stop, or script mode with your own checkpoints. Otherwise, \
             plan for repeated rounds.",
        ),
        Resume::None => Warning::when(
            restarts,
            Code::NoCheckpoints,
            format!(
                "{algorithm} is not known to write checkpoints: after an interruption or a promotion, training \
                 restarts from the beginning."
            ),
            "If jobs are long, use on-demand instances and RungExecution Stop.",
        ),
    }
}

fn long_wait(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    let none = algorithm.resume == Resume::None;
    let wait = request.max_wait_seconds().filter(|_| request.is_spot() && none)?;
    Warning::when(
        wait > WAIT_SECONDS_MAX,
        Code::SpotWaitAboveHour,
        format!(
            "SageMaker will reject the spot jobs: for algorithms without checkpoints, such as {algorithm}, it \
             allows a MaxWaitTimeInSeconds of at most {WAIT_SECONDS_MAX}, not {wait}."
        ),
        format!("Set MaxWaitTimeInSeconds to {WAIT_SECONDS_MAX} or less."),
    )
}

fn stopped_model(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    let (why, advice) = match algorithm.stopped_model {
        StoppedModel::Unknown => return None,
        StoppedModel::None if request.refits() => return None,
        StoppedModel::None => {
            let advice =
                "Set Controller.Refit to Best: the tuning then trains the best configuration once more.";
            (String::new(), advice.to_owned())
        }
        StoppedModel::With(name) => {
            let value = request.static_hyperparameter(name)?.trim_matches('"');
            if value == "true" {
                return None;
            }
            (
                format!(", because '{name}' is not true"),
                format!("Remove '{name}': the controller sets it to true."),
            )
        }
    };
    Warning::when(
        request.strategy().compares_trials(),
        Code::StoppedJobsLeaveNoModel,
        format!("A stopped job of {algorithm} saves no model{why}."),
        advice,
    )
}

fn definitions(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    Warning::when(
        request.metric_patterns().next().is_some(),
        Code::BuiltInDefinitions,
        format!(
            "The request has MetricDefinitions for {algorithm}: SageMaker rejects them for built-in algorithms."
        ),
        "Remove MetricDefinitions: the controller knows those of the algorithm. Keep them only if the image runs \
         your own program.",
    )
}

fn unsure(request: &Request, algorithm: &Algorithm) -> Option<Warning> {
    let open = algorithm.unverified.contains(&Unverified::Line) && request.metric_patterns().next().is_none();
    Warning::when(
        open,
        Code::LineNotCertain,
        format!(
            "The documentation does not say how {algorithm} prints '{}': the controller may find no values.",
            request.objective_metric()
        ),
        "Run one job, and test its log with `hyperband check --log` before the tuning.",
    )
}
