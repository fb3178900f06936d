"""The world of the benchmark's rivals in virtual time, for methods that are Python packages.

It is the world of `tests/benchmark/src/rival.rs` without noise: the same nearest rows, times in ms and order of events.
Decisions, starts and stops take no time.
"""

import gzip
import heapq
import json
import math
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Hashable, Protocol

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (ROOT / "examples/curves", ROOT / "tests/benchmark/tables", ROOT / "tests/benchmark/tables/held-out")

WORKERS = 4
STARTUP_SECONDS = 60.0
# The mean job with all epochs lasts as long, without its start-up.
MEAN_JOB_SECONDS = 180.0


def milliseconds(seconds):
    """Returns a duration in whole ms. Halves are rounded up, as Rust rounds positive numbers."""
    return math.floor(seconds * 1_000.0 + 0.5)


# --- Tables --------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter of a table."""

    name: str
    is_integer: bool
    min: float
    max: float
    is_logarithmic: bool

    def coordinate(self, value):
        """Returns the place of a value: 0 at the minimum, 1 at the maximum."""
        low, high, value = (math.log(v) if self.is_logarithmic else v for v in (self.min, self.max, value))
        return (value - low) / (high - low) if high > low else 0.0


@dataclass(frozen=True)
class Row:
    """A recorded configuration."""

    point: list
    seconds_per_epoch: float
    values: list


class Table:
    """Recorded learning curves over one space."""

    def __init__(self, name, space, lines):
        self.name = name
        self.maximize = space["type"] == "Maximize"
        self.epochs = space["max_resource"]
        self.parameters = [
            Parameter(p["name"], p["kind"] == "Integer", p["min"], p["max"], p["scaling"] == "Logarithmic")
            for p in space["parameters"]
        ]
        self.rows = [
            Row(self.point(row["hyperparameters"]), row["seconds_per_epoch"], row["values"])
            for row in map(json.loads, lines)
        ]
        total = sum(row.seconds_per_epoch * self.epochs for row in self.rows)
        self.time_scale = MEAN_JOB_SECONDS * len(self.rows) / total
        bests = [max(row.values) if self.maximize else min(row.values) for row in self.rows]
        self.best = max(bests) if self.maximize else min(bests)
        self.median = statistics.median(bests)

    @classmethod
    def read(cls, name):
        """Reads a table by its name."""
        folder = next(folder for folder in FOLDERS if (folder / f"{name}.jsonl.gz").exists())
        space = json.loads((folder / f"{name}.space.json").read_text())
        return cls(name, space, gzip.decompress((folder / f"{name}.jsonl.gz").read_bytes()).splitlines())

    def point(self, configuration):
        """Returns the place of a configuration in the unit cube."""
        return [p.coordinate(configuration[p.name]) for p in self.parameters]

    def nearest(self, configuration):
        """Returns the row nearest to a configuration, the first one on a tie."""
        point = self.point(configuration)
        return min(self.rows, key=lambda row: sum((a - b) * (a - b) for a, b in zip(row.point, point)))

    def epoch_ms(self, row):
        """Returns the duration of an epoch in ms."""
        return max(milliseconds(row.seconds_per_epoch * self.time_scale), 1)

    def is_better(self, value, other):
        """Returns whether a value is better than another one."""
        return value > other if self.maximize else value < other

    def loss(self, value):
        """Returns the loss of a value, for methods that only minimize. It is above 0 in all tables."""
        return 1.0 - value if self.maximize else value

    def regret(self, value):
        """Returns (best - value) / (best - median) over the best values of all rows."""
        return (self.best - value) / (self.best - self.median)


def names():
    """Returns the names of all tables."""
    return sorted(path.name.removesuffix(".jsonl.gz") for folder in FOLDERS for path in folder.glob("*.jsonl.gz"))


