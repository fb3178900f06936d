"""Prints the article's comparison: no tuning on one and on several instances, Hyperband, and its jobs without stops.

Reads the two baselines of launch.py, the request and the JSON of `hyperband run --output json`. Every figure is
measured, except in rows with the word `computed`. BillableSeconds corresponds to SageMaker's BillableTimeInSeconds: the
wall time of a cluster. Instance-seconds are this time multiplied by the number of instances. Must never print a
conclusion that the figures do not support.
"""

import argparse
import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path

# A smaller difference between two AUCs counts as noise. On the default data, untuned jobs differed by up to 0.0035 if only
# the copies of the rows and their distribution over hosts were different, and so the sampled columns.
NOISE = 0.005


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


def compare(baselines, request, result):
    """Returns (rows, remarks). A row is (label, AUC or None, instance-seconds, wall seconds or None)."""
    config = request["HyperParameterTuningJobConfig"]
    instances = request["TrainingJobDefinition"]["ResourceConfig"]["InstanceCount"]
    parallel = config["ResourceLimits"]["MaxParallelTrainingJobs"]
    most = config["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"]
    tuning, jobs = result["TuningJob"], result["TrainingJobs"]

    rows = []
    for base in baselines:
        label = f"no tuning, {instances_text(base['instances'])}, {base['rounds']} rounds"
        rows.append((label, base["value"], base["billable_seconds"] * base["instances"], base["seconds"]))

    best = tuning.get("BestTrainingJob")
    value = best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] if best else None
    billable = sum(job["Controller"].get("BillableSeconds") or 0 for job in jobs) * instances
    wall = seconds(tuning["HyperParameterTuningEndTime"]) - seconds(tuning["CreationTime"])
    rows.append((f"Hyperband, {len(jobs)} jobs of {instances_text(instances)}", value, billable, wall))

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
            rows.append((f"{label} (computed)", None, cluster * instances, cluster / parallel))
        remarks.append(
            f"Computed rows add {per_round:.2f} s for each round that did not run (a fit over {len(trials)} trials, with "
            f"{per_start:.1f} s per start). Their wall time assumes that all workers are always busy."
        )
    if best and best.get("Controller", {}).get("Resource", 0) > most:
        remarks.append(
            f"The best job trained {best['Controller']['Resource']} rounds before its stop took effect, the untuned jobs "
            f"{most}. So its AUC is not fully comparable. A larger --replicate makes rounds slower."
        )
    remarks += conclusions(baselines, value)
    return rows, remarks


def instances_text(count):
    return f"{count} instance{'' if count == 1 else 's'}"


def conclusions(baselines, tuned):
    alone, spread = baselines[0], baselines[-1]
    loss = alone["value"] - spread["value"]
    cluster = instances_text(spread["instances"])
    if spread["instances"] == 1:
        text = []  # The job was not distributed.
    elif loss > NOISE:
        text = [f"Distribution alone cost {loss:.4f} AUC: {cluster} against one, same hyperparameters."]
    else:
        text = [
            f"Distribution alone cost XGBoost no quality here ({cluster} against one: {-loss:+.4f} AUC; noise is up to "
            f"{NOISE}). Its allreduce merges the hosts' histograms, so every tree uses all rows."
        ]
    if tuned is not None:
        gain = tuned - spread["value"]
        size = "" if abs(gain) > NOISE else " This is within noise."
        text.append(
            f"Tuning against the untuned {cluster}: {gain:+.4f} AUC.{size} The same rows select and measure the best "
            "job, so the figure is slightly too high."
        )
    return text


def render(rows):
    yield f"{'':<50} {'AUC':>7} {'billable instance-s':>20} {'wall s':>8}"
    for label, value, billable, wall in rows:
        auc = "" if value is None else f"{value:.4f}"
        yield f"{label:<50} {auc:>7} {billable:>20.0f} {wall:>8.1f}"


def money(controller):
    if "SpentUsd" in controller:
        cap = controller.get("CapUsd")
        limit = f" of a cap of ${cap:.2f}" if cap is not None else ""
        yield f"Price of the tuning on the requested instances: ${controller['SpentUsd']:.4f}{limit} (no instance was rented)."
    if controller.get("EndReason"):
        yield f"Reason for the end of the tuning: {controller['EndReason']}."


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--baselines", type=Path, nargs="+", required=True, help="files, fewest instances first")
    parser.add_argument("--request", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    options = parser.parse_args()
    baselines = [json.loads(file.read_text()) for file in options.baselines]
    result = json.loads(options.result.read_text())
    rows, remarks = compare(baselines, json.loads(options.request.read_text()), result)

    best = result["TuningJob"].get("BestTrainingJob")
    if best:
        print(f"best job: {best['TrainingJobName']}")
        for name, value in sorted(best.get("TunedHyperParameters", {}).items()):
            print(f"  {name:<18} {value}")
        print()
    print(*render(rows), "", *remarks, *money(result["TuningJob"].get("Controller", {})), sep="\n")
    print("The untuned jobs ran alone. The tuning's jobs shared the machine, so they were slower.")


if __name__ == "__main__":
    main()
