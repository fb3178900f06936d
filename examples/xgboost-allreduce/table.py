"""Prints the article's comparison: no tuning on one and on several instances, the same tuned, and the tuning itself.

Reads the jobs of the three rows (JSON lines of launch.py, one per seed), the request and the JSON of `hyperband run
--output json`. Every figure is measured, except in rows with the word `computed`. Test AUC is on rows that neither
training nor tuning uses. BillableSeconds corresponds to SageMaker's BillableTimeInSeconds: the wall time of a cluster.
Instance-seconds are this time multiplied by the number of instances. Must never print a conclusion that the figures do
not support.
"""

import argparse
import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path

# A smaller difference between two AUCs counts as noise. On the default data, the gain by tuning had a standard deviation
# of 0.017 between splits (README.md).
NOISE = 0.02


def seconds(moment):
    """Returns epoch seconds. Timestamps are numbers on the wire, but ISO 8601 in some clients' output."""
    return moment if isinstance(moment, (int, float)) else datetime.fromisoformat(moment).timestamp()


def trials_of(jobs):
    """Returns (rounds, training seconds, starts, num_round) of each trial over all its attempts, if it has a round."""
    trials = defaultdict(lambda: [0, 0.0, 0, 0])
    for job in jobs:
        if "TrainingStartTime" not in job or "TrainingEndTime" not in job:
            continue
        trial = trials[job["Controller"]["Trial"]]
        trial[0] = max(trial[0], job["Controller"].get("Resource") or 0)
        trial[1] += seconds(job["TrainingEndTime"]) - seconds(job["TrainingStartTime"])
        trial[2] += 1
        trial[3] = int(job.get("TunedHyperParameters", {}).get("num_round", 0))
    return [tuple(trial) for trial in trials.values() if trial[0] > 0]


def fit(trials):
    """Returns (seconds per start, seconds per round): the least-squares fit seconds = a * starts + b * rounds.

    The fit covers all trials, because the time of a trial with one or two rounds is nearly all start-up. Its own speed
    per round would be noise, multiplied by up to thirty missing rounds. Returns None if the trials are too similar for a
    fit, or if the fit is negative.
    """
    starts_starts = sum(t[2] * t[2] for t in trials)
    starts_rounds = sum(t[2] * t[0] for t in trials)
    rounds_rounds = sum(t[0] * t[0] for t in trials)
    determinant = starts_starts * rounds_rounds - starts_rounds**2
    if determinant == 0:
        return None
    starts_seconds = sum(t[2] * t[1] for t in trials)
    rounds_seconds = sum(t[0] * t[1] for t in trials)
    a = (starts_seconds * rounds_rounds - rounds_seconds * starts_rounds) / determinant
    b = (rounds_seconds * starts_starts - starts_seconds * starts_rounds) / determinant
    return (a, b) if a >= 0 and b >= 0 else None


def unstopped_seconds(trials, per_round, target):
    """Returns the cluster seconds for the case that each trial trains to target(trial) rounds."""
    return sum(t[1] + per_round * max(target(t) - t[0], 0) for t in trials)


def instances_text(count):
    return f"{count} instance{'' if count == 1 else 's'}"


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def row(label, jobs):
    """Returns (label, mean test AUC, mean validation AUC, mean instance-seconds, mean wall seconds) of a group."""
    billable = mean(job["billable_seconds"] * job["instances"] for job in jobs)
    means = [mean(job[name] for job in jobs) for name in ("test", "validation", "seconds")]
    return (label, means[0], means[1], billable, means[2])


