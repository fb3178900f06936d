"""Runs `hyperband doctor` on a deployed stack: the real program, the stack in the emulator, training jobs as processes.

Run by `run.sh`. The doctor must answer yes or no to each check that the emulator can show, and "not tried" to the others.
"""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from emulator import Emulator, free_port
from prices import PriceList
from stack import ROOT, TRAINING_ROLE, Stack, stage
from training import TrainingService

SECONDS = 300
# The first job of a tuning fails. The next jobs train until they are stopped.
PROGRAM = """#!/bin/sh
echo "epoch 1 accuracy=0.5"
sleep 3
mkdir "$0.$SM_HP_MARK" 2>/dev/null && exit 3
while :; do sleep 1; done
"""

# The checks that the emulator and the training service pass.
PASSED = {
    "bill-interval", "bill-shows", "prices", "events", "event-times", "failure-class", "name-taken", "job-shows",
    "tags-show", "listing", "stop-ended", "job-absent", "rights", "log-streams", "log-delivery", "signature",
    "tuning-ends", "clocks",
}
# The emulator gives a line different IDs in a subscription and in FilterLogEvents. The doctor must detect this.
FAILED = {"log-ids"}
# The emulator lacks a minute of training, XGBoost's image, an interruption of spot capacity, and a slow start.
NOT_TRIED = {"bill-past-limit", "objective-hyperparameter", "spot-bill", "stop-starting"}


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hyperband-doctor-")
        cls.addClassCleanup(folder.cleanup)
        folder = Path(folder.name)
        prices = PriceList({"USE1-Train:ml.m5.large": 0.115, "USE1-Train:VolumeUsage.gp2": 0.14})
        cls.addClassCleanup(prices.stop)
        port = free_port()
        cls.emulator = Emulator(folder, {
            "AWS_ENDPOINT_URL_SAGEMAKER": f"http://127.0.0.1:{port}",
            "AWS_ENDPOINT_URL_PRICING": prices.url,
        }, enforce_roles=True)
        cls.addClassCleanup(cls.emulator.stop)
        cls.emulator.start()
        stack = Stack(cls.emulator, stage(folder / "stage"), os.environ["SAM"])
        stack.deploy()
        cls.api = f"{cls.emulator.url}/_aws/execute-api/{stack.physical()['Api']}/$default"
        program = folder / "train.sh"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        cls.training = TrainingService(folder / "training", port, cls.emulator, program)
        cls.addClassCleanup(cls.training.stop)
        cls.training.start()

    def examine(self, name, *options):
        """Runs the doctor. Returns the process, its answer, and the verdicts by check."""
        program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "hyperband"
        done = subprocess.run(
            [program, "doctor", "--endpoint", self.api, "--role", TRAINING_ROLE, "--image", "image:1", "--s3-output",
             "s3://example-bucket/out", "--name", name, "--hyperparameter", f"mark={name}", "--interval", "0.3", "--yes",
             "--output", "json", *options],
            env=self.emulator.environment() | {"AWS_ENDPOINT_URL_SAGEMAKER": self.training.url},
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )
        self.assertIn(done.returncode, (0, 1), done.stderr)
        answer = json.loads(done.stdout)
        return done, answer, {check["Check"]: check["Verdict"] for check in answer["Checks"]}

    def check(self, name, passed, not_tried, *options):
        done, answer, verdicts = self.examine(name, *options)
        wanted = dict.fromkeys(passed, "yes") | dict.fromkeys(not_tried, "not tried") | dict.fromkeys(FAILED, "no")
        self.assertEqual(verdicts, wanted, f"{done.stdout}\n{done.stderr}")
        self.assertEqual(done.returncode, 1, "a failed check sets the exit code")
        self.assertLessEqual(answer["SpentUsd"], 0.5)
        self.assertGreater(answer["SpentUsd"], 0)
        jobs = self.training.client().list_training_jobs(NameContains=name)["TrainingJobSummaries"]
        self.assertEqual([job["TrainingJobStatus"] for job in jobs], ["Failed", "Stopped"])

    def test_1_the_doctor_gives_the_expected_verdicts(self):
        self.check("ondemand", PASSED, NOT_TRIED)

    def test_2_the_doctor_gives_the_expected_verdicts_with_spot_instances(self):
        self.check("spot", PASSED - {"bill-interval"}, NOT_TRIED | {"bill-interval"}, "--spot")


if __name__ == "__main__":
    unittest.main(failfast=True)
