"""Tests version 3 of the SageMaker Python SDK, unmodified, with `hyperband serve` or a stack.

The environment names the server (AWS_ENDPOINT_URL_SAGEMAKER), as a user would do it. No test reaches S3, STS or IAM: the role, the
bucket and the image are given.
"""

import logging
import os
import unittest
from unittest import mock

from serve import REGEX, ROLE, check_kept, ended, nightly_on_a_stack, serve, until

import boto3
import hyperband
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.parameter import ContinuousParameter, IntegerParameter
from sagemaker.core.resources import HyperParameterTuningJob
from sagemaker.core.shapes import HyperbandStrategyConfig, HyperParameterTuningJobStrategyConfig, OutputDataConfig
from sagemaker.core.utils.exceptions import FailedStatusError
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import CheckpointConfig, Compute, StoppingCondition
from sagemaker.train.tuner import HyperparameterTuner

logging.disable(logging.WARNING)
IMAGE = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/training:1"


class Sdk3(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serve()
        cls.addClassCleanup(cls.server.end)
        # Otherwise ModelTrainer asks IAM about the role, which requires an account.
        variables = {"AWS_ENDPOINT_URL_SAGEMAKER": cls.server.endpoint, "SAGEMAKER_VALIDATE_ROLE": "false"}
        patch = mock.patch.dict(os.environ, variables)
        patch.start()
        cls.addClassCleanup(patch.stop)
        cls.session = Session(boto3.Session(), default_bucket="bucket")
        cls.client = cls.session.sagemaker_client

    def trainer(self, **more):
        settings = {
            "training_image": IMAGE, "role": ROLE, "hyperparameters": {"epochs": "9"},
            "compute": Compute(instance_type="ml.m5.large", instance_count=1, volume_size_in_gb=30),
            "output_data_config": OutputDataConfig(s3_output_path="s3://bucket/out", compression_type="GZIP"),
            "stopping_condition": StoppingCondition(max_runtime_in_seconds=60),
        }
        return ModelTrainer(sagemaker_session=self.session, **settings | more)

    def tuner(self, trainer=None, **more):
        hyperband_config = HyperbandStrategyConfig(min_resource=1, max_resource=9)
        settings = {
            "objective_metric_name": "accuracy", "metric_definitions": [{"Name": "accuracy", "Regex": REGEX}],
            "hyperparameter_ranges": {"learning_rate": ContinuousParameter(0.0001, 1, scaling_type="Logarithmic")},
            "strategy": "Hyperband", "objective_type": "Maximize", "max_jobs": 6, "max_parallel_jobs": 4,
            "strategy_config": HyperParameterTuningJobStrategyConfig(hyperband_strategy_config=hyperband_config),
        }
        return HyperparameterTuner(trainer or self.trainer(), **settings | more)

    def test_a_tuning_is_submitted_followed_and_analysed(self):
        tuner = self.tuner(tags=hyperband.Controller(NoObjectiveSeconds=0).tags(), random_seed=7)
        tuner.tune(job_name="sdk3-whole", wait=True)
        described = tuner.describe()
        self.assertEqual(described.hyper_parameter_tuning_job_status, "Completed")
        self.assertEqual(described.hyper_parameter_tuning_job_config.random_seed, 7)
        self.assertEqual(self.server.controller("sdk3-whole")["NoObjectiveSeconds"], 0)
        best = tuner.best_training_job()
        self.assertEqual(best, described.best_training_job.training_job_name)
        frame = tuner.analytics().dataframe()
        self.assertEqual(len(frame), 6)
        self.assertIn(best, set(frame["TrainingJobName"]))
        value = described.best_training_job.final_hyper_parameter_tuning_job_objective_metric.value
        self.assertAlmostEqual(frame["FinalObjectiveValue"].max(), value, places=6)

    @nightly_on_a_stack
    def test_the_resources_of_the_core_describe_and_list(self):
        self.tuner().tune(job_name="resources", wait=True)
        job = HyperParameterTuningJob.get("resources", session=self.session.boto_session)
        self.assertEqual(job.hyper_parameter_tuning_job_status, "Completed")
        self.assertEqual(len(list(job.get_all_training_jobs())), 6)
        named = HyperParameterTuningJob.get_all(name_contains="resources", session=self.session.boto_session)
        self.assertEqual([one.hyper_parameter_tuning_job_name for one in named], ["resources"])
        # A tuning stays for two minutes after its end, so that late facts find it.
        check_kept(self.client, "resources", job.delete)

    def test_a_running_tuning_is_stopped(self):
        tuner = self.tuner(self.trainer(hyperparameters={"epochs": "9", "endless": "1"}))
        tuner.tune(job_name="sdk3-stopped", wait=False)
        until(lambda: tuner.describe().training_job_status_counters.in_progress > 0, (True,))
        tuner.stop_tuning_job()
        tuner.wait()
        self.assertEqual(tuner.describe().hyper_parameter_tuning_job_status, "Stopped")
        # Unlike version 2, this SDK reports the stop of an ended tuning.
        with self.assertRaisesRegex(self.client.exceptions.ClientError, "ValidationException"):
            tuner.stop_tuning_job()

    def test_a_failed_tuning_raises_the_reason(self):
        tuner = self.tuner(self.trainer(hyperparameters={"epochs": "9", "broken": "1"}))
        with self.assertRaisesRegex(FailedStatusError, "AlgorithmError"):
            tuner.tune(job_name="sdk3-failed", wait=True)
        with self.assertRaisesRegex(Exception, "Best training job not available"):
            tuner.best_training_job()

    @nightly_on_a_stack
    def test_variables_of_a_trainer_set_fields_of_the_controller(self):
        controller = hyperband.Controller(EpochPattern=r"epoch (\d+)", InitialConfigurations=[{"learning_rate": 0.03}])
        self.tuner(self.trainer(environment=controller.environment())).tune(job_name="sdk3-variables", wait=False)
        ended(self.client, "sdk3-variables")
        seen = self.server.controller("sdk3-variables")
        self.assertEqual((seen["EpochPattern"], seen["InitialConfigurations"]), (r"epoch (\d+)", [{"learning_rate": 0.03}]))

    @nightly_on_a_stack
    def test_spot_checkpoints_and_several_ranges_are_accepted(self):
        trainer = self.trainer(
            compute=Compute(
                instance_type="ml.m5.large", instance_count=2, volume_size_in_gb=30, enable_managed_spot_training=True),
            stopping_condition=StoppingCondition(max_runtime_in_seconds=60, max_wait_time_in_seconds=120),
            checkpoint_config=CheckpointConfig(s3_uri="s3://bucket/checkpoints"))
        ranges = {"learning_rate": ContinuousParameter(0.1, 0.9), "depth": IntegerParameter(1, 9)}
        tuner = self.tuner(trainer, hyperparameter_ranges=ranges, max_runtime_in_seconds=3600, tags=[{"Key": "team", "Value": "vision"}])
        tuner.tune(job_name="sdk3-settings", wait=False)
        ended(self.client, "sdk3-settings")
        definition = tuner.describe().training_job_definition
        self.assertTrue(definition.enable_managed_spot_training)
        self.assertEqual(definition.resource_config.instance_count, 2)

    @nightly_on_a_stack
    def test_unsupported_features_are_refused_by_name(self):
        with self.assertRaisesRegex(self.client.exceptions.ClientError, "ValidationException.*Autotune"):
            self.tuner(autotune=True).tune(job_name="refused", wait=False)


if __name__ == "__main__":
    unittest.main()
