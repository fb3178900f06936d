"""Runs the commands of `events/README.md`: `cargo lambda invoke` sends each sample to its function's program.

Run by `run.sh`. cargo-lambda emulates Lambda, and MiniStack emulates DynamoDB and the event bus. `cargo build` builds the programs.
The functions' own tests compare the outcome of each sample; here one test follows a sample into the table. `sam local invoke`
needs containers, so a test compares only its lookup in the template with the README.
"""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from emulator import SECONDS, Emulator, free_port
from prices import PriceList
from stack import FUNCTIONS, ROOT

TABLE = "samples"
STACK = "prod"
INCARNATION = "3fa1c2"
CHANGE = "aws.sagemaker/training-job-state-change.completed.json"
README = (ROOT / "events/README.md").read_text()
API_SECRET = json.loads((ROOT / "events/aws.apigateway/http-request.describe.json").read_text())["headers"]["x-hyperband-gateway"]
ROWS = [tuple(cell.strip(" `") for cell in row) for row in re.findall(r"^\| (`aws\.[^|]+)\|([^|]+)\|([^|]+)\|$", README, re.M)]

# Looks up functions like `sam local invoke` before it starts a container.
LOOK_UP = """
import json, sys
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
stacks, _ = SamLocalStackProvider.get_stacks("infra/template.yaml")
found = SamFunctionProvider(stacks, ignore_code_extraction_warnings=True)
functions = {name: found.get(name) for name in sys.argv[1:]}
print(json.dumps({name: one and [one.codeuri, one.handler, one.runtime] for name, one in functions.items()}))
"""


def logical(function):
    return "".join(part.capitalize() for part in function.split("-")) + "Function"


