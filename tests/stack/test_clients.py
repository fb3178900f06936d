"""Runs the tests of SageMaker's clients (tests/clients) with the deployed stack, through `hyperband proxy`."""

import json
import os
import subprocess
import unittest

from calls import Calls
from stack import ROOT

ROLE = "arn:aws:iam::111122223333:role/training"
PROGRAM = os.path.join(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "debug", "hyperband")


class Clients(Calls, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Only some of these tunings have a cap.
        cls.start_stack(program=ROOT / "tests/clients/train.sh", ExecutionRoleArns=ROLE, RequireCostCap="false")
        cls.proxy = subprocess.Popen(
            [PROGRAM, "proxy", "--endpoint", cls.api, "--listen", "127.0.0.1:0", "--output", "json"], env=cls.emulator.environment(),
            stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.end_proxy)
        cls.address = json.loads(cls.proxy.stdout.readline())["Endpoint"]

    @classmethod
    def end_proxy(cls):
        cls.proxy.terminate()
        cls.proxy.wait(timeout=60)
        cls.proxy.stdout.close()

    def test_unmodified_clients_tune_on_a_stack_through_a_proxy(self):
        environment = os.environ | {"HYPERBAND_BIN": PROGRAM, "CLIENTS_STACK": self.address}
        with self.ticks():
            done = subprocess.run(
                [ROOT / "tests/clients/run.sh"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                check=False)
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}{self.logged_errors()}")
        self.assertEqual(self.failures(), 0)


if __name__ == "__main__":
    unittest.main(failfast=True)
