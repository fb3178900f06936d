"""Prints the article's comparison: each number of instances with the hyperparameters of one, and with tuned ones.

Must never print a conclusion that the figures do not support.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import comparison  # noqa: E402
from comparison import instances_text, mean, score  # noqa: E402

# A smaller difference between two mean accuracies counts as noise. On the default data, stable jobs of a configuration
# differed by up to 0.004 between seeds. The standard error of an accuracy of 0.98 on 1,124 images is 0.004.
NOISE = 0.01
# Accuracies of diverged networks differ without a reason. There are ten classes.
NEAR_CHANCE = 0.3


def rows(untuned, tuned):
    for group in untuned:
        yield comparison.row("its hyperparameters" if group is untuned[0] else "the same hyperparameters", group)
    for group in tuned:
        yield comparison.row("tuned", group)


def remarks(untuned, tuned):
    seeds = ", ".join(job["hyperparameters"]["seed"] for job in untuned[0])
    yield (
        f"Rows: means (minimum and maximum in brackets), seeds {seeds}, {untuned[0][0]['epochs']} epochs each. The tuning "
        "does not use the test images. Seconds are modelled: CPU time of the slowest host, and the network's time."
    )
    for group in untuned[1:]:
        cluster, lost = instances_text(group[0]["instances"]), 100 * (score(untuned[0]) - score(group))
        age = mean(job["staleness"] for job in group)
        if lost > 0 and not is_noise(group, untuned[0]):
            yield (
                f"{cluster} with the hyperparameters of one cost {lost:.1f} points of accuracy: their gradients were "
                f"{age:.2f} updates old on average."
            )
        else:
            yield (
                f"{cluster} with the hyperparameters of one cost no clear accuracy here ({-lost:+.1f} points), although "
                f"gradients were {age:.2f} updates old on average."
            )
    for group, same in comparison.pairs(untuned, tuned):
        yield gain(group, same, untuned[0])


def gain(group, same, alone):
    cluster = instances_text(group[0]["instances"])
    if numbers(group) == numbers(same):
        return f"Tuning found nothing better than the same hyperparameters, {cluster}."
    size = " This is within noise." if is_noise(group, same) else ""
    text = f"Tuning against the same hyperparameters, {cluster}: {100 * (score(group) - score(same)):+.1f} points.{size}"
    if group[0]["instances"] == 1:
        return text
    return f"{text} Against one instance: {100 * (score(group) - score(alone)):+.1f}."


def is_noise(one, other):
    return comparison.is_noise(one, other, NOISE) or max(score(one), score(other)) < NEAR_CHANCE


def numbers(group):
    """Returns the hyperparameters of the jobs of a group, without their seed."""
    return {name: float(value) for name, value in group[0]["hyperparameters"].items() if name != "seed"}


def tuned(_request, result, count):
    """Returns the hyperparameters of the best job with a number of instances, as the job got them; {} without one."""
    of_count = [
        job
        for job in result["TrainingJobs"]
        if job.get("TunedHyperParameters", {}).get("InstanceCount") == str(count)
        and "FinalHyperParameterTuningJobObjectiveMetric" in job
    ]
    if not of_count:
        return {}
    best = max(of_count, key=lambda job: job["FinalHyperParameterTuningJobObjectiveMetric"]["Value"])
    values = {name: value for name, value in best["TunedHyperParameters"].items() if name not in ("InstanceCount", "epochs")}
    return {**values, "mini_batch": str(int(values["mini_batch"]) * count)}


if __name__ == "__main__":
    comparison.run(__doc__.split("\n\n")[0], "test accuracy", rows, remarks, tuned)
