"""Tests the sample workflow of `infra/samples/step-functions`: it runs tunings of a stack from start to end.

Run by `run.sh`. The emulator runs the state machines of the template and enforces their rights on the API. Training jobs are real
processes. The emulator does not enforce a state machine's rights on DynamoDB and Step Functions, so a test assumes the roles.
"""

import json
import os
import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import boto3

from emulator import REGION, Emulator, free_port
from prices import PriceList
from stack import NAME, ROOT, TRAINING_ROLE, Stack, stage
from training import TrainingService

SAMPLE = ROOT / "infra/samples/step-functions"
SECONDS = 300
DEPLOY_SECONDS = 180


def request(name, **job):
    body = json.loads((ROOT / "examples/hello/request.json").read_text())
    body["HyperParameterTuningJobName"] = name
    config = body["HyperParameterTuningJobConfig"]
    config["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"] = 3
    config["ResourceLimits"] = {"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 3}
    body["TrainingJobDefinition"]["StaticHyperParameters"] = {"epochs": "3", "seconds_per_epoch": "0.3"}
    body["TrainingJobDefinition"]["RoleArn"] = TRAINING_ROLE
    body["TrainingJobDefinition"] |= job
    body["Controller"] = {"MaxCostUsd": 0.5, "EpochPattern": "epoch (\\d+)"}
    return body


class Workflow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="hyperband-workflow-")
        cls.addClassCleanup(temporary.cleanup)
        folder = Path(temporary.name)
        prices = PriceList({"USE1-Train:ml.m5.large": 0.115, "USE1-Train:VolumeUsage.gp2": 0.14})
        cls.addClassCleanup(prices.stop)
        port = free_port()
        cls.emulator = Emulator(folder, {
            "AWS_ENDPOINT_URL_SAGEMAKER": f"http://127.0.0.1:{port}",
            "AWS_ENDPOINT_URL_PRICING": prices.url,
        }, enforce_roles=True)
        cls.addClassCleanup(cls.emulator.stop)
        cls.emulator.start()
        cls.stack = Stack(cls.emulator, stage(folder / "stage"), os.environ["SAM"])
        cls.stack.deploy()
        training = TrainingService(folder / "training", port, cls.emulator)
        cls.addClassCleanup(training.stop)
        training.start()
        cls.deploy_sample()
        cls.workflows = cls.emulator.client("stepfunctions")

    @classmethod
    def deploy_sample(cls):
        """Runs the command of the sample's README."""
        outputs = cls.stack.outputs()
        [command] = re.findall(r"^sam deploy (?:.*\\\n)+.*$", (SAMPLE / "README.md").read_text(), re.M)
        command = re.sub(r"ApiUrl=\S+", f"ApiUrl={outputs['ApiUrl']}", command)
        command = re.sub(r"EventBusName=\S+", f"EventBusName={outputs['EventBusName']}", command)
        environment = cls.emulator.environment()
        environment["PATH"] = f"{Path(os.environ['SAM']).parent}:{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-euc", command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=DEPLOY_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        name = re.search(r"--stack-name (\S+)", command)[1]
        client = cls.emulator.client("cloudformation")
        resources = client.list_stack_resources(StackName=name)["StackResourceSummaries"]
        cls.ids = {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources}
        [output] = client.describe_stacks(StackName=name)["Stacks"][0]["Outputs"]
        cls.machine = output["OutputValue"]

    def start(self, body, machine=None):
        return self.workflows.start_execution(stateMachineArn=machine or self.machine, input=json.dumps(body))["executionArn"]

    def ended(self, execution):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            described = self.workflows.describe_execution(executionArn=execution)
            if described["status"] != "RUNNING":
                return described
            time.sleep(0.5)
        raise AssertionError(f"the execution did not end within {SECONDS} s: {json.dumps(self.events(execution), default=str)}")

    def events(self, execution):
        return self.workflows.get_execution_history(executionArn=execution, maxResults=1000)["events"]

    def check_completed(self, execution, name):
        """Checks that the execution returns the description of the ended tuning."""
        described = self.ended(execution)
        self.assertEqual(described["status"], "SUCCEEDED", described)
        tuning = json.loads(described["output"])
        self.assertEqual((tuning["HyperParameterTuningJobName"], tuning["HyperParameterTuningJobStatus"]), (name, "Completed"))
        self.assertTrue(tuning["BestTrainingJob"]["TrainingJobName"].startswith(f"{name}-"))
        self.assertEqual(tuning["TrainingJobStatusCounters"]["InProgress"], 0)

    def test_1_an_execution_ends_with_the_tuning_and_returns_its_description(self):
        definition = json.loads(self.workflows.describe_state_machine(stateMachineArn=self.machine)["definition"])
        wait = definition["States"]["Wait for the end"]
        self.assertGreater(wait["TimeoutSeconds"], SECONDS)
        woken = self.start(request("first"))
        # Without a task token in the table the event wakes no execution, so the execution checks by itself.
        wait["TimeoutSeconds"] = 2
        wait["Parameters"]["TableName"] = "lost"
        self.emulator.client("dynamodb").create_table(
            TableName="lost", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "name", "AttributeType": "S"}])
        role = self.emulator.client("iam").get_role(RoleName=self.ids["TuneRole"])["Role"]["Arn"]
        other = self.workflows.create_state_machine(name="lost", definition=json.dumps(definition), roleArn=role)
        polling = self.start(request("second"), other["stateMachineArn"])
        self.check_completed(woken, "first")
        self.check_completed(polling, "second")
        self.assertEqual(self.states(woken), ["Start", "Wait for the end", "Look", "Has it ended", "Ended"], "only the event of the end wakes the execution")
        timeouts = [event for event in self.events(polling)
                    if event.get("taskFailedEventDetails", {}).get("error") == "States.Timeout"]
        self.assertTrue(timeouts)

    def states(self, execution):
        entered = [event.get("stateEnteredEventDetails") for event in self.events(execution)]
        return [one["name"] for one in entered if one]

    def test_2_a_refused_request_fails_the_execution_with_its_reason(self):
        refused = self.start(request("third", RoleArn="arn:aws:iam::000000000000:role/administrator"))
        described = self.ended(refused)
        self.assertEqual((described["status"], described["error"]), ("FAILED", "ApiGateway.400"), described)
        self.assertIn("role/administrator", described["cause"])

    def test_3_the_roles_have_the_rights_that_the_workflow_needs_and_no_more(self):
        key = {"name": {"S": "first"}}
        tune, wake = self.assume("TuneRole"), self.assume("WakeRole")
        table = self.ids["Waiting"]
        tune("dynamodb").put_item(TableName=table, Item=key | {"token": {"S": "unknown"}})
        self.assertIn("Item", wake("dynamodb").get_item(TableName=table, Key=key))
        with self.assertRaises(wake("stepfunctions").exceptions.ClientError) as refused:
            wake("stepfunctions").send_task_success(taskToken="unknown", output="{}")
        self.assertNotIn("AccessDenied", str(refused.exception))
        for denied in [
            lambda: tune("dynamodb").get_item(TableName=table, Key=key),
            lambda: wake("dynamodb").put_item(TableName=table, Item=key),
            lambda: tune("dynamodb").put_item(
                TableName=self.stack.outputs()["TableName"], Item={"pk": {"S": "x"}, "sk": {"S": "x"}}),
            lambda: tune("stepfunctions").send_task_success(taskToken="unknown", output="{}"),
        ]:
            with self.assertRaises(Exception) as refused:
                denied()
            self.assertIn("AccessDenied", str(refused.exception))

    def assume(self, logical):
        arn = self.emulator.client("iam").get_role(RoleName=self.ids[logical])["Role"]["Arn"]
        given = self.emulator.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
        return lambda service: boto3.client(
            service, endpoint_url=self.emulator.url, region_name=REGION, aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"], aws_session_token=given["SessionToken"])


if __name__ == "__main__":
    unittest.main(failfast=True)
