"""Tests the Python module `hyperband` with boto3, with a type checker, and installed from the wheel.

Its signatures and Regions are those of requests that boto3 builds. Another test catches them before they leave this process.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from clean import PROGRAM, REGION, ROOT

import boto3
import hyperband
from hyperband import Controller

STACK = "https://abc123.execute-api.us-west-2.amazonaws.com"


class Caught(Exception):
    """Replaces the sending of a request."""


def caught(client):
    """Returns a request of this client, which is not sent."""
    requests = []

    def catch(request, **_):
        requests.append(request)
        raise Caught

    client.meta.events.register("before-send.sagemaker", catch)
    try:
        client.list_hyper_parameter_tuning_jobs()
    except Caught:
        pass
    [request] = requests
    return request


def scope(client):
    """Returns access key, Region and service of a request's signature."""
    header = caught(client).headers["Authorization"]
    header = header.decode() if isinstance(header, bytes) else header
    return re.search(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request", header).groups()


class Client(unittest.TestCase):
    def test_requests_are_signed_for_the_region_of_the_endpoint(self):
        self.assertEqual(scope(hyperband.client(STACK)), ("test", "us-west-2", "execute-api"))
        self.assertEqual(scope(hyperband.client(STACK + "/")), ("test", "us-west-2", "execute-api"))
        for host in ["vpce-1.execute-api.us-west-2.vpce.amazonaws.com", "abc123.execute-api.us-west-2.amazonaws.com.cn"]:
            self.assertEqual(scope(hyperband.client(f"https://{host}"))[1], "us-west-2")
        self.assertEqual(caught(hyperband.client(STACK)).url, f"{STACK}/")

    def test_a_given_region_precedes_the_host_and_the_host_the_session(self):
        session = boto3.Session(aws_access_key_id="mine", aws_secret_access_key="x", region_name="ap-south-1")
        self.assertEqual(scope(hyperband.client(STACK, session=session)), ("mine", "us-west-2", "execute-api"))
        self.assertEqual(scope(hyperband.client(STACK, "eu-north-1", session))[1], "eu-north-1")
        self.assertEqual(scope(hyperband.client("https://tuning.example.com", session=session))[1], "ap-south-1")
        # As in the program, a host of another owner names no Region.
        self.assertEqual(scope(hyperband.client("https://a.execute-api.us-west-2.example.com", session=session))[1], "ap-south-1")

    def test_a_host_without_a_region_needs_one(self):
        with mock.patch.dict(os.environ), self.assertRaisesRegex(ValueError, "missing Region: the host tuning.example.com has none"):
            del os.environ["AWS_DEFAULT_REGION"]
            hyperband.client("https://tuning.example.com")

    def test_the_endpoint_is_that_of_the_environment_by_default(self):
        with self.assertRaisesRegex(ValueError, "missing endpoint: .* HYPERBAND_ENDPOINT"):
            hyperband.client()
        with mock.patch.dict(os.environ, HYPERBAND_ENDPOINT=STACK):
            self.assertEqual(caught(hyperband.client()).url, f"{STACK}/")

    def test_an_invalid_endpoint_is_refused(self):
        for endpoint, expected in [
                ("http://tuning.example.com", "http:// is only for this machine .* requests to tuning.example.com must go over https"),
                ("abc123.execute-api.us-west-2.amazonaws.com", "invalid endpoint .* expected https://HOST"),
                ("https://", "expected https://HOST"), ("https://[::1", "expected https://HOST"), ("ftp://localhost", "expected https"),
                ("https://user:secret@example.com", "without a user, a query or a fragment"), ("https://a.example.com/?x=1", "query"),
                ("lambda:hyperband-prod-InvokeFunction-a1B2", "a function serves no SageMaker client")]:
            with self.subTest(endpoint), self.assertRaisesRegex(ValueError, expected) as raised:
                hyperband.client(endpoint)
            self.assertNotIn("secret", str(raised.exception))

    def test_a_loopback_endpoint_needs_and_gets_no_credentials(self):
        without = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        without |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true"}
        for endpoint in ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"]:
            with mock.patch.dict(os.environ, without, clear=True):
                self.assertEqual(scope(hyperband.client(endpoint)), ("local", "us-east-1", "execute-api"))
            # Plain HTTP never has a signature by a real key, and no session token.
            session = boto3.Session("mine", "x", "token", REGION)
            request = caught(hyperband.client(endpoint, session=session))
            self.assertNotIn("mine", str(request.headers["Authorization"]))
            self.assertNotIn("X-Amz-Security-Token", request.headers)


class Fields(unittest.TestCase):
    def test_tags_hold_numbers_and_texts(self):
        tags = Controller(MaxCostUsd=20, RungExecution="Promote", MetricHost="algo-2").tags()
        self.assertEqual(tags, [
            {"Key": "hyperband:MaxCostUsd", "Value": "20"}, {"Key": "hyperband:RungExecution", "Value": "Promote"},
            {"Key": "hyperband:MetricHost", "Value": "algo-2"}])
        self.assertEqual(Controller(MaxCostUsd=0.5).tags()[0]["Value"], "0.5")
        self.assertEqual(Controller().tags(), [])

    def test_variables_hold_every_field(self):
        controller = Controller(MaxCostUsd=20, EpochPattern=r"epoch (\d+)", InitialConfigurations=[{"lr": 0.1, "kind": "ä"}])
        self.assertEqual(controller.environment(), {
            "HYPERBAND_MaxCostUsd": "20", "HYPERBAND_EpochPattern": r"epoch (\d+)",
            "HYPERBAND_InitialConfigurations": r'[{"lr":0.1,"kind":"\u00e4"}]'})
        # An unquoted text would be read as JSON.
        self.assertEqual(Controller(EpochPattern='"epoch": (.)').environment(), {"HYPERBAND_EpochPattern": r'"\"epoch\": (.)"'})

    def test_a_value_that_a_tag_cannot_hold_is_an_error_and_never_dropped(self):
        for fields in [{"EpochPattern": r"epoch (\d+)"}, {"InstancePricesUsdPerHour": {"ml.m5.large": 0.115}}, {"MetricHost": "a" * 257}]:
            [name] = fields
            with self.subTest(name), self.assertRaisesRegex(ValueError, rf"cannot send {name} .* as a tag: .* pass environment\(\)"):
                Controller(MaxCostUsd=20, **fields).tags()

    def test_a_long_value_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "InitialConfigurations: its JSON has .* characters, but .* at most 512; .*submit"):
            Controller(InitialConfigurations=[{"learning_rate": 0.1}] * 30).environment()
        self.assertEqual(len(Controller(EpochPattern="x" * 512).environment()["HYPERBAND_EpochPattern"]), 512)

    def test_an_unknown_field_is_an_error_with_the_nearest_name(self):
        for name, near in [("MaxCostUSD", "MaxCostUsd"), ("max_cost_usd", "MaxCostUsd"), ("Samplers", "Sampler"), ("Refits", "Refit")]:
            with self.assertRaisesRegex(TypeError, f"unknown field '{name}' of Controller: did you mean '{near}'\\?"):
                Controller(**{name: 1})
        with self.assertRaisesRegex(TypeError, "unknown field 'qqq' of Controller: expected one of MaxCostUsd, "):
            Controller(qqq=1)

    def test_a_value_that_json_lacks_is_an_error(self):
        for value in [float("nan"), float("inf"), object()]:
            with self.assertRaisesRegex((TypeError, ValueError), "invalid MaxCostUsd .*: expected a value that JSON can hold"):
                Controller(MaxCostUsd=value)

    def test_none_is_an_error_and_no_missing_cap(self):
        with self.assertRaisesRegex(ValueError, "invalid MaxCostUsd None: expected a value; leave the field out if it has none"):
            Controller(MaxCostUsd=None)

    def test_the_fields_are_those_of_the_documents(self):
        text = (ROOT / "docs" / "REQUEST.md").read_text()
        [table] = re.findall(r"\n## Controller\n(.*?)\n## ", text, re.S)
        self.assertEqual(set(re.findall(r"^\| `(\w+)` \|", table, re.M)), set(hyperband.Fields.__annotations__))


