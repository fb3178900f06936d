"""Starts tunings on the deployed stack from earlier ones: tunings of the stack, one of Automatic Model Tuning, and known results.

Run by `run.sh`. The description and the list of the tuning that Automatic Model Tuning ran are those of events/aws.sagemaker.api,
with the request of this test.
"""

import copy
import json
import unittest

from automatic import DESCRIBE, LIST, AutomaticTunings
from calls import Calls, request
from emulator import free_port
from stack import ROOT

SAMPLES = ROOT / "events/aws.sagemaker.api"
# Above every accuracy of the example.
BEST = 0.9999
RATES = {"0.03": BEST, "0.3": 0.5, "0.001": 0.4, "0.002": 0.45, "0.2": 0.6}


def automatic(name):
    """Returns the description and the training jobs of a tuning job that Automatic Model Tuning ran with these rates."""
    sent = request(name)
    description = json.loads((SAMPLES / "describe-hyper-parameter-tuning-job.response.json").read_text())
    [summary, *_] = json.loads(
        (SAMPLES / "list-training-jobs-for-hyper-parameter-tuning-job.response.json").read_text())["TrainingJobSummaries"]
    job = description["TrainingJobDefinition"] | sent["TrainingJobDefinition"]
    del job["InputDataConfig"]
    metric = sent["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]["MetricName"]
    job["StaticHyperParameters"] = job["StaticHyperParameters"] | {"_tuning_objective_metric": metric}
    jobs = [summary | {
        "TrainingJobName": f"{name}-00{index}-3fa1c2d4", "TunedHyperParameters": {"learning_rate": rate},
        "FinalHyperParameterTuningJobObjectiveMetric": {"MetricName": metric, "Value": value},
    } for index, (rate, value) in enumerate(RATES.items())]
    best = copy.deepcopy(jobs[0])
    best["FinalHyperParameterTuningJobObjectiveMetric"]["Type"] = "Maximize"
    return description | {
        "HyperParameterTuningJobName": name, "HyperParameterTuningJobConfig": sent["HyperParameterTuningJobConfig"],
        "TrainingJobDefinition": job, "BestTrainingJob": best,
    }, jobs


def child(name, parents, **controller):
    body = request(name, **controller)
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = 6
    body["WarmStartConfig"] = {
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": parent} for parent in parents],
        "WarmStartType": "IdenticalDataAndAlgorithm",
    }
    return body


class Parents(Calls, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.start_stack(sagemaker=f"http://127.0.0.1:{port}")
        cls.sagemaker = AutomaticTunings(port, cls.training.url, {"automatic": automatic("automatic")})
        cls.addClassCleanup(cls.sagemaker.stop)

    def setUp(self):
        self.enterContext(self.ticks())

    def test_a_tuning_starts_from_one_of_the_stack_and_one_of_automatic_model_tuning(self):
        first = child("first", [])
        del first["WarmStartConfig"]
        self.create(first)
        self.check_completed("first")

        self.create(child("second", ["first", "automatic"], KnownResults=[
            {"learning_rate": 0.05, "accuracy": 0.7}]))
        described, jobs, best = self.check_completed("second")
        self.assertEqual(self.sagemaker.calls, [DESCRIBE, LIST, LIST, LIST], "pages of two of five jobs")
        # The first trial has the best configuration of the first parent, a later one a good one of the second, not close to it.
        explained = [json.loads(self.program("explain", "second", str(trial), "--output", "json")) for trial in (0, 2)]
        texts = [json.dumps(one) for one in explained]
        self.assertIn("first", texts[0])
        self.assertIn("automatic", texts[1])
        rates = {job["Controller"]["Trial"]: float(job["TunedHyperParameters"]["learning_rate"]) for job in jobs}
        self.assertTrue(any(abs(rates[2] / float(rate) - 1) < 0.01 for rate in RATES), rates)
        overall = described["OverallBestTrainingJob"]
        self.assertEqual((overall["TrainingJobName"], overall["TuningJobName"]), ("automatic-000-3fa1c2d4", "automatic"))
        self.assertNotEqual(described["BestTrainingJob"]["TrainingJobName"], overall["TrainingJobName"], best)

        # `extend` submits a further tuning, whose parents are the second and its parents of both controllers.
        self.program("extend", "second", "--jobs", "4", "--name", "third")
        described = self.ended("third")
        parents = described["WarmStartConfig"]["ParentHyperParameterTuningJobs"]
        self.assertEqual([parent["HyperParameterTuningJobName"] for parent in parents], ["first", "automatic", "second"])
        self.assertEqual(described["HyperParameterTuningJobStatus"], "Completed", described)

    def test_a_parent_that_no_one_knows_is_refused_by_name(self):
        status, answer = self.ask("POST", "/tuning-jobs", child("fourth", ["unknown"]))
        self.assertEqual((status, answer["__type"]), (400, "ValidationException"), answer)
        self.assertIn("no hyperparameter tuning job is named unknown", answer["message"])


if __name__ == "__main__":
    unittest.main(failfast=True)
