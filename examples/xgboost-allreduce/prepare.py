"""Creates the training shards, the validation file and the test file from a data set.

Default data set: the caravan policies of the CoIL 2000 challenge, 5,822 rows, from the PyPI package ISLP. The program
reads the file of the installed package and imports nothing. With --data: any CSV with a header and a target column of
yes and no, such as UCI's bank-additional-full.csv. Text columns are one-hot encoded.

The training rows can be replicated, so that a round takes long enough for a stop to save time. The article's notebook
replicates them 100 times. The other rows are not replicated, because copies do not change the AUC.

Writes OUT/<id>/train/part-NNN.csv (one per instance), OUT/<id>/validation/part-000.csv and OUT/<id>/test/part-000.csv,
label first, no header, and prints the folder. Only train/ and validation/ are channels of the tuning. The ID is a hash
of the input, so new data never replaces files that a tuning still reads. Must never leave an incomplete folder under
its final name.
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

FORMAT = 3
CARAVAN = {"rows": 5_822, "columns": 86, "positive": 348}


class BadData(Exception):
    """Invalid data. The message is for the user."""


def caravan_file():
    package = importlib.util.find_spec("ISLP")
    if package is None:
        raise BadData("the package ISLP is not installed: pip install --no-deps -r requirements-data.txt")
    return Path(package.submodule_search_locations[0]) / "data/Caravan.csv"


def read_caravan(file):
    table = read_table(file, "Purchase", [])
    found = {"rows": len(table), "columns": table.shape[1], "positive": int(table[:, 0].sum())}
    if found != CARAVAN:
        raise BadData(f"{file} is not the Caravan data set: expected {CARAVAN}, found {found}")
    return table


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


def split(table, seed, validation, test):
    """Splits by class into these shares and the rest. Returns (train, validation, test), each shuffled."""
    random, parts = np.random.default_rng(seed), ([], [], [])
    for label in (0.0, 1.0):
        rows = random.permutation(np.flatnonzero(table[:, 0] == label))
        first = round(len(rows) * validation)
        second = first + round(len(rows) * test)
        if first == 0 or second == len(rows):
            raise BadData(f"only {len(rows)} rows of class {label:g}: too few to train and to validate")
        for part, some in zip(parts, (rows[second:], rows[:first], rows[first:second]), strict=True):
            part.append(some)
    return tuple(table[random.permutation(np.concatenate(part))] for part in parts)


def write(table, parts, shards, folder):
    """Writes all files into a temporary folder, then renames it."""
    unfinished = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    train, validation, test = parts
    for name, pieces in (("train", np.array_split(train, shards)), ("validation", [validation]), ("test", [test])):
        (unfinished / name).mkdir(parents=True)
        for index, piece in enumerate(pieces):
            np.savetxt(unfinished / name / f"part-{index:03d}.csv", piece, delimiter=",", fmt="%.7g")
    summary = {
        "rows": len(table),
        "positive": int(table[:, 0].sum()),
        "features": table.shape[1] - 1,
        "train": len(train),
        "validation": len(validation),
        "test": len(test),
        "shards": shards,
        # Of the histograms of all features: distinct values, at most XGBoost's default of 256.
        "bins": sum(min(len(np.unique(column)), 256) for column in train[:, 1:].T),
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
    parser.add_argument("--split", type=int, default=7, help="seed of the split")
    parser.add_argument("--validation", type=float, default=0.3, help="share of the rows")
    parser.add_argument("--test", type=float, default=0.3, help="share of the rows")
    options = parser.parse_args()
    dropped = [name for name in options.drop.split(",") if name]
    try:
        file = options.data or caravan_file()
        if not file.is_file():
            raise BadData(f"{file} is not a file")
        shares = (options.split, options.validation, options.test)
        inputs = [FORMAT, shares, options.shards, options.replicate, options.data is None, options.target, dropped]
        key = hashlib.sha256(json.dumps(inputs).encode() + file.read_bytes()).hexdigest()[:12]
        folder = options.out.resolve() / key
        if not folder.is_dir():
            table = read_table(file, options.target, dropped) if options.data else read_caravan(file)
            train, *held_out = split(table, *shares)
            train = np.random.default_rng(options.split).permutation(np.repeat(train, options.replicate, axis=0))
            if len(train) < options.shards:
                raise BadData(f"{len(train)} training rows cannot be split over {options.shards} instances")
            write(table, (train, *held_out), options.shards, folder)
    except BadData as error:
        sys.exit(f"prepare.py: {error}")
    s = json.loads((folder / "summary.json").read_text())
    print(
        f"data: {s['rows']} rows ({s['positive']} positive), {s['features']} features: "
        f"{s['train']} for training in {s['shards']} shards, {s['validation']} for validation, {s['test']} for the test",
        file=sys.stderr,
    )
    print(folder)


if __name__ == "__main__":
    main()
