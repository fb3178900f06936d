#!/usr/bin/env python3
"""Measures the deployable functions: archive size, time to the first response of a new process, memory.

Reads the archives that `infra/build.sh` writes to target/lambda. Each process runs in AWS's Lambda runtime interface
emulator, from the aws-sam-cli package that `tests/stack/run.sh` installs. The emulator starts `bootstrap` at the first
request. So the first response includes process start, settings, clients and one event. A mock of an empty DynamoDB
table listens on loopback, so each event ends after one or two calls without TLS. Functions for another architecture are
not started unless --runner is given. Uses the standard library only, ends every process it starts, and listens on
loopback only.

    infra/build.sh x86_64 && tests/measure_functions.py
    tests/measure_functions.py --sizes             measures only sizes; fails if an archive exceeds its goal
    tests/measure_functions.py --runner "qemu-aarch64-static -L /usr/aarch64-linux-gnu" --starts 1
                                                   starts functions for arm64 on another machine
"""

import argparse
import base64
import contextlib
import gzip
import json
import os
import platform
import shlex
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUNCTIONS = ["api", "job-events", "job-logs", "decider", "actuator", "sweeper"]
ZIP_GOAL_MB, FIRST_GOAL_MS, MEMORY_GOAL_MB = 6, 40, 40
ARCHITECTURES = {0x3E: "x86_64", 0xB7: "aarch64"}
RIE_NAMES = {"x86_64": "aws-lambda-rie-x86_64", "aarch64": "aws-lambda-rie-arm64"}
STACK = "measure"
UNKNOWN_TUNING = "unknown-abc123"


def stream_event(partition):
    """Returns a DynamoDB stream event with one new row of a partition."""
    keys = {"pk": {"S": partition}, "sk": {"S": "x"}}
    change = {"ApproximateCreationDateTime": 1789000201, "SequenceNumber": "1", "Keys": keys, "NewImage": keys}
    return {"Records": [{"eventName": "INSERT", "eventSource": "aws:dynamodb", "dynamodb": change}]}


def state_change():
    """Returns the EventBridge event of an ended training job of this stack."""
    name = f"{UNKNOWN_TUNING}-0-0-1"
    tags = {"hyperband:stack": STACK, "hyperband:tuning": UNKNOWN_TUNING, "hyperband:job": "0-0-1"}
    detail = {
        "TrainingJobName": name, "TrainingJobStatus": "Completed", "SecondaryStatus": "Completed", "Tags": tags,
        "TrainingJobArn": f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{name}",
        "CreationTime": 1789000000000, "TrainingStartTime": 1789000100000, "TrainingEndTime": 1789000200000,
        "LastModifiedTime": 1789000200000, "SecondaryStatusTransitions": [],
    }
    return {"version": "0", "id": "1", "source": "aws.sagemaker", "account": "111122223333", "region": "us-east-1",
            "detail-type": "SageMaker Training Job State Change", "time": "2026-09-10T00:30:00Z", "resources": [],
            "detail": detail}


def log_lines():
    """Returns a CloudWatch Logs event with ten log lines of a training job."""
    lines = [{"id": str(n), "timestamp": 1789000000000 + n, "message": f"[{n}]#011validation-auc:0.5"} for n in range(10)]
    batch = {"messageType": "DATA_MESSAGE", "owner": "111122223333", "logGroup": "/aws/sagemaker/TrainingJobs",
             "logStream": f"{UNKNOWN_TUNING}-0-0-1/algo-1-1789000000", "subscriptionFilters": ["measure"],
             "logEvents": lines}
    return {"awslogs": {"data": base64.b64encode(gzip.compress(json.dumps(batch).encode())).decode()}}


# Stands for the secret that API Gateway adds to requests.
API_SECRET = "SecretOfTheGatewayInMeasurements"


