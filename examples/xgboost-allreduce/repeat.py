#!/usr/bin/env python3
"""Repeats the comparison of tune.sh over seeds of the split, and prints means and standard errors of the test AUC.

    repeat.py [N]

The seeds are 1 to N (10). Each is the seed of the split and the RandomSeed of the tuning. The jobs of the rows have the
seed 1. Differences are paired: both values have the same split.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def with_error(values):
    return f"{statistics.mean(values):+.4f} ({statistics.stdev(values) / len(values) ** 0.5:.4f})"


def main():
    work = Path(os.environ.get("XGB_EXAMPLE_WORK", HERE / ".work"))
    found = []
    for seed in range(1, int(sys.argv[1]) + 1 if len(sys.argv) > 1 else 11):
        options = ["--split", str(seed), "--seed", str(seed), "--seeds", "1", "--data-dir", work / f"split-{seed}"]
        subprocess.run([HERE / "tune.sh", *options], stdout=subprocess.DEVNULL, check=True)
        found.append(json.loads((work / "comparison.json").read_text()))
        print(seed, found[-1], flush=True)
    several = max(found[0]["untuned"], key=int)
    alone = [each["untuned"]["1"] for each in found]
    untuned, tuned = ([each[name][several] for each in found] for name in ("untuned", "tuned"))
    for label, values in (
        ("no tuning, 1 instance", alone),
        (f"no tuning, {several} instances", untuned),
        (f"tuned, {several} instances", tuned),
        ("loss by distribution", [a - b for a, b in zip(alone, untuned)]),
        ("gain by tuning", [a - b for a, b in zip(tuned, untuned)]),
    ):
        print(f"{label:<30} {with_error(values)}")


if __name__ == "__main__":
    main()
