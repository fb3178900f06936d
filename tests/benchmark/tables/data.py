"""Data sets for the tables, computed or bundled with scikit-learn. All are seeded."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import load_digits, make_classification, make_friedman1, make_friedman2


@dataclass(frozen=True)
class Data:
    """Training and validation halves of a data set, features standardised on the first."""

    x: np.ndarray
    y: np.ndarray
    x_val: np.ndarray
    y_val: np.ndarray


def split(x, y, train_rows, seed):
    order = np.random.default_rng(seed).permutation(len(x))
    train, val = order[:train_rows], order[train_rows:]
    mean, std = x[train].mean(axis=0), x[train].std(axis=0) + 1e-8
    x = ((x - mean) / std).astype(np.float32)
    return Data(x[train], y[train], x[val], y[val])


@cache
def friedman1_data():
    x, y = make_friedman1(4500, n_features=15, noise=2.5, random_state=11)
    return split(x, y, 3000, seed=11)


@cache
def twelve_classes():
    x, y = make_classification(
        5000, n_features=24, n_informative=12, n_redundant=4, n_classes=12,
        n_clusters_per_class=2, class_sep=1.6, flip_y=0.02, random_state=12,
    )
    return split(x, y, 2000, seed=12)


@cache
def seven_uneven_classes():
    x, y = make_classification(
        800, n_features=20, n_informative=10, n_classes=7, n_clusters_per_class=2,
        weights=[0.28, 0.2, 0.15, 0.12, 0.1, 0.08, 0.07], class_sep=1.4, flip_y=0.08,
        random_state=13,
    )
    return split(x, y, 600, seed=13)


@cache
def few_noisy_digits():
    """Digits with 300 training rows; a tenth of all labels is drawn anew."""
    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(14)
    y = np.where(rng.random(len(y)) < 0.1, rng.integers(10, size=len(y)), y)
    return split(x, y, 300, seed=14)


@cache
def ratings():
    """Ratings of 1 to 5 of 400 users for 300 items: biases, rank 6 and noise.

    Returns the matrix and the masks of the training (20 %) and validation (5 %) entries.
    """
    users, items, rank = 400, 300, 6
    rng = np.random.default_rng(15)
    taste = rng.normal(size=(users, rank)) @ rng.normal(size=(rank, items)) / math.sqrt(rank)
    bias = 0.35 * rng.normal(size=(users, 1)) + 0.35 * rng.normal(size=(1, items))
    noise = 0.4 * rng.normal(size=(users, items))
    matrix = np.clip(3.2 + bias + 0.8 * taste + noise, 1, 5)
    draw = rng.random((users, items))
    return matrix.astype(np.float32), draw < 0.20, (0.20 <= draw) & (draw < 0.25)


@cache
def flipped_classes():
    """Two classes; flip_y draws 40 % of the labels anew, which flips 20 %."""
    x, y = make_classification(
        7000, n_features=20, n_informative=8, n_redundant=4, n_clusters_per_class=4,
        class_sep=0.9, flip_y=0.4, random_state=16,
    )
    return split(x, y, 4000, seed=16)


@cache
def friedman2_data():
    x, y = make_friedman2(3000, noise=125.0, random_state=17)
    data = split(x, y, 2000, seed=17)
    mean, std = data.y.mean(), data.y.std()
    return Data(data.x, ((data.y - mean) / std).astype(np.float32),
                data.x_val, (data.y_val - mean) / std)


@cache
def image_patches():
    """Digits under pixel noise, cut into the 36 patches of 3 x 3 pixels of each image."""
    x, y = load_digits(return_X_y=True)
    x = x + np.random.default_rng(19).normal(scale=5.0, size=x.shape)
    data = split(x, y, 600, seed=19)

    def cut(rows):
        images = rows.reshape(-1, 8, 8)
        return np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(1, 2)).reshape(-1, 6, 6, 9)

    return Data(cut(data.x), data.y, cut(data.x_val), data.y_val)


@cache
def adding_problem():
    """Sequences of (number, mark); the target is the sum of the two marked numbers."""
    rng, rows, length = np.random.default_rng(20), 3000, 12
    numbers, marks = rng.uniform(-1, 1, (rows, length)), np.zeros((rows, length))
    for half in (0, length // 2):
        marks[np.arange(rows), half + rng.integers(length // 2, size=rows)] = 1
    x = np.stack([numbers, marks], axis=2).astype(np.float32)
    y = (numbers * marks).sum(axis=1).astype(np.float32)
    return Data(x[:2000], y[:2000], x[2000:], y[2000:])
