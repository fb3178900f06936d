"""Extracts commands from the documents and runs them: the first tuning of DEPLOY.md with `curl`, the tools of OPERATIONS.md.

Run by `run.sh`. The tests replace only the values that a reader replaces (names, addresses, roles). Needs `bash`, `jq` and `curl`.
"""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from emulator import REGION, SECONDS, Emulator
from prices import PriceList
from stack import NAME, ROOT, TRAINING_ROLE, Stack, stage

# The name of the first tuning, and of its file.
FIRST = "first-xgboost"
# The runbook needs version 2 of the AWS CLI, which is not a Python package. Version 1 lacks one command, reads the Region from another
# variable, and uses its own address for queues.
AWS = """#!/usr/bin/env bash
if [ "$*" = "configure export-credentials --format env" ]; then
  printf 'export AWS_ACCESS_KEY_ID=%s\\nexport AWS_SECRET_ACCESS_KEY=%s\\n' "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY"
else
  AWS_DEFAULT_REGION="${AWS_REGION-}" exec "$AWS_CLI" --endpoint-url "$AWS_ENDPOINT_URL" "$@"
fi
"""


def blocks(document, kind):
    """Returns the fenced blocks of this kind in a document, in order."""
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / "docs" / document).read_text(), re.S)


def block(document, kind, having):
    """Returns the only block that contains these words."""
    [found] = [text for text in blocks(document, kind) if having in text]
    return found


def put_in(text, **values):
    """Replaces the values of shell variables. The text sets each of them once."""
    for name, value in values.items():
        text, count = re.subn(rf"(?m)^((?:export )?{name}=).*$", lambda found, value=value: found[1] + f"'{value}'", text)
        assert count == 1, (name, count)
    return text


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hyperband-documents-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        prices = PriceList({"USE1-Train:ml.m5.large": 0.115, "USE1-Train:VolumeUsage.gp2": 0.14})
        cls.addClassCleanup(prices.stop)
        # There is no SageMaker, so every start is deferred.
        cls.emulator = Emulator(cls.folder, {
            "AWS_ENDPOINT_URL_SAGEMAKER": "http://127.0.0.1:9", "AWS_ENDPOINT_URL_PRICING": prices.url})
        cls.addClassCleanup(cls.emulator.stop)
        cls.emulator.start()
        cls.stack = Stack(cls.emulator, stage(cls.folder / "stage"), os.environ["SAM"])
        cls.stack.deploy()
        cls.ids = cls.stack.physical()
        cls.api = f"{cls.emulator.url}/_aws/execute-api/{cls.ids['Api']}/$default"
        tools = cls.folder / "bin"
        tools.mkdir()
        (tools / "aws").write_text(AWS)
        (tools / "aws").chmod(0o755)
        # As on a user's machine, the only Region is the one that the runbook sets.
        cls.environment = cls.emulator.environment() | {
            "AWS_CLI": os.environ["AWS"], "PATH": f"{tools}:{os.environ['PATH']}"}
        del cls.environment["AWS_REGION"], cls.environment["AWS_DEFAULT_REGION"]
        cls.tools = put_in(block("OPERATIONS.md", "sh", "name_of()"), STACK=NAME, AWS_REGION=REGION,
                           HYPERBAND_ENDPOINT=cls.api)
        cls.submit()

    @classmethod
    def submit(cls):
        """Submits the first tuning with the `curl` command of DEPLOY.md."""
        request = (ROOT / "examples" / f"{FIRST}.json").read_text()
        (cls.folder / "examples").mkdir()
        (cls.folder / "examples" / f"{FIRST}.json").write_text(
            request.replace("arn:aws:iam::111122223333:role/training", TRAINING_ROLE))
        commands = block("DEPLOY.md", "sh", f"--data @examples/{FIRST}.json").replace("eu-west-1", REGION)
        # The test credentials are not temporary.
        commands = re.sub(r'-H "x-amz-security-token: [^"]*" ', "", commands)
        environment = cls.environment | {"HYPERBAND_ENDPOINT": cls.api}
        cls.answers = cls.bash(commands, environment)

    @classmethod
    def bash(cls, commands, environment=None):
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", commands], cwd=cls.folder, env=environment or cls.environment,
            capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{commands}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done.stdout

    def run_tools(self, *commands):
        return self.bash("\n".join([self.tools, *commands])).strip()

    def test_curl_submits_and_describes_the_first_tuning(self):
        created, described = self.answers.replace("}{", "}\n{").splitlines()
        self.assertIn(FIRST, json.loads(created)["HyperParameterTuningJobArn"])
        self.assertEqual(json.loads(described)["HyperParameterTuningJobStatus"], "InProgress")

    def test_name_of_and_table_return_physical_names(self):
        self.assertEqual(self.run_tools("name_of DeliveryFailures", 'echo "$TABLE"').split(),
                         [self.ids["DeliveryFailures"], self.ids["Table"]])

    def test_call_reads_a_tuning_and_changes_its_cap(self):
        status = self.run_tools(f"call /tuning-jobs/{FIRST} | jq -r .HyperParameterTuningJobStatus")
        self.assertEqual(status, "InProgress")
        self.assertEqual(self.run_tools("call '/tuning-jobs?MaxResults=10' | jq -r "
                                        "'.HyperParameterTuningJobSummaries[].HyperParameterTuningJobName'"), FIRST)
        self.run_tools(f"""call /tuning-jobs/{FIRST} -X PATCH --data '{{"MaxCostUsd": 50}}'""")
        self.assertEqual(self.run_tools(f"call /tuning-jobs/{FIRST} | jq .Controller.CapUsd"), "50")

    def test_errors_and_failures_show_an_unreadable_event(self):
        # An unreadable event of this stack.
        sample = json.loads((ROOT / "events/aws.sagemaker/training-job-state-change.completed.json").read_text())
        sample["detail"]["Tags"]["hyperband:stack"] = NAME
        sample["detail"]["TrainingJobStatus"] = 7
        self.emulator.client("lambda").invoke(
            FunctionName=self.ids["JobEventsFunction"], InvocationType="Event", Payload=json.dumps(sample))
        kept = self.run_tools(
            "for second in $(seq 60); do found=$(failures); [ -z \"$found\" ] || break; sleep 1; done",
            'echo "$found"')
        self.assertEqual(json.loads(kept)["responsePayload"]["errorType"], "Unreadable")
        self.assertIn('"errorType":"Unreadable"', self.run_tools("errors job-events"))

    def test_rows_show_the_rows_of_a_tuning(self):
        commands = block("OPERATIONS.md", "sh", "rows()").replace("my-tuning", FIRST)
        shown = self.run_tools(commands)
        for word in [f"{FIRST}-", "META", "HEAD", "STEP#0000000001", "submitted", "TuningSubmitted"]:
            self.assertIn(word, shown)


if __name__ == "__main__":
    unittest.main()
