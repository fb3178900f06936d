"""Prints the article's comparison: no tuning and the tuned job, each on one and on several instances.

Must never print a conclusion that the figures do not support.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import comparison  # noqa: E402
from comparison import instances_text, score  # noqa: E402

# A smaller difference between two AUCs counts as noise. On the default data, the gain by tuning had a standard deviation
# of 0.017 between splits (README.md).
NOISE = 0.02


def rows(untuned, tuned):
    for groups, label in ((untuned, "no tuning"), (tuned, "tuned")):
        for group in groups:
            yield comparison.row(f"{label}, {group[0]['rounds']} rounds", group)


def remarks(untuned, tuned):
    seeds = ", ".join(job["hyperparameters"]["seed"] for job in untuned[0])
    yield (
        f"Rows: means (minimum and maximum in brackets), seeds {seeds}. The tuning does not use the test rows. Seconds are "
        "modelled: CPU time of the slowest host, and the network's time."
    )
    worst = min(untuned[1:], key=score)
    change, cluster = score(worst) - score(untuned[0]), instances_text(worst[0]["instances"])
    if change < 0 and not comparison.is_noise(worst, untuned[0], NOISE):
        yield f"Distribution alone cost {-change:.4f} AUC: {cluster} against one, same hyperparameters."
    else:
        yield (
            f"Distribution alone cost XGBoost no quality here ({cluster} against one: {change:+.4f} AUC). Its allreduce "
            "merges the hosts' histograms, so every tree uses all rows."
        )
    # All tuned rows have the same hyperparameters.
    for group, same in comparison.pairs(untuned, tuned)[-1:]:
        size = " This is within noise." if comparison.is_noise(group, same, NOISE) else ""
        yield f"Tuning against no tuning, {instances_text(group[0]['instances'])}: {score(group) - score(same):+.4f} AUC.{size}"


def tuned(request, result, _count):
    """Returns the hyperparameters of the best job, on any number of instances; {} without one.

    It gets as many rounds as that job trained, without those until its stop took effect.
    """
    best = result["TuningJob"].get("BestTrainingJob")
    if best is None:
        return {}
    most = request["HyperParameterTuningJobConfig"]["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"]
    values = {name: value for name, value in best["TunedHyperParameters"].items() if name != "InstanceCount"}
    return {**values, "num_round": min(best["Controller"]["Resource"], most)}


if __name__ == "__main__":
    comparison.run(__doc__.split("\n\n")[0], "test AUC", rows, remarks, tuned)
