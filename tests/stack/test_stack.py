"""Tests the deployed template: rights of every function, streams, failure queues, updates, and deletion, which keeps the table.

Run by `run.sh`. The emulator enforces the roles of the functions. It emulates neither SageMaker nor EventBridge's retries.
"""

import json
import os
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from calls import hello, retried
from emulator import SECONDS, Emulator
from stack import FUNCTIONS, NAME, ROOT, TRAINING_ROLE, Stack, stage

LOGICAL = {name: "".join(part.capitalize() for part in name.split("-")) + "Function" for name in [*FUNCTIONS, "invoke"]}
TRAINING_LOGS = "/aws/sagemaker/TrainingJobs"


def row_key(partition):
    return {"pk": {"S": partition}, "sk": {"S": "x"}}


def eventually(condition, description):
    """Polls until the condition is true, because the stack works asynchronously. Returns its value."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.2)
    raise AssertionError(f"not within {SECONDS} s: {description}")


class Deployed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="hyperband-stack-")
        cls.addClassCleanup(cls.folder.cleanup)
        # There is no SageMaker: its calls fail at once, at a closed port.
        nowhere = {"AWS_ENDPOINT_URL_SAGEMAKER": "http://127.0.0.1:9"}
        cls.emulator = Emulator(cls.folder.name, nowhere, enforce_roles=True)
        cls.addClassCleanup(cls.emulator.stop)
        cls.emulator.start()
        cls.stack = Stack(cls.emulator, stage(Path(cls.folder.name) / "stage"), os.environ["SAM"])
        cls.stack.deploy(overlays=["direct-calls"])
        cls.ids = cls.stack.physical()
        cls.table = cls.stack.outputs()["TableName"]

    def client(self, service):
        return self.emulator.client(service)

    def log(self, function):
        events = self.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{NAME}-{function}").get("events", [])
        return "\n".join(event["message"] for event in events)

    def put(self, key, **attributes):
        item = {"pk": {"S": key}, "sk": {"S": "x"}} | attributes
        self.client("dynamodb").put_item(TableName=self.table, Item=item)

    def invoke(self, function, event):
        answer = self.client("lambda").invoke(FunctionName=self.ids[LOGICAL[function]], Payload=json.dumps(event))
        return answer.get("FunctionError"), json.loads(answer["Payload"].read())

    def event(self, source, stack):
        sample = json.loads((ROOT / "events/aws.sagemaker/training-job-state-change.completed.json").read_text())
        sample["detail"]["Tags"] = {"hyperband:stack": stack} if stack else {"team": "search"}
        entry = {"Source": source, "DetailType": sample["detail-type"], "Detail": json.dumps(sample["detail"])}
        answer = self.client("events").put_events(Entries=[entry])
        self.assertEqual(answer["FailedEntryCount"], 0, answer)

    def starts(self, function):
        return self.log(function).count("START RequestId")

    def test_the_functions_read_their_settings_and_may_read_the_table(self):
        tick = {"source": "aws.scheduler", "detail-type": "Scheduled Event", "time": "2026-09-10T00:30:00Z", "detail": {}}
        error, answer = self.invoke("sweeper", tick)
        self.assertIsNone(error, answer)
        # The sweeper took its lease and failed only at ListTrainingJobs.
        self.assertFalse(answer["busy"], answer)
        self.assertIsNotNone(answer["listingError"], answer)
        self.assertNotIn("AccessDenied", json.dumps(answer))
        sample = json.loads((ROOT / "events/aws.sagemaker/training-job-state-change.completed.json").read_text())
        sample["detail"]["Tags"]["hyperband:stack"] = NAME
        self.assertEqual(self.invoke("job-events", sample), (None, {"recorded": "NotOurs"}))

    def as_role(self, logical):
        """Returns a client of the table with the rights of a role."""
        arn = self.client("iam").get_role(RoleName=self.ids[logical])["Role"]["Arn"]
        given = self.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
        return boto3.client(
            "dynamodb", endpoint_url=self.emulator.url, region_name="us-east-1",
            aws_access_key_id=given["AccessKeyId"], aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given["SessionToken"],
        )

    def assert_denied(self, call, **arguments):
        with self.assertRaises(ClientError) as refused:
            call(TableName=self.table, **arguments) if "TransactItems" not in arguments else call(**arguments)
        self.assertEqual(refused.exception.response["Error"]["Code"], "AccessDeniedException")

    def test_a_function_may_make_only_the_calls_of_its_role(self):
        for logical in ["ApiRole", "InvokeRole", "JobEventsRole", "JobLogsRole", "ActuatorRole"]:
            with self.subTest(logical):
                dynamodb, key = self.as_role(logical), row_key("T#x")
                dynamodb.get_item(TableName=self.table, Key=key)
                self.assert_denied(dynamodb.delete_item, Key=row_key("A#x"))

    def test_regression_a_role_reads_only_its_own_partitions(self):
        for logical, closed in [("ApiRole", "A#x"), ("InvokeRole", "A#x"), ("JobEventsRole", "F#x"), ("JobLogsRole", "INDEX"),
                                ("DeciderRole", "A#x"), ("ActuatorRole", "F#x"), ("SweeperRole", "INDEX")]:
            with self.subTest(logical):
                dynamodb = self.as_role(logical)
                dynamodb.get_item(TableName=self.table, Key=row_key("T#x"))
                self.assert_denied(dynamodb.get_item, Key=row_key(closed))

    def test_a_query_and_each_part_of_a_transaction_are_limited_to_partitions(self):
        def query(partition):
            return {"KeyConditionExpression": "#p = :p", "ExpressionAttributeNames": {"#p": "pk"},
                    "ExpressionAttributeValues": {":p": {"S": partition}}}

        def puts(*partitions):
            return [{"Put": {"TableName": self.table, "Item": row_key(partition)}} for partition in partitions]

        decider = self.as_role("DeciderRole")
        decider.query(TableName=self.table, **query("F#x"))
        self.assert_denied(decider.query, **query("ACTIVE"))
        self.assert_denied(decider.transact_write_items, TransactItems=puts("T#not-there", "F#not-there"))
        self.assertNotIn("Item", self.client("dynamodb").get_item(TableName=self.table, Key=row_key("T#not-there")))
        decider.transact_write_items(TransactItems=puts("T#there"))

    def test_facts_and_rings_reach_the_decider_and_new_actions_the_actuator(self):
        before = self.starts("decider"), self.starts("actuator")
        self.put("T#unknown-000000")
        self.put("R#unknown-000000", nonce={"N": "1"})
        eventually(lambda: self.starts("decider") > before[0], "a ring reaches the decider")
        self.put("A#unknown-000000", type={"S": "action"}, version={"N": "1"})
        eventually(lambda: self.starts("actuator") > before[1], "an action reaches the actuator")

    def test_state_changes_of_only_this_stack_reach_job_events(self):
        before = self.starts("job-events")
        self.event("aws.sagemaker", "another-stack")
        self.event("aws.sagemaker", NAME)
        self.event("aws.sagemaker", None)
        eventually(lambda: self.starts("job-events") > before + 1, "the stack's event and one without tags are delivered")
        time.sleep(1)
        self.assertEqual(self.starts("job-events"), before + 2)

    def test_lines_of_training_jobs_reach_job_logs(self):
        logs, stream = self.client("logs"), "hb1-3fa1c2-7-1-1/algo-1-1789000000"
        before = self.starts("job-logs")
        logs.create_log_stream(logGroupName=TRAINING_LOGS, logStreamName=stream)
        line = {"timestamp": int(time.time() * 1000), "message": "[0]#011validation-auc:0.5"}
        logs.put_log_events(logGroupName=TRAINING_LOGS, logStreamName=stream, logEvents=[line])
        eventually(lambda: self.starts("job-logs") > before, "a log line is delivered")
        self.assertNotIn("AccessDenied", self.log("job-logs"))

    def ask(self, method, path, body=None, *, signed=True, headers=()):
        """Sends a request to the API, and retries it (`retried`). Returns the status and the body."""
        return retried(lambda: self.ask_once(method, path, body, signed, headers))

    def ask_once(self, method, path, body, signed, headers):
        api = self.stack.outputs()["ApiUrl"].split("//")[1].split(".")[0]
        host = f"{api}.execute-api.localhost:{self.emulator.port}"
        data = json.dumps(body).encode() if body else None
        request = AWSRequest(method, f"http://{host}{path}", data=data, headers={"Content-Type": "application/json"})
        if signed:
            SigV4Auth(Credentials("test", "test"), "execute-api", "us-east-1").add_auth(request)
        headers = dict(request.headers) | {"Host": host} | dict(headers)
        plain = urllib.request.Request(f"{self.emulator.url}{path}", data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(plain, timeout=SECONDS) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read() or b"null")

    def test_the_api_refuses_unsigned_requests(self):
        for method, path in [("GET", "/tuning-jobs"), ("POST", "/tuning-jobs"), ("POST", "/")]:
            with self.subTest(path):
                status, _ = self.ask(method, path, {} if method == "POST" else None, signed=False)
                self.assertEqual(status, 403)

    def test_the_api_function_accepts_only_requests_that_came_through_the_api(self):
        forged = json.loads((ROOT / "events/aws.apigateway/http-request.create.json").read_text())
        request = hello()
        request["HyperParameterTuningJobName"] = "forged"
        request["Controller"]["MaxCostUsd"] = 5
        forged |= {"body": json.dumps(request), "isBase64Encoded": False}
        name = "x-hyperband-gateway"
        secret = self.client("secretsmanager").get_secret_value(SecretId=f"{NAME}-gateway-1")["SecretString"]
        self.assertRegex(secret, "^[A-Za-z0-9]{22}$")
        for header in [{}, {name: ""}, {name: forged["headers"][name]}, {name: secret[:-1]}]:
            event = forged | {"headers": {key: value for key, value in forged["headers"].items() if key != name} | header}
            failed, answer = self.invoke("api", event)
            self.assertIsNone(failed)
            self.assertEqual((answer["statusCode"], json.loads(answer["body"])["__type"]), (403, "AccessDeniedException"))
        self.assertEqual(self.ask("GET", "/tuning-jobs/forged")[0], 404)
        # API Gateway replaces the header of its client.
        self.assertEqual(self.ask("GET", "/tuning-jobs", headers={name: "forged"})[0], 200)
        # The control: nothing but the header was wrong.
        self.assertEqual(self.invoke("api", forged | {"headers": forged["headers"] | {name: secret}})[1]["statusCode"], 201)
        self.assertEqual(self.ask("POST", "/tuning-jobs/forged/stop")[0], 200)
        self.assertNotIn(secret, self.log("api"))
        self.assertIn("AccessDeniedException", self.log("api"))

    def test_a_tuning_is_accepted_decided_and_performed_with_the_rights_of_the_roles(self):
        request = hello()
        request["TrainingJobDefinition"]["RoleArn"] = "arn:aws:iam::000000000000:role/another"
        status, answer = self.ask("POST", "/tuning-jobs", request)
        self.assertEqual(status, 400, answer)
        self.assertIn("RoleArn", json.dumps(answer))
        request["TrainingJobDefinition"]["RoleArn"] = TRAINING_ROLE
        status, answer = self.ask("POST", "/tuning-jobs", request)
        self.assertEqual(status, 201, answer)
        # There is no SageMaker, so the actuator defers each start and records this as a fact.
        names = [name for name in self.rows("INDEX") if name["sk"]["S"] == "hello"]
        self.assertEqual(len(names), 1)
        identity = json.loads(names[0]["data"]["S"])["id"] if "data" in names[0] else names[0]["id"]["S"]

        def deferred():
            return [row for row in self.rows(f"F#{identity}") if "deferred" in row["sk"]["S"]]

        eventually(deferred, "the actuator performs an action and records its outcome")
        self.assertTrue(self.rows(f"A#{identity}"))
        self.assertTrue([row for row in self.rows(f"T#{identity}") if row["sk"]["S"].startswith("STEP#")])
        status, answer = self.ask("GET", "/tuning-jobs/hello")
        self.assertEqual((status, answer["HyperParameterTuningJobStatus"]), (200, "InProgress"))
        self.assertEqual(self.ask("POST", "/tuning-jobs/hello/stop")[0], 200)
        for function in FUNCTIONS:
            # The API refuses forged requests of another test by the same code.
            log = self.log(function).replace('"RequestRefused","error":"AccessDeniedException"', "")
            self.assertNotIn("AccessDenied", log, function)

    def hyperband(self, *arguments, endpoint):
        """Runs the program against the stack's function for direct calls."""
        built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "hyperband"
        return subprocess.run(
            [built, *arguments, "--endpoint", endpoint], cwd=self.folder.name, env=self.emulator.environment(),
            capture_output=True, text=True, timeout=SECONDS, check=False)

    def test_direct_calls_have_the_rights_of_a_user_whatever_they_claim(self):
        outputs = self.stack.outputs()
        name, arn = outputs["InvokeFunctionName"], outputs["InvokeFunctionArn"]
        request = hello()
        request["Controller"]["MaxCostUsd"] = 5
        (Path(self.folder.name) / "request.json").write_text(json.dumps(request))
        done = self.hyperband("submit", "request.json", "--name", "direct", "--output", "json", endpoint=f"lambda:{name}")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("hyper-parameter-tuning-job/direct", json.loads(done.stdout)["HyperParameterTuningJobArn"])
        for endpoint in [f"lambda:{arn}", f"lambda:{name}:$LATEST"]:
            done = self.hyperband("describe", "direct", "--output", "json", endpoint=endpoint)
            self.assertEqual(done.returncode, 0, done)
            self.assertEqual(json.loads(done.stdout)["Controller"]["Submitter"], "lambda:invoke")
        refused = self.hyperband("change", "direct", "--max-cost", "6", endpoint=f"lambda:{name}")
        self.assertEqual(refused.returncode, 2, refused)
        self.assertIn("this caller may not raise MaxCostUsd above 5 USD", refused.stderr)
        missing = self.hyperband("list", endpoint="lambda:no-such-function")
        self.assertEqual(missing.returncode, 2, missing)
        self.assertIn("InvokeFunctionName", missing.stderr)
        claims = {"path": "/tuning-jobs/direct", "requestContext": {
            "http": {"method": "PATCH", "path": "/tuning-jobs/direct"},
            "authorizer": {"iam": {"userArn": "arn:aws:iam::000000000000:root"}}}}
        for asked in [{"method": "PATCH", "body": {"MaxCostUsd": 6}}, {"method": "DELETE"}]:
            self.assertEqual(self.invoke("invoke", claims | asked)[1]["status"], 403, asked)
        whole = json.loads((ROOT / "events/aws.apigateway/http-request.create.json").read_text())
        self.assertEqual(self.invoke("invoke", whole)[1]["status"], 400)
        self.assertEqual(self.ask("GET", "/tuning-jobs/direct")[1]["Controller"]["CapUsd"], 5)
        self.assertEqual(self.hyperband("stop", "direct", endpoint=f"lambda:{name}").returncode, 0)
        self.assertNotIn("AccessDenied", self.log("invoke").replace("AccessDeniedException", ""))

    def rows(self, partition):
        found = self.client("dynamodb").query(
            TableName=self.table, KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": {"S": partition}})
        return found["Items"]


class Lifecycle(unittest.TestCase):
    def test_the_decider_skips_an_unreadable_fact_and_sends_a_repeated_failure_to_its_queue(self):
        # Roles are not enforced: the queue's policy would deny the test's reads without TLS.
        with tempfile.TemporaryDirectory(prefix="hyperband-stack-") as folder, Emulator(folder) as emulator:
            stack = Stack(emulator, stage(Path(folder) / "stage"), os.environ["SAM"])
            stack.deploy()
            table, names = stack.outputs()["TableName"], stack.physical()
            queue, functions = names["DeliveryFailures"], emulator.client("lambda")

            def put(name, kind):
                emulator.client("dynamodb").put_item(TableName=table, Item={
                    "pk": {"S": f"F#{name}"}, "sk": {"S": "-#submitted"}, "type": {"S": kind}, "version": {"N": "1"},
                    "key": {"S": "submitted"}, "at": {"N": "1"}, "data": {"S": json.dumps("TuningSubmitted")}})

            def decider():
                mappings = functions.list_event_source_mappings()["EventSourceMappings"]
                return [mapping for mapping in mappings if "Decider" in mapping["FunctionArn"]][0]

            # A fact of an unknown type is a permanent error: the decider logs and skips it.
            put("damaged-000000", "nonsense")
            eventually(lambda: decider().get("LastProcessingResult", "").startswith("OK"), "the decider skips the fact")

            # An unreachable table is a transient error: the mapping retries, then gives up.
            variables = functions.get_function_configuration(
                FunctionName=names["DeciderFunction"])["Environment"]["Variables"]
            functions.update_function_configuration(FunctionName=names["DeciderFunction"], Environment={
                "Variables": variables | {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9"}})
            put("unknown-000000", "fact")

            def given_up():
                found = emulator.client("sqs").receive_message(QueueUrl=queue).get("Messages", [])
                return json.loads(found[0]["Body"]) if found else None

            body = eventually(given_up, "the mapping gives up the failed record")
            self.assertEqual(body["requestContext"]["condition"], "RetryAttemptsExhausted")
            self.assertEqual(decider()["State"], "Enabled")
            functions.update_function_configuration(
                FunctionName=names["DeciderFunction"], Environment={"Variables": variables})

            def decided():
                emulator.client("dynamodb").put_item(TableName=table, Item={
                    "pk": {"S": "R#unknown-000000"}, "sk": {"S": "RING"}, "nonce": {"N": str(time.time_ns())}})
                time.sleep(1)
                return decider()["LastProcessingResult"].startswith("OK")

            eventually(decided, "later records are delivered")

    def test_an_update_keeps_the_resources_and_deletion_keeps_the_table(self):
        with tempfile.TemporaryDirectory(prefix="hyperband-stack-") as folder, Emulator(folder) as emulator:
            stack = Stack(emulator, stage(Path(folder) / "stage"), os.environ["SAM"])
            stack.deploy(overlays=["dashboard", "direct-calls"])
            before = stack.physical()
            table = stack.outputs()["TableName"]
            dynamodb = emulator.client("dynamodb")
            dynamodb.put_item(TableName=table, Item={"pk": {"S": "INDEX"}, "sk": {"S": "kept"}})
            functions, secrets = emulator.client("lambda"), emulator.client("secretsmanager")
            first = secrets.get_secret_value(SecretId=f"{NAME}-gateway-1")["SecretString"]
            stack.deploy(overlays=["direct-calls"], MonthlyCapUsd="250", LogRetentionDays="90", GatewaySecretNumber="2")
            after = stack.physical()
            self.assertEqual(set(before) - set(after), {"Dashboard"})
            self.assertEqual({name for name in after if before[name] != after[name]}, {"GatewaySecret"})
            [listed] = secrets.list_secrets()["SecretList"]
            second = secrets.get_secret_value(SecretId=listed["ARN"])["SecretString"]
            self.assertNotEqual(first, second)
            [sent] = emulator.client("apigatewayv2").get_integrations(ApiId=after["Api"])["Items"]
            self.assertEqual(sent["RequestParameters"], {"overwrite:header.x-hyperband-gateway": second})
            self.assertEqual(functions.get_function_configuration(FunctionName=after["ApiFunction"])
                             ["Environment"]["Variables"]["API_SECRET"], second)
            for name in ["api", "invoke", "actuator", "sweeper"]:
                found = functions.get_function_configuration(FunctionName=after[LOGICAL[name]])
                self.assertEqual(found["Environment"]["Variables"]["MONTHLY_CAP_USD"], "250")
            self.assertEqual(functions.get_function_configuration(FunctionName=after["ApiFunction"])
                             ["Environment"]["Variables"]["ALLOWED_ROLE_ARNS"], TRAINING_ROLE)

            stack.delete()
            self.assertEqual(dynamodb.list_tables()["TableNames"], [table])
            self.assertIn("Item", dynamodb.get_item(TableName=table, Key={"pk": {"S": "INDEX"}, "sk": {"S": "kept"}}))
            groups = emulator.client("logs").describe_log_groups()["logGroups"]
            self.assertEqual([group["logGroupName"] for group in groups], [TRAINING_LOGS])
            self.assertEqual(functions.list_functions()["Functions"], [])
            self.assertEqual(secrets.list_secrets()["SecretList"], [])
            self.assertEqual(functions.list_event_source_mappings()["EventSourceMappings"], [])
            self.assertEqual(emulator.client("sqs").list_queues().get("QueueUrls", []), [])
            self.assertEqual(emulator.client("scheduler").list_schedules()["Schedules"], [])
            self.assertEqual(emulator.client("cloudwatch").describe_alarms()["MetricAlarms"], [])
            roles = [role["RoleName"] for role in emulator.client("iam").list_roles()["Roles"]]
            self.assertEqual([role for role in roles if role.startswith(NAME)], [])

    def test_a_new_stack_adopts_the_table_of_a_deleted_stack(self):
        with tempfile.TemporaryDirectory(prefix="hyperband-stack-") as folder, Emulator(folder) as emulator:
            stack = Stack(emulator, stage(Path(folder) / "stage"), os.environ["SAM"])
            stack.deploy()
            table = stack.outputs()["TableName"]

            def ask(*request):
                return retried(lambda: ask_once(*request))

            def ask_once(method, path, body=None):
                secret = emulator.client("secretsmanager").get_secret_value(SecretId=f"{NAME}-gateway-1")["SecretString"]
                event = {"version": "2.0", "rawPath": path, "headers": {"x-hyperband-gateway": secret},
                         "body": json.dumps(body) if body else "", "isBase64Encoded": False,
                         "requestContext": {"http": {"method": method}}}
                answer = emulator.client("lambda").invoke(
                    FunctionName=stack.physical()["ApiFunction"], Payload=json.dumps(event))
                answer = json.loads(answer["Payload"].read())
                return answer["statusCode"], json.loads(answer["body"])

            def status():
                return ask("GET", "/tuning-jobs/adopted")[1].get("HyperParameterTuningJobStatus")

            body = hello()
            body["HyperParameterTuningJobName"] = "adopted"
            # A retry finds the tuning that the first request created.
            self.assertIn(ask("POST", "/tuning-jobs", body)[0], (200, 201))
            stack.delete()
            stream = emulator.client("dynamodb").describe_table(TableName=table)["Table"]["LatestStreamArn"]
            stack.deploy(
                overlays=["restored-table"], TableName=table, TableStreamArn=stream, CreateTrainingLogGroup="false")
            self.assertNotIn("Table", stack.physical())
            self.assertEqual(stack.outputs()["TableName"], table)
            self.assertEqual(status(), "InProgress")
            # The decider reads the stream of the adopted table.
            self.assertEqual(ask("POST", "/tuning-jobs/adopted/stop")[0], 200)
            eventually(lambda: status() in ("Stopping", "Stopped"), "the decider stops the tuning")


if __name__ == "__main__":
    unittest.main()