def compare(groups, request, result):
    """Returns (rows, remarks). The groups: one instance, several untuned, and, if there is a best job, several tuned."""
    config = request["HyperParameterTuningJobConfig"]
    instances = request["TrainingJobDefinition"]["ResourceConfig"]["InstanceCount"]
    parallel = config["ResourceLimits"]["MaxParallelTrainingJobs"]
    most = config["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"]
    tuning, jobs = result["TuningJob"], result["TrainingJobs"]

    rows = []
    for group, kind in zip(groups, ("no tuning", "no tuning", "tuned")):
        counted = f"{instances_text(group[0]['instances'])}, {group[0]['rounds']} rounds"
        rows.append(row(f"{kind}, {counted}", group))
    aucs = [group_row[1] for group_row in rows]

    best = tuning.get("BestTrainingJob")
    value = best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] if best else None
    billable = sum(job["Controller"].get("BillableSeconds") or 0 for job in jobs) * instances
    wall = seconds(tuning["HyperParameterTuningEndTime"]) - seconds(tuning["CreationTime"])
    rows.append((f"the tuning: Hyperband, {len(jobs)} jobs of {instances_text(instances)}", None, value, billable, wall))

    remarks = []
    trials = trials_of(jobs)
    fitted = fit(trials)
    if fitted is None:
        remarks.append("The jobs are too few or too similar to compute their cost without stops.")
    else:
        per_start, per_round = fitted
        for label, target in (
            (f"same jobs, all run to {most} rounds", lambda trial: most),
            ("same jobs, all run to their num_round", lambda trial: trial[3]),
        ):
            cluster = unstopped_seconds(trials, per_round, target)
            rows.append((f"{label} (computed)", None, None, cluster * instances, cluster / parallel))
        remarks.append(
            f"Computed rows add {per_round:.2f} s for each round that did not run (a fit over {len(trials)} trials, with "
            f"{per_start:.1f} s per start). Their wall time assumes that all workers are always busy."
        )
    remarks += conclusions(aucs, instances)
    return rows, remarks


def conclusions(aucs, instances):
    alone, spread, *tuned = aucs
    change = spread - alone
    cluster = instances_text(instances)
    if change < -NOISE:
        yield f"Distribution alone cost {-change:.4f} AUC: {cluster} against one, same hyperparameters."
    elif instances > 1:
        yield (
            f"Distribution alone cost XGBoost no quality here ({cluster} against one: {change:+.4f} AUC; noise is up to "
            f"{NOISE}). Its allreduce merges the hosts' histograms, so every tree uses all rows."
        )
    for value in tuned:
        gain = value - spread
        size = "" if abs(gain) > NOISE else " This is within noise."
        yield f"Tuning against the untuned {cluster}: {gain:+.4f} AUC.{size}"
    if not tuned:
        yield "The tuning found no best job."


def render(rows):
    yield f"{'':<50} {'test AUC':>8} {'validation':>10} {'billable instance-s':>20} {'wall s':>8}"
    for label, test, validation, billable, wall in rows:
        test, validation = ("" if value is None else f"{value:.4f}" for value in (test, validation))
        yield f"{label:<50} {test:>8} {validation:>10} {billable:>20.0f} {wall:>8.1f}"


def money(controller):
    if "SpentUsd" in controller:
        cap = controller.get("CapUsd")
        limit = f" of a cap of ${cap:.2f}" if cap is not None else ""
        yield f"Price of the tuning on the requested instances: ${controller['SpentUsd']:.4f}{limit} (no instance was rented)."
    if controller.get("EndReason"):
        yield f"Reason for the end of the tuning: {controller['EndReason']}."


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--jobs", type=Path, nargs="+", required=True, help="files: one instance, several, several tuned")
    parser.add_argument("--request", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--output", type=Path, help="file for the test AUC of each row, as JSON")
    options = parser.parse_args()
    groups = [[json.loads(line) for line in file.read_text().splitlines()] for file in options.jobs]
    result = json.loads(options.result.read_text())
    rows, remarks = compare(groups, json.loads(options.request.read_text()), result)
    if options.output:
        names = ("alone", "untuned", "tuned")
        options.output.write_text(json.dumps({name: row[1] for name, row in zip(names, rows[: len(groups)])}))

    best = result["TuningJob"].get("BestTrainingJob")
    if best:
        print(f"best job: {best['TrainingJobName']}")
        for name, value in sorted(best.get("TunedHyperParameters", {}).items()):
            print(f"  {name:<18} {value}")
        print()
    print(*render(rows), "", *remarks, *money(result["TuningJob"].get("Controller", {})), sep="\n")
    print("The jobs of the first rows ran alone. The tuning's jobs shared the machine, so they were slower.")


if __name__ == "__main__":
    main()
