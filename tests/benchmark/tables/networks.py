"""A convolutional and a recurrent network in numpy. Each yields the score on held-out data after every epoch."""

import math

import numpy as np

from data import adding_problem, image_patches
from learners import EPOCHS
from scores import accuracy, rmse


def small_cnn(hp, seed):
    """3 x 3 convolution, rectifier, 2 x 2 mean pooling, dropout and softmax; SGD with momentum."""
    data, rng = image_patches(), np.random.default_rng(seed)
    filters, batch, rows = hp["filters"], hp["batch_size"], len(data.x)
    dropout = hp["dropout"]
    smooth = hp["label_smoothing"]
    targets = ((1 - smooth) * np.eye(10) + smooth / 10).astype(np.float32)[data.y]
    kernel = (math.sqrt(2 / 9) * rng.normal(size=(9, filters))).astype(np.float32)
    bias = np.zeros(filters, np.float32)
    dense = (math.sqrt(1 / (9 * filters)) * rng.normal(size=(9 * filters, 10))).astype(np.float32)
    offset = np.zeros(10, np.float32)
    weights = [kernel, bias, dense, offset]
    velocities = [np.zeros_like(w) for w in weights]
    lr, momentum, decay = (np.float32(hp[k]) for k in ("learning_rate", "momentum", "weight_decay"))

    def convolve(patches):
        return np.maximum(patches @ kernel + bias, 0)

    def pool(maps):
        halves = maps[:, :, 0::2] + maps[:, :, 1::2]
        return (halves[:, 0::2] + halves[:, 1::2]).reshape(len(maps), -1) * np.float32(0.25)

    for _ in range(EPOCHS):
        order = rng.permutation(rows)
        for start in range(0, rows, batch):
            chosen = order[start : start + batch]
            patches = data.x[chosen]
            maps = convolve(patches)
            keep = rng.random((len(chosen), 9 * filters), dtype=np.float32) >= dropout
            keep = keep * np.float32(1 / (1 - dropout))
            pooled = pool(maps) * keep
            error = pooled @ dense + offset
            error = np.exp(error - error.max(axis=1, keepdims=True))
            error = (error / error.sum(axis=1, keepdims=True) - targets[chosen]) / len(chosen)
            back = ((error @ dense.T) * keep).reshape(-1, 3, 3, filters) * np.float32(0.25)
            back = back.repeat(2, axis=1).repeat(2, axis=2) * (maps > 0)
            back = back.reshape(-1, filters)
            slopes = [patches.reshape(-1, 9).T @ back, back.sum(axis=0),
                      pooled.T @ error, error.sum(axis=0)]
            for w, v, slope in zip(weights, velocities, slopes):
                v *= momentum
                v -= lr * (slope + decay * w)
                w += v
        logits = pool(convolve(data.x_val)) @ dense + offset
        yield accuracy(logits, data.y_val) if np.isfinite(logits).all() else math.nan


def recurrent_net(hp, seed):
    """A tanh recurrent net with a linear read-out of its last state; Adam, clipped gradients."""
    data, rng = adding_problem(), np.random.default_rng(seed)
    units, batch = hp["hidden_units"], hp["batch_size"]
    rows, length, inputs = data.x.shape
    orthogonal = np.linalg.qr(rng.normal(size=(units, units)))[0]
    feed = rng.normal(size=(inputs, units)).astype(np.float32)
    recur = (hp["recurrent_scale"] * orthogonal).astype(np.float32)
    bias = np.zeros(units, np.float32)
    read = (rng.normal(size=units) / math.sqrt(units)).astype(np.float32)
    weights = [feed, recur, bias, read]
    means = [np.zeros_like(w) for w in weights]
    squares = [np.zeros_like(w) for w in weights]
    beta1, beta2, steps = hp["beta1"], 0.999, 0

    def run(x):
        """The hidden states, the zero state first; `x` is (time, row, input)."""
        driven = x @ feed + bias
        states = [np.zeros((x.shape[1], units), np.float32)]
        for drive in driven:
            states.append(np.tanh(drive + states[-1] @ recur))
        return states

    series, series_val = data.x.swapaxes(0, 1), data.x_val.swapaxes(0, 1)
    for _ in range(EPOCHS):
        order = rng.permutation(rows)
        for start in range(0, rows, batch):
            chosen = order[start : start + batch]
            x = series[:, chosen]
            states = run(x)
            error = (states[-1] @ read - data.y[chosen]) * np.float32(2 / len(chosen))
            backs, back = np.empty((length, len(chosen), units), np.float32), np.outer(error, read)
            for t in reversed(range(length)):
                backs[t] = back * (1 - states[t + 1] ** 2)
                back = backs[t] @ recur.T
            flat = backs.reshape(-1, units)
            slopes = [x.reshape(-1, inputs).T @ flat,
                      np.concatenate(states[:-1]).T @ flat,
                      flat.sum(axis=0), error @ states[-1]]
            norm = math.sqrt(sum(float(np.vdot(slope, slope)) for slope in slopes))
            clip = np.float32(min(1.0, hp["gradient_clip"] / (norm + 1e-12)))
            steps += 1
            rate = np.float32(
                hp["learning_rate"] * math.sqrt(1 - beta2**steps) / (1 - beta1**steps))
            for w, mean, square, slope in zip(weights, means, squares, slopes):
                slope = clip * slope
                mean += np.float32(1 - beta1) * (slope - mean)
                square += np.float32(1 - beta2) * (slope * slope - square)
                w -= rate * mean / (np.sqrt(square) + np.float32(1e-8))
        yield rmse(run(series_val)[-1] @ read, data.y_val)
