"""Methods of Syne Tune. Its schedulers choose the configurations and stop, pause and resume the trials."""

import logging
from datetime import datetime

from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import lograndint, loguniform, randint, uniform
from syne_tune.optimizer.baselines import ASHA, MOBSTER, HyperTune
from syne_tune.optimizer.scheduler import SchedulerDecision

from world import Job

METRIC, RESOURCE, MAX_RESOURCE = "value", "epoch", "epochs"

# The model is fitted anew for each tenth configuration only, once it has 60 observations.
FASTER = {"search_options": {"opt_skip_init_length": 60, "opt_skip_period": 10}}

SCHEDULERS = {
    "asha-random": (ASHA, {}),
    "mobster": (MOBSTER, FASTER),
    "hypertune": (HyperTune, FASTER),
    "hypertune-4": (HyperTune, FASTER | {"brackets": 4}),
}


def domain(parameter):
    """Returns the domain of a hyperparameter."""
    if parameter.is_integer:
        kind = lograndint if parameter.is_logarithmic else randint
    else:
        kind = loguniform if parameter.is_logarithmic else uniform
    return kind(parameter.min, parameter.max)


class SyneTune:
    """A scheduler of Syne Tune."""

    def __init__(self, name, table, seed, _):
        logging.getLogger("syne_tune").setLevel(logging.ERROR)
        kind, options = SCHEDULERS[name]
        space = {parameter.name: domain(parameter) for parameter in table.parameters}
        self.scheduler = kind(
            space | {MAX_RESOURCE: table.epochs},
            metric=METRIC,
            mode="max" if table.maximize else "min",
            resource_attr=RESOURCE,
            max_resource_attr=MAX_RESOURCE,
            grace_period=1,
            reduction_factor=3,
            random_seed=seed,
            **options,
        )
        self.trials = {}

    def next_job(self):
        suggestion = self.scheduler.suggest(len(self.trials))
        if suggestion is None:
            return None
        if suggestion.spawn_new_trial_id:
            trial = Trial(len(self.trials), suggestion.config, datetime.now())
            self.trials[trial.trial_id] = trial
            self.scheduler.on_trial_add(trial)
        else:
            trial = self.trials[suggestion.checkpoint_trial_id]
            trial.config = suggestion.config or trial.config
        return Job(trial.trial_id, trial.config, trial.config[MAX_RESOURCE])

    def report(self, job, epoch, value):
        trial, result = self.trials[job.trial], {METRIC: value, RESOURCE: epoch}
        if self.scheduler.on_trial_result(trial, result) != SchedulerDecision.CONTINUE:
            self.scheduler.on_trial_remove(trial)
            return False
        if epoch == job.last_epoch:
            self.scheduler.on_trial_complete(trial, result)
        return True


KINDS = dict.fromkeys(SCHEDULERS, SyneTune)
