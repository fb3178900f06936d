"""Tests the AWS CLI with `hyperband serve` or a stack."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from serve import serve, until
from test_boto3 import request


class Cli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serve()
        cls.addClassCleanup(cls.server.end)

    def aws(self, *words, **variables):
        """Returns the exit code, standard output and standard error of `aws sagemaker`."""
        line = [str(Path(sys.executable).parent / "aws"), "--output", "json", "sagemaker", *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=os.environ | variables)
        return done.returncode, done.stdout, done.stderr

    def answer(self, *words):
        code, out, err = self.aws(*words, "--endpoint-url", self.server.endpoint)
        self.assertEqual(code, 0, err)
        return json.loads(out) if out else None

    def test_a_tuning_is_created_followed_and_stopped(self):
        arn = self.answer("create-hyper-parameter-tuning-job", "--cli-input-json", json.dumps(request("cli", endless="1")),
                          "--tags", "Key=hyperband:MaxDivergedEpochs,Value=2")["HyperParameterTuningJobArn"]
        self.assertEqual(self.server.controller("cli")["MaxDivergedEpochs"], 2)
        name = ["--hyper-parameter-tuning-job-name", "cli"]
        described = self.answer("describe-hyper-parameter-tuning-job", *name)
        self.assertEqual((described["HyperParameterTuningJobArn"], described["HyperParameterTuningJobStatus"]), (arn, "InProgress"))

        def jobs(*more):
            return self.answer("list-training-jobs-for-hyper-parameter-tuning-job", *name, *more)["TrainingJobSummaries"]

        until(lambda: len(jobs()) >= 3, (True,))
        [first] = jobs("--max-items", "1")
        # The CLI fetches every page.
        self.assertGreaterEqual(len(jobs("--page-size", "1")), 3)
        job = self.answer("describe-training-job", "--training-job-name", first["TrainingJobName"])
        self.assertEqual(job["TuningJobArn"], arn)
        self.assertIn({"Key": "hyperband:MaxDivergedEpochs", "Value": "2"}, self.answer("list-tags", "--resource-arn", arn)["Tags"])
        self.answer("stop-hyper-parameter-tuning-job", *name)
        until(lambda: self.answer("describe-hyper-parameter-tuning-job", *name)["HyperParameterTuningJobStatus"], ("Stopped",))
        listed = self.answer("list-hyper-parameter-tuning-jobs", "--status-equals", "Stopped", "--name-contains", "cli")
        [summary] = listed["HyperParameterTuningJobSummaries"]
        self.assertEqual(summary["HyperParameterTuningJobArn"], arn)

    def test_the_environment_names_the_endpoint_and_errors_have_a_code(self):
        variable = {"AWS_ENDPOINT_URL_SAGEMAKER": self.server.endpoint}
        code, out, err = self.aws("list-hyper-parameter-tuning-jobs", "--name-contains", "none", **variable)
        self.assertEqual((code, json.loads(out)), (0, {"HyperParameterTuningJobSummaries": []}), err)
        code, _, err = self.aws("describe-hyper-parameter-tuning-job", "--hyper-parameter-tuning-job-name", "none", **variable)
        self.assertEqual((code, "(ResourceNotFound)" in err), (255, True), err)
        code, _, err = self.aws("list-models", **variable)
        self.assertEqual((code, "(UnknownOperationException)" in err), (255, True), err)


if __name__ == "__main__":
    unittest.main()