# --- Tunings -------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A job that a method orders."""

    # A later job of the same trial continues from its checkpoint.
    trial: Hashable
    # A number for each hyperparameter; other members are ignored.
    configuration: dict
    # The job ends with this epoch, unless the method ends it earlier.
    last_epoch: int
    # Whatever the method needs to recognize the job.
    order: object = None


class Method(Protocol):
    """A method that orders jobs."""

    def next_job(self) -> Job | None:
        """Returns the job for a free worker; None leaves the worker free until another job ends."""

    def report(self, job: Job, epoch: int, value: float) -> bool:
        """Receives the value after an epoch. Returns whether the job continues."""


@dataclass
class Running:
    """A running job; times in ms."""

    job: Job
    row: Row
    # When its first epoch begins.
    ready: int
    # The last trained epoch of its trial.
    epoch: int


@dataclass
class Tuning:
    """One tuning of a method on a table."""

    table: Table
    method: Method
    now: int = 0
    free: int = WORKERS
    queue: list = field(default_factory=list)
    pushed: int = 0
    running: dict = field(default_factory=dict)
    # The row and the trained epochs of each trial.
    rows: dict = field(default_factory=dict)
    trained: dict = field(default_factory=dict)
    jobs: int = 0
    best: float | None = None
    # Training time of ended jobs, in ms.
    ended: int = 0
    # Processor time that the method took, in seconds.
    decision_seconds: float = 0.0

    def play(self, times):
        """Returns the states at some times, in seconds. The tuning ends at the last one."""
        waiting, states = sorted(milliseconds(at) for at in times), []
        self.start()
        while self.queue and self.queue[0][0] <= waiting[-1]:
            at, _, number = heapq.heappop(self.queue)
            while waiting[0] < at:
                states.append(self.state(waiting.pop(0)))
            self.now = at
            self.epoch(number)
        return states + [self.state(at) for at in waiting]

    def timed(self, call, *arguments):
        """Returns the answer of the method, and counts its processor time."""
        began = time.process_time()
        answer = call(*arguments)
        self.decision_seconds += time.process_time() - began
        return answer

    def start(self):
        """Starts a job on each free worker."""
        while self.free and (job := self.timed(self.method.next_job)):
            self.free -= 1
            if job.trial not in self.rows:
                self.rows[job.trial] = self.table.nearest(job.configuration)
            row, trained = self.rows[job.trial], self.trained.get(job.trial, 0)
            number, self.jobs = self.jobs, self.jobs + 1
            self.running[number] = Running(job, row, self.now + milliseconds(STARTUP_SECONDS), trained)
            self.schedule(number, self.running[number].ready)

    def schedule(self, number, begin):
        """Schedules the next epoch of a job, which begins at `begin` ms. A job without new epochs only reports."""
        running = self.running[number]
        lasts = self.table.epoch_ms(running.row) if running.epoch < running.job.last_epoch else 0
        self.pushed += 1
        heapq.heappush(self.queue, (begin + lasts, self.pushed, number))

    def epoch(self, number):
        """Reports the epoch that a job has just trained. The job continues, or the worker gets the next one."""
        running = self.running[number]
        job, epoch = running.job, min(running.epoch + 1, running.job.last_epoch)
        value = running.row.values[epoch - 1]
        running.epoch = epoch
        self.trained[job.trial] = max(epoch, self.trained.get(job.trial, 0))
        if self.best is None or self.table.is_better(value, self.best):
            self.best = value
        if self.timed(self.method.report, job, epoch, value) and epoch < job.last_epoch:
            self.schedule(number, self.now)
            return
        del self.running[number]
        self.ended += self.now - running.ready
        self.free += 1
        self.start()

    def state(self, at):
        """Returns the state at `at` ms, up to which all events are played."""
        training = self.ended + sum(max(at - running.ready, 0) for running in self.running.values())
        return {
            "seconds": at / 1_000.0,
            "best": self.best,
            "regret": None if self.best is None else self.table.regret(self.best),
            "trials": len(self.rows),
            "jobs": self.jobs,
            "billed_training_seconds": training / 1_000.0,
        }
