"""Calls of a deployed stack, and checks of its tunings, for the tests that run tunings.

The expected values come from the logs and from the training service's bills, never from the controller's own results.
"""

import base64
import contextlib
import copy
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

from emulator import REGION, SECONDS, Emulator, free_port
from prices import PriceList
from stack import NAME, ROOT, TRAINING_ROLE, Stack, stage
from training import HELLO, TrainingService

TRAINING_LOGS = "/aws/sagemaker/TrainingJobs"
PRICE_USD = 0.115
# The price of a gigabyte per month.
VOLUME_USD = 0.14
CAP_USD = 0.5
HOSTS = 2
# Lines that a stopped job can log in its last seconds.
LAST_LINES = 3

PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "hyperband"

REQUEST = json.loads((ROOT / "examples/hello/request.json").read_text())


def hello():
    """Returns the request of examples/hello with the fields that only a stack requires: spot jobs with checkpoints."""
    body = copy.deepcopy(REQUEST)
    job = body["TrainingJobDefinition"]
    job["AlgorithmSpecification"] |= {"TrainingImage": "hello", "TrainingInputMode": "File"}
    job |= {
        "RoleArn": TRAINING_ROLE,
        "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
        "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1},
        "EnableManagedSpotTraining": True,
        "CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 120},
    }
    body["Controller"]["InstancePricesUsdPerHour"] = {"ml.m5.large": PRICE_USD}
    return body


def request(name, **controller):
    body = hello()
    body["HyperParameterTuningJobName"] = name
    config, job = body["HyperParameterTuningJobConfig"], body["TrainingJobDefinition"]
    config["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"] = 9
    config["ResourceLimits"] = {"MaxNumberOfTrainingJobs": 12, "MaxParallelTrainingJobs": 4}
    job["StaticHyperParameters"] = {"epochs": "9", "seconds_per_epoch": "0.7"}
    job["ResourceConfig"]["InstanceCount"] = HOSTS
    body["Controller"] = {"MaxCostUsd": CAP_USD, "EpochPattern": "epoch (\\d+)"} | controller
    body["Tags"] = [{"Key": "team", "Value": "example"}]
    return body


def retried(ask):
    """Repeats a request while the answer is 503, as every SDK of AWS does. The emulator's table is slow on a busy machine."""
    deadline = time.monotonic() + SECONDS
    while True:
        status, answer = ask()
        if status != 503 or time.monotonic() > deadline:
            return status, answer
        time.sleep(1)


