#!/usr/bin/env python3
"""Measures the functions as they are deployed: size of each archive, time to the first answer of a new process, memory.

Takes what `infra/build.sh` left in target/lambda. Each start is that of AWS's own Lambda runtime interface emulator (in the
aws-sam-cli package, which `tests/stack/run.sh` installs): it starts `bootstrap` when the first request comes, so the time from
sending that request to having its answer is process start, settings, clients and one event. DynamoDB is played
on loopback and knows nobody, so each event ends after one or two calls without TLS. Of a function built for another
architecture only the size is told. Standard library only; starts nothing that it does not end, and listens on loopback only.

    infra/build.sh x86_64 && tests/measure_functions.py
    tests/measure_functions.py --sizes             only the sizes; fails if one is above its goal
    tests/measure_functions.py --runner "qemu-aarch64-static -L /usr/aarch64-linux-gnu" --starts 1
                                                   that functions of arm64 start and answer, on another machine
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
NOBODY = "nobody-abc123"


def stream_event(partition):
    """One new row of a partition, as DynamoDB's stream hands it on."""
    keys = {"pk": {"S": partition}, "sk": {"S": "x"}}
    change = {"ApproximateCreationDateTime": 1789000201, "SequenceNumber": "1", "Keys": keys, "NewImage": keys}
    return {"Records": [{"eventName": "INSERT", "eventSource": "aws:dynamodb", "dynamodb": change}]}


def state_change():
    """A training job of this stack has ended, as EventBridge tells it."""
    name = f"{NOBODY}-0-0-1"
    tags = {"hyperband:stack": STACK, "hyperband:tuning": NOBODY, "hyperband:job": "0-0-1"}
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
    """Lines of a training job, as CloudWatch Logs hands them on."""
    lines = [{"id": str(n), "timestamp": 1789000000000 + n, "message": f"[{n}]#011validation-auc:0.5"} for n in range(10)]
    told = {"messageType": "DATA_MESSAGE", "owner": "111122223333", "logGroup": "/aws/sagemaker/TrainingJobs",
            "logStream": f"{NOBODY}-0-0-1/algo-1-1789000000", "subscriptionFilters": ["measure"], "logEvents": lines}
    return {"awslogs": {"data": base64.b64encode(gzip.compress(json.dumps(told).encode())).decode()}}


def api_request():
    """Somebody asks for a tuning job, as API Gateway hands it on."""
    iam = {"accountId": "111122223333", "userArn": "arn:aws:sts::111122223333:assumed-role/ds/me", "userId": "AROAEXAMPLE:me"}
    http = {"method": "GET", "path": "/tuning-jobs/nobody", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.10", "userAgent": "measure"}
    return {"version": "2.0", "routeKey": "GET /tuning-jobs/{name}", "rawPath": "/tuning-jobs/nobody", "rawQueryString": "",
            "headers": {"host": "abc123.execute-api.us-east-1.amazonaws.com"}, "pathParameters": {"name": "nobody"},
            "requestContext": {"accountId": "111122223333", "apiId": "abc123", "authorizer": {"iam": iam}, "http": http,
                               "requestId": "1", "stage": "$default", "timeEpoch": 1789000000000},
            "isBase64Encoded": False}


# One event for each that it takes up and, since nobody is known, soon has done.
EVENTS = {
    "api": api_request(),
    "job-events": state_change(),
    "job-logs": log_lines(),
    "decider": stream_event(f"R#{NOBODY}"),
    "actuator": stream_event(f"A#{NOBODY}"),
    "sweeper": {"source": "aws.scheduler", "detail-type": "Scheduled Event", "time": "2026-09-10T00:30:00Z", "detail": {}},
}


# The sweeper's own row: nothing is active, and the next listing of training jobs is far away.
IDLE = {
    "pk": {"S": "ACTIVE"}, "sk": {"S": "#SWEEP"}, "type": {"S": "sweep"}, "version": {"N": "1"}, "fence": {"N": "1"},
    "owner": {"S": "measure"}, "expires": {"N": "0"}, "data": {"S": json.dumps({"listing_due": 9_000_000_000_000})},
}


class Nobody(BaseHTTPRequestHandler):
    """Plays a DynamoDB that knows nobody."""

    protocol_version = "HTTP/1.1"
    # An answer in one piece and at once: what is measured is not to wait for this server's sockets.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self):
        asked = self.rfile.read(int(self.headers.get("content-length", 0)))
        answer = {}
        if self.headers.get("x-amz-target", "").endswith(".Query"):
            found = [IDLE] if b'"ACTIVE"' in asked else []
            answer = {"Items": found, "Count": len(found), "ScannedCount": len(found)}
        body = json.dumps(answer).encode()
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
        "STACK_ARN": "arn:aws:cloudformation:us-east-1:111122223333:stack/measure/1",
        "EVENT_BUS_NAME": "measure",
        "REQUIRE_COST_CAP": "false",
        "REQUIRE_VPC": "false",
        "LISTED_PRICES_ONLY": "false",
    }