def api_request():
    """Returns the API Gateway event of a request that describes a tuning job."""
    iam = {"accountId": "111122223333", "userArn": "arn:aws:sts::111122223333:assumed-role/ds/me", "userId": "AROAEXAMPLE:me"}
    http = {"method": "GET", "path": "/tuning-jobs/unknown", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.10", "userAgent": "measure"}
    return {"version": "2.0", "routeKey": "GET /tuning-jobs/{name}", "rawPath": "/tuning-jobs/unknown", "rawQueryString": "",
            "headers": {"host": "abc123.execute-api.us-east-1.amazonaws.com", "x-hyperband-gateway": API_SECRET},
            "pathParameters": {"name": "unknown"},
            "requestContext": {"accountId": "111122223333", "apiId": "abc123", "authorizer": {"iam": iam}, "http": http,
                               "requestId": "1", "stage": "$default", "timeEpoch": 1789000000000},
            "isBase64Encoded": False}


# One event for each function. The function accepts it, but finds no tuning in the table.
EVENTS = {
    "api": api_request(),
    "job-events": state_change(),
    "job-logs": log_lines(),
    "decider": stream_event(f"R#{UNKNOWN_TUNING}"),
    "actuator": stream_event(f"A#{UNKNOWN_TUNING}"),
    "sweeper": {"source": "aws.scheduler", "detail-type": "Scheduled Event", "time": "2026-09-10T00:30:00Z", "detail": {}},
}


# The sweeper's row. No tuning is active, and no listing of training jobs is due.
IDLE = {
    "pk": {"S": "ACTIVE"}, "sk": {"S": "#SWEEP"}, "type": {"S": "sweep"}, "version": {"N": "1"}, "fence": {"N": "1"},
    "owner": {"S": "measure"}, "expires": {"N": "0"}, "data": {"S": json.dumps({"listing_due": 9_000_000_000_000})},
}


class EmptyTable(BaseHTTPRequestHandler):
    """Mocks DynamoDB with a table that has no tuning."""

    protocol_version = "HTTP/1.1"
    # Send each response at once and in one piece, so that this server adds no delay to the measurement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self):
        request = self.rfile.read(int(self.headers.get("content-length", 0)))
        response = {}
        if self.headers.get("x-amz-target", "").endswith(".Query"):
            rows = [IDLE] if b'"ACTIVE"' in request else []
            response = {"Items": rows, "Count": len(rows), "ScannedCount": len(rows)}
        body = json.dumps(response).encode()
        self.send_response(200)
        self.send_header("content-type", "application/x-amz-json-1.0")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(function, endpoint):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_LAMBDA_FUNCTION_NAME": function,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_LAMBDA_FUNCTION_TIMEOUT": "30",
        "AWS_LAMBDA_LOG_STREAM_NAME": "measure",
        "TABLE_NAME": "measure",
        "STACK_NAME": STACK,
        "ACCOUNT_ARN": "arn:aws:sagemaker:us-east-1:111122223333:*",
        "CALLS_FROM": "ApiGateway",
        "API_SECRET": API_SECRET,
        "EVENT_BUS_NAME": "measure",
        "METRICS_FROM": "Subscription",
        "REQUIRE_COST_CAP": "false",
        "REQUIRE_VPC": "false",
        "PRICES_IN_REQUESTS": "Any",
    }


def child_of(parent):
    """Returns the ID of the process that the emulator started."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    return int(entry.name)
    raise RuntimeError("the function's process has ended")


def peak_kb(pid):
    """Returns the peak resident memory of a process, in KB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/{pid}/status has no VmHWM")


def invoke(port, body):
    """Invokes the function and returns the time in ms. Raises an error if the function returns one."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations", data=body)
    start = time.perf_counter()
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read()
    elapsed_ms = (time.perf_counter() - start) * 1000
    result = json.loads(text)
    if not isinstance(result, dict) or "errorType" in result or result.get("batchItemFailures"):
        raise RuntimeError(f"the function failed: {text[:500]!r}")
    return elapsed_ms


def measure_start(rie, runner, folder, label, function, endpoint):
    """Starts a process. Returns its first and second response times (ms) and its peak resident memory (KB)."""
    port, api = free_port(), free_port()
    body = json.dumps(EVENTS[function]).encode()
    with (folder / f"{label}.log").open("wb") as log:
        process = subprocess.Popen(
            [rie, "--runtime-interface-emulator-address", f"127.0.0.1:{port}", "--runtime-api-address", f"127.0.0.1:{api}",
             *runner, "./bootstrap", "bootstrap"],
            cwd=folder / label, env=environment(function, endpoint), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        first, second = invoke(port, body), invoke(port, body)
        return first, second, peak_kb(child_of(process.pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def sizes(archive):
    """Returns the sizes of an archive and of its program, in MB, and the program's architecture."""
    with zipfile.ZipFile(archive) as zipped:
        info = zipped.getinfo("bootstrap")
        with zipped.open(info) as program:
            machine = struct.unpack_from("<H", program.read(20), 18)[0]
    return archive.stat().st_size / 1e6, info.file_size / 1e6, ARCHITECTURES.get(machine, hex(machine))


