"""Learners without convolutions or recurrence. Each yields the score on held-out data after every epoch."""

import math
import random
from functools import cache

import numpy as np
import xgboost

from data import friedman2_data, ratings
from scores import rmse

# Epochs of each learning curve.
EPOCHS = 81


def boosted_trees(data, fixed, hp, seed):
    """XGBoost, one round an epoch."""
    settings = {"tree_method": "hist", "max_bin": 64, "nthread": 1, "seed": seed, "verbosity": 0}
    data = data()
    train = xgboost.QuantileDMatrix(data.x, data.y, max_bin=64, nthread=1)
    val = xgboost.DMatrix(data.x_val, data.y_val, nthread=1)
    booster = xgboost.Booster({**settings, **fixed, **hp}, [train, val])
    for epoch in range(EPOCHS):
        booster.update(train, epoch)
        yield float(booster.eval(val, iteration=epoch).rsplit(":", 1)[1])


class Mlp:
    """One hidden layer of rectifiers under softmax; all weights lie in one flat vector."""

    def __init__(self, inputs, hidden, classes, init_scale, rng):
        shapes = [(inputs, hidden), (hidden,), (hidden, classes), (classes,)]
        size = sum(math.prod(shape) for shape in shapes)
        self.weights = np.zeros(size, np.float32)
        self.gradient = np.zeros(size, np.float32)
        self.velocity = np.zeros(size, np.float32)
        self.layers = self._views(self.weights, shapes)
        self.slopes = self._views(self.gradient, shapes)
        for layer in (self.layers[0], self.layers[2]):
            layer[:] = init_scale * math.sqrt(2 / len(layer)) * rng.normal(size=layer.shape)

    @staticmethod
    def _views(flat, shapes):
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes)]

    def logits(self, x):
        w1, b1, w2, b2 = self.layers
        return np.maximum(x @ w1 + b1, 0) @ w2 + b2

    def step(self, x, targets, lr, momentum, weight_decay, keep):
        """One step of SGD; `keep` masks (and rescales) hidden units, or is None."""
        w1, b1, w2, b2 = self.layers
        hidden = np.maximum(x @ w1 + b1, 0)
        if keep is not None:
            hidden *= keep
        error = hidden @ w2 + b2
        error -= error.max(axis=1, keepdims=True)
        np.exp(error, out=error)
        error /= error.sum(axis=1, keepdims=True)
        error -= targets
        error /= len(x)
        back = error @ w2.T
        back *= hidden > 0
        if keep is not None:
            back *= keep
        np.matmul(x.T, back, out=self.slopes[0])
        back.sum(axis=0, out=self.slopes[1])
        np.matmul(hidden.T, error, out=self.slopes[2])
        error.sum(axis=0, out=self.slopes[3])
        self.gradient += weight_decay * self.weights
        self.gradient *= lr
        self.velocity *= momentum
        self.velocity -= self.gradient
        self.weights += self.velocity


def constant_rate(progress, hp):
    return hp["learning_rate"]


def warmup_cosine(progress, hp):
    """Linear rise over the warm-up share of the training, then a cosine down to zero."""
    share = hp["warmup_share"]
    if progress < share:
        return hp["learning_rate"] * progress / share
    return hp["learning_rate"] * 0.5 * (1 + math.cos(math.pi * (progress - share) / (1 - share)))


def mlp(data, score, schedule, hp, seed):
    """Mini-batch SGD with momentum on `Mlp`."""
    data, rng = data(), np.random.default_rng(seed)
    classes = int(data.y.max()) + 1
    targets = np.eye(classes, dtype=np.float32)[data.y]
    rows, batch = len(data.x), hp["batch_size"]
    net = Mlp(data.x.shape[1], hp["hidden_units"], classes, hp.get("init_scale", 1.0), rng)
    dropout, keep = hp.get("dropout", 0.0), None
    momentum, weight_decay = np.float32(hp["momentum"]), np.float32(hp["weight_decay"])
    for epoch in range(EPOCHS):
        order = rng.permutation(rows)
        x, t = data.x[order], targets[order]
        for start in range(0, rows, batch):
            xb, tb = x[start : start + batch], t[start : start + batch]
            if dropout:
                draw = rng.random((len(xb), hp["hidden_units"]), dtype=np.float32)
                keep = (draw >= dropout) * np.float32(1 / (1 - dropout))
            lr = np.float32(schedule((epoch + start / rows) / EPOCHS, hp))
            net.step(xb, tb, lr, momentum, weight_decay, keep)
        # Weights that overflow stay infinite. NaN marks a diverged model for `train`.
        yield score(net.logits(data.x_val), data.y_val) if np.isfinite(net.weights).all() else math.nan


