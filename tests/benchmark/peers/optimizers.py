"""Methods that order an evaluation of a configuration with a number of epochs, and get its last value: SMAC and DEHB.

Their budgets are real numbers. A job trains the nearest whole number of epochs.
"""

import tempfile

from ConfigSpace import ConfigurationSpace, Float, Integer

from world import STARTUP_SECONDS, WORKERS, Job

ETA = 3


def configuration_space(table, seed):
    """Returns the space of a table."""
    space = ConfigurationSpace(seed=seed)
    for parameter in table.parameters:
        kind = Integer if parameter.is_integer else Float
        space.add(kind(parameter.name, (parameter.min, parameter.max), log=parameter.is_logarithmic))
    return space


class Smac:
    """SMAC's multi-fidelity facade: random forests and Hyperband."""

    def __init__(self, _, table, seed, seconds):
        from smac import MultiFidelityFacade, Scenario

        self.table = table
        self.folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            configuration_space(table, seed),
            output_directory=self.folder.name,
            deterministic=True,
            # At most so many jobs fit into the tuning. SMAC draws up to a quarter of them at random.
            n_trials=int(WORKERS * seconds / STARTUP_SECONDS),
            min_budget=1,
            max_budget=table.epochs,
            seed=seed,
        )
        self.facade = MultiFidelityFacade(
            scenario,
            lambda config, budget, seed=0: 0.0,  # required, but never called: the world evaluates
            intensifier=MultiFidelityFacade.get_intensifier(scenario, eta=ETA),
            logging_level=40,
            overwrite=True,
        )

    def next_job(self):
        try:
            order = self.facade.ask()
        except StopIteration:
            return None
        return Job(order.config, dict(order.config), round(order.budget), order)

    def report(self, job, epoch, value):
        if epoch == job.last_epoch:
            from smac.runhistory import TrialValue

            self.facade.tell(job.order, TrialValue(cost=self.table.loss(value)), save=False)
        return True


class Dehb:
    """DEHB: differential evolution and Hyperband."""

    def __init__(self, _, table, seed, __):
        from dehb import DEHB

        self.table = table
        self.folder = tempfile.TemporaryDirectory()
        self.optimizer = DEHB(
            cs=configuration_space(table, seed),
            min_fidelity=1,
            max_fidelity=table.epochs,
            eta=ETA,
            seed=seed,
            # Only its own processes would be more; the world has the workers.
            n_workers=1,
            save_freq=None,
            output_path=self.folder.name,
            log_level="ERROR",
        )

    def next_job(self):
        order = self.optimizer.ask()
        return Job(order["config_id"], dict(order["config"]), round(order["fidelity"]), order)

    def report(self, job, epoch, value):
        if epoch == job.last_epoch:
            self.optimizer.tell(job.order, {"fitness": self.table.loss(value), "cost": float(epoch)})
        return True


KINDS = {"smac-mf": Smac, "dehb": Dehb}
