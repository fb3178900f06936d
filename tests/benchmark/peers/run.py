#!/usr/bin/env python3
"""Plays published multi-fidelity methods on the tables of the benchmark, in virtual time, in the world of its rivals.

Appends a line of JSON for each method, table and seed to a file, and skips those that the file has. README.md has the
setup and the members of a line.
"""

import argparse
import contextlib
import importlib.metadata
import io
import json
import os
import statistics
import sys
from operator import itemgetter
from pathlib import Path

from world import Tuning, Table, names

# The package and the module of each method.
METHODS = {
    "asha-random": ("syne-tune", "syne"),
    "mobster": ("syne-tune", "syne"),
    "hypertune": ("syne-tune", "syne"),
    "hypertune-4": ("syne-tune", "syne"),
    "smac-mf": ("smac", "optimizers"),
    "dehb": ("DEHB", "optimizers"),
}
TABLES = ["digits-mlp", "direct-marketing", "xgboost-allreduce", "dnn-parameter-server", "gbm-class", "rnn-adding"]
CHECKPOINTS = [600, 1_800, 3_600, 7_200]

# One thread, because threads only slow down these small models. A fixed order of sets, because SMAC depends on it.
FIXED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "LOKY_MAX_CPU_COUNT": "1",
    "PYTHONHASHSEED": "0",
}

EXAMPLES = """\
Examples:
  run.py --method mobster --seeds 0..20 --output results.jsonl
  run.py --method asha-random --table digits-mlp --table direct-marketing --seconds 7200 --output long.jsonl
  run.py --summary --output results.jsonl"""


class Invalid(Exception):
    """Invalid input. The message is one line."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Invalid(f"{message}; --help has examples")


# --- Options -------------------------------------------------------------------------


def seeds(text):
    first, dots, end = text.partition("..")
    if not (dots and first.isascii() and first.isdigit() and end.isascii() and end.isdigit() and int(first) < int(end)):
        raise argparse.ArgumentTypeError(f'invalid seeds "{text}": expected FIRST..END, for example 0..20')
    return range(int(first), int(end))


def options():
    parser = Parser(description=__doc__.split("\n\n")[0], epilog=EXAMPLES,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", action="append", choices=METHODS, dest="methods", metavar="NAME",
                        help=f"a method to play; repeat it for more: {', '.join(METHODS)} [default: all installed]")
    parser.add_argument("--table", action="append", choices=names(), dest="tables", metavar="NAME",
                        help=f"a table to play; repeat it for more [default: {', '.join(TABLES)}]")
    parser.add_argument("--seeds", type=seeds, default=range(20), metavar="FIRST..END",
                        help="the seeds, without END [default: 0..20]")
    parser.add_argument("--seconds", type=int, choices=CHECKPOINTS, default=3_600,
                        help="the virtual time of a tuning [default: 3600]")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the file of the results")
    parser.add_argument("--summary", action="store_true", help="print the means of the file as Markdown; play nothing")
    return parser.parse_args()


def version(method):
    """Returns the version of the package of a method; None without the package."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(METHODS[method][0])
    return None


def installed(methods):
    """Returns the methods to play."""
    if not methods:
        found = [method for method in METHODS if version(method)]
        if not found:
            raise Invalid("no method is installed: install a requirements-*.txt, and start run.py with that Python")
        return found
    for method in methods:
        if not version(method):
            package = METHODS[method][0]
            file = f"requirements-{package.lower()}.txt"
            raise Invalid(f"cannot play {method} without {package}: install {file}, and start run.py with that Python")
    return list(dict.fromkeys(methods))


# --- Results -------------------------------------------------------------------------


def results(path):
    """Returns the lines of a file; none if it is missing."""
    if not path.exists():
        return []
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"cannot read {path}: {error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            result = json.loads(line)
            MEMBERS(result)
        except (ValueError, KeyError, TypeError):
            raise Invalid(f"invalid line {number} of {path}: expected a result of run.py, so delete it") from None
        found.append(result)
    return found


