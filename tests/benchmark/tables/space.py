"""Hyperparameters of the tables and their configurations: points of a scrambled Sobol' sequence."""

import gzip
import json
import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    min: float
    max: float
    scaling: str

    def value(self, unit):
        """Returns the value at `unit`, a coordinate in [0, 1]."""
        integer = self.kind == "Integer"
        # Half a step more on either side gives both end values a full share.
        low, high = (self.min - 0.5, self.max + 0.5) if integer else (self.min, self.max)
        if self.scaling == "Logarithmic":
            value = low * (high / low) ** unit
        else:
            value = low + (high - low) * unit
        value = min(max(value, self.min), self.max)
        return round(value) if integer else significant(value, 8)


def real(name, low, high):
    return Parameter(name, "Continuous", float(low), float(high), "Linear")


def real_log(name, low, high):
    return Parameter(name, "Continuous", float(low), float(high), "Logarithmic")


def integer(name, low, high):
    return Parameter(name, "Integer", low, high, "Linear")


def integer_log(name, low, high):
    return Parameter(name, "Integer", low, high, "Logarithmic")


def significant(value, digits):
    return float(f"{value:.{digits}g}")


def configurations(parameters, seed, rows):
    sobol = qmc.Sobol(len(parameters), scramble=True, rng=np.random.default_rng(seed))
    for point in sobol.random_base2(math.ceil(math.log2(rows)))[:rows]:
        yield {p.name: p.value(unit) for p, unit in zip(parameters, point)}


def row(configuration, seconds, values, **more):
    """Returns a line of a table."""
    return json.dumps({
        "hyperparameters": configuration,
        **more,
        "seconds_per_epoch": significant(seconds, 4),
        "values": [significant(value, 6) for value in values],
    })


def write(folder, name, space, lines):
    """Writes a table and its space."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.space.json").write_text(json.dumps(space, indent=1) + "\n")
    (folder / f"{name}.jsonl.gz").write_bytes(
        gzip.compress("".join(line + "\n" for line in lines).encode(), mtime=0))
