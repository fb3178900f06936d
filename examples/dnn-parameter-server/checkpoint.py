"""The checkpoint: one file, complete or absent, with all that a later attempt needs to go on exactly.

Holds parameters, velocity, the epochs done, the seed (all the state there is of random numbers: the order of each
pass follows from it and the pass's number) and the last metric line. Assumes: one writer. Must never: be taken for
whole when it is not (the archive has a checksum for each part), or load anything but plain numbers and text.
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
    """A file that is there but cannot be used; the message says why."""


@dataclass
class Checkpoint:
    parameters: np.ndarray
    velocity: np.ndarray
    epoch: int
    seed: int
    line: str


def save(folder, checkpoint):
    """Under another name first. Not flushed to the disk: it outlives a kill of the process at any moment, and after
    a power failure a damaged file is found out by its checksums."""
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
    """The checkpoint, or None when there is none; BadCheckpoint when the file is damaged or another's."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            about = json.loads(archive["about"].tobytes())
            found = Checkpoint(
                archive["parameters"], archive["velocity"], int(about["epoch"]), int(about["seed"]), str(about["line"])
            )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BadCheckpoint(f"{file} is not readable: {type(error).__name__}: {error}") from error
    if about.get("format") != FORMAT or found.epoch < 1:
        raise BadCheckpoint(f"{file} is not a checkpoint of this program")
    return found


def load_for(folder, size, seed):
    """As load(), and it fits a network of `size` parameters and this seed."""
    file = Path(folder) / NAME
    found = load(file)
    if found is None:
        return None
    if any(part.dtype != np.float32 or part.shape != (size,) for part in (found.parameters, found.velocity)):
        raise BadCheckpoint(f"{file} holds another network: {found.parameters.size} parameters, not {size}")
    if found.seed != seed:
        raise BadCheckpoint(f"{file} was made with seed {found.seed}, not {seed}")
    return found
