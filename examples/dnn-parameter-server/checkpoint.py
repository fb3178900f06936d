"""The checkpoint: one file, complete or absent, from which a later attempt continues exactly.

Has the parameters, the velocity, the number of trained epochs, the seed and the last metric line. The seed is the whole
random state: the order of each pass depends only on it and on the number of the pass. Assumes one writer. Must never
accept a damaged file (the archive has a checksum for each part) or load anything except numbers and text.
"""

import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NAME = "checkpoint.npz"
FORMAT = 1


class BadCheckpoint(Exception):
    """An unusable checkpoint file. The message has the reason."""


@dataclass
class Checkpoint:
    parameters: np.ndarray
    velocity: np.ndarray
    epoch: int
    seed: int
    line: str


def save(folder, checkpoint):
    """Writes a temporary file, then renames it, so a kill of the process never damages the checkpoint. The file is not
    flushed to the disk. After a power failure its checksums reveal damage."""
    unfinished = Path(folder) / f".{NAME}.unfinished"
    about = {"format": FORMAT, "epoch": checkpoint.epoch, "seed": checkpoint.seed, "line": checkpoint.line}
    with open(unfinished, "wb") as file:
        np.savez(
            file,
            about=np.frombuffer(json.dumps(about).encode(), np.uint8),
            parameters=checkpoint.parameters,
            velocity=checkpoint.velocity,
        )
    os.replace(unfinished, Path(folder) / NAME)


def load(file):
    """Returns the checkpoint, or None without a file. Raises BadCheckpoint for a damaged or foreign file."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            about = json.loads(archive["about"].tobytes())
            found = Checkpoint(
                archive["parameters"], archive["velocity"], int(about["epoch"]), int(about["seed"]), str(about["line"])
            )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BadCheckpoint(f"{file} is unreadable: {type(error).__name__}: {error}") from error
    if about.get("format") != FORMAT or found.epoch < 1:
        raise BadCheckpoint(f"{file} is not a checkpoint of this program")
    return found


def load_for(folder, size, seed):
    """Like load(), but also raises BadCheckpoint for another size of network or another seed."""
    file = Path(folder) / NAME
    found = load(file)
    if found is None:
        return None
    if any(part.dtype != np.float32 or part.shape != (size,) for part in (found.parameters, found.velocity)):
        raise BadCheckpoint(f"{file} has another network: {found.parameters.size} parameters, expected {size}")
    if found.seed != seed:
        raise BadCheckpoint(f"{file} has another seed: {found.seed}, expected {seed}")
    return found
