"""Records a table of learning curves with the distributed training of an example.

    python record_example.py EXAMPLE DATA FOLDER [ROWS] [--counts N,N...]

EXAMPLE is a folder of examples/, and DATA a folder that its prepare.py wrote. Each of the first ROWS (400) points of a
scrambled Sobol' sequence over the ranges of the example's request is trained by one job with all its hosts and epochs,
as `hyperband run` would. Writes FOLDER/EXAMPLE.jsonl.gz and FOLDER/EXAMPLE.space.json.

`seconds_per_epoch` is the CPU time of a host, without that of a job of one epoch. The curves of asynchronous training
differ slightly each time.

With --counts, each point is trained with each of these numbers of hosts, `instance_count` of a line. The files have the
name EXAMPLE-counts. DATA needs a number of shards that all counts divide. A line has the mini-batch of one host; the
job gets it times the number of hosts, as with `ScaleWithInstances`. On a machine with fewer cores than hosts no clock
shows what a cluster gains, so `seconds_per_epoch` is modelled: the CPU time of the slowest host plus the network's time
of the example's modelled.py.
"""

import argparse
import importlib
import json
import sys
import tempfile
from pathlib import Path

from space import Parameter, configurations, row, write

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SEED = 111
# The hyperparameter that has the number of epochs.
EPOCHS = {"xgboost-allreduce": "num_round", "dnn-parameter-server": "epochs"}
# The hyperparameter that is multiplied by the number of hosts.
SCALED = {"dnn-parameter-server": "mini_batch"}


def parameters(ranges, fixed):
    for kind in ("Continuous", "Integer"):
        convert = int if kind == "Integer" else float
        for each in ranges[f"{kind}ParameterRanges"]:
            if each["Name"] not in fixed:
                # The controller draws from ranges with the scale `Auto` linearly here: they begin at 0 or span a decade.
                scaling = {"Auto": "Linear"}.get(each["ScalingType"], each["ScalingType"])
                yield Parameter(each["Name"], kind, convert(each["MinValue"]), convert(each["MaxValue"]), scaling)


def train(launch, example, data, hosts, hyperparameters):
    """Returns the curve of a job and the CPU seconds of each host."""
    command = [sys.executable, str(EXAMPLES / example / "train.py")]
    with tempfile.TemporaryDirectory() as folder, launch.Job(command, folder, data, hosts, hyperparameters) as job:
        if not job.wait():
            sys.exit(f"a job failed with {hyperparameters}:\n{job.log()[-1000:]}")
        curve = job.curve()
    return [curve[epoch] for epoch in sorted(curve)], list(job.cpu_seconds.values())


def communication(example, data):
    """Returns a function from the number of hosts and the sent hyperparameters to the network's seconds of an epoch."""
    modelled = importlib.import_module("modelled")
    if example == "xgboost-allreduce":
        bins = json.loads((data / "summary.json").read_text())["bins"]
        return lambda hosts, sent: modelled.network_seconds(hosts, sent["max_depth"], bins)
    rows = modelled.rows(data)
    return lambda hosts, sent: modelled.network_seconds(hosts, rows, sent["mini_batch"], sent["hidden_units"])


class Recorder:
    """The jobs of an example: its request, its launcher and its data."""

    def __init__(self, example, data):
        sys.path.insert(0, str(EXAMPLES / example))
        self.launch, make_request = importlib.import_module("launch"), importlib.import_module("make_request")
        sys.argv = ["make_request.py", "--data", str(data)]
        request = make_request.request(make_request.parse())
        self.example, self.data, self.job = example, data, request["TrainingJobDefinition"]
        self.tuning = request["HyperParameterTuningJobConfig"]
        self.epochs = self.tuning["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"]
        self.space = list(parameters(self.tuning["ParameterRanges"], {EPOCHS[example]}))
        self.start_up = {}

    def run(self, sent, hosts, slowest):
        """Returns the values and the CPU seconds of an epoch, of the slowest host or the mean."""
        if hosts not in self.start_up:
            # A job of one epoch has the start-up, too.
            self.start_up[hosts] = self._seconds(sent, hosts, 1, slowest)[1]
        values, seconds = self._seconds(sent, hosts, self.epochs, slowest)
        return values, max(seconds - self.start_up[hosts], 0.001) / (self.epochs - 1)

    def _seconds(self, sent, hosts, epochs, slowest):
        fixed = {**self.job["StaticHyperParameters"], EPOCHS[self.example]: epochs}
        values, seconds = train(self.launch, self.example, self.data, hosts, {**fixed, **sent})
        if len(values) != epochs:
            sys.exit(f"expected {epochs} values, got {len(values)} with {sent}")
        return values, max(seconds) if slowest else sum(seconds) / hosts

    def write(self, folder, name, lines, **more):
        objective = self.tuning["HyperParameterTuningJobObjective"]
        space = {"metric": objective["MetricName"], "type": objective["Type"], "max_resource": self.epochs}
        write(folder, name, {**space, **more, "parameters": [vars(p) for p in self.space]}, lines)


def record(recorder, rows):
    hosts = recorder.job["ResourceConfig"]["InstanceCount"]
    for configuration in configurations(recorder.space, SEED, rows):
        values, seconds = recorder.run(configuration, hosts, slowest=False)
        yield row(configuration, seconds, values)


def record_counts(recorder, rows, counts):
    network = communication(recorder.example, recorder.data)
    for configuration in configurations(recorder.space, SEED, rows):
        for hosts in counts:
            scaled = SCALED.get(recorder.example)
            sent = {name: value * hosts if name == scaled else value for name, value in configuration.items()}
            values, seconds = recorder.run(sent, hosts, slowest=True)
            yield row(configuration, seconds + network(hosts, sent), values, instance_count=hosts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("example", choices=sorted(EPOCHS))
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("rows", type=int, nargs="?", default=400)
    parser.add_argument("--counts", help="numbers of hosts, separated by commas")
    options = parser.parse_args()
    recorder = Recorder(options.example, options.data)
    if options.counts is None:
        return recorder.write(options.folder, options.example, list(record(recorder, options.rows)))
    counts = [int(count) for count in options.counts.split(",")]
    dimension = Parameter("instance_count", "Integer", min(counts), max(counts), "Linear")
    lines = list(record_counts(recorder, options.rows, counts))
    more = {"instance_counts": counts, "instance_count": vars(dimension)}
    recorder.write(options.folder, f"{options.example}-counts", lines, **more)


if __name__ == "__main__":
    main()
