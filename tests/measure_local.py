#!/usr/bin/env python3
"""Measures the controller on this machine: CPU share, resident memory, and the time from a metric line to the stop.

Runs one tuning of 30 jobs, four at a time, with a release build of `hyperband`. Each job prints one metric a second.

    cargo build --release -p cli && tests/measure_local.py target/release/hyperband

The CPU time is that of the controller's own process, without its training processes. The latency is the time from
printing the metric line of a rung to the arrival of SIGTERM. Prints one JSON object. Uses the standard library only,
and ends every process it starts.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EPOCHS = 27
JOBS = 30


def train() -> None:
    """Runs the training program: prints one metric a second. On SIGTERM it records the time since the last line."""
    last = [0.0]
    latencies = Path(os.environ["LATENCIES"])

    def record_latency(_signal, _frame):
        with latencies.open("a") as file:
            file.write(f"{time.time() - last[0]}\n")
        os._exit(0)

    signal.signal(signal.SIGTERM, record_latency)
    slope = float(os.environ["SM_HP_LR"])
    for epoch in range(EPOCHS):
        last[0] = time.time()
        print(f"[{epoch}]\tvalidation-auc:{slope * (epoch + 1) / EPOCHS:.6f}", flush=True)
        time.sleep(1)


def request() -> dict:
    """Returns the request: Hyperband over 27 epochs, 30 jobs, four at a time."""
    return {
        "HyperParameterTuningJobName": "measure",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": EPOCHS}},
            "RandomSeed": 1,
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": JOBS, "MaxParallelTrainingJobs": 4},
            "ParameterRanges": {
                "ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.1", "MaxValue": "0.9"}]
            },
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": "local",
                "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "validation:auc", "Regex": "validation-auc:(\\S+)"}],
            },
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
            "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        },
        "Controller": {
            "MaxCostUsd": 5,
            "InstancePricesUsdPerHour": {"ml.m5.large": 0.115},
            "EpochPattern": "\\[(\\d+)\\]",
            "EpochBase": 0,
        },
    }


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "train":
        train()
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "request.json").write_text(json.dumps(request()))
        latencies = path / "latencies"
        latencies.touch()
        command = [sys.argv[1], "run", str(path / "request.json"), "--data-dir", str(path / "data")]
        command += ["--output", "json", "--", sys.executable, "-S", "-E", os.path.abspath(__file__), "train"]
        start = time.time()
        with (path / "out").open("wb") as out:
            run = subprocess.Popen(
                command, stdout=out, stderr=subprocess.DEVNULL, env=os.environ | {"LATENCIES": str(latencies)}
            )
            peak_kb, cpu_ticks = 0, 0
            while run.poll() is None:
                try:
                    status = Path(f"/proc/{run.pid}/status").read_text()
                    stat = Path(f"/proc/{run.pid}/stat").read_text().rsplit(")", 1)[1].split()
                    peak_kb = max(peak_kb, *(int(l.split()[1]) for l in status.splitlines() if l.startswith("VmHWM")))
                    cpu_ticks = int(stat[11]) + int(stat[12])
                except (OSError, TypeError, IndexError):
                    pass
                time.sleep(0.2)
        wall = time.time() - start
        result = json.loads((path / "out").read_text())
        stops = sorted(float(line) for line in latencies.read_text().split())
        summary = {
            "status": result["TuningJob"]["HyperParameterTuningJobStatus"],
            "jobs": len(result["TrainingJobs"]),
            "wall_seconds": round(wall, 1),
            "controller_cpu_percent_of_a_core": round(100 * cpu_ticks / os.sysconf("SC_CLK_TCK") / wall, 2),
            "controller_peak_resident_mb": round(peak_kb / 1024, 1),
            "stops": len(stops),
            "line_to_stop_ms_median": round(1000 * statistics.median(stops), 1),
            "line_to_stop_ms_max": round(1000 * stops[-1], 1),
        }
        print(json.dumps(summary, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
