"""Runs `hyperband doctor` in the emulator: before the deployment of a stack, and on a deployed stack with training jobs as
processes.

Run by `run.sh`. The doctor must answer yes or no to each check that the emulator can show, and "not tried" to the others.
"""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from emulator import REGION, SECONDS, Emulator, free_port
from prices import PriceList
from stack import ROOT, TRAINING_ROLE, Stack, stage
from training import TrainingService

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
# The emulator lacks three minutes of training, XGBoost's image, an interruption of spot capacity, and a slow start.
NOT_TRIED = {"bill-past-limit", "limit-start", "objective-hyperparameter", "spot-bill", "stop-starting"}


PROGRAM_PATH = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "hyperband"
LOG_GROUP = "/aws/sagemaker/TrainingJobs"


def statement(**members):
    """Returns a policy with one statement that allows, unless `members` differ."""
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow"} | members]})


class BeforeDeployment(unittest.TestCase):
    """`doctor --before` on an account without a stack."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hyperband-before-")
        cls.addClassCleanup(folder.cleanup)
        prices = PriceList({"USE1-Train:ml.m5.large": 0.115, "USE1-Train:VolumeUsage.gp2": 0.14})
        cls.addClassCleanup(prices.stop)
        cls.prices = prices
        cls.emulator = Emulator(Path(folder.name))
        cls.addClassCleanup(cls.emulator.stop)
        cls.emulator.start()
        iam = cls.emulator.client("iam")
        trust = {"Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
        cls.role = iam.create_role(RoleName="before", AssumeRolePolicyDocument=statement(**trust))["Role"]["Arn"]
        cls.deployers = {}
        for name, actions in {"everything": "*", "nothing": "s3:ListAllMyBuckets"}.items():
            created = iam.create_role(RoleName=name, AssumeRolePolicyDocument=statement(**trust))
            iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=statement(Action=actions, Resource="*"))
            cls.deployers[name] = created["Role"]["Arn"]

    def examine(self, code, *options):
        """Runs the doctor. Returns the verdicts by check, and the parameters."""
        done = subprocess.run(
            [PROGRAM_PATH, "doctor", "--before", "--role", self.role, "--output", "json", *options],
            env=self.emulator.environment() | {"AWS_ENDPOINT_URL_PRICING": self.prices.url},
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )
        self.assertEqual(done.returncode, code, f"{done.stdout}\n{done.stderr}")
        answer = json.loads(done.stdout)
        return {check["Check"]: check["Verdict"] for check in answer["Checks"]}, answer["Parameters"]

    def test_1_a_new_account_gets_its_parameters(self):
        verdicts, parameters = self.examine(0, "--principal", self.deployers["everything"])
        passed = {"credentials", "lambda-concurrency", "log-group", "log-subscriptions", "prices", "execution-role",
                  "permissions", "organization"}
        # The emulator has no Service Quotas.
        not_tried = {"training-quota", "spot-quota", "vpc-jobs", "vpc-functions"}
        self.assertEqual(verdicts, dict.fromkeys(passed, "yes") | dict.fromkeys(not_tried, "not tried"))
        self.assertEqual(parameters["ExecutionRoleArns"], self.role)
        self.assertEqual(parameters["CreateTrainingLogGroup"], "true")

    def test_2_denied_actions_and_taken_subscriptions_are_found(self):
        logs = self.emulator.client("logs")
        logs.create_log_group(logGroupName=LOG_GROUP)
        for name in ("a", "b"):
            logs.put_subscription_filter(
                logGroupName=LOG_GROUP, filterName=name, filterPattern="",
                destinationArn=f"arn:aws:kinesis:{REGION}:000000000000:stream/{name}",
                roleArn="arn:aws:iam::000000000000:role/logs")
        vpc = self.emulator.client("ec2").describe_vpcs()["Vpcs"][0]["VpcId"]
        verdicts, parameters = self.examine(1, "--principal", self.deployers["nothing"], "--vpc", vpc)
        self.assertEqual(verdicts["permissions"], "no")
        self.assertEqual(verdicts["log-subscriptions"], "warning")
        self.assertEqual(verdicts["vpc-jobs"], "warning")
        self.assertEqual(parameters["MetricsFrom"], "Polling")
        self.assertEqual(parameters["CreateTrainingLogGroup"], "false")


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
        done = subprocess.run(
            [PROGRAM_PATH, "doctor", "--endpoint", self.api, "--role", TRAINING_ROLE, "--image", "image:1", "--s3-output",
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
