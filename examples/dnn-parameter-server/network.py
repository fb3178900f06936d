"""The network and its optimizer: 64 inputs, one layer of ReLU, softmax over ten classes; SGD with momentum.

All parameters lie in one vector of 32-bit floats, so that pulling and pushing them is sending one piece of memory.
Assumes: images are rows of 64 floats from 0 to 1, labels are whole numbers from 0. Must never: take a diverged
network for an error. Infinite and undefined numbers are a result (a bad one), and the tuning has to see it.
"""

import numpy as np

PIXELS = 64
CLASSES = 10
BRIGHTEST = 16  # a pixel is how many of a square of 4x4 black-and-white dots were set


class BadData(Exception):
    """Data that this network cannot be trained on; the message is for its user."""


def read_images(folder):
    """(images, labels) of all .npy files of a channel, in the order of their names: a row is label, then pixels."""
    files = sorted(folder.glob("*.npy"))
    if not files:
        raise BadData(f"no .npy file in {folder}: with ShardedByS3Key every host needs at least one file")
    try:
        parts = [np.load(file, allow_pickle=False) for file in files]
    except (OSError, ValueError, EOFError) as error:
        raise BadData(f"{folder} is not readable as .npy files: {error}") from error
    if any(part.dtype != np.uint8 or part.ndim != 2 or part.shape[1] != 1 + PIXELS for part in parts):
        raise BadData(f"{folder} does not hold rows of a label and {PIXELS} pixels, as bytes; use prepare.py")
    rows = np.concatenate(parts)
    if not len(rows) or rows[:, 0].max() >= CLASSES:
        raise BadData(f"{folder} holds no rows, or a label that is not below {CLASSES}")
    return rows[:, 1:].astype(np.float32) / BRIGHTEST, rows[:, 0].astype(np.intp)


class Network:
    """The shapes only. Parameters and gradients are vectors that the callers hold."""

    def __init__(self, hidden_units):
        self.shapes = [(PIXELS, hidden_units), (hidden_units,), (hidden_units, CLASSES), (CLASSES,)]
        self.size = sum(int(np.prod(shape)) for shape in self.shapes)

    @classmethod
    def of_size(cls, size):
        """The one whose parameters are so many."""
        net = cls((size - CLASSES) // (PIXELS + 1 + CLASSES))
        if net.size != size:
            raise ValueError(f"no network has {size} parameters")
        return net

    def layers(self, vector):
        """Views into the vector: weights and biases of the hidden layer, then of the output."""
        views, start = [], 0
        for shape in self.shapes:
            end = start + int(np.prod(shape))
            views.append(vector[start:end].reshape(shape))
            start = end
        return views

    def initial(self, seed):
        """He's initialization."""
        random, parameters = np.random.default_rng([seed]), np.zeros(self.size, np.float32)
        for weights in self.layers(parameters)[::2]:
            weights[:] = random.standard_normal(weights.shape) * np.sqrt(2 / weights.shape[0])
        return parameters

    def gradient(self, parameters, images, labels, weight_decay, out):
        """Writes the mean gradient of the cross-entropy into `out` and returns the mean loss (without the decay)."""
        weights, biases, top_weights, top_biases = self.layers(parameters)
        to_weights, to_biases, to_top_weights, to_top_biases = self.layers(out)
        with np.errstate(all="ignore"):
            hidden = np.maximum(images @ weights + biases, 0)
            scores = hidden @ top_weights + top_biases
            scores -= scores.max(axis=1, keepdims=True)
            exponents = np.exp(scores)
            sums = exponents.sum(axis=1, keepdims=True)
            rows = np.arange(len(labels))
            loss = float(np.mean(np.log(sums[:, 0]) - scores[rows, labels]))
            errors = exponents / sums
            errors[rows, labels] -= 1
            errors /= len(labels)
            np.matmul(hidden.T, errors, out=to_top_weights)
            np.sum(errors, axis=0, out=to_top_biases)
            back = errors @ top_weights.T
            back *= hidden > 0
            np.matmul(images.T, back, out=to_weights)
            np.sum(back, axis=0, out=to_biases)
            to_weights += weight_decay * weights
            to_top_weights += weight_decay * top_weights
        return loss

    def accuracy(self, parameters, images, labels):
        weights, biases, top_weights, top_biases = self.layers(parameters)
        with np.errstate(all="ignore"):
            scores = np.maximum(images @ weights + biases, 0) @ top_weights + top_biases
        return float(np.mean(scores.argmax(axis=1) == labels))


def step(parameters, velocity, gradient, learning_rate, momentum):
    """One update of SGD with momentum, in place."""
    with np.errstate(all="ignore"):
        velocity *= np.float32(momentum)
        velocity -= np.float32(learning_rate) * gradient
        parameters += velocity


def mini_batches(rows, size, seed, rank, first_pass):
    """Indices of one mini-batch after the other, for ever; the order of a pass follows from its number alone.

    So there is no state of a random number generator to keep: who goes on after `first_pass` passes draws what he
    would have drawn. The rows left over at the end of a pass are left out of it.
    """
    size = min(size, rows)
    while True:
        order = np.random.default_rng([seed, rank, first_pass]).permutation(rows)
        for start in range(0, rows - size + 1, size):
            yield order[start : start + size]
        first_pass += 1


def batches_per_pass(rows, size):
    return max(rows // size, 1)
