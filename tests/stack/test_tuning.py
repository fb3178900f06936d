"""Runs tunings on the deployed stack, from the API request to their end. Training jobs are real processes.

Run by `run.sh`. The emulator emulates AWS and enforces the functions' roles. `hyperband training-service` emulates SageMaker: it
sends state changes to the emulator's EventBridge and lines to its CloudWatch Logs. The tests compute the expected values from the
logs and from the training service's bills, never from the controller's own results.
"""

import contextlib
import copy
import json
import os
import random
import signal
import subprocess
import time
import unittest
from pathlib import Path

import boto3
import yaml

from calls import PRICE_USD, TRAINING_LOGS, Background, Calls, request
from emulator import REGION, SECONDS
from stack import NAME, ROOT, stage

# The cap of the month. The first tuning needs slightly more than half of it.
MONTHLY_CAP_USD = 0.2
STATE_CHANGE = "SageMaker HyperParameter Tuning Job State Change"
COST_ALARM = "Hyperband Tuning Job Cost Alarm"


class Tunings(Calls, unittest.TestCase):
    """The tests share a stack and run in the order of their names. The last test deletes the stack."""

    @classmethod
    def setUpClass(cls):
        cls.start_stack(PricesInRequests="NotBelowList", MonthlyCapUsd=str(MONTHLY_CAP_USD))
        cls.notices, cls.received = cls.subscribe_to_the_bus(), []

    def setUp(self):
        # The first tuning completes with the schedule alone, and the last test deletes the sweeper. The others do not wait for
        # the schedule.
        if not self._testMethodName.startswith(("test_1_", "test_6_")):
            self.enterContext(self.ticks())

    @classmethod
    def subscribe_to_the_bus(cls):
        """Creates a queue that receives every event of the stack's bus. Returns its URL."""
        sqs, events = cls.emulator.client("sqs"), cls.emulator.client("events")
        queue = sqs.create_queue(QueueName="notices")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        bus = cls.stack.outputs()["EventBusName"]
        events.put_rule(Name="all", EventBusName=bus, EventPattern=json.dumps({"source": ["custom.hyperband"]}))
        events.put_targets(Rule="all", EventBusName=bus, Targets=[{"Id": "queue", "Arn": arn}])
        return queue

    def canary(self, folder, name):
        """Runs the canary of the example pipeline: its own commands, with canary.json in `folder`."""
        steps = yaml.safe_load((ROOT / "examples/ci/github-actions.yml").read_text())["jobs"]["deploy"]["steps"]
        [commands] = [step["run"] for step in steps if step.get("name") == "Run the canary"]
        built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
        environment = self.emulator.environment() | {
            "HYPERBAND_ENDPOINT": self.api, "CANARY": name, "PATH": f"{built}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-e", "-c", commands], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}{self.logged_errors()}")

    def receive(self):
        """Receives the new events of the bus: name, detail type, and status, decision or level of a cap."""
        sqs = self.emulator.client("sqs")
        while messages := sqs.receive_message(QueueUrl=self.notices, MaxNumberOfMessages=10).get("Messages", []):
            for message in messages:
                sqs.delete_message(QueueUrl=self.notices, ReceiptHandle=message["ReceiptHandle"])
                event = json.loads(message["Body"])
                detail = event["detail"]
                words = [detail[key] for key in ("HyperParameterTuningJobStatus", "Decision", "Alarm", "Percent")
                         if key in detail]
                self.received.append((detail["HyperParameterTuningJobName"], event["detail-type"], *words))

    def wait_for_notices(self, name, wanted):
        """Waits until the bus has sent all wanted events of the tuning: detail type, and status, decision or level."""
        self.wait_for(f"{wanted} of {name}", lambda: all((name, *notice) in self.received for notice in wanted))

    def wait_for(self, wanted, arrived):
        """Receives events until `arrived` returns true."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            self.receive()
            if arrived():
                return
            time.sleep(0.3)
        raise AssertionError(f"the bus did not send {wanted}: it sent {self.received}")

    def granted_usd(self):
        """Returns the granted money in the months' rows, in USD."""
        rows = self.emulator.client("dynamodb").query(
            TableName=self.stack.outputs()["TableName"], KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": "BUDGET"}})["Items"]
        return sum(int(row["granted"]["N"]) for row in rows) / 1e6

    # ---- Tests ----

    def test_1_a_tuning_completes_with_the_right_best_job_within_its_cap(self):
        file = self.folder / "canary.json"
        file.write_text(json.dumps(request("canary", InitialConfigurations=[{"learning_rate": 0.02}])))
        self.canary(self.folder, "first")
        _, jobs, _ = self.check_completed("first")
        self.assertEqual(len(jobs), 12)
        first = next(job for job in jobs if job["Controller"]["Trial"] == 0)
        self.assertEqual(first["TunedHyperParameters"], {"learning_rate": "0.02"}, "the given configuration was first")
        stopped = [job for job in jobs if job["Controller"].get("StopReason", "").startswith("Rung")]
        self.assertTrue(stopped, "no training job was stopped at a rung: the decisions were too late")
        self.wait_for_notices("first", [(STATE_CHANGE, "InProgress"), (STATE_CHANGE, "Completed"),
                                  ("Tuning Trial Decision", "Stopped"), (COST_ALARM, "MonthlyCapReached", 50)])
        self.assertEqual(self.failures(), 0)
        self.assertEqual(self.prices.requests, 2, "one request for the instance and one for the volume")

    def test_2a_a_sagemaker_client_starts_and_stops_a_tuning(self):
        client = boto3.client(
            "sagemaker", endpoint_url=self.api, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test")
        # API Gateway needs the service execute-api in the signature. The README shows how a user sets it.
        client.meta.events.register("before-call.sagemaker", lambda context, **_: context.setdefault(
            "signing", {}).update(signing_name="execute-api"))
        body = request("second")
        del body["Controller"]
        with self.assertRaises(client.exceptions.ClientError) as refused:
            client.create_hyper_parameter_tuning_job(**body)
        self.assertIn("hyperband:MaxCostUsd", str(refused.exception), "the error names the tag that sets the cap")
        # boto3 rejects unknown members, so tags have them. The environment has values with characters that tags forbid.
        controller = request("second")["Controller"]
        body["Tags"].append({"Key": "hyperband:MaxCostUsd", "Value": str(controller["MaxCostUsd"])})
        body["TrainingJobDefinition"]["Environment"] = {"HYPERBAND_EpochPattern": controller["EpochPattern"]}
        client.create_hyper_parameter_tuning_job(**body)
        status, shown = self.ask("GET", "/tuning-jobs/second")
        self.assertEqual({name: shown["Controller"][name] for name in controller}, controller, status)
        described = client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName="second")
        self.assertEqual(described["HyperParameterTuningJobStatus"], "InProgress")
        client.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName="second")
        described = self.ended("second")
        self.assertEqual(described["HyperParameterTuningJobStatus"], "Stopped", described)
        listed = client.list_hyper_parameter_tuning_jobs(SortBy="CreationTime")["HyperParameterTuningJobSummaries"]
        self.assertEqual([job["HyperParameterTuningJobName"] for job in listed], ["first", "second"])

    def test_2b_the_program_stops_a_tuning_with_running_jobs(self):
        # No rung stops these jobs, and each free slot gets another one, so jobs run when the program stops the tuning.
        body = request("stopped")
        config = body["HyperParameterTuningJobConfig"]
        config |= {"Strategy": "Random", "TrainingJobEarlyStoppingType": "Off"}
        del config["StrategyConfig"]
        body["TrainingJobDefinition"]["StaticHyperParameters"]["seconds_per_epoch"] = "5"
        self.create(body)
        deadline = time.monotonic() + SECONDS
        while self.training_jobs_running("stopped") < 2:
            self.assertLess(time.monotonic(), deadline, self.logged_errors())
            time.sleep(0.3)
        self.program("stop", "stopped")
        described = self.ended("stopped")
        self.assertEqual(described["HyperParameterTuningJobStatus"], "Stopped", described)
        self.wait_for_notices("stopped", [(STATE_CHANGE, "InProgress"), (STATE_CHANGE, "Stopping"), (STATE_CHANGE, "Stopped")])

    def test_2c_a_bayesian_tuning_ends_when_its_cap_cannot_pay_another_job(self):
        body = request("cents", MaxCostUsd=0.0236)
        config = body["HyperParameterTuningJobConfig"]
        config |= {"Strategy": "Bayesian", "TrainingJobEarlyStoppingType": "Auto"}
        del config["StrategyConfig"]
        # On demand, so that a job's worst case is nearly the whole cap.
        job = body["TrainingJobDefinition"]
        del job["EnableManagedSpotTraining"], job["StoppingCondition"]["MaxWaitTimeInSeconds"]
        # Two definitions share the cap.
        body["TrainingJobDefinitions"] = [
            body["TrainingJobDefinition"] | {
                "DefinitionName": name, "TuningObjective": config["HyperParameterTuningJobObjective"],
                "HyperParameterRanges": config["ParameterRanges"]}
            for name in ("one", "two")]
        del body["TrainingJobDefinition"], config["HyperParameterTuningJobObjective"], config["ParameterRanges"]
        self.create(body)
        described = self.ended("cents")
        self.assertEqual([one["DefinitionName"] for one in described["TrainingJobDefinitions"]], ["one", "two"])
        for job in self.training_jobs("cents"):
            name = ("one", "two")[job["Controller"]["Trial"] % 2]
            self.assertEqual(job["TrainingJobDefinitionName"], name)
            self.assertEqual(job["ObjectiveStatus"], "Succeeded")
        self.assertEqual(
            (described["HyperParameterTuningJobStatus"], described["Controller"]["EndReason"]), ("Completed", "CostCap"))
        config = described["HyperParameterTuningJobConfig"]
        self.assertEqual((config["Strategy"], config["TrainingJobEarlyStoppingType"]), ("Bayesian", "Auto"))
        self.assertLess(len(self.training_jobs("cents")), 12)
        self.wait_for_notices("cents", [(COST_ALARM, "CapReached", 100), (STATE_CHANGE, "Completed")])

    def test_3_invalid_input_is_refused_and_affects_no_tuning(self):
        before = self.failures()
        wrong = request("third")
        wrong["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = 0
        other_role = request("third")
        other_role["TrainingJobDefinition"]["RoleArn"] = "arn:aws:iam::000000000000:role/administrator"
        unpriced = request("third")
        unpriced["TrainingJobDefinition"]["ResourceConfig"]["InstanceType"] = "ml.p4d.24xlarge"
        cheap = request("third", InstancePricesUsdPerHour={"ml.m5.large": 0.01})
        for body, status, code, named in [
            (wrong, 400, "ValidationException", "MaxParallelTrainingJobs"),
            (other_role, 400, "ValidationException", "role/administrator"),
            (unpriced, 400, "ValidationException", "ml.p4d.24xlarge"),
            (cheap, 400, "ValidationException", f"below the list price of {PRICE_USD}"),
            (request("first"), 409, "ResourceInUse", "first"),
            ("{", 400, "SerializationException", ""),
            (b"\xff\xfe", 400, "SerializationException", ""),
        ]:
            with self.subTest(named or body):
                answer = self.ask("POST", "/tuning-jobs", body)
                self.assertEqual((answer[0], answer[1]["__type"]), (status, code), answer)
                self.assertIn(named, answer[1]["message"])
        self.assertEqual(self.ask("GET", "/tuning-jobs/third")[0], 404)
        self.assertEqual(self.ask("POST", "/tuning-jobs", request("third"), key="stranger")[0], 403)

        # An unreadable event of this stack, an event of an unknown job, and meaningless log lines.
        events, logs = self.emulator.client("events"), self.emulator.client("logs")
        sample = json.loads((ROOT / "events/aws.sagemaker/training-job-state-change.completed.json").read_text())["detail"]
        sample["Tags"] |= {"hyperband:stack": NAME, "hyperband:tuning": "unknown-abc123"}
        unreadable = copy.deepcopy(sample)
        unreadable["TrainingJobStatus"] = 7
        for detail in [sample, unreadable]:
            events.put_events(Entries=[{"Source": "aws.sagemaker", "DetailType": "SageMaker Training Job State Change",
                                        "Detail": json.dumps(detail)}])
        for stream in ["unknown-abc123-0-0-1/algo-1-1789000000", "other job"]:
            logs.create_log_stream(logGroupName=TRAINING_LOGS, logStreamName=stream)
            lines = [{"timestamp": int(time.time() * 1000), "message": text}
                     for text in ["accuracy=nan", "accuracy=1e999", "\x00\ufffd", "x" * 100_000]]
            logs.put_log_events(logGroupName=TRAINING_LOGS, logStreamName=stream, logEvents=lines)

        # The emulator's rule does not retry. An asynchronous invocation with the same event does, like EventBridge and Lambda.
        event = {"version": "0", "id": "1", "source": "aws.sagemaker", "time": "2026-09-10T00:30:00Z", "resources": [],
                 "detail-type": "SageMaker Training Job State Change", "detail": unreadable}
        self.emulator.client("lambda").invoke(
            FunctionName=self.ids["JobEventsFunction"], InvocationType="Event", Payload=json.dumps(event))

        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.failures() == before:
            time.sleep(0.3)
        self.assertEqual(self.failures(), before + 1, "the queue keeps the unreadable event")
        self.emulator.client("sqs").purge_queue(QueueUrl=self.ids["DeliveryFailures"])
        events = self.emulator.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{NAME}-job-events")["events"]
        lines = [json.loads(event["message"]) for event in events if event["message"].startswith("{")]
        types = [line["errorType"] for line in lines if "errorType" in line]
        self.assertEqual(types, ["Unreadable"] * 4, "one attempt by the rule, three by Lambda")

    def test_4_tunings_survive_killed_functions_and_an_update_of_the_stack(self):
        self.create(request("fourth"))
        self.create(request("fifth", RungExecution="Promote", ResourceHyperParameter="epochs")
                    | {"TrainingJobDefinition": promoted(request("fifth"))})
        digests = self.digests()
        with Killer(self.emulator, self.training) as killer:
            killer.wait_for(8)
            # An update of the running stack: a new digest of the code and another setting.
            stage(self.infra.parent, marker=b"next")
            self.stack.deploy(LogRetentionDays="7", MonthlyCapUsd=str(MONTHLY_CAP_USD))
            killer.wait_for(16)
        updated = self.digests()
        self.assertEqual([name for name in digests if digests[name] == updated[name]], [], "each function runs the new code")
        groups = self.emulator.client("logs").describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{NAME}-")["logGroups"]
        self.assertEqual({group["retentionInDays"] for group in groups}, {7})
        # The functions now recover the lost work.
        self.check_completed("fourth")
        self.check_completed("fifth")
        for name in ["fourth", "fifth"]:
            self.wait_for_notices(name, [(STATE_CHANGE, "Completed")])
        self.check_failures()
        # Every job that ran belongs to a tuning.
        known = {job["TrainingJobName"] for name in ALL[:ALL.index("fifth") + 1]
                 for job in self.training_jobs(name)}
        pages = self.training.client().get_paginator("list_training_jobs").paginate()
        ran = {job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]}
        self.assertLessEqual(ran, known)

    def digests(self):
        client = self.emulator.client("lambda")
        functions = [name for name in self.ids if name.endswith("Function")]
        return {name: client.get_function_configuration(FunctionName=self.ids[name])["CodeSha256"] for name in functions}

    def check_failures(self):
        """Checks that killed calls were retried: the decider gave up no record, and no message was unreadable."""
        sqs, queue = self.emulator.client("sqs"), self.ids["DeliveryFailures"]
        while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", []):
            for message in messages:
                self.assertNotIn("Unreadable", message["Body"])
                self.assertNotIn(self.ids["DeciderFunction"], message["Body"])

    def test_4a_a_tuning_that_takes_the_rest_of_the_month_publishes_it(self):
        # The rest pays for about two of the four jobs that the tuning can start at once.
        self.stack.deploy(LogRetentionDays="7", MonthlyCapUsd=str(round(self.granted_usd() + 0.05, 4)))
        self.create(request("rest"))
        # Two concurrent tunings of the test before can have reached the whole cap too.
        self.wait_for("100 % of the month's cap", lambda: any(
            notice[1:] == (COST_ALARM, "MonthlyCapReached", 100) for notice in self.received))
        self.program("stop", "rest")
        self.ended("rest")

    def test_5_the_month_has_exactly_the_spent_money(self):
        described = [self.ended(name) for name in ALL]
        spent = sum(tuning["Controller"]["SpentUsd"] for tuning in described)
        self.assertGreater(spent, 0)
        self.assertAlmostEqual(self.granted_usd(), spent, places=6)

    def test_5b_the_rows_of_deleted_and_of_old_tunings_are_removed(self):
        self.stack.deploy(MonthlyCapUsd="1", TuningDays="1")
        dynamodb, table = self.emulator.client("dynamodb"), self.stack.outputs()["TableName"]

        def item(pk, sk):
            return dynamodb.get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": sk}}, ConsistentRead=True).get("Item")

        def rows(pk):
            return dynamodb.query(TableName=table, KeyConditionExpression="pk = :p", ConsistentRead=True,
                                  ExpressionAttributeValues={":p": {"S": pk}})["Items"]

        ids = {name: item("INDEX", name)["id"]["S"] for name in ("first", "second", "fourth")}
        self.program("delete", "first", "--yes")
        self.assertEqual(self.ask("GET", "/tuning-jobs/first")[0], 404)
        # The second tuning ended two days ago.
        old = {"N": str(int((time.time() - 2 * 86_400) * 1_000))}
        for row, attribute in [(item("INDEX", "second"), "created"), (item(f"T#{ids['second']}", "HEAD"), "at")]:
            dynamodb.put_item(TableName=table, Item=row | {attribute: old})

        def left():
            # The listing, which the removal follows, is due now, and not only once an hour.
            sweep = item("ACTIVE", "#SWEEP")
            cursor = json.loads(sweep["data"]["S"]) | {"listing_due": 0}
            with contextlib.suppress(dynamodb.exceptions.ConditionalCheckFailedException):
                dynamodb.update_item(
                    TableName=table, Key={"pk": {"S": "ACTIVE"}, "sk": {"S": "#SWEEP"}}, UpdateExpression="SET #d = :d",
                    ConditionExpression="fence = :f", ExpressionAttributeNames={"#d": "data"},
                    ExpressionAttributeValues={":d": {"S": json.dumps(cursor)}, ":f": sweep["fence"]})
            removed = [ids["first"], ids["second"]]
            return rows("DELETED") + [row for id in removed for kind in "TAFR" for row in rows(f"{kind}#{id}")]

        deadline = time.monotonic() + SECONDS
        while remaining := left():
            self.assertLess(time.monotonic(), deadline, [row["pk"] for row in remaining])
            time.sleep(5)
        self.assertEqual(self.ask("GET", "/tuning-jobs/second")[0], 404)
        self.assertGreater(len(rows(f"T#{ids['fourth']}")), 3)
        self.assertEqual(self.ask("GET", "/tuning-jobs/fourth")[0], 200)

    def test_6_deletion_keeps_the_table(self):
        table = self.stack.outputs()["TableName"]
        self.stack.delete()
        self.assertEqual(self.emulator.client("dynamodb").list_tables()["TableNames"], [table])
        self.assertEqual(self.emulator.client("lambda").list_functions()["Functions"], [])