class Module(unittest.TestCase):
    def test_the_module_is_small_and_typed(self):
        self.assertLessEqual(sum(len(file.read_text().splitlines()) for file in (ROOT / "python/hyperband").glob("*.py")), 300)
        with tempfile.TemporaryDirectory() as cache:
            def check(*what):
                line = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, *what]
                return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | {"MYPYPATH": "python"})

            done = check("python/hyperband")
            self.assertEqual(done.returncode, 0, done.stdout)
            # The types of fields reach the caller.
            done = check("-c", "import hyperband; hyperband.Controller(MaxCost=1)\nhyperband.Controller(RungExecution='Pause')")
            self.assertIn('Unexpected keyword argument "MaxCost"', done.stdout)
            self.assertIn('has incompatible type "Literal[\'Pause\']"', done.stdout)
            done = check("-c", "import hyperband; hyperband.tune('train.py', {'lr': {'low': 1}}, 'accuracy', max_epochs=3)")
            self.assertIn('Unexpected keyword argument "max_epochs"', done.stdout)
            self.assertIn("has incompatible type", done.stdout)

    def test_the_wheel_installs_the_command_and_the_module_without_boto3(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", ROOT / "infra/wheel.py", PROGRAM, folder, "fast"], check=True)
            [wheel] = [entry.path for entry in os.scandir(folder)]
            environment = os.path.join(folder, "environment")
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)

            def run(program, *words, code=0):
                clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HYPERBAND_BIN")}
                line = [f"{environment}/bin/{program}", *words]
                done = subprocess.run(line, capture_output=True, text=True, check=False, env=clean, cwd=folder)
                self.assertEqual(done.returncode, code, done.stderr)
                return done.stdout + done.stderr

            run("pip", "install", "--no-index", "--disable-pip-version-check", wheel)
            run("pip", "check", "--disable-pip-version-check")
            self.assertRegex(run("hyperband", "--version"), r"^hyperband \d")
            tags = run("python", "-c", "import hyperband; print(hyperband.Controller(MaxCostUsd=20).tags())")
            self.assertEqual(tags, "[{'Key': 'hyperband:MaxCostUsd', 'Value': '20'}]\n")
            # The module finds the program beside Python.
            self.assertIn("no tuning was run in", run("python", "-c", "import hyperband; hyperband.Result('x')", code=1))
            error = run("python", "-c", "import hyperband; hyperband.client('http://127.0.0.1:1')", code=1)
            self.assertIn("hyperband.client requires boto3: install it with `pip install boto3`", error)


if __name__ == "__main__":
    unittest.main()
