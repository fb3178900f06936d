"""Records a table of learning curves with the distributed training of an example.

    python record_example.py EXAMPLE DATA FOLDER [ROWS]

EXAMPLE is a folder of examples/, and DATA a folder that its prepare.py wrote. Each of the first ROWS (400) points of a
scrambled Sobol' sequence over the ranges of the example's request is trained by one job with all its hosts and epochs,
as `hyperband run` would. Writes FOLDER/EXAMPLE.jsonl.gz and FOLDER/EXAMPLE.space.json.

`seconds_per_epoch` is the CPU time of a host, without that of a job of one epoch. The curves of asynchronous training
differ slightly each time.
"""

import argparse
import importlib
import resource
import sys
import tempfile
from pathlib import Path

from space import Parameter, configurations, row, write

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SEED = 111
# The hyperparameter that has the number of epochs.
EPOCHS = {"xgboost-allreduce": "num_round", "dnn-parameter-server": "epochs"}


def parameters(ranges, fixed):
    for kind in ("Continuous", "Integer"):
        convert = int if kind == "Integer" else float
        for each in ranges[f"{kind}ParameterRanges"]:
            if each["Name"] not in fixed:
                # The controller draws from ranges with the scale `Auto` linearly here: they begin at 0 or span a decade.
                scaling = {"Auto": "Linear"}.get(each["ScalingType"], each["ScalingType"])
                yield Parameter(each["Name"], kind, convert(each["MinValue"]), convert(each["MaxValue"]), scaling)


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def train(launch, example, data, hosts, hyperparameters):
    """Returns the curve of a job and its CPU seconds of a host."""
    command = [sys.executable, str(EXAMPLES / example / "train.py")]
    before = cpu_seconds()
    with tempfile.TemporaryDirectory() as folder, launch.Job(command, folder, data, hosts, hyperparameters) as job:
        if not job.wait():
            sys.exit(f"a job failed with {hyperparameters}:\n{job.log()[-1000:]}")
        curve = job.curve()
    return [curve[epoch] for epoch in sorted(curve)], (cpu_seconds() - before) / hosts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("example", choices=sorted(EPOCHS))
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("rows", type=int, nargs="?", default=400)
    options = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES / options.example))
    launch, make_request = importlib.import_module("launch"), importlib.import_module("make_request")
    sys.argv = ["make_request.py", "--data", str(options.data)]
    request = make_request.request(make_request.parse())
    tuning, job = request["HyperParameterTuningJobConfig"], request["TrainingJobDefinition"]
    epochs = tuning["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"]
    space = list(parameters(tuning["ParameterRanges"], {EPOCHS[options.example]}))

    def run(configuration, epochs):
        fixed = {**job["StaticHyperParameters"], EPOCHS[options.example]: epochs}
        hosts = job["ResourceConfig"]["InstanceCount"]
        values, seconds = train(launch, options.example, options.data, hosts, {**fixed, **configuration})
        if len(values) != epochs:
            sys.exit(f"expected {epochs} values, got {len(values)} with {configuration}")
        return values, seconds

    lines, first = [], None
    for configuration in configurations(space, SEED, options.rows):
        first = first or run(configuration, 1)[1]
        values, seconds = run(configuration, epochs)
        # A job of one epoch has the start-up, too.
        lines.append(row(configuration, max(seconds - first, 0.001) / (epochs - 1), values))
    objective = tuning["HyperParameterTuningJobObjective"]
    write(options.folder, options.example, {
        "metric": objective["MetricName"],
        "type": objective["Type"],
        "max_resource": epochs,
        "parameters": [vars(p) for p in space],
    }, lines)


if __name__ == "__main__":
    main()
