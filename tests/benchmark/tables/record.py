"""Records tables of learning curves by real training.

    python record.py NAME FOLDER [ROWS]

writes FOLDER/NAME.jsonl.gz (one configuration a line) and FOLDER/NAME.space.json. Configurations are the first ROWS
(400) points of a scrambled Sobol' sequence. Each is trained for 81 epochs and scored on held-out data after each epoch.

Data, configurations and training are seeded, so the hyperparameters and values are repeatable with the versions of
requirements.txt. `seconds_per_epoch` is measured: the mean CPU time of training and scoring.

A new table needs a learner, which is a generator that yields one score an epoch, and an entry of TABLES with its
hyperparameters.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import math
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Callable

import numpy as np

from data import few_noisy_digits, flipped_classes, friedman1_data, seven_uneven_classes, twelve_classes
from learners import (
    EPOCHS, boosted_trees, constant_rate, dyna_q, fourier_regression, matrix_factorisation, mlp, warmup_cosine,
)
from networks import recurrent_net, small_cnn
from scores import accuracy, log_loss, macro_f1
from space import configurations, integer, integer_log, real, real_log, row, write

ROWS = 400


# --- Tables --------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    metric: str
    type: str
    seed: int
    bad: float  # stands for the score of a diverged model, and bounds all scores
    learner: Callable
    parameters: list

    def bounded(self, score):
        if not math.isfinite(score):
            return self.bad
        return max(score, self.bad) if self.type == "Maximize" else min(score, self.bad)


TABLES = {
    "xgb-friedman": Table(
        "validation:rmse", "Minimize", 101, 10.0,
        partial(boosted_trees, friedman1_data,
                {"objective": "reg:squarederror", "eval_metric": "rmse"}),
        [
            real_log("eta", 0.005, 1),
            integer("max_depth", 2, 10),
            real_log("min_child_weight", 0.5, 50),
            real("subsample", 0.3, 1),
            real("colsample_bytree", 0.3, 1),
            real_log("reg_lambda", 1e-3, 100),
        ],
    ),
    "mlp-warmup": Table(
        "validation:accuracy", "Maximize", 102, 0.0,
        partial(mlp, twelve_classes, accuracy, warmup_cosine),
        [
            real_log("learning_rate", 1e-3, 3),
            real("momentum", 0, 0.98),
            integer_log("batch_size", 8, 256),
            integer_log("hidden_units", 8, 160),
            real_log("weight_decay", 1e-6, 0.1),
            real("warmup_share", 0.02, 0.9),
        ],
    ),
    "logreg-noisy": Table(
        "validation:macro_f1", "Maximize", 103, 0.0,
        partial(mlp, seven_uneven_classes, macro_f1, constant_rate),
        [
            real_log("learning_rate", 1e-3, 2),
            real("momentum", 0, 0.95),
            integer_log("batch_size", 4, 128),
            integer_log("hidden_units", 6, 128),
            real_log("weight_decay", 1e-6, 0.1),
            real("dropout", 0, 0.8),
        ],
    ),
    "mlp-overfit": Table(
        "validation:log_loss", "Minimize", 104, 14.0,
        partial(mlp, few_noisy_digits, log_loss, constant_rate),
        [
            real_log("learning_rate", 3e-3, 1),
            real("momentum", 0, 0.98),
            integer_log("batch_size", 4, 128),
            integer_log("hidden_units", 8, 256),
            real_log("weight_decay", 1e-6, 0.1),
            real_log("init_scale", 0.1, 4),
        ],
    ),
    "svd-recommender": Table(
        "validation:rmse", "Minimize", 105, 3.0,
        matrix_factorisation,
        [
            integer_log("rank", 1, 48),
            real_log("learning_rate", 5e-4, 0.05),
            real_log("regularisation", 1e-4, 0.3),
            real_log("init_scale", 1e-3, 1),
            real("decay", 0.9, 1),
        ],
    ),
    "gbm-class": Table(
        "validation:auc", "Maximize", 106, 0.0,
        partial(boosted_trees, flipped_classes,
                {"objective": "binary:logistic", "eval_metric": "auc"}),
        [
            real_log("eta", 0.01, 1),
            integer("max_depth", 1, 9),
            real_log("min_child_weight", 0.1, 100),
            real("subsample", 0.2, 1),
            real("colsample_bynode", 0.1, 1),
            real_log("gamma", 1e-3, 5),
            real_log("reg_alpha", 1e-3, 10),
        ],
    ),
    "rff-regression": Table(
        "validation:rmse", "Minimize", 107, 5.0,
        fourier_regression,
        [
            real_log("gamma", 1e-3, 10),
            integer_log("features", 16, 512),
            real_log("learning_rate", 1e-2, 10),
            real_log("l2", 1e-7, 0.1),
            integer_log("batch_size", 4, 512),
        ],
    ),
    "dyna-q": Table(
        "training:mean_return", "Maximize", 108, -2.0,
        dyna_q,
        [
            real_log("learning_rate", 3e-3, 1),
            real("discount", 0.7, 0.999),
            real("epsilon", 0, 1),
            real_log("epsilon_half_life", 1, 100),
            real("initial_value", -1, 1),
            integer("planning_steps", 0, 6),
        ],
    ),
    "cnn-lite": Table(
        "validation:accuracy", "Maximize", 109, 0.0,
        small_cnn,
        [
            real_log("learning_rate", 1e-3, 2),
            real("momentum", 0, 0.98),
            integer_log("batch_size", 8, 256),
            integer_log("filters", 2, 24),
            real_log("weight_decay", 1e-6, 0.1),
            real("dropout", 0, 0.7),
            real("label_smoothing", 0, 0.4),
        ],
    ),
    "rnn-adding": Table(
        "validation:rmse", "Minimize", 110, 5.0,
        recurrent_net,
        [
            real_log("learning_rate", 1e-4, 0.1),
            real("beta1", 0, 0.98),
            integer_log("batch_size", 32, 512),
            integer_log("hidden_units", 3, 48),
            real("recurrent_scale", 0, 1.5),
            real_log("gradient_clip", 1e-3, 10),
        ],
    ),
}


# --- Recording -----------------------------------------------------------------------


def train(table, hp, seed):
    """Returns the 81 scores and the mean CPU seconds of an epoch."""
    scores, seconds = [], []
    started = time.process_time()
    for score in table.learner(hp=hp, seed=seed):
        ended = time.process_time()
        scores.append(table.bounded(score))
        seconds.append(ended - started)
        if not math.isfinite(score):
            break
        started = time.process_time()
    scores += [table.bad] * (EPOCHS - len(scores))
    return scores, sum(seconds) / len(seconds)


def record(name, directory, rows):
    table, lines = TABLES[name], []
    for index, hp in enumerate(configurations(table.parameters, table.seed, rows)):
        scores, seconds = train(table, hp, seed=1000 * table.seed + index)
        lines.append(row(hp, seconds, scores))
    space = {
        "metric": table.metric,
        "type": table.type,
        "max_resource": EPOCHS,
        "parameters": [vars(p) for p in table.parameters],
    }
    write(directory, name, space, lines)


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4 or sys.argv[1] not in TABLES:
        sys.exit(f"usage: record.py NAME OUT_DIR [ROWS]\nnames: {' '.join(TABLES)}")
    # Diverging models overflow; `train` bounds the scores they yield.
    np.seterr(all="ignore")
    record(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) == 4 else ROWS)