def child(parent):
    """The process id of the function that the emulator started."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    return int(entry.name)
    raise RuntimeError("the function's process is gone")


def peak_kb(process):
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError("no VmHWM")


def invoke(port, body):
    """An invocation's time in ms; an error that the function answers ends the measurement."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations", data=body)
    begun = time.perf_counter()
    with urllib.request.urlopen(request, timeout=30) as answered:
        text = answered.read()
    took = (time.perf_counter() - begun) * 1000
    answer = json.loads(text)
    if not isinstance(answer, dict) or "errorType" in answer or answer.get("batchItemFailures"):
        raise RuntimeError(f"the function failed: {text[:500]!r}")
    return took


def one_start(rie, runner, folder, label, function, endpoint):
    """First answer (ms), next answer (ms), peak of resident memory (KB) of a new process."""
    port, api = free_port(), free_port()
    body = json.dumps(EVENTS[function]).encode()
    with (folder / f"{label}.log").open("wb") as log:
        emulator = subprocess.Popen(
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
        first, following = invoke(port, body), invoke(port, body)
        return first, following, peak_kb(child(emulator.pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(emulator.pid, signal.SIGKILL)
        emulator.wait()


def sizes(archive):
    """Of the archive and of the program in it (MB), and what it was built for."""
    with zipfile.ZipFile(archive) as zipped:
        info = zipped.getinfo("bootstrap")
        with zipped.open(info) as program:
            machine = struct.unpack_from("<H", program.read(20), 18)[0]
    return archive.stat().st_size / 1e6, info.file_size / 1e6, ARCHITECTURES.get(machine, hex(machine))


def measure(rie, builds, starts, runner=()):
    """Of each build, a label with its function and its archive."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Nobody)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    found = {}
    with tempfile.TemporaryDirectory(prefix="hyperband-measure-") as name:
        folder = Path(name)
        for label, (_, archive) in builds.items():
            (folder / label).mkdir()
            with zipfile.ZipFile(archive) as zipped:
                zipped.extract("bootstrap", folder / label)
            (folder / label / "bootstrap").chmod(0o755)
        # Round after round, so that what else the machine does strikes all alike.
        taken = {label: [] for label in builds}
        for _ in range(starts):
            for label, (function, _) in builds.items():
                taken[label].append(one_start(rie, runner, folder, label, function, endpoint))
        for label, runs in taken.items():
            first, following, peak = zip(*runs)
            found[label] = {
                "firstMs": round(statistics.median(first), 1), "firstMsMost": round(max(first), 1),
                "nextMs": round(statistics.median(following), 1), "peakMb": round(max(peak) / 1024, 1),
            }
    server.shutdown()
    return found


def emulator(named):
    """The Lambda runtime interface emulator: the one that is named, or that of the tests of the stack."""
    pattern = f"tests/stack/.work/sam/lib/python3*/site-packages/samcli/local/rapid/{RIE_NAMES[platform.machine()]}"
    return named or next(ROOT.glob(pattern), None) or sys.exit(
        "no Lambda runtime interface emulator; infra/check.sh installs it, --rie names another")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", default=FUNCTIONS, help="which (all)")
    parser.add_argument("--lambda-dir", type=Path, default=ROOT / "target" / "lambda")
    parser.add_argument("--starts", type=int, default=10, help="of each function (10)")
    parser.add_argument("--rie", type=Path, help="the Lambda runtime interface emulator")
    parser.add_argument("--runner", type=shlex.split, default=[], metavar="COMMAND",
                        help="starts functions of another architecture with this; their times say nothing then")
    parser.add_argument("--sizes", action="store_true", help="start nothing; fail if a size is above its goal")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    asked = parser.parse_args()
    if unknown := set(asked.functions) - set(FUNCTIONS):
        parser.error(f"no function {', '.join(sorted(unknown))}; there are {', '.join(FUNCTIONS)}")
    return asked


def main():
    asked = arguments()
    archives = {function: asked.lambda_dir / function / "bootstrap.zip" for function in asked.functions}
    if missing := [str(archive) for archive in archives.values() if not archive.exists()]:
        sys.exit(f"not built: {', '.join(missing)}; run infra/build.sh {platform.machine()}")
    rows = {}
    for function, archive in archives.items():
        zip_mb, program_mb, built_for = sizes(archive)
        rows[function] = {"zipMb": round(zip_mb, 2), "programMb": round(program_mb, 2), "architecture": built_for}
    here = [function for function, row in rows.items() if asked.runner or row["architecture"] == platform.machine()]
    if here and not asked.sizes:
        rie = emulator(asked.rie)
        load = os.getloadavg()[0]
        for function, told in measure(rie, {function: (function, archives[function]) for function in here}, asked.starts, asked.runner).items():
            rows[function] |= told
        print(f"{asked.starts} starts each, load {load:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)
    if asked.output == "json":
        print(json.dumps(rows, indent=2))
    else:
        print("| function | zip | program | first answer, median (most) | next answer | resident, peak |\n|---|---|---|---|---|---|")
        for function, row in rows.items():
            started = "not started | - | -" if "firstMs" not in row else (
                f"{row['firstMs']} ms ({row['firstMsMost']}) | {row['nextMs']} ms | {row['peakMb']} MB")
            print(f"| {function} ({row['architecture']}) | {row['zipMb']} MB | {row['programMb']} MB | {started} |")
    above = [f"{function}: {row['zipMb']} MB" for function, row in rows.items() if row["zipMb"] >= ZIP_GOAL_MB]
    if above:
        sys.exit(f"above {ZIP_GOAL_MB} MB: {', '.join(above)}")


if __name__ == "__main__":
    main()
