"""Prints the article's comparison: one instance, several with the same hyperparameters, several tuned.

Reads the jobs of the three rows (JSON lines of launch.py, one per seed), the request and the JSON of `hyperband run
--output json`. Every figure is measured. Test accuracy is on images that neither training nor tuning uses. SageMaker
bills the wall time of a cluster. Instance-seconds are this time multiplied by the number of instances. Must never print
a conclusion that the figures do not support.
"""

import argparse
import json
from datetime import datetime
from pathlib import Path

# A smaller difference between two mean accuracies counts as noise. On the default data, stable jobs of a configuration
# differed by up to 0.004 between seeds. The standard error of an accuracy of 0.98 on 1,124 images is 0.004.
NOISE = 0.01


def seconds(moment):
    """Returns epoch seconds. Timestamps are numbers on the wire, but ISO 8601 in some clients' output."""
    return moment if isinstance(moment, (int, float)) else datetime.fromisoformat(moment).timestamp()


def instances_text(count):
    return f"{count} instance{'' if count == 1 else 's'}"


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def row(label, jobs):
    """Returns (label, test accuracies, mean validation accuracy, mean instance-seconds, mean wall seconds) of a group."""
    billable = mean(job["billable_seconds"] * job["instances"] for job in jobs)
    validation = mean(job["validation"] for job in jobs)
    return (label, [job["test"] for job in jobs], validation, billable, mean(job["seconds"] for job in jobs))


def tuning_row(request, result):
    tuning, jobs = result["TuningJob"], result["TrainingJobs"]
    instances = request["TrainingJobDefinition"]["ResourceConfig"]["InstanceCount"]
    best = tuning.get("BestTrainingJob")
    value = best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] if best else None
    billable = sum(job["Controller"].get("BillableSeconds") or 0 for job in jobs) * instances
    wall = seconds(tuning["HyperParameterTuningEndTime"]) - seconds(tuning["CreationTime"])
    return (f"the tuning: {len(jobs)} jobs of {instances_text(instances)}", [], value, billable, wall)


def compare(groups, request, result):
    """Returns (rows, remarks). The groups: one instance, several untuned, and, if there is a best job, several tuned."""
    alone, untuned, *tuned = groups
    cluster = instances_text(untuned[0]["instances"])
    rows = [
        row(f"{instances_text(alone[0]['instances'])}, its hyperparameters", alone),
        row(f"{cluster}, the same hyperparameters", untuned),
    ]
    rows += [row(f"{cluster}, tuned", jobs) for jobs in tuned]
    rows.append(tuning_row(request, result))
    accuracies = [mean(jobs_row[1]) for jobs_row in rows[:-1]]
    return rows, [how_measured(groups), *conclusions(accuracies, untuned, cluster), epochs_trained(request, result)]


def how_measured(groups):
    seeds = ", ".join(job["hyperparameters"]["seed"] for job in groups[0])
    return (
        f"Rows of jobs: means (minimum and maximum in brackets), seeds {seeds}, {groups[0][0]['epochs']} epochs each; "
        "seconds per job. The tuning does not use the test images."
    )


def conclusions(accuracies, untuned, cluster):
    alone, spread, *tuned = accuracies
    age = mean(job["staleness"] for job in untuned)
    if alone - spread > NOISE:
        yield (
            f"{cluster} with the hyperparameters of one cost {100 * (alone - spread):.1f} points of accuracy: their "
            f"gradients were {age:.2f} updates old on average."
        )
    else:
        yield (
            f"{cluster} with the hyperparameters of one cost no accuracy here ({100 * (spread - alone):+.1f} points, "
            f"noise is up to {100 * NOISE:g}), although gradients were {age:.2f} updates old on average."
        )
    for value in tuned:
        gain = value - spread
        size = " This is within noise." if abs(gain) <= NOISE else ""
        yield (
            f"Tuning against the same hyperparameters: {100 * gain:+.1f} points.{size} Against one instance: "
            f"{100 * (value - alone):+.1f}."
        )
    if not tuned:
        yield "The tuning found no best job."


def epochs_trained(request, result):
    """Compares the trained epochs with those of all configurations trained to the end."""
    most = request["HyperParameterTuningJobConfig"]["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"]
    furthest = {}
    for job in result["TrainingJobs"]:
        trial = job["Controller"]["Trial"]
        furthest[trial] = max(furthest.get(trial, 0), job["Controller"].get("Resource") or 0)
    trained, full = sum(furthest.values()), len(furthest) * most
    return f"The tuning trained {trained} epochs. All epochs of its {len(furthest)} configurations are {full}."


def render(rows):
    yield f"{'':<38} {'test accuracy':<24} {'validation':>10} {'billable instance-s':>20} {'wall s':>8}"
    for label, tests, validation, billable, wall in rows:
        test = f"{mean(tests):.4f} ({min(tests):.4f}-{max(tests):.4f})" if tests else ""
        value = "" if validation is None else f"{validation:.4f}"
        yield f"{label:<38} {test:<24} {value:>10} {billable:>20.0f} {wall:>8.1f}"


def money(controller):
    if "SpentUsd" in controller:
        cap = controller.get("CapUsd")
        limit = f" of a cap of ${cap:.2f}" if cap is not None else ""
        yield f"Price of the tuning on the requested instances: ${controller['SpentUsd']:.4f}{limit} (no instance was rented)."
    if controller.get("EndReason"):
        yield f"Reason for the end of the tuning: {controller['EndReason']}."


def read_jobs(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--jobs", type=Path, nargs="+", required=True, help="files: one instance, several, several tuned")
    parser.add_argument("--request", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    options = parser.parse_args()
    result = json.loads(options.result.read_text())
    groups = [read_jobs(file) for file in options.jobs]
    rows, remarks = compare(groups, json.loads(options.request.read_text()), result)

    print(f"hyperparameters of one instance: {format_hyperparameters(groups[0][0]['hyperparameters'])}")
    best = result["TuningJob"].get("BestTrainingJob")
    if best:
        print(f"tuned ({best['TrainingJobName']}): {format_hyperparameters(best.get('TunedHyperParameters', {}))}")
    print()
    print(*render(rows), "", *remarks, *money(result["TuningJob"].get("Controller", {})), sep="\n")
    print("The jobs of the rows ran alone. The tuning's jobs shared the machine, so they were slower.")


def format_hyperparameters(hyperparameters):
    shown = {name: value for name, value in hyperparameters.items() if name not in ("epochs", "seed")}
    return ", ".join(f"{name} {float(value):.4g}" for name, value in sorted(shown.items()))


if __name__ == "__main__":
    main()
