"""Prints the article's comparison: no tuning on one and on several instances, Hyperband, and the same jobs unstopped.

Reads the two baselines (launch.py), the request and the JSON of `hyperband run --output json`. Every figure is
measured, except in rows that say `computed`. BillableSeconds is taken as the service's BillableTimeInSeconds: the
wall clock of one cluster, so instance-seconds are that times the instances. Must never: state a conclusion that the
figures in front of it do not bear out.
"""

import argparse
import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path

# Less than this between two AUCs is taken for noise. On the default data, untuned jobs that differ only in how the
# rows are copied and spread over hosts, and so in the columns drawn, were seen up to 0.0035 apart.
NOISE = 0.005


def seconds(moment):
    """Epoch seconds of the wire's timestamps, which are numbers, or ISO 8601 in some clients' output."""
    return moment if isinstance(moment, (int, float)) else datetime.fromisoformat(moment).timestamp()


def trials_of(jobs):
    """Per trial, over all its attempts: (rounds seen, seconds trained, starts, num_round); only those with a round."""
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
    """(seconds a start, seconds a round): the least-squares fit seconds = a * starts + b * rounds, over all trials.

    One speed for all and not each trial's own: of a trial that was stopped after a round or two, nearly all seconds
    are start-up, and what is left of them, times the rounds not run, would be noise times thirty. None when the trials
    are too alike to tell the two apart, or the fit makes no sense.
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
    """Cluster seconds if each trial had gone on to target(trial) rounds."""
    return sum(t[1] + per_round * max(target(t) - t[0], 0) for t in trials)


def compare(baselines, request, result):
    """(rows, remarks): a row is (label, AUC or None, instance-seconds, wall seconds or None)."""
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
        remarks.append("The jobs are too few or too alike to compute what they would have cost unstopped.")
    else:
        per_start, per_round = fitted
        for label, target in (
            (f"same jobs, all run to {most} rounds", lambda trial: most),
            ("same jobs, all run to their num_round", lambda trial: trial[3]),
        ):
            cluster = unstopped_seconds(trials, per_round, target)
            rows.append((f"{label} (computed)", None, cluster * instances, cluster / parallel))
        remarks.append(
            f"Computed rows: the measured seconds, and {per_round:.2f} s for each round not run (a fit over "
            f"{len(trials)} trials, beside {per_start:.1f} s a start); wall time with all workers always busy."
        )
    if best and best.get("Controller", {}).get("Resource", 0) > most:
        remarks.append(
            f"The best job had printed {best['Controller']['Resource']} rounds before its stop took effect, against "
            f"{most} of the untuned ones: its AUC is not quite comparable. A larger --replicate makes rounds slower."
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
        said = []  # nothing was distributed
    elif loss > NOISE:
        said = [f"Distribution alone cost {loss:.4f} AUC: {cluster} against one, same hyperparameters."]
    else:
        said = [
            f"Distribution alone cost XGBoost no quality here ({cluster} against one: {-loss:+.4f} AUC, within "
            f"the {NOISE} taken for noise): its allreduce merges the hosts' histograms, so all rows shape every tree."
        ]
    if tuned is not None:
        gain = tuned - spread["value"]
        size = "" if abs(gain) > NOISE else " This is within noise."
        said.append(
            f"Tuning against the untuned {cluster}: {gain:+.4f} AUC.{size} The best of many jobs was chosen by the "
            "rows it is measured on, so the figure flatters it a little."
        )
    return said


def render(rows):
    yield f"{'':<50} {'AUC':>7} {'billable instance-s':>20} {'wall s':>8}"
    for label, value, billable, wall in rows:
        auc = "" if value is None else f"{value:.4f}"
        yield f"{label:<50} {auc:>7} {billable:>20.0f} {wall:>8.1f}"


def money(controller):
    if "SpentUsd" in controller:
        cap = controller.get("CapUsd")
        limit = f" of a cap of ${cap:.2f}" if cap is not None else ""
        yield f"Price of it on the instances named: ${controller['SpentUsd']:.4f}{limit} (nothing was really rented)."
    if controller.get("EndReason"):
        yield f"The tuning ended because: {controller['EndReason']}."


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--baselines", type=Path, nargs="+", required=True, help="smallest first")
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
    print("The untuned jobs had the machine to themselves; the tuning's jobs shared it, which makes them slower.")


if __name__ == "__main__":
    main()
