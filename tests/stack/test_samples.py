"""Tests the samples in `infra/samples`, and the state machine of docs/STACK.md, with tunings of a stack.

Run by `run.sh`. The emulator runs the state machines of the template and enforces their rights on the API. Training jobs are real
processes. The emulator does not enforce a state machine's rights on DynamoDB and Step Functions, so a test assumes the roles.
"""

import json
import os
import re
import subprocess
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3

from calls import hello
from emulator import REGION, SECONDS, Emulator, free_port
from prices import PriceList
from stack import NAME, ROOT, Stack, stage
from training import TrainingService

SAMPLES = ROOT / "infra/samples"


def request(name, **job):
    body = hello()
    body["HyperParameterTuningJobName"] = name
    config = body["HyperParameterTuningJobConfig"]
    config["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"] = 3
    config["ResourceLimits"] = {"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 3}
    body["TrainingJobDefinition"]["StaticHyperParameters"] = {"epochs": "3", "seconds_per_epoch": "0.3"}
    body["TrainingJobDefinition"] |= job
    body["Controller"] = {"MaxCostUsd": 0.5, "EpochPattern": "epoch (\\d+)"}
    return body


class Webhook:
    """An HTTP server of loopback in place of Slack's webhook. `posts` has the headers and the JSON body of each request."""

    def __init__(self):
        self.posts = posts = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                posts.append((dict(self.headers), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/services/EXAMPLE"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Samples(unittest.TestCase):
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
        cls.stack.deploy(overlays=["direct-calls"])
        training = TrainingService(folder / "training", port, cls.emulator)
        cls.addClassCleanup(training.stop)
        training.start()
        [workflow] = cls.commands("step-functions")
        cls.ids, outputs = cls.deploy(workflow)
        cls.machine = outputs["StateMachineArn"]
        cls.workflows = cls.emulator.client("stepfunctions")
        central, forward = cls.commands("central-bus")
        _, outputs = cls.deploy(central)
        cls.central_bus = outputs["CentralBusArn"]
        cls.central_events = cls.queue_of(cls.central_bus.split("/")[1])
        cls.ids |= cls.deploy(forward, CentralBusArn=cls.central_bus)[0]
        cls.slack = Webhook()
        cls.addClassCleanup(cls.slack.stop)
        [notifications] = cls.commands("notifications")
        found, outputs = cls.deploy(notifications, SlackWebhookUrl=cls.slack.url)
        cls.ids |= found
        cls.messages = cls.subscribe(outputs["TopicArn"])

    @classmethod
    def commands(cls, sample):
        """Returns the commands of a sample's README that deploy it."""
        return re.findall(r"^sam deploy (?:.*\\\n)+.*$", (SAMPLES / sample / "README.md").read_text(), re.M)

    @classmethod
    def queue_of(cls, bus):
        """Creates a queue that receives every event of the bus with this name. Returns its URL."""
        sqs, events = cls.emulator.client("sqs"), cls.emulator.client("events")
        url = sqs.create_queue(QueueName="central-events")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        events.put_rule(Name="all", EventBusName=bus, EventPattern=json.dumps({"source": [{"prefix": ""}]}))
        events.put_targets(Rule="all", EventBusName=bus, Targets=[{"Id": "queue", "Arn": arn}])
        return url

    @classmethod
    def subscribe(cls, topic):
        """Creates a queue that receives the texts of the topic. Returns its URL."""
        sqs = cls.emulator.client("sqs")
        url = sqs.create_queue(QueueName="messages")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        right = {"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": arn}]}
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(right)})
        cls.emulator.client("sns").subscribe(
            TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
        return url

    @classmethod
    def deploy(cls, command, **values):
        """Runs the command of a README with values of the stack. Returns the physical names of its resources, and its outputs."""
        outputs = cls.stack.outputs()
        for name, value in ({name: outputs[name] for name in ["ApiUrl", "EventBusName"]} | values).items():
            command = re.sub(rf"{name}=\S+", f"{name}={value}", command)
        environment = cls.emulator.environment()
        environment["PATH"] = f"{Path(os.environ['SAM']).parent}:{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-euc", command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        name = re.search(r"--stack-name (\S+)", command)[1]
        client = cls.emulator.client("cloudformation")
        resources = client.list_stack_resources(StackName=name)["StackResourceSummaries"]
        found = client.describe_stacks(StackName=name)["Stacks"][0].get("Outputs", [])
        return ({resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources},
                {output["OutputKey"]: output["OutputValue"] for output in found})

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

    def test_4_the_events_of_tunings_reach_the_central_bus_and_decisions_do_not(self):
        events, bus = self.emulator.client("events"), self.stack.outputs()["EventBusName"]
        for file in ["tuning-trial-decision.stopped", "cost-alarm.overrun", "hyperparameter-tuning-job-state-change.completed"]:
            event = json.loads((ROOT / f"events/custom.hyperband/{file}.json").read_text())
            for source in ["another.source", event["source"]]:
                entry = {"Source": source, "DetailType": event["detail-type"], "Detail": json.dumps(event["detail"])}
                put = events.put_events(Entries=[entry | {"EventBusName": bus}])
                self.assertEqual(put["FailedEntryCount"], 0, put)
        sqs, found = self.emulator.client("sqs"), []
        # The events above arrive last.
        while not any(event["detail"].get("HyperParameterTuningJobName") == "hb1" and "State Change" in event["detail-type"]
                      for event in found):
            received = sqs.receive_message(QueueUrl=self.central_events, MaxNumberOfMessages=10, WaitTimeSeconds=20)
            self.assertIn("Messages", received, found)
            found += [json.loads(message["Body"]) for message in received["Messages"]]
            for message in received["Messages"]:
                sqs.delete_message(QueueUrl=self.central_events, ReceiptHandle=message["ReceiptHandle"])
        self.assertEqual({event["source"] for event in found}, {"custom.hyperband"})
        self.assertEqual({event["detail-type"] for event in found},
                         {"SageMaker HyperParameter Tuning Job State Change", "Hyperband Tuning Job Cost Alarm"})
        ended = [event["detail"]["HyperParameterTuningJobName"] for event in found
                 if event["detail"].get("HyperParameterTuningJobStatus") == "Completed"]
        self.assertLessEqual({"first", "second"}, set(ended), "the real tunings of the first test")
        forward = self.assume("ForwardRole")("events")
        entry = {"Source": "custom.hyperband", "DetailType": "x", "Detail": "{}"}
        forward.put_events(Entries=[entry | {"EventBusName": self.central_bus}])
        with self.assertRaises(Exception) as refused:
            forward.put_events(Entries=[entry | {"EventBusName": bus}])
        self.assertIn("AccessDenied", str(refused.exception))

    def test_5_the_state_machine_of_the_documents_submits_by_a_direct_call(self):
        arn = self.stack.outputs()["InvokeFunctionArn"]
        [definition] = [text for text in re.findall(r"```json\n(.*?)```", (ROOT / "docs/STACK.md").read_text(), re.S)
                        if "INVOKE_FUNCTION_ARN" in text]
        iam = self.emulator.client("iam")
        trust = {"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
        right = {"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": arn}]}
        role = iam.create_role(RoleName="direct", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
        iam.put_role_policy(RoleName="direct", PolicyName="invoke", PolicyDocument=json.dumps(right))
        machine = self.workflows.create_state_machine(
            name="direct", definition=definition.replace("INVOKE_FUNCTION_ARN", arn), roleArn=role)["stateMachineArn"]
        accepted = self.ended(self.start(request("direct"), machine))
        self.assertEqual(accepted["status"], "SUCCEEDED", accepted)
        self.assertTrue(json.loads(accepted["output"]).endswith(":hyper-parameter-tuning-job/direct"), accepted)
        again = self.ended(self.start(request("direct"), machine))
        self.assertEqual((again["status"], again["output"]), ("SUCCEEDED", accepted["output"]))
        refused = self.ended(self.start(request("direct", EnableNetworkIsolation=True), machine))
        self.assertEqual((refused["status"], refused["error"]), ("FAILED", "TuningRefused"), refused)
        self.assertIn("already exists", refused["cause"])

    def test_6_the_events_of_tunings_become_one_line_on_the_topic_and_in_slack(self):
        events, bus = self.emulator.client("events"), self.stack.outputs()["EventBusName"]
        for file in sorted((ROOT / "events/custom.hyperband").glob("*.json")):
            event = json.loads(file.read_text())
            # A name that no test submits.
            detail = event["detail"] | {"HyperParameterTuningJobName": "sample"}
            for percent in [50, 100] if "Percent" in detail else [None]:
                given = detail if percent is None else detail | {"Percent": percent}
                put = events.put_events(Entries=[{
                    "Source": event["source"], "DetailType": event["detail-type"], "Detail": json.dumps(given),
                    "EventBusName": bus}])
                self.assertEqual(put["FailedEntryCount"], 0, put)
        wanted = {
            "Tuning sample: Completed. Spent: 3 USD. Best value: 0.529.",
            "Tuning sample: Stopped. Spent: 0.4 USD. Best value: .",
            "Tuning sample: 100 % of its cap is used. Spent: 3.9 USD, reserved: 0.4 USD, cap: 5 USD.",
            "100 % of the cap of 2026-09 is granted. Tuning sample reached it.",
            "Tuning sample: a training job costs more than was reserved for it. Spent: 11 USD, reserved: 10.8 USD.",
            "Tuning sample gets no instances.",
        }
        texts = self.received(self.messages, lambda texts: wanted <= set(texts))
        self.assertEqual(sorted(text for text in texts if "sample" in text), sorted(wanted))
        deadline = time.monotonic() + SECONDS
        while len(self.slack.posts) < len(texts) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertTrue(all(set(body) == {"text"} for _, body in self.slack.posts), self.slack.posts)
        self.assertEqual(sorted(body["text"] for _, body in self.slack.posts), sorted(texts))
        self.assertEqual({headers["X-Unused"] for headers, _ in self.slack.posts}, {"unused"})
        # The real tunings of the first test. JSON has a number such as 0.000099 with an exponent.
        for name in ["first", "second"]:
            line = re.compile(rf"Tuning {name}: Completed\. Spent: [\d.]+(e-\d+)? USD\. Best value: 0\.\d+\.")
            self.assertTrue(any(map(line.fullmatch, texts)), texts)

    def received(self, queue, is_complete):
        """Returns the texts of a queue that arrive until they are complete, and a few seconds later."""
        sqs, texts = self.emulator.client("sqs"), []
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=5).get("Messages", [])
            if not found and is_complete(texts):
                break
            for message in found:
                sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
                # A JSON text, in quotes.
                texts.append(json.loads(message["Body"]))
        return texts

    def assume(self, logical):
        arn = self.emulator.client("iam").get_role(RoleName=self.ids[logical])["Role"]["Arn"]
        given = self.emulator.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
        return lambda service: boto3.client(
            service, endpoint_url=self.emulator.url, region_name=REGION, aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"], aws_session_token=given["SessionToken"])


if __name__ == "__main__":
    unittest.main(failfast=True)
