"""Tests `hyperband training-service` with boto3 and the AWS CLI: every operation, paginators, waiters, errors.

Starts the real program ($HYPERBAND_BIN) on a free port of loopback, in a temporary folder, without an AWS account. Must never
call another address: the tests set credentials and endpoint and remove those of the environment.
"""

import datetime
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, WaiterError

PROGRAM = os.environ["HYPERBAND_BIN"]
SCRIPT = 'case $SM_HP_PROGRAM in ends) echo done;; fails) exit 3;; *) exec sleep 600;; esac'
REGION = "us-east-1"


def environment():
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return clean | {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


class Service:
    """A running training service, with a client."""

    def __init__(self, folder):
        line = [PROGRAM, "training-service", "--listen", "127.0.0.1:0", "--output", "json"]
        line += ["--data-dir", folder, "--grace-seconds", "2", "--", "sh", "-c", SCRIPT]
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment()
        )
        self.endpoint = json.loads(self.process.stdout.readline())["Endpoint"]
        self.client = boto3.client(
            "sagemaker",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}),
        )

    def end(self, how=signal.SIGTERM):
        self.client.close()
        self.process.send_signal(how)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.errors.close()
        return code


def request(name, program="ends", **more):
    return {
        "TrainingJobName": name,
        "HyperParameters": {"program": program},
        "AlgorithmSpecification": {"TrainingImage": "local", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::000000000000:role/example-role",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "Tags": [{"Key": "team", "Value": "vision"}],
    } | more


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.service = Service(cls.folder.name)
        cls.client = cls.service.client

    @classmethod
    def tearDownClass(cls):
        code = cls.service.end()
        cls.folder.cleanup()
        assert code == 0, code

    def wait(self, name):
        waiter = self.client.get_waiter("training_job_completed_or_stopped")
        waiter.wait(TrainingJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
        return self.client.describe_training_job(TrainingJobName=name)

    def until(self, name, state):
        deadline = time.monotonic() + 30
        while True:
            seen = self.client.describe_training_job(TrainingJobName=name)
            if seen["SecondaryStatus"] == state:
                return seen
            self.assertLess(time.monotonic(), deadline, f"{name} does not reach {state}: {seen}")
            time.sleep(0.05)

    def refused(self, call, **members):
        with self.assertRaises(ClientError) as caught:
            call(**members)
        error = caught.exception.response
        self.assertTrue(error["ResponseMetadata"]["RequestId"])
        return error["Error"]["Code"], error["Error"]["Message"]

    def test_ping_returns_200(self):
        with urllib.request.urlopen(self.service.endpoint + "/ping") as answer:
            self.assertEqual(answer.status, 200)

    def test_a_completed_job_has_its_times_and_its_bill(self):
        arn = self.client.create_training_job(**request("whole"))["TrainingJobArn"]
        self.assertEqual(arn, f"arn:aws:sagemaker:{REGION}:000000000000:training-job/whole")
        seen = self.wait("whole")
        self.assertEqual((seen["TrainingJobStatus"], seen["TrainingJobArn"]), ("Completed", arn))
        now = datetime.datetime.now(datetime.timezone.utc)
        for moment in ("CreationTime", "TrainingStartTime", "TrainingEndTime", "LastModifiedTime"):
            self.assertLess(abs(now - seen[moment]), datetime.timedelta(minutes=10), moment)
        self.assertGreaterEqual(seen["BillableTimeInSeconds"], 0)
        self.assertEqual(seen["SecondaryStatusTransitions"][-1]["Status"], "Completed")
        code, message = self.refused(self.client.create_training_job, **request("whole"))
        self.assertEqual(code, "ResourceInUse")
        self.assertIn(arn, message)

    def test_boto3_raises_its_modelled_exceptions(self):
        self.client.create_training_job(**request("modelled"))
        with self.assertRaises(self.client.exceptions.ResourceInUse):
            self.client.create_training_job(**request("modelled"))

    def test_jobs_can_be_stopped_and_can_fail(self):
        self.client.create_training_job(**request("stopped", "endless"))
        self.until("stopped", "Training")
        self.client.stop_training_job(TrainingJobName="stopped")
        self.assertEqual(self.wait("stopped")["TrainingJobStatus"], "Stopped")
        again = self.refused(self.client.stop_training_job, TrainingJobName="stopped")
        message = "The request was rejected because the training job is in status Stopped."
        self.assertEqual(again, ("ValidationException", message))
        self.client.create_training_job(**request("failed", "fails"))
        with self.assertRaises(WaiterError):
            self.wait("failed")
        self.assertIn("AlgorithmError", self.until("failed", "Failed")["FailureReason"])

    def test_missing_jobs_and_unknown_operations_are_errors(self):
        expected = ("ValidationException", "Requested resource not found.")
        for call in (self.client.describe_training_job, self.client.stop_training_job):
            self.assertEqual(self.refused(call, TrainingJobName="none"), expected)
        with self.assertRaises(WaiterError):
            self.wait("none")
        self.assertEqual(self.refused(self.client.list_endpoints)[0], "UnknownOperationException")

    def test_listings_have_pages_filters_and_orders(self):
        before = datetime.datetime.now(datetime.timezone.utc)
        names = [f"page-{number}" for number in range(5)]
        for name in names:
            self.client.create_training_job(**request(name))
            self.wait(name)
        paginator = self.client.get_paginator("list_training_jobs")

        def listed(size, **filters):
            pages = paginator.paginate(NameContains="page-", PaginationConfig={"PageSize": size}, **filters)
            return [job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]]

        self.assertEqual(listed(2), names)
        self.assertEqual(listed(100, SortBy="Name", SortOrder="Descending"), names[::-1])
        self.assertEqual(listed(1, StatusEquals="Completed", CreationTimeAfter=before), names)
        self.assertEqual(listed(5, CreationTimeBefore=before - datetime.timedelta(seconds=1)), [])
        self.assertEqual(listed(5, StatusEquals="Failed"), [])

    def test_added_tags_are_listed(self):
        arn = self.client.create_training_job(**request("tagged"))["TrainingJobArn"]
        self.client.add_tags(ResourceArn=arn, Tags=[{"Key": "cost", "Value": "7"}])
        pages = self.client.get_paginator("list_tags").paginate(ResourceArn=arn)
        tags = {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
        self.assertEqual(tags, {"team": "vision", "cost": "7"})

    def test_a_warm_pool_is_kept_until_an_update_releases_it(self):
        keeping = request("warm")
        keeping["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 600
        self.client.create_training_job(**keeping)
        self.assertEqual(self.wait("warm")["WarmPoolStatus"]["Status"], "Available")
        self.client.update_training_job(
            TrainingJobName="warm", ResourceConfig={"KeepAlivePeriodInSeconds": 0}
        )
        pool = self.client.describe_training_job(TrainingJobName="warm")["WarmPoolStatus"]
        self.assertEqual(pool["Status"], "Terminated")
        listed = self.client.list_training_jobs(WarmPoolStatusEquals="Terminated")["TrainingJobSummaries"]
        self.assertEqual([job["TrainingJobName"] for job in listed], ["warm"])

    def test_the_aws_cli_creates_lists_and_describes_jobs(self):
        def aws(*words):
            line = ["aws", "--endpoint-url", self.service.endpoint, "--output", "json", "sagemaker", *words]
            done = subprocess.run(line, capture_output=True, text=True, env=environment(), timeout=60)
            return done.returncode, done.stdout, done.stderr

        code, out, err = aws("create-training-job", "--cli-input-json", json.dumps(request("cli")))
        self.assertEqual(code, 0, err)
        self.assertIn("training-job/cli", json.loads(out)["TrainingJobArn"])
        code, out, err = aws("list-training-jobs", "--name-contains", "cli", "--max-items", "1")
        self.assertEqual((code, json.loads(out)["TrainingJobSummaries"][0]["TrainingJobName"]), (0, "cli"), err)
        code, _, err = aws("describe-training-job", "--training-job-name", "none")
        self.assertNotEqual(code, 0)
        self.assertIn("Requested resource not found.", err)


class Restarts(unittest.TestCase):
    def test_jobs_continue_after_a_kill_of_the_service(self):
        with tempfile.TemporaryDirectory() as folder:
            first = Service(folder)
            spot = request("spot", "endless", EnableManagedSpotTraining=True)
            spot["StoppingCondition"] = {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 1200}
            first.client.create_training_job(**spot)
            self.training(first, 1)
            self.assertEqual(first.end(signal.SIGKILL), -signal.SIGKILL)
            second = Service(folder)
            self.training(second, 2)
            self.assertEqual(second.end(signal.SIGINT), 0)
            self.assertEqual(processes(folder), [])

    def training(self, service, runs):
        """Waits until the job has started its training `runs` times."""
        deadline = time.monotonic() + 30
        while True:
            seen = service.client.describe_training_job(TrainingJobName="spot")
            states = [entry["Status"] for entry in seen["SecondaryStatusTransitions"]]
            if states.count("Training") == runs and states[-1] == "Training":
                return
            self.assertLess(time.monotonic(), deadline, states)
            time.sleep(0.05)


def processes(folder):
    """Returns the IDs of the running training processes of the jobs in `folder`."""
    mark = f"SM_ROOT={os.path.realpath(folder)}/".encode()
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if any(part.startswith(mark) for part in file.read().split(b"\0")):
                    found.append(entry)
        except OSError:
            continue
    return found


if __name__ == "__main__":
    unittest.main()