class Background(threading.Thread):
    """A thread that runs beside a test, in a `with` block, until `over` is set."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


class Ticks(Background):
    """Invokes the sweeper every few seconds, so that a test does not wait for the minutes of the schedule."""

    def __init__(self, client, function):
        super().__init__()
        self.client, self.function = client, function

    def run(self):
        while not self.over.wait(3):
            # A test may kill the sweeper's process.
            with contextlib.suppress(BotoCoreError, ClientError):
                self.client.invoke(FunctionName=self.function, Payload=b"{}")


class Calls:
    """A part of a test case whose class has a deployed stack."""

    @classmethod
    def start_stack(cls, program=HELLO, sagemaker=None, **parameters):
        """Starts an emulator that enforces roles, a price list and a training service of `program`, and deploys the stack.

        `sagemaker` is the address at which the functions call SageMaker, if not the training service's own. Sets `folder`,
        `prices`, `emulator`, `infra`, `stack`, `ids`, `api` and `training` of the class.
        """
        folder = tempfile.TemporaryDirectory(prefix="hyperband-stack-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prices = PriceList({"USE1-Train:ml.m5.large": PRICE_USD, "USE1-Train:VolumeUsage.gp2": VOLUME_USD})
        cls.addClassCleanup(cls.prices.stop)
        port = free_port()
        cls.emulator = Emulator(cls.folder, {
            "AWS_ENDPOINT_URL_SAGEMAKER": sagemaker or f"http://127.0.0.1:{port}",
            "AWS_ENDPOINT_URL_PRICING": cls.prices.url,
        }, enforce_roles=True)
        cls.addClassCleanup(cls.emulator.stop)
        cls.emulator.start()
        cls.infra = stage(cls.folder / "stage")
        cls.stack = Stack(cls.emulator, cls.infra, os.environ["SAM"])
        cls.stack.deploy(**parameters)
        cls.ids = cls.stack.physical()
        cls.api = f"{cls.emulator.url}/_aws/execute-api/{cls.ids['Api']}/$default"
        cls.training = TrainingService(cls.folder / "training", port, cls.emulator, program)
        cls.addClassCleanup(cls.training.stop)
        cls.training.start()
        cls.addClassCleanup(cls.audit)

    @classmethod
    def audit(cls):
        """Audits all tunings of the stack's table: P1, P2, P5 and P6, computed anew from its rows."""
        scan = cls.emulator.client("dynamodb").get_paginator("scan")
        read = lambda: [row for page in scan.paginate(TableName=cls.ids["Table"]) for row in page["Items"]]
        # A tuning may still run: the second scan has the outbox of all steps of the first one.
        found = read()
        found += [row for row in read() if row["pk"]["S"].startswith("A#") and row not in found]
        rows = cls.folder / "rows.jsonl"
        text = lambda data: base64.b64encode(data).decode()
        rows.write_text("".join(json.dumps(row, default=text) + "\n" for row in found), encoding="utf-8")
        done = subprocess.run(
            [PROGRAM, "audit", "--rows", rows],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
        )
        # Some tests submit no tuning.
        if done.returncode != 0 and "no tuning among the rows" not in done.stderr:
            raise AssertionError(f"{done.stdout}{done.stderr}")
        print(done.stdout, end="")

    def ticks(self):
        """Returns a context in which the sweeper runs every few seconds."""
        return Ticks(self.emulator.client("lambda"), self.ids["SweeperFunction"])

    def ask(self, method, path, body=None, key="test"):
        """Sends a signed request to the API, and retries it (`retried`). Returns the status and the body."""
        return retried(lambda: self.ask_once(method, path, body, key))

    def ask_once(self, method, path, body, key):
        data = None if body is None else json.dumps(body) if not isinstance(body, (bytes, str)) else body
        plain = AWSRequest(method, f"{self.api}{path}", data=data, headers={"content-type": "application/json"})
        SigV4Auth(Credentials(key, key), "execute-api", REGION).add_auth(plain)
        signed = urllib.request.Request(
            plain.url, method=method, headers=dict(plain.headers),
            data=data.encode() if isinstance(data, str) else data,
        )
        try:
            with urllib.request.urlopen(signed, timeout=SECONDS) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
                try:
                    return error.code, json.loads(text)
                except ValueError:
                    return error.code, text

    def program(self, *arguments):
        """Runs `hyperband` with the stack, like a user. Returns its output."""
        done = subprocess.run(
            [PROGRAM, *arguments], env=self.emulator.environment() | {"HYPERBAND_ENDPOINT": self.api},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
        )
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}{self.logged_errors()}")
        return done.stdout

    def create(self, body):
        status, answer = self.ask("POST", "/tuning-jobs", body)
        # A retry finds the tuning that the first request created.
        self.assertIn(status, (200, 201), answer)

    def ended(self, name):
        """Waits until a tuning has ended. Returns its description."""
        deadline = time.monotonic() + SECONDS
        described = None
        while time.monotonic() < deadline:
            status, answer = self.ask("GET", f"/tuning-jobs/{name}")
            # The killer may have killed the API's process.
            if status == 200:
                described = answer
                self.within_the_cap(described)
                if described["HyperParameterTuningJobStatus"] not in ("InProgress", "Stopping"):
                    return described
            time.sleep(0.5)
        raise AssertionError(f"{name} did not end within {SECONDS} s: {json.dumps(described)}{self.logged_errors()}")

    def within_the_cap(self, described):
        money = described["Controller"]
        self.assertLessEqual(money["SpentUsd"] + money["ReservedUsd"], money["CapUsd"] + 1e-9, described)

    def training_jobs(self, name):
        jobs, token = [], ""
        while token is not None:
            status, page = self.ask("GET", f"/tuning-jobs/{name}/training-jobs?MaxResults=5{token}")
            self.assertEqual(status, 200, page)
            jobs += page["TrainingJobSummaries"]
            token = f"&NextToken={page['NextToken']}" if "NextToken" in page else None
        return jobs

    def logged_errors(self):
        """Returns the latest errors in the functions' logs, for the message of a failed test."""
        found = []
        for name in ["api", "job-events", "job-logs", "decider", "actuator", "sweeper"]:
            events = self.emulator.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{NAME}-{name}")["events"]
            lines = [event["message"].strip() for event in events if "rror" in event["message"]]
            found += [f"\n{name}: {line[:500]}" for line in lines[-5:]]
        return "".join(found) + "\n" + self.training.log.read_text()[-2000:]

    # ---- Checks of an ended tuning ----

    def check_completed(self, name):
        described = self.ended(name)
        self.assertEqual(described["HyperParameterTuningJobStatus"], "Completed", described)
        jobs = self.training_jobs(name)
        best = self.check_best(described, jobs)
        self.check_money(described, jobs)
        self.assertEqual(described["Controller"]["ReservedUsd"], 0)
        counters = described["TrainingJobStatusCounters"]
        self.assertEqual(counters["InProgress"], 0)
        self.assertEqual(sum(counters.values()), len(jobs))
        return described, jobs, best

    def check_best(self, described, jobs):
        """Checks that each job has the best value in the log of its first host, and the best job the best of all. Returns its name.

        A stopped job may miss its last lines: nothing waits for those of its last seconds.
        """
        values = {}
        logs = self.emulator.client("logs")
        for job in jobs:
            names = logs.describe_log_streams(
                logGroupName=TRAINING_LOGS, logStreamNamePrefix=f"{job['TrainingJobName']}/algo-1-")["logStreams"]
            for stream in names:
                events = logs.get_log_events(
                    logGroupName=TRAINING_LOGS, logStreamName=stream["logStreamName"], startFromHead=True)["events"]
                for event in events:
                    if found := re.search(r"accuracy=([-+.\w]*\w)", event["message"]):
                        values.setdefault(job["TrainingJobName"], []).append(float(found[1]))
        shown = {job["TrainingJobName"]: job["Controller"].get("BestValue") for job in jobs}
        stopped = {job["TrainingJobName"] for job in jobs if "StopReason" in job["Controller"]}
        for job, numbers in values.items():
            fewest = max(1, len(numbers) - LAST_LINES) if job in stopped else len(numbers)
            self.assertIn(shown[job], {max(numbers[:count]) for count in range(fewest, len(numbers) + 1)}, f"{job}: {numbers}")
        best = described["BestTrainingJob"]["TrainingJobName"]
        self.assertEqual(shown[best], max(shown[job] for job in values), shown)
        return best

    def check_money(self, described, jobs):
        """Checks that the booked costs equal the training service's bills and are within the cap."""
        sagemaker = self.training.client()
        hosts = described["TrainingJobDefinition"]["ResourceConfig"]["InstanceCount"]
        billed = 0.0
        for job in jobs:
            bill = sagemaker.describe_training_job(TrainingJobName=job["TrainingJobName"])
            self.assertEqual(bill["ResourceConfig"]["InstanceCount"], hosts)
            tags = sagemaker.list_tags(ResourceArn=bill["TrainingJobArn"])["Tags"]
            tags = {tag["Key"]: tag["Value"] for tag in tags}
            self.assertEqual((tags["hyperband:stack"], tags["team"]), (NAME, "example"))
            # The highest price of a volume per hour: that of the shortest month.
            an_hour = PRICE_USD + bill["ResourceConfig"]["VolumeSizeInGB"] * VOLUME_USD / (28 * 24)
            cost = bill["BillableTimeInSeconds"] * hosts * an_hour / 3600
            self.assertAlmostEqual(job["Controller"]["CostUsd"], cost, delta=3e-6)
            billed += job["Controller"]["CostUsd"]
        self.assertAlmostEqual(described["Controller"]["SpentUsd"], billed, places=6)
        self.assertLessEqual(described["Controller"]["SpentUsd"], CAP_USD)

    def failures(self):
        """Returns the number of messages in the queue of failed deliveries."""
        count, queue = "ApproximateNumberOfMessages", self.ids["DeliveryFailures"]
        found = self.emulator.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=[count])
        return int(found["Attributes"][count])

    def training_jobs_running(self, name):
        return sum(job["TrainingJobStatus"] == "InProgress" for job in self.training_jobs(name))
