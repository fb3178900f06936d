"""Deploys a release's archive with the commands in its README and the SAM CLI.

Run by `run.sh`. Uses the archive in HYPERBAND_ARCHIVE, or packs the functions of `cargo build`.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

from emulator import Emulator
from stack import FUNCTIONS, ROOT, TRAINING_ROLE

STACK = "hyperband-dev"
SECONDS = 180
ARCHITECTURE = "arm64" if platform.machine() == "aarch64" else "x86_64"


def pack(folder):
    """Runs `infra/release.sh` and returns the archive, after checking its checksum."""
    release = [ROOT / "infra" / "release.sh", "--profile", "dev", "--output", folder]
    subprocess.run(release, check=True, capture_output=True, timeout=SECONDS)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)
    [archive] = folder.glob("hyperband-*.zip")
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
        self.assertEqual(self.archive.name, again.name)
        sums = [hashlib.sha256(archive.read_bytes()).hexdigest() for archive in (self.archive, again)]
        self.assertEqual(sums[0], sums[1])

    def test_the_archive_deploys_with_its_own_commands(self):
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
            # The log group exists if a training job has run in the account.
            emulator.client("logs").create_log_group(logGroupName="/aws/sagemaker/TrainingJobs")
            environment = emulator.environment()
            environment["PATH"] = f"{Path(os.environ['SAM']).parent}:{environment['PATH']}"
            done = subprocess.run(
                ["bash", "-euc", commands], cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS,
                check=False,
            )
            self.assertEqual(done.returncode, 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
            self.check_functions(emulator)

    def check_functions(self, emulator):
        client, resources = emulator.client("lambda"), emulator.client("cloudformation")
        pages = resources.get_paginator("list_stack_resources").paginate(StackName=STACK)
        found = [resource for page in pages for resource in page["StackResourceSummaries"]]
        names = [one["PhysicalResourceId"] for one in found if one["ResourceType"] == "AWS::Lambda::Function"]
        self.assertEqual(len(names), len(FUNCTIONS))
        for name in names:
            self.assertEqual(client.get_function_configuration(FunctionName=name)["Architectures"], [ARCHITECTURE])
            answer = client.invoke(FunctionName=name, Payload=json.dumps({"Records": []}))
            said = json.loads(answer["Payload"].read())
            # The function started and read the event: four report it as unreadable, two have nothing to do.
            self.assertIn(said.get("errorType", "none"), ["none", "Unreadable"], f"{name}: {said}")


if __name__ == "__main__":
    unittest.main(failfast=True)