def measure(rie, builds, starts, runner=()):
    """Starts each build `starts` times and returns its figures. `builds` maps a label to a function and an archive."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), EmptyTable)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    figures = {}
    with tempfile.TemporaryDirectory(prefix="hyperband-measure-") as name:
        folder = Path(name)
        for label, (_, archive) in builds.items():
            (folder / label).mkdir()
            with zipfile.ZipFile(archive) as zipped:
                zipped.extract("bootstrap", folder / label)
            (folder / label / "bootstrap").chmod(0o755)
        # Alternate between the builds, so that other load on the machine affects all of them equally.
        runs_of = {label: [] for label in builds}
        for _ in range(starts):
            for label, (function, _) in builds.items():
                runs_of[label].append(measure_start(rie, runner, folder, label, function, endpoint))
        for label, runs in runs_of.items():
            first, second, peak = zip(*runs)
            figures[label] = {
                "firstMs": round(statistics.median(first), 1), "firstMsMost": round(max(first), 1),
                "nextMs": round(statistics.median(second), 1), "peakMb": round(max(peak) / 1024, 1),
            }
    server.shutdown()
    return figures


def emulator_path(given):
    """Returns the given path of the emulator, or the path of the copy that the stack tests installed."""
    pattern = f"tests/stack/.work/sam/lib/python3*/site-packages/samcli/local/rapid/{RIE_NAMES[platform.machine()]}"
    return given or next(ROOT.glob(pattern), None) or sys.exit(
        "missing Lambda runtime interface emulator: install it with infra/check.sh, or pass --rie PATH")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", default=FUNCTIONS, help="functions to measure (default: all)")
    parser.add_argument("--lambda-dir", type=Path, default=ROOT / "target" / "lambda", help="folder of the archives")
    parser.add_argument("--starts", type=int, default=10, help="number of starts per function (default: 10)")
    parser.add_argument("--rie", type=Path, help="path of the Lambda runtime interface emulator")
    parser.add_argument("--runner", type=shlex.split, default=[], metavar="COMMAND",
                        help="command that runs programs of another architecture; ignore the times then")
    parser.add_argument("--sizes", action="store_true", help="start no function; fail if an archive exceeds its goal")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    options = parser.parse_args()
    if unknown := set(options.functions) - set(FUNCTIONS):
        parser.error(f"unknown function {', '.join(sorted(unknown))}: expected {', '.join(FUNCTIONS)}")
    return options


def main():
    options = arguments()
    archives = {function: options.lambda_dir / function / "bootstrap.zip" for function in options.functions}
    if missing := [str(archive) for archive in archives.values() if not archive.exists()]:
        sys.exit(f"missing archive {', '.join(missing)}: run infra/build.sh {platform.machine()}")
    rows = {}
    for function, archive in archives.items():
        zip_mb, program_mb, built_for = sizes(archive)
        rows[function] = {"zipMb": round(zip_mb, 2), "programMb": round(program_mb, 2), "architecture": built_for}
    machine = platform.machine()
    startable = [function for function, row in rows.items() if options.runner or row["architecture"] == machine]
    if startable and not options.sizes:
        rie = emulator_path(options.rie)
        load = os.getloadavg()[0]
        builds = {function: (function, archives[function]) for function in startable}
        for function, figures in measure(rie, builds, options.starts, options.runner).items():
            rows[function] |= figures
        print(f"{options.starts} starts per function, load {load:.1f} before and {os.getloadavg()[0]:.1f} after",
              file=sys.stderr)
    if options.output == "json":
        print(json.dumps(rows, indent=2))
    else:
        print("| function | archive | program | first response, median (max) | next response | resident, peak |")
        print("|---|---|---|---|---|---|")
        for function, row in rows.items():
            started = "not started | - | -" if "firstMs" not in row else (
                f"{row['firstMs']} ms ({row['firstMsMost']}) | {row['nextMs']} ms | {row['peakMb']} MB")
            print(f"| {function} ({row['architecture']}) | {row['zipMb']} MB | {row['programMb']} MB | {started} |")
    oversized = [f"{function}: {row['zipMb']} MB" for function, row in rows.items() if row["zipMb"] >= ZIP_GOAL_MB]
    if oversized:
        sys.exit(f"archives of {ZIP_GOAL_MB} MB or more: {', '.join(oversized)}")


if __name__ == "__main__":
    main()