# A line of the file has these members, among others.
MEMBERS = itemgetter("method", "table", "seed", "seconds", "checkpoints", "decision_seconds")


def key(result):
    return result["method"], result["table"], result["seed"]


def play(method, table, seed, seconds):
    """Plays a tuning, and returns its result."""
    package, module = METHODS[method]
    # Syne Tune prints the names of optional packages.
    with contextlib.redirect_stdout(io.StringIO()):
        kind = __import__(module).KINDS[method]
    tuning = Tuning(table, kind(method, table, seed, seconds))
    checkpoints = tuning.play([at for at in CHECKPOINTS if at <= seconds])
    return {
        "method": method,
        "package": f"{package} {version(method)}",
        "table": table.name,
        "seed": seed,
        "seconds": seconds,
        "checkpoints": checkpoints,
        "decision_seconds": round(tuning.decision_seconds, 2),
    }


def record(chosen):
    """Plays what the file lacks, seed by seed, so that all methods and tables have about as many seeds at any time."""
    methods = installed(chosen.methods)
    known = results(chosen.output)
    if other := next((result for result in known if result["seconds"] != chosen.seconds), None):
        seconds = other["seconds"]
        raise Invalid(f"{chosen.output} has tunings of {seconds} s: set --seconds {seconds}, or another --output")
    done = set(map(key, known))
    tables = [Table.read(name) for name in dict.fromkeys(chosen.tables or TABLES)]
    try:
        chosen.output.parent.mkdir(parents=True, exist_ok=True)
        file = chosen.output.open("a")
    except OSError as error:
        raise Invalid(f"cannot write {chosen.output}: {error}") from None
    with file:
        for seed in chosen.seeds:
            for table in tables:
                for method in methods:
                    if (method, table.name, seed) in done:
                        continue
                    result = play(method, table, seed, chosen.seconds)
                    print(json.dumps(result), file=file, flush=True)
                    regret, decisions = result["checkpoints"][-1]["regret"], result["decision_seconds"]
                    text = f"seed {seed}, {table.name}, {method}: regret {regret:.4f}, {decisions} s for decisions"
                    print(text, file=sys.stderr)


# --- Summary -------------------------------------------------------------------------


def mean(values):
    """Returns the text of the mean and its standard error."""
    if any(value is None for value in values):
        return "-"
    error = f" ({statistics.stdev(values) / len(values) ** 0.5:.3f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.3f}{error}"


def summary(path):
    """Prints a table in Markdown: mean regrets with standard errors, and the means at the end."""
    found = results(path)
    if not found:
        raise Invalid(f"{path} has no results: play some first, for example with --seeds 0..20")
    times = sorted({state["seconds"] for result in found for state in result["checkpoints"]})
    heads = ["table", "method", "seeds", *(f"{at:,.0f} s" for at in times)]
    heads += ["trials", "jobs", "training, h", "decisions, s"]
    print(f"| {' | '.join(heads)} |")
    print("|---" * len(heads) + "|")
    for table in dict.fromkeys(TABLES + [result["table"] for result in found]):
        for method in METHODS:
            lines = [result for result in found if (result["method"], result["table"]) == (method, table)]
            if lines:
                states = [{state["seconds"]: state["regret"] for state in line["checkpoints"]} for line in lines]
                ends = [line["checkpoints"][-1] for line in lines]
                regrets = [mean([regret for state in states if (regret := state.get(at)) is not None]) for at in times]
                cells = [table, method, len(lines), *regrets]
                cells += [round(statistics.fmean(end[member] for end in ends)) for member in ("trials", "jobs")]
                cells.append(f"{statistics.fmean(end['billed_training_seconds'] for end in ends) / 3_600:.2f}")
                cells.append(f"{statistics.fmean(line['decision_seconds'] for line in lines):.1f}")
                print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in FIXED.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | FIXED)
    try:
        chosen = options()
        summary(chosen.output) if chosen.summary else record(chosen)
    except Invalid as invalid:
        print(f"run.py: {invalid}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
