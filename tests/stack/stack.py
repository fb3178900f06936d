"""Deploys the stack of `infra/template.yaml` to an emulator and deletes it.

The template is unchanged, in a folder with the layout of the repository. `overlay.py` merges the overlays of a deployment. The
functions come from `cargo build` instead of `cargo lambda build`. Must never change the template: no workaround may hide that a
resource does not deploy.
"""

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from emulator import SECONDS

ROOT = Path(__file__).resolve().parents[2]
NAME = "hyperband-test"
FUNCTIONS = ["api", "job-events", "job-logs", "decider", "actuator", "sweeper"]
TRAINING_ROLE = "arn:aws:iam::000000000000:role/training"


def stage(folder, marker=None, release=None):
    """Writes the template and the functions into `folder` for `sam deploy`. Returns the folder of the template.

    A `marker` in the packages changes their digests, so the stack sees new code. `release` is the checkout of another release, with
    its built functions in `target/debug`.
    """
    source = release or ROOT
    built = source / "target" / "debug" if release else Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
    infra = Path(folder) / "infra"
    infra.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / "infra" / "template.yaml", infra)
    # Earlier releases have no overlays.
    if (source / "infra" / "overlays").exists():
        for script in ["overlay.py", "deploy.sh"]:
            shutil.copy(source / "infra" / script, infra)
        shutil.copytree(source / "infra" / "overlays", infra / "overlays", dirs_exist_ok=True)
    for name in FUNCTIONS:
        target = Path(folder) / "target" / "lambda" / name
        target.mkdir(parents=True, exist_ok=True)
        stripped = target / "bootstrap"
        subprocess.run(["strip", "-o", stripped, built / name], check=True)
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        with zipfile.ZipFile(target / "bootstrap.zip", "w") as archive:
            archive.writestr(entry, stripped.read_bytes(), zipfile.ZIP_DEFLATED, 1)
            if marker is not None:
                archive.writestr("marker", marker)
        stripped.unlink()
    return infra


class Stack:
    """The stack `name` of `emulator`, deployed from the folder `infra` that `stage` wrote."""

    def __init__(self, emulator, infra, sam, name=NAME):
        self.emulator, self.infra, self.sam, self.name = emulator, infra, sam, name

    def deploy(self, *, overlays=(), **parameters):
        given = {
            "ExecutionRoleArns": TRAINING_ROLE,
            "AlarmTopicArn": "arn:aws:sns:us-east-1:000000000000:alarms",
            "CreateTrainingLogGroup": "true",
            "TableDeletionProtection": "false",
            # Most tests have no price list.
            "PricesInRequests": "Any",
            "Architecture": "arm64" if platform.machine() == "aarch64" else "x86_64",
        } | parameters
        template = "template.yaml"
        if overlays:
            template = "template-merged.yaml"
            merge = [sys.executable, "overlay.py", *overlays]
            merged = subprocess.run(merge, cwd=self.infra, check=True, capture_output=True, text=True)
            (self.infra / template).write_text(merged.stdout)
        self.run(
            "deploy", "--template-file", template, "--stack-name", self.name, "--resolve-s3",
            "--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND", "--no-confirm-changeset",
            "--no-progressbar", "--parameter-overrides", *(f"{name}={value}" for name, value in given.items()),
        )

    def delete(self):
        self.run("delete", "--stack-name", self.name, "--no-prompts", "--region", "us-east-1")

    def run(self, *arguments):
        done = subprocess.run(
            [self.sam, *arguments], cwd=self.infra, env=self.emulator.environment(), capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"sam {arguments[0]} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")

    def outputs(self):
        stacks = self.emulator.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stacks[0]["Outputs"]}

    def physical(self):
        """Returns the physical names of the resources by logical ID."""
        client = self.emulator.client("cloudformation")
        pages = client.get_paginator("list_stack_resources").paginate(StackName=self.name)
        found = [resource for page in pages for resource in page["StackResourceSummaries"]]
        return {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in found}
