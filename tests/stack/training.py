"""Runs `hyperband training-service` with the emulator: training jobs are processes of this machine."""

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from emulator import REGION, SECONDS
from stack import ROOT

HELLO = ROOT / "examples/hello/train.sh"


class TrainingService:
    """The real program on `port` of loopback, with its jobs in `folder`. It sends events and log lines to `emulator`."""

    def __init__(self, folder, port, emulator, program=HELLO):
        self.folder, self.port, self.emulator = Path(folder), port, emulator
        self.program = program
        self.url = f"http://127.0.0.1:{port}"
        self.log = self.folder / "service.log"
        self.process = None

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "hyperband"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [program, "training-service", "--listen", f"127.0.0.1:{self.port}", "--data-dir", self.folder / "data",
                 "--events-endpoint", self.emulator.url, "--logs-endpoint", self.emulator.url,
                 "--grace-seconds", "2", "--", self.program],
                env=self.emulator.environment(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/ping", timeout=2):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        raise RuntimeError(f"the training service did not respond; its log: {self.log.read_text()[-2000:]}")

    def client(self):
        import boto3

        return boto3.client(
            "sagemaker", endpoint_url=self.url, region_name=REGION,
            aws_access_key_id="test", aws_secret_access_key="test",
        )

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
