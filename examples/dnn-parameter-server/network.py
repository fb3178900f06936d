"""The network and its optimizer: 64 inputs, one layer of ReLU, softmax over ten classes; SGD with momentum.

One vector of 32-bit floats has all parameters, so that a host sends them as one piece of memory. Assumes that images
are rows of 64 floats from 0 to 1, and labels are integers from 0. Must never raise an error for a diverged network:
infinite and undefined numbers are a (bad) result, and the tuning needs it.
"""

import numpy as np

PIXELS = 64
CLASSES = 10
BRIGHTEST = 16  # A pixel is the number of set dots in a square of 4x4 dots.


class BadData(Exception):
    """Invalid data. The message is for the user."""


def read_images(folder):
    """Returns (images, labels) of all .npy files of a channel, in the order of their names. A row is a label and pixels."""
    files = sorted(folder.glob("*.npy"))
    if not files:
        raise BadData(f"no .npy file in {folder}: with ShardedByS3Key every host needs at least one file")
    try:
        parts = [np.load(file, allow_pickle=False) for file in files]
    except (OSError, ValueError, EOFError) as error:
        raise BadData(f"{folder} has unreadable .npy files: {error}") from error
    if any(part.dtype != np.uint8 or part.ndim != 2 or part.shape[1] != 1 + PIXELS for part in parts):
        raise BadData(f"{folder} has invalid data: expected rows of a label and {PIXELS} pixels, as bytes, from prepare.py")
    rows = np.concatenate(parts)
    if not len(rows) or rows[:, 0].max() >= CLASSES:
        raise BadData(f"{folder} has no rows, or a label above {CLASSES - 1}")
    return rows[:, 1:].astype(np.float32) / BRIGHTEST, rows[:, 0].astype(np.intp)


class Network:
    """The shapes of a network. The callers own the vectors of parameters and gradients."""

    def __init__(self, hidden_units):
        self.shapes = [(PIXELS, hidden_units), (hidden_units,), (hidden_units, CLASSES), (CLASSES,)]
        self.size = sum(int(np.prod(shape)) for shape in self.shapes)

    @classmethod
    def of_size(cls, size):
        """Returns the network with `size` parameters."""
        net = cls((size - CLASSES) // (PIXELS + 1 + CLASSES))
        if net.size != size:
            raise ValueError(f"no network has {size} parameters")
        return net

    def layers(self, vector):
        """Returns views of the vector: weights and biases of the hidden layer, then of the output layer."""
        views, start = [], 0
        for shape in self.shapes:
            end = start + int(np.prod(shape))
            views.append(vector[start:end].reshape(shape))
            start = end
        return views

    def initial(self, seed):
        """Returns initial parameters by He's method."""
        random, parameters = np.random.default_rng([seed]), np.zeros(self.size, np.float32)
        for weights in self.layers(parameters)[::2]:
            weights[:] = random.standard_normal(weights.shape) * np.sqrt(2 / weights.shape[0])
        return parameters

    def gradient(self, parameters, images, labels, weight_decay, out):
        """Writes the mean gradient of the cross-entropy to `out`. Returns the mean loss, without the weight decay."""
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
    """Applies one update of SGD with momentum, in place."""
    with np.errstate(all="ignore"):
        velocity *= np.float32(momentum)
        velocity -= np.float32(learning_rate) * gradient
        parameters += velocity


def mini_batches(rows, size, seed, rank, first_pass):
    """Yields the indices of mini-batches without end. The order of a pass depends only on seed, rank and its number.

    So no random state must be saved: a worker that continues after `first_pass` passes gets the same mini-batches. A
    pass skips the remaining rows at its end.
    """
    size = min(size, rows)
    while True:
        order = np.random.default_rng([seed, rank, first_pass]).permutation(rows)
        for start in range(0, rows - size + 1, size):
            yield order[start : start + size]
        first_pass += 1


def batches_per_pass(rows, size):
    return max(rows // size, 1)
