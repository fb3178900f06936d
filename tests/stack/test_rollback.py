"""Rolls a stack with running tunings back to an older release and forward again.

    HYPERBAND_OLDER=CHECKOUT tests/stack/run.sh test_rollback.py

CHECKOUT is a working copy of the older release, built with `cargo build --locked --workspace --bins`. `run.sh` runs this file only
on request, since the older release takes as long to build as this one.
"""

import os
import time
import unittest
from pathlib import Path

from calls import Calls, request
from emulator import SECONDS
from stack import ROOT, stage


class Rollback(Calls, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Settings that the older release does not know leave their marks in the rows.
        cls.start_stack(JobTags="owner=tests", OwnTuningsOnly="true", TuningDays="30")

    def start(self, name):
        """Starts a tuning of long jobs, and waits until two of them run."""
        body = request(name)
        body["TrainingJobDefinition"]["StaticHyperParameters"]["seconds_per_epoch"] = "4"
        self.create(body)
        deadline = time.monotonic() + SECONDS
        while self.training_jobs_running(name) < 2:
            self.assertLess(time.monotonic(), deadline, self.logged_errors())
            time.sleep(0.3)

    def test_a_stop_works_after_a_rollback_and_tunings_end_after_the_next_update(self):
        older = Path(os.environ["HYPERBAND_OLDER"]).resolve()
        self.assertNotEqual(older, ROOT, "HYPERBAND_OLDER names another checkout")
        for name in ["stopped", "continued"]:
            self.start(name)
        stage(self.infra.parent, release=older)
        self.stack.deploy()
        self.program("stop", "stopped")
        self.assertEqual(self.ended("stopped")["HyperParameterTuningJobStatus"], "Stopped")
        self.assertEqual(self.service_runs("stopped"), [])
        # The next update must also stop a tuning that the older release accepted.
        self.start("older")

        stage(self.infra.parent)
        # The older release records no submitter. With OwnTuningsOnly, only owners would see its tunings.
        self.stack.deploy(JobTags="owner=tests", OwnTuningsOnly="false", TuningDays="30")
        self.program("stop", "older")
        self.assertEqual(self.ended("older")["HyperParameterTuningJobStatus"], "Stopped")
        self.assertEqual(self.service_runs("older"), [])
        self.check_completed("continued")
        messages = self.emulator.client("sqs").receive_message(QueueUrl=self.stack.physical()["DeliveryFailures"])
        self.assertEqual(messages.get("Messages", []), [])

    def service_runs(self, name):
        """Returns the jobs of a tuning that still run in the training service."""
        pages = self.training.client().get_paginator("list_training_jobs").paginate()
        jobs = [job for page in pages for job in page["TrainingJobSummaries"]]
        ours = [job for job in jobs if job["TrainingJobName"].startswith(f"{name}-")]
        self.assertGreater(len(ours), 0)
        return [job["TrainingJobName"] for job in ours if job["TrainingJobStatus"] in ("InProgress", "Stopping")]


if __name__ == "__main__":
    unittest.main(failfast=True)
