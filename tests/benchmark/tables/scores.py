"""Scores of predictions on held-out data."""

import math

import numpy as np


def rmse(predicted, true):
    return math.sqrt(np.mean(np.square(predicted - true, dtype=np.float64)))


def accuracy(logits, labels):
    return np.mean(logits.argmax(axis=1) == labels)


def macro_f1(logits, labels):
    classes = logits.shape[1]
    pairs = np.bincount(labels * classes + logits.argmax(axis=1), minlength=classes**2)
    confusion = pairs.reshape(classes, classes)
    present = confusion.sum(axis=0) + confusion.sum(axis=1)
    return np.mean(2 * confusion.diagonal() / np.maximum(present, 1))


def log_loss(logits, labels):
    """Mean log loss, with probabilities kept above 1e-6 (so at most 13.8)."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    log_probability = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    picked = log_probability[np.arange(len(labels)), labels]
    return -np.mean(np.maximum(picked, math.log(1e-6)))