# The tunings that the tests start.
ALL = ["first", "second", "stopped", "cents", "fourth", "fifth", "rest"]


def promoted(body):
    """Returns the job definition for promoted trials: the rung sets the epochs."""
    job = copy.deepcopy(body["TrainingJobDefinition"])
    del job["StaticHyperParameters"]["epochs"]
    return job


class Killer(Background):
    """Kills random processes of functions, busy or idle, like a failing host of Lambda.

    Each kill comes after a random number of further lines of the training jobs, so that the tunings progress between kills on a
    machine of any speed.
    """

    def __init__(self, emulator, training, lines=(1, 6)):
        super().__init__()
        self.emulator, self.training, self.lines, self.killed = emulator, training, lines, 0
        self.random = random.Random(1)

    def run(self):
        goal = self.printed() + self.random.randint(*self.lines)
        while not self.over.wait(0.05):
            if self.printed() >= goal and (running := list(self.processes())):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.random.choice(running), signal.SIGKILL)
                    self.killed += 1
                    goal = self.printed() + self.random.randint(*self.lines)

    def wait_for(self, kills):
        """Waits until this has killed `kills` processes."""
        deadline = time.monotonic() + SECONDS
        while self.killed < kills:
            if time.monotonic() > deadline:
                raise AssertionError(f"only {self.killed} kills within {SECONDS} s: the training jobs print too little")
            time.sleep(0.1)

    def printed(self):
        """Returns the number of lines in the logs of the training jobs."""
        return sum(log.read_bytes().count(b"\n") for log in (self.training.folder / "data/training-service").glob("jobs/*/logs/*"))

    def processes(self):
        """Yields the functions' processes: `bootstrap` in the emulator's session."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                name, session = (entry / "comm").read_text().strip(), os.getsid(int(entry.name))
            except (OSError, ProcessLookupError):
                continue
            if name == "bootstrap" and session == self.emulator.process.pid:
                yield int(entry.name)


if __name__ == "__main__":
    unittest.main(failfast=True)