class Samples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="hyperband-samples-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.emulator = Emulator(cls.folder)
        cls.addClassCleanup(cls.emulator.stop)
        cls.emulator.start()
        keys = [("pk", "HASH"), ("sk", "RANGE")]
        cls.dynamodb = cls.emulator.client("dynamodb")
        cls.dynamodb.create_table(
            TableName=TABLE, BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        )
        cls.prices = PriceList({})
        cls.addClassCleanup(cls.prices.stop)
        cls.port = free_port()
        cls.watch()
        for function in FUNCTIONS:
            cls.start(function)

    @classmethod
    def background(cls, name, command, environment):
        """Starts a process that runs until the end of the tests."""
        with (cls.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        return process

    @classmethod
    def cargo_lambda(cls):
        return cls.emulator.environment() | {"PATH": f"{os.environ['CARGO_LAMBDA_BIN']}:{os.environ['PATH']}"}

    @classmethod
    def watch(cls):
        """Serves Lambda's APIs with `cargo lambda watch`."""
        command = ["cargo-lambda", "lambda", "watch", "--only-lambda-apis"]
        process = cls.background(
            "watch", [*command, "--invoke-address", "127.0.0.1", "--invoke-port", str(cls.port)], cls.cargo_lambda())
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", cls.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"cargo lambda watch did not listen: {(cls.folder / 'watch.log').read_text()}")

    @classmethod
    def start(cls, function):
        built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
        cls.background(function, [built / function], cls.emulator.environment() | {
            "AWS_LAMBDA_RUNTIME_API": f"http://127.0.0.1:{cls.port}/.rt/{function}",
            "AWS_LAMBDA_FUNCTION_NAME": function,
            "AWS_LAMBDA_FUNCTION_VERSION": "1",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
            "AWS_LAMBDA_LOG_GROUP_NAME": "group",
            "AWS_LAMBDA_LOG_STREAM_NAME": "stream",
            # There is no SageMaker: its calls fail at once, at a closed port.
            "AWS_ENDPOINT_URL_SAGEMAKER": "http://127.0.0.1:9",
            "AWS_ENDPOINT_URL_PRICING": cls.prices.url,
            "TABLE_NAME": TABLE,
            "STACK_NAME": STACK,
            "ACCOUNT_ARN": "arn:aws:sagemaker:us-east-1:111122223333:*",
            "EVENT_BUS_NAME": "default",
            "METRICS_FROM": "Subscription",
            "CALLS_FROM": "ApiGateway",
            "API_SECRET": API_SECRET,
            "REQUIRE_COST_CAP": "false",
            "REQUIRE_VPC": "false",
            "PRICES_IN_REQUESTS": "Any",
        })

    def invoke(self, function, file):
        """Runs the README's command. Returns whether it succeeded, and its output."""
        command = ["cargo", "lambda", "invoke", function, "--data-file", str(file)]
        done = subprocess.run(
            [*command, "--invoke-address", "127.0.0.1", "--invoke-port", str(self.port)],
            cwd=ROOT, env=self.cargo_lambda(), capture_output=True, text=True, timeout=SECONDS, check=False,
        )
        return done.returncode == 0, done.stdout if done.returncode == 0 else done.stderr

    def rows(self, partition):
        return self.dynamodb.query(
            TableName=TABLE, KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": {"S": partition}})["Items"]

    def test_1_every_function_accepts_its_samples(self):
        self.assertEqual({function for _, function, _ in ROWS}, set(FUNCTIONS))
        # Requests about a tuning follow the one that creates it. A name is accepted once.
        order = {"create-invalid": 0, "create": 1, "describe": 2, "change-limits": 3, "stop": 4, "aws-json-create": 5}
        for file, function, outcome in sorted(ROWS, key=lambda row: order.get(row[0].split(".")[-2], 0)):
            with self.subTest(function=function, file=file):
                well, said = self.invoke(function, f"events/{file}")
                self.assertTrue(well, said)
                answer = json.loads(said)
                self.assertNotIn("errorType", answer)
                self.assertFalse(answer.get("batchItemFailures"), answer)
                if function == "api" and "aws-json-create" not in file:
                    self.assertEqual(str(answer["statusCode"]), outcome.split(",")[0], answer)

    def test_2_a_sample_with_the_id_of_a_tuning_writes_a_fact_of_it(self):
        [row] = self.rows("INDEX")
        identity = re.search(r"hb1-[0-9a-z]{6}", json.dumps(row))[0]
        before = {fact["sk"]["S"] for fact in self.rows(f"F#{identity}")}
        sample = self.folder / "completed.json"
        sample.write_text((ROOT / "events" / CHANGE).read_text().replace(f"hb1-{INCARNATION}", identity))
        self.assertEqual(self.invoke("job-events", sample), (True, '{"recorded":"Stored"}\n'))
        new = [fact for fact in self.rows(f"F#{identity}") if fact["sk"]["S"] not in before]
        self.assertEqual(len(new), 1, new)
        self.assertIn("JobStateChanged", new[0]["data"]["S"])

    def test_3_an_unreadable_event_fails_the_command(self):
        well, said = self.invoke("job-events", "events/aws.lambda/batch-response.partial.json")
        self.assertFalse(well, said)
        self.assertIn("Unreadable", said)

    def test_4_the_commands_of_the_readme_name_existing_functions_and_files(self):
        for function, file in re.findall(r"^cargo lambda invoke (\S+) --data-file events/(\S+)$", README, re.M):
            self.assertIn((file, function), [row[:2] for row in ROWS])
        invoked = re.findall(r"^sam local invoke (\S+) -t infra/template.yaml -e events/(\S+)$", README, re.M)
        self.assertTrue(invoked)
        for name, file in invoked:
            self.assertIn((file, name), [(file, logical(function)) for file, function, _ in ROWS])
        sam = Path(os.environ["SAM"]).parent / "python"
        names = [*map(logical, FUNCTIONS), "UnknownFunction"]
        done = subprocess.run(
            [sam, "-c", LOOK_UP, *names], cwd=ROOT, env=self.emulator.environment(), capture_output=True, text=True,
            timeout=SECONDS, check=True,
        )
        found = json.loads(done.stdout.splitlines()[-1])
        self.assertIsNone(found.pop("UnknownFunction"))
        for function in FUNCTIONS:
            code, *rest = found[logical(function)]
            self.assertTrue(code.endswith(f"target/lambda/{function}/bootstrap.zip"), code)
            self.assertEqual(rest, ["bootstrap", "provided.al2023"])


if __name__ == "__main__":
    unittest.main(failfast=True)
