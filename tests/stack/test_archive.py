"""Deploys a release's archive with the commands in its README and the SAM CLI, and once more without SAM. Installs its wheel.

Run by `run.sh`. Uses the archive in HYPERBAND_ARCHIVE and the wheel beside it, or packs the programs of `cargo build`.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
import zipfile
from pathlib import Path

from botocore.exceptions import ClientError

from emulator import REGION, SECONDS, Emulator
from stack import FUNCTIONS, ROOT, TRAINING_ROLE

STACK = "hyperband-dev"
# The translated template as a stack. StackSets names its stacks like this.
TRANSLATED = "StackSet-hyperband-0d1b2c3e-4f5a-6789-abcd-ef0123456789"
TRAINING_LOGS = "/aws/sagemaker/TrainingJobs"
ARCHITECTURE = "arm64" if platform.machine() == "aarch64" else "x86_64"


def pack(folder):
    """Runs `infra/release.sh` and returns the archive of the functions, after checking all checksums."""
    release = [ROOT / "infra" / "release.sh", "--profile", "dev", "--output", folder]
    subprocess.run(release, check=True, capture_output=True, timeout=SECONDS)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)
    [archive] = folder.glob(f"hyperband-[0-9]*[0-9]-{ARCHITECTURE}.zip")
    return archive


def unpack(archive, folder):
    """Unpacks like `unzip`, which not every machine has, with the file modes of the archive."""
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            path = packed.extract(entry, folder)
            if not entry.is_dir():
                os.chmod(path, entry.external_attr >> 16 & 0o777)


class Archive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="hyperband-archive-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        given = os.environ.get("HYPERBAND_ARCHIVE")
        cls.archive = Path(given).resolve() if given else pack(cls.folder / "first")

    def test_packing_twice_gives_the_same_bytes(self):
        if "HYPERBAND_ARCHIVE" in os.environ:
            self.skipTest("an archive is given")
        again = pack(self.folder / "second")
        sums = [(archive.parent / "SHA256SUMS").read_text() for archive in (self.archive, again)]
        self.assertEqual(sums[0], sums[1])
        # The functions, the program, the wheel.
        self.assertEqual(len(sums[0].splitlines()), 3)

    def test_the_wheel_installs_and_uninstalls_the_program(self):
        [wheel] = self.archive.parent.glob(f"hyperband_controller-*_{platform.machine()}.whl")
        environment = self.folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=SECONDS)

        def run(*command):
            return subprocess.run(
                [environment / "bin" / command[0], *command[1:]], check=True, capture_output=True, text=True, timeout=SECONDS).stdout

        def files():
            return {path.relative_to(environment) for path in environment.rglob("*") if "__pycache__" not in path.parts}

        before = files()
        run("pip", "install", "--no-index", "--disable-pip-version-check", wheel)
        version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        self.assertEqual(run("hyperband", "--version"), f"hyperband {version}\n")
        run("pip", "check", "--disable-pip-version-check")
        shown = json.loads(run("pip", "list", "--format", "json", "--disable-pip-version-check"))
        self.assertIn({"name": "hyperband-controller", "version": version}, shown)
        run("pip", "uninstall", "--yes", "hyperband-controller")
        self.assertEqual(files() - before, set())

    def test_the_archive_deploys_with_its_own_commands_and_without_sam(self):
        unpack(self.archive, self.folder / "unpacked")
        [root] = (self.folder / "unpacked").iterdir()
        self.assertEqual(root.name, self.archive.stem)
        self.assertEqual((root / "infra/template.yaml").read_bytes(), (ROOT / "infra/template.yaml").read_bytes())
        for function in FUNCTIONS:
            with zipfile.ZipFile(root / f"target/lambda/{function}/bootstrap.zip") as packed:
                [program] = packed.infolist()
                self.assertEqual((program.filename, program.external_attr >> 16 & 0o777), ("bootstrap", 0o755))
        readme = (root / "README.md").read_text()
        [commands] = re.findall(r"```sh\n(.*?)```", readme, re.S)
        self.assertIn("111122223333:role/training", commands)
        commands = commands.replace("arn:aws:iam::111122223333:role/training", TRAINING_ROLE)
        with Emulator(self.folder / "emulator", {"AWS_ENDPOINT_URL_SAGEMAKER": "http://127.0.0.1:9"}) as emulator:
            environment = emulator.environment()
            environment["PATH"] = os.pathsep.join([*(str(Path(os.environ[tool]).parent) for tool in ("SAM", "AWS")), environment["PATH"]])

            def deploy(text):
                done = subprocess.run(
                    ["bash", "-euc", text], cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
                self.assertEqual(done.returncode, 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
                return done.stdout

            # No training job has run in this account, so it has no log group. The script creates it, and leaves an existing one alone.
            logs = emulator.client("logs")
            self.assertIn("Created the log group", deploy(commands))
            [group] = logs.describe_log_groups(logGroupNamePrefix=TRAINING_LOGS)["logGroups"]
            self.assertEqual(group["retentionInDays"], 90)
            logs.put_retention_policy(logGroupName=TRAINING_LOGS, retentionInDays=14)
            self.assertNotIn("Created the log group", deploy("infra/deploy.sh"))
            [group] = logs.describe_log_groups(logGroupNamePrefix=TRAINING_LOGS)["logGroups"]
            self.assertEqual(group["retentionInDays"], 14)
            deployed = self.resources(emulator, STACK)
            self.check_functions(emulator, deployed)
            self.deploy_translated(emulator, root)
            translated = self.resources(emulator, TRANSLATED)
            self.check_functions(emulator, translated)
            self.assertEqual({name: kind for name, (kind, _) in translated.items()},
                             {name: kind for name, (kind, _) in deployed.items()})
            for logical, (kind, physical) in deployed.items():
                if kind == "AWS::Lambda::Function":
                    with self.subTest(logical):
                        self.assertEqual(self.settings(emulator, translated[logical][1], TRANSLATED),
                                         self.settings(emulator, physical, STACK))

    def deploy_translated(self, emulator, root):
        """Uploads the archive with the commands of ENTERPRISE.md, and deploys its translated template without any transform."""
        text = (root / "infra/template-translated.yaml").read_text()
        for word in ["Transform", "Fn::ForEach", "AWS::Serverless"]:
            self.assertNotIn(word, text)
        blocks = re.findall(r"```sh\n(.*?)```", (root / "docs/ENTERPRISE.md").read_text(), re.S)
        [commands] = [block for block in blocks if "put-bucket-policy" in block]
        commands, count = re.subn("in eu-west-1 us-east-1;", f"in {REGION};", commands)
        self.assertEqual(count, 1)
        environment = emulator.environment()
        environment["PATH"] = f"{Path(os.environ['AWS']).parent}:{environment['PATH']}"
        subprocess.run(["bash", "-euc", commands], cwd=root, env=environment, check=True, capture_output=True, timeout=SECONDS)
        client = emulator.client("cloudformation")
        parameters = {"CodeBucketPrefix": "example-hyperband", "ExecutionRoleArns": TRAINING_ROLE}
        given = {"StackName": TRANSLATED, "Capabilities": ["CAPABILITY_IAM"],
                 "TemplateURL": f"{emulator.url}/example-hyperband-{REGION}/{root.name}/template.yaml"}
        # The rules of the template survive the translation: alarms have no target yet.
        with self.assertRaisesRegex(ClientError, "Set AlarmEmail or AlarmTopicArn"):
            client.create_stack(**given, Parameters=self.parameters(parameters))
        # As stage dev of samconfig.toml.
        parameters |= {"CreateAlarms": "false", "LogRetentionDays": "7", "MonthlyCapUsd": "100", "TableDeletionProtection": "false"}
        client.create_stack(**given, Parameters=self.parameters(parameters))
        client.get_waiter("stack_create_complete").wait(StackName=TRANSLATED, WaiterConfig={"Delay": 1, "MaxAttempts": SECONDS})

    @staticmethod
    def parameters(values):
        return [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]

    @staticmethod
    def resources(emulator, stack):
        """Returns type and physical name of each resource by logical ID."""
        pages = emulator.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
        found = [resource for page in pages for resource in page["StackResourceSummaries"]]
        return {one["LogicalResourceId"]: (one["ResourceType"], one["PhysicalResourceId"]) for one in found}

    @staticmethod
    def settings(emulator, function, stack):
        """Returns the settings of a function that do not name its stack or its resources."""
        found = emulator.client("lambda").get_function(FunctionName=function)
        kept = {name: found["Configuration"][name] for name in
                ["Runtime", "Handler", "Timeout", "MemorySize", "Architectures", "CodeSha256", "Description"]}
        kept["Log"] = found["Configuration"]["LoggingConfig"]["LogGroup"].replace(stack, "STACK")
        variables = found["Configuration"]["Environment"]["Variables"]
        # The name of the table and the secret are generated. Their variables must exist.
        kept["Variables"] = {name: None if name in ["TABLE_NAME", "API_SECRET"] else value.replace(stack, "STACK")
                             for name, value in variables.items()}
        return kept | {"Tags": {tag: value for tag, value in found.get("Tags", {}).items() if tag.startswith("lambda:")}}

    def check_functions(self, emulator, resources):
        client = emulator.client("lambda")
        names = [physical for kind, physical in resources.values() if kind == "AWS::Lambda::Function"]
        self.assertEqual(len(names), len(FUNCTIONS))
        for name in names:
            self.assertEqual(client.get_function_configuration(FunctionName=name)["Architectures"], [ARCHITECTURE])
            answer = client.invoke(FunctionName=name, Payload=json.dumps({"Records": []}))
            said = json.loads(answer["Payload"].read())
            # The function started and read the event: three report it as unreadable, one refuses it, two have nothing to do.
            self.assertIn(said.get("errorType", "none"), ["none", "Unreadable"], f"{name}: {said}")


if __name__ == "__main__":
    unittest.main(failfast=True)
