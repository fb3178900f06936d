"""The server under test: `hyperband serve`, the real program in a temporary folder, or a deployed stack behind a proxy."""

import atexit
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

from clean import PROGRAM, ROOT

TRAIN = ROOT / "tests" / "clients" / "train.sh"
ROLE = "arn:aws:iam::111122223333:role/training"
REGEX = r"accuracy=([-+.\w]*\w)"
# The address of a `hyperband proxy` for a deployed stack, whose training processes are those of train.sh.
STACK = os.environ.get("CLIENTS_STACK")
# Limits a test that would otherwise never end. No test needs a fast machine.
SECONDS = 600
PAUSE = 1 if STACK else 0.1
# A stack and `serve` share the code of these operations, so only .ci/nightly runs these tests with a stack.
nightly_on_a_stack = unittest.skipIf(STACK and not os.environ.get("CLIENTS_ALL"), "CLIENTS_ALL=1 runs it with a stack")


class Endpoint:
    """A server. `endpoint` is its URL."""

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def end(self):
        """Ends what this test started."""

    def controller(self, name):
        """Returns `Controller` of a tuning's description, which clients of SageMaker drop."""
        with urllib.request.urlopen(f"{self.endpoint}/tuning-jobs/{name}", timeout=SECONDS) as answer:
            return json.load(answer)["Controller"]


class Server(Endpoint):
    """A running program with an API."""

    def __init__(self, command, *words):
        self.folder = tempfile.TemporaryDirectory(prefix="hyperband-clients-")
        self.errors = open(Path(self.folder.name) / "stderr", "w+")  # noqa: SIM115
        line = [PROGRAM, command, "--listen", "127.0.0.1:0", "--output", "json", *words]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=self.folder.name)
        # A signal ends the tests without their cleanups. Of all exceptions, only KeyboardInterrupt ends unittest.
        atexit.register(self.process.kill)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        first = self.process.stdout.readline()
        if not first:
            self.errors.seek(0)
            raise AssertionError(f"{command} failed: {self.errors.read()}")
        super().__init__(json.loads(first)["Endpoint"])

    def end(self):
        self.process.terminate()
        code = self.process.wait(timeout=SECONDS)
        self.process.stdout.close()
        self.errors.close()
        self.folder.cleanup()
        if code != 0:
            raise AssertionError(f"the server ended with {code}")


def serve():
    """Returns the deployed stack if there is one, else a new `hyperband serve`, whose training processes are those of train.sh."""
    if STACK:
        return Endpoint(STACK)
    # The data directory is in the folder of the server.
    return Server("serve", "--slots", "4", "--grace-seconds", "2", "--", str(TRAIN))


def until(look, expected):
    """Calls `look` until it returns one of `expected`, and returns its value."""
    end = time.monotonic() + SECONDS
    while (seen := look()) not in expected:
        if time.monotonic() > end:
            raise AssertionError(f"expected one of {expected} within {SECONDS} s, found {seen!r}")
        time.sleep(PAUSE)
    return seen


def check_kept(client, name, delete):
    """Checks that a tuning is kept for two minutes after its end. On a busy machine these may be over; then it is deleted."""
    try:
        delete()
    except client.exceptions.ClientError as error:
        assert "retry in two minutes" in str(error), error
        return
    try:
        client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
    except client.exceptions.ResourceNotFound:
        return
    raise AssertionError(f"{name} was deleted, but it is described")


def ended(client, name):
    """Waits for the end of a tuning and returns its description."""
    seen = {}

    def look():
        seen.update(client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name))
        return seen["HyperParameterTuningJobStatus"]

    until(look, ("Completed", "Failed", "Stopped"))
    return seen
