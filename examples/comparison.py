"""The article's comparison, for the table.py of an example: each number of instances, not tuned and tuned.

Reads the jobs of the rows (JSON lines of launch.py, one per seed), the request and the JSON of `hyperband run --output
json`. The score of a job is on rows that neither training nor tuning uses. Its seconds are modelled (modelled.py), and
instance-seconds are these seconds multiplied by the number of instances.
"""

import argparse
import json
from datetime import datetime
from pathlib import Path


def seconds(moment):
    """Returns epoch seconds. Timestamps are numbers on the wire, but ISO 8601 in some clients' output."""
    return moment if isinstance(moment, (int, float)) else datetime.fromisoformat(moment).timestamp()


def instances_text(count):
    return f"{count} instance{'' if count == 1 else 's'}"


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def score(group):
    return mean(job["test"] for job in group)


def row(label, group):
    """Returns (label, scores, mean score in validation, mean seconds, mean instance-seconds) of a group of jobs."""
    took = mean(job["modelled_seconds"] for job in group)
    scores, validation = [job["test"] for job in group], mean(job["validation"] for job in group)
    return (f"{instances_text(group[0]['instances'])}, {label}", scores, validation, took, took * group[0]["instances"])


def render(rows, title):
    yield f"{'':<38} {title:<24} {'validation':>10} {'modelled s':>11} {'instance-s':>11}"
    for label, scores, validation, took, cost in rows:
        shown = f"{mean(scores):.4f} ({min(scores):.4f}-{max(scores):.4f})"
        yield f"{label:<38} {shown:<24} {validation:>10.4f} {took:>11.2f} {cost:>11.2f}"


def is_noise(one, other, noise):
    """Returns whether the difference of two groups may be noise: it is small, or the scores of the seeds overlap.

    One seed does not show how much the scores differ, so only a far larger difference counts.
    """
    scores = [[job["test"] for job in group] for group in (one, other)]
    most = noise if len(one) > 1 else 5 * noise
    overlap = max(map(min, scores)) <= min(map(max, scores))
    return abs(score(one) - score(other)) <= most or (len(one) > 1 and overlap)


def pairs(untuned, tuned):
    """Returns each tuned group with the untuned one of the same number of instances."""
    count = lambda group: group[0]["instances"]  # noqa: E731
    return [(group, next(other for other in untuned if count(other) == count(group))) for group in tuned]


def of_the_tuning(request, result, unit):
    """Returns remarks about the tuning; `unit` is the name of its resource."""
    tuning, jobs = result["TuningJob"], result["TrainingJobs"]
    if tuning.get("BestTrainingJob") is None:
        yield "The tuning found no best job."
    wall = seconds(tuning["HyperParameterTuningEndTime"]) - seconds(tuning["CreationTime"])
    controller = tuning.get("Controller", {})
    sizes = [f"{size['Trials']} with {instances_text(size['InstanceCount'])}" for size in controller.get("ClusterSizes", [])]
    most = request["HyperParameterTuningJobConfig"]["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"]
    furthest = {}
    for job in jobs:
        trial = job["Controller"]["Trial"]
        # A stop takes a moment, so a job may train a little more than it may.
        reached = min(job["Controller"].get("Resource") or 0, most)
        furthest[trial] = max(furthest.get(trial, 0), reached)
    yield (
        f"The tuning: {len(jobs)} jobs of {len(furthest)} configurations ({', '.join(sizes)}) in {wall:.1f} s. It trained "
        f"{sum(furthest.values())} {unit}; all {unit} of its configurations are {len(furthest) * most}."
    )
    if "SpentUsd" in controller:
        cap = controller.get("CapUsd")
        limit = f" of a cap of ${cap:.2f}" if cap is not None else ""
        yield f"Price of the tuning on the requested instances: ${controller['SpentUsd']:.4f}{limit} (no instance was rented)."
    if controller.get("EndReason"):
        yield f"Reason for the end of the tuning: {controller['EndReason']}."


def format_hyperparameters(hyperparameters):
    shown = {name: value for name, value in hyperparameters.items() if name not in ("epochs", "num_round", "seed")}
    return ", ".join(f"{name} {float(value):.4g}" for name, value in sorted(shown.items()))


def run(description, title, rows, remarks, tuned):
    """Runs table.py. `rows` and `remarks` make the table from the groups, `tuned` has the hyperparameters of a row."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--request", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--untuned", type=Path, nargs="+", help="files of jobs, one instance first")
    parser.add_argument("--tuned", type=Path, nargs="*", default=[], help="files of jobs")
    parser.add_argument("--output", type=Path, help="file for the mean score of each row, as JSON")
    parser.add_argument("--print-tuned", type=int, metavar="N", help="print the tuned hyperparameters for N instances, and end")
    options = parser.parse_args()
    request, result = (json.loads(file.read_text()) for file in (options.request, options.result))
    if options.print_tuned is not None:
        values = tuned(request, result, options.print_tuned)
        return print(*(f"{name}={value}" for name, value in values.items()), sep="\n")
    read = lambda file: [json.loads(line) for line in file.read_text().splitlines()]  # noqa: E731
    untuned, of_tuned = ([read(file) for file in files] for files in (options.untuned, options.tuned))
    if options.output:
        scores = [{group[0]["instances"]: score(group) for group in groups} for groups in (untuned, of_tuned)]
        options.output.write_text(json.dumps(dict(zip(("untuned", "tuned"), scores))))
    for group in of_tuned:
        print(f"{instances_text(group[0]['instances'])}, tuned: {format_hyperparameters(group[0]['hyperparameters'])}")
    lines = [*remarks(untuned, of_tuned), *of_the_tuning(request, result, "rounds" if "rounds" in untuned[0][0] else "epochs")]
    print("", *render(rows(untuned, of_tuned), title), "", *lines, sep="\n")
