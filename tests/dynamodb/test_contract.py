"""Tests the contract of tables on moto, dynalite and MiniStack, other implementations of DynamoDB.

Run by `run.sh`. The example `contract_at` of shared/dynamodb runs the cases and lists the known differences. Each
implementation runs on a free port of loopback. Must never call another address: the tests remove the settings of an account.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "stack"))
from emulator import Emulator  # noqa: E402

PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "examples" / "contract_at"
START_SECONDS = 60
RUN_SECONDS = 300
MOTO = [str(HERE / ".work" / "moto" / "bin" / "python"), "-uB", "moto_server.py"]
# dynalite's own program cannot listen on port 0.
DYNALITE = ["node", "-e", """
const server = require("dynalite")({createTableMs: 0})
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`))
"""]


def environment():
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return clean | {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "RUST_BACKTRACE": "0",
    }


def contract(implementation, endpoint, table="contract"):
    """Returns the exit code of the suite and its output."""
    done = subprocess.run([PROGRAM, implementation, endpoint, table], env=environment(), timeout=RUN_SECONDS,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class Contract(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hyperband-dynamodb-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, command, folder=HERE):
        """Starts a server that prints its address. Returns the address."""
        path = self.folder / "log"
        with path.open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if found := re.search(r"http://127\.0\.0\.1:\d+\b", path.read_text()):
                return found.group()
            if process.poll() is not None:
                self.fail(f"the server ended with exit code {process.returncode}: {path.read_text()}")
            time.sleep(0.1)
        self.fail(f"no address within {START_SECONDS} s: {path.read_text()}")

    def ministack(self):
        emulator = Emulator(self.folder)
        self.addCleanup(emulator.stop)
        return emulator.start().url

    def passes(self, implementation, endpoint):
        code, output = contract(implementation, endpoint)
        self.assertEqual(code, 0, output)
        print(output.splitlines()[-1])

    def test_moto_fulfills_the_contract_except_for_the_known_differences(self):
        self.passes("moto", self.start(MOTO))

    def test_dynalite_fulfills_the_contract_except_for_the_known_differences(self):
        if shutil.which("npm") is None and not os.environ.get("CI"):
            self.skipTest("npm is missing")
        self.passes("dynalite", self.start(DYNALITE, HERE / ".work" / "dynalite"))

    def test_ministack_fulfills_the_contract(self):
        self.passes("ministack", self.ministack())

    def test_a_known_difference_that_disappears_fails(self):
        code, output = contract("moto", self.ministack(), "difference")
        self.assertEqual(code, 1, output)
        self.assertRegex(output, "FAILED +a_token_identifies_a_transaction: holds now")
        self.assertIn("5 failed", output.splitlines()[-1])

    def test_a_missing_server_fails(self):
        with socket.socket() as closed:
            # Bound but not listening, so that no other process takes the port.
            closed.bind(("127.0.0.1", 0))
            code, output = contract("moto", f"http://127.0.0.1:{closed.getsockname()[1]}")
        self.assertEqual(code, 1, output)
        self.assertIn("no answer from http://127.0.0.1", output)


if __name__ == "__main__":
    unittest.main()