def matrix_factorisation(hp, seed):
    """Biased matrix factorisation by SGD; a step takes all ratings of 8 users."""
    matrix, train, val = ratings()
    rng = np.random.default_rng(seed)
    users, items = matrix.shape
    mean = matrix[train].mean()
    rank, reg = hp["rank"], np.float32(hp["regularisation"])
    p = (hp["init_scale"] * rng.normal(size=(users, rank))).astype(np.float32)
    q = (hp["init_scale"] * rng.normal(size=(items, rank))).astype(np.float32)
    user_bias, item_bias = np.zeros(users, np.float32), np.zeros(items, np.float32)
    mask = train.astype(np.float32)
    for epoch in range(EPOCHS):
        lr = np.float32(hp["learning_rate"] * hp["decay"] ** epoch)
        order = rng.permutation(users)
        for start in range(0, users, 8):
            block = order[start : start + 8]
            pb, m = p[block], mask[block]
            error = matrix[block] - mean - user_bias[block, None] - item_bias - pb @ q.T
            error *= m
            per_user, per_item = m.sum(axis=1), m.sum(axis=0)
            p[block] += lr * (error @ q - reg * per_user[:, None] * pb)
            q += lr * (error.T @ pb - reg * per_item[:, None] * q)
            user_bias[block] += lr * (error.sum(axis=1) - reg * per_user * user_bias[block])
            item_bias += lr * (error.sum(axis=0) - reg * per_item * item_bias)
        predicted = mean + user_bias[:, None] + item_bias + p @ q.T
        yield rmse(np.clip(predicted[val], 1, 5), matrix[val])


def fourier_regression(hp, seed):
    """Linear regression on random Fourier features of an RBF kernel, by mini-batch SGD."""
    data, rng = friedman2_data(), np.random.default_rng(seed)
    features, batch = hp["features"], hp["batch_size"]
    frequencies = math.sqrt(2 * hp["gamma"]) * rng.normal(size=(data.x.shape[1], features))
    phases = rng.uniform(0, 2 * math.pi, features)

    def transform(x):
        return (math.sqrt(2 / features) * np.cos(x @ frequencies + phases)).astype(np.float32)

    z, z_val = transform(data.x), transform(data.x_val)
    rows, weights = len(z), np.zeros(features, np.float32)
    lr, l2 = np.float32(hp["learning_rate"]), np.float32(hp["l2"])
    for _ in range(EPOCHS):
        order = rng.permutation(rows)
        zs, ys = z[order], data.y[order]
        for start in range(0, rows, batch):
            zb, yb = zs[start : start + batch], ys[start : start + batch]
            gradient = (zb @ weights - yb) @ zb / len(yb)
            weights -= lr * (gradient + l2 * weights)
        yield rmse(z_val @ weights, data.y_val)


ICE = [
    "S.......",
    "........",
    "...O..O.",
    ".....O..",
    "..O.....",
    ".OO..O..",
    ".O..O.O.",
    "...O...G",
]


@cache
def ice_moves():
    """For each cell of ICE and each action: (next cell, reward, end of episode)."""
    side, moves = len(ICE), []
    for row in range(side):
        for column in range(side):
            choices = []
            for down, right in ((-1, 0), (0, 1), (1, 0), (0, -1)):
                r = min(max(row + down, 0), side - 1)
                c = min(max(column + right, 0), side - 1)
                reward, end = {"O": (-1.0, True), "G": (1.0, True)}.get(ICE[r][c], (-0.01, False))
                choices.append((r * side + c, reward, end))
            moves.append(choices)
    return moves


def dyna_q(hp, seed):
    """Dyna-Q on slippery ice; an epoch is 60 episodes, its score their mean return.

    The score is of the behaviour while learning, so exploration costs. A fifth of the
    moves slips into a random direction. An episode has at most 60 moves.
    """
    rng, moves = random.Random(seed), ice_moves()
    q = [[hp["initial_value"]] * 4 for _ in moves]
    rate, discount, planning = hp["learning_rate"], hp["discount"], hp["planning_steps"]
    memory = []

    def learn(cell, action, reward, following, end):
        target = reward if end else reward + discount * max(q[following])
        q[cell][action] += rate * (target - q[cell][action])

    for epoch in range(EPOCHS):
        epsilon = hp["epsilon"] * 0.5 ** (epoch / hp["epsilon_half_life"])
        total = 0.0
        for _ in range(60):
            cell = 0
            for _ in range(60):
                if rng.random() < epsilon:
                    action = int(4 * rng.random())
                else:
                    action = q[cell].index(max(q[cell]))
                taken = action if rng.random() >= 0.2 else int(4 * rng.random())
                following, reward, end = moves[cell][taken]
                learn(cell, action, reward, following, end)
                memory.append((cell, action, reward, following, end))
                for _ in range(planning):
                    learn(*memory[int(len(memory) * rng.random())])
                total += reward
                cell = following
                if end:
                    break
        yield total / 60
