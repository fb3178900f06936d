"""Runs a tuning on a deployed stack without a subscription to the training logs.

Run by `run.sh`. The sweeper reads the values with its schedule alone.
"""

import time
import unittest

from calls import TRAINING_LOGS, Calls, request


class Polling(Calls, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.start_stack(MetricsFrom="Polling")

    def test_the_sweeper_reads_the_values(self):
        logs = self.emulator.client("logs")
        self.assertEqual(logs.describe_subscription_filters(logGroupName=TRAINING_LOGS)["subscriptionFilters"], [])
        # Two jobs are too few for a comparison with this factor, so none is stopped.
        body = request("polled", ReductionFactor=3)
        body["HyperParameterTuningJobConfig"]["ResourceLimits"] = {"MaxNumberOfTrainingJobs": 2, "MaxParallelTrainingJobs": 2}
        # Silent jobs are read after two minutes, so the jobs last longer.
        body["TrainingJobDefinition"]["StaticHyperParameters"]["seconds_per_epoch"] = "25"
        body["TrainingJobDefinition"]["StoppingCondition"] = {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 700}
        self.create(body)
        while "BestSeen" not in (described := self.ask("GET", "/tuning-jobs/polled")[1])["Controller"]:
            self.assertEqual(described["HyperParameterTuningJobStatus"], "InProgress", "no value arrived")
            time.sleep(1)
        self.assertEqual(described["TrainingJobStatusCounters"]["InProgress"], 2, "the values arrived while the jobs ran")
        self.check_completed("polled")


if __name__ == "__main__":
    unittest.main(failfast=True)
