#!/usr/bin/env python3
"""Measures how `hyperband serve` answers while it runs a tuning of 1,000 trials.

    cargo build --release -p cli && tests/measure_serve.py target/release/hyperband [REQUESTS_PER_SECOND]

The server runs on one core. The training processes and this client share another. The client describes the tuning at a
fixed rate, from its first training job to its end. The latency of a request is the time from its planned start to the
last byte of its response, so a slow response delays no other measurement. Prints one JSON object. Uses the standard
library only, and ends every process it starts.
"""

import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

TRIALS = 1000
SLOTS = 40
EPOCHS = 27
CONNECTIONS = 8
RATE = 200
NAME = "measure"
SERVER_CORE, OTHER_CORE = "0", "1"
# A training program that costs little: a line of a shell for each epoch.
TRAIN = """i=0; while [ $i -lt {epochs} ]; do i=$((i + 1)); echo "epoch $i loss=$SM_HP_LR$i"; sleep 0.5; done"""


def request() -> dict:
    """Returns the request: Hyperband over 27 epochs, 1,000 training jobs, as many at once as there are slots."""
    return {
        "HyperParameterTuningJobName": NAME,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": EPOCHS}},
            "RandomSeed": 1,
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": TRIALS, "MaxParallelTrainingJobs": SLOTS},
            "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.1", "MaxValue": "0.9"}]},
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {"MetricDefinitions": [{"Name": "loss", "Regex": "loss=([-+.\\w]*\\w)"}]},
        },
        "Controller": {"EpochPattern": "epoch (\\d+)"},
    }


class Load:
    """Requests at a fixed rate, from several connections, until `over` is set."""

    def __init__(self, address: str, rate: float) -> None:
        self.address, self.rate = address, rate
        self.turn = itertools.count()
        self.began = time.perf_counter()
        self.over = threading.Event()
        self.seen: list[tuple[float, float, int]] = []
        self.errors: list[Exception] = []
        self.threads = [threading.Thread(target=self.work) for _ in range(CONNECTIONS)]
        for thread in self.threads:
            thread.start()

    def work(self) -> None:
        try:
            self.request()
        except Exception as error:
            self.errors.append(error)
            self.over.set()

    def request(self) -> None:
        connection = http.client.HTTPConnection(self.address, timeout=60)
        while not self.over.is_set():
            planned = self.began + next(self.turn) / self.rate
            time.sleep(max(0, planned - time.perf_counter()))
            connection.request("GET", f"/tuning-jobs/{NAME}")
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise AssertionError(f"status {answer.status}: {body[:500]!r}")
            self.seen.append((planned, time.perf_counter() - planned, len(body)))

    def end(self) -> list[tuple[float, float, int]]:
        self.over.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]
        return sorted(self.seen)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def cpu_seconds(process: int) -> float:
    stat = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    program, rate = os.path.abspath(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else RATE
    os.sched_setaffinity(0, {int(OTHER_CORE)})
    with tempfile.TemporaryDirectory() as folder:
        train = ["taskset", "-c", OTHER_CORE, "/bin/sh", "-c", TRAIN.format(epochs=EPOCHS)]
        line = ["taskset", "-c", SERVER_CORE, program, "serve", "--listen", "127.0.0.1:0", "--output", "json"]
        line += ["--slots", str(SLOTS), "--data-dir", f"{folder}/data", "--", *train]
        with open(f"{folder}/errors", "w+") as errors:
            server = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder)
            try:
                address = urlsplit(json.loads(server.stdout.readline())["Endpoint"]).netloc
                summary = measure(address, server.pid, rate)
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait()
                server.stdout.close()
    print(json.dumps(summary, indent=1))
    return 0


def measure(address: str, server: int, rate: float) -> dict:
    connection = http.client.HTTPConnection(address, timeout=60)

    def ask(method: str, path: str, body: dict | None = None) -> dict:
        connection.request(method, path, body and json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            raise AssertionError(f"{method} {path}: status {answer.status}: {text[:2000]!r}")
        return json.loads(text)

    ask("POST", "/tuning-jobs", request())
    began, used, load = time.time(), cpu_seconds(server), Load(address, rate)
    try:
        while (described := ask("GET", f"/tuning-jobs/{NAME}"))["HyperParameterTuningJobStatus"] == "InProgress":
            time.sleep(1)
        wall, used = time.time() - began, cpu_seconds(server) - used
    finally:
        seen = load.end()
    latencies = [latency for _, latency, _ in seen]
    last = latencies[-len(latencies) // 4:]
    return {
        "status": described["HyperParameterTuningJobStatus"],
        "training_jobs": sum(described["TrainingJobStatusCounters"].values()),
        "seconds": round(wall, 1),
        "requests": len(seen),
        "requests_per_second": round(len(seen) / wall, 1),
        "latency_ms_median": round(1000 * percentile(latencies, 0.5), 1),
        "latency_ms_99": round(1000 * percentile(latencies, 0.99), 1),
        "latency_ms_max": round(1000 * max(latencies), 1),
        "latency_ms_99_last_quarter": round(1000 * percentile(last, 0.99), 1),
        "response_bytes": seen[-1][2],
        "server_cpu_percent_of_a_core": round(100 * used / wall, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
