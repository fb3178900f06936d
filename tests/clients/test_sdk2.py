"""Tests version 2 of the SageMaker Python SDK, unmodified, with `hyperband serve` or a stack.

The environment names the server (AWS_ENDPOINT_URL_SAGEMAKER), as a user would do it. No test reaches S3 or STS: the role, the bucket
and the image are given.
"""

import logging
import os
import tempfile
import time
import unittest
from unittest import mock

from serve import REGEX, ROLE, STACK, ended, nightly_on_a_stack, serve, until

import boto3
import hyperband
import sagemaker
from sagemaker.analytics import HyperparameterTuningJobAnalytics, TrainingJobAnalytics
from sagemaker.estimator import Estimator
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.inputs import TrainingInput
from sagemaker.parameter import CategoricalParameter, ContinuousParameter, IntegerParameter
from sagemaker.pytorch import PyTorch
from sagemaker.tuner import HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig, WarmStartConfig, WarmStartTypes
from sagemaker.workflow.pipeline import Pipeline
from sagemaker.workflow.pipeline_context import PipelineSession
from sagemaker.workflow.steps import TuningStep

logging.disable(logging.WARNING)
IMAGE = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/training:1"


class Sdk2(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serve()
        cls.addClassCleanup(cls.server.end)
        patch = mock.patch.dict(os.environ, AWS_ENDPOINT_URL_SAGEMAKER=cls.server.endpoint)
        patch.start()
        cls.addClassCleanup(patch.stop)
        cls.session = sagemaker.Session(boto3.Session(), default_bucket="bucket")
        cls.client = cls.session.sagemaker_client

    def estimator(self, session=None, **more):
        settings = {
            "image_uri": IMAGE, "role": ROLE, "instance_count": 1, "instance_type": "ml.m5.large", "output_path": "s3://bucket/out",
            "hyperparameters": {"epochs": "9"}, "max_run": 60,
        }
        return Estimator(sagemaker_session=session or self.session, **settings | more)

    def tuner(self, estimator=None, **more):
        settings = {
            "objective_metric_name": "accuracy", "metric_definitions": [{"Name": "accuracy", "Regex": REGEX}],
            "hyperparameter_ranges": {"learning_rate": ContinuousParameter(0.0001, 1, scaling_type="Logarithmic")},
            "strategy": "Hyperband", "objective_type": "Maximize", "max_jobs": 6, "max_parallel_jobs": 4,
            "strategy_config": StrategyConfig(hyperband_strategy_config=HyperbandStrategyConfig(max_resource=9, min_resource=1)),
        }
        return HyperparameterTuner(estimator or self.estimator(), **settings | more)

    def test_a_tuning_is_submitted_followed_attached_and_analysed(self):
        tuner = self.tuner(tags=hyperband.Controller(NoObjectiveSeconds=0).tags(), random_seed=7)
        tuner.fit(job_name="sdk2-whole", wait=True)
        described = tuner.describe()
        self.assertEqual(described["HyperParameterTuningJobStatus"], "Completed")
        self.assertEqual(self.server.controller("sdk2-whole")["NoObjectiveSeconds"], 0)
        self.assertEqual(sum(described["TrainingJobStatusCounters"].values()), 6)
        self.assertEqual(described["HyperParameterTuningJobConfig"]["RandomSeed"], 7)
        best = tuner.best_training_job()
        self.assertEqual(best, described["BestTrainingJob"]["TrainingJobName"])

        attached = HyperparameterTuner.attach("sdk2-whole", sagemaker_session=self.session)
        self.assertEqual(attached.best_training_job(), best)
        self.assertEqual(attached.objective_metric_name, "accuracy")
        # `attach` of the SDK reads no StrategyConfig.
        self.assertIsNone(attached.strategy_config)
        self.assertEqual(attached.hyperparameter_ranges()["ContinuousParameterRanges"][0]["Name"], "learning_rate")
        self.assertEqual(attached.estimator.image_uri, IMAGE)

        estimator = attached.best_estimator()
        self.assertEqual(estimator.latest_training_job.name, best)
        self.assertEqual(estimator.hyperparameters()["epochs"], "9")
        self.assertEqual(estimator.instance_type, "ml.m5.large")
        self.assertIn(best, estimator.model_data)

        frame = HyperparameterTuningJobAnalytics("sdk2-whole", sagemaker_session=self.session).dataframe()
        self.assertEqual(len(frame), 6)
        self.assertLessEqual(
            {"learning_rate", "TrainingJobName", "TrainingJobStatus", "FinalObjectiveValue", "TrainingStartTime", "TrainingEndTime",
             "TrainingElapsedTimeSeconds"}, set(frame.columns))
        self.assertIn(best, set(frame["TrainingJobName"]))
        value = described["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
        self.assertAlmostEqual(frame["FinalObjectiveValue"].max(), value, places=6)
        analytics = tuner.analytics()
        self.assertEqual(list(analytics.tuning_ranges), ["learning_rate"])
        self.assertEqual(analytics.description()["HyperParameterTuningJobName"], "sdk2-whole")

    @unittest.skipIf(STACK, "SageMaker publishes the metrics of a stack's jobs to CloudWatch itself")
    def test_the_curve_of_a_training_job_is_analysed(self):
        self.tuner(strategy="Random", strategy_config=None, max_jobs=1).fit(job_name="sdk2-curve", wait=False)
        best = ended(self.client, "sdk2-curve")["BestTrainingJob"]["TrainingJobName"]
        with mock.patch.dict(os.environ, AWS_ENDPOINT_URL_CLOUDWATCH=self.server.endpoint):
            session = sagemaker.Session(boto3.Session(), default_bucket="bucket")
            # A period of a minute shows the mean of this short job. The names of its metrics come from its description.
            frame = TrainingJobAnalytics(best, sagemaker_session=session).dataframe()
            each = session.boto_session.client("cloudwatch").get_metric_statistics(
                Namespace="/aws/sagemaker/TrainingJobs", MetricName="accuracy", StartTime=time.time() - 1_000, EndTime=time.time(),
                Dimensions=[{"Name": "TrainingJobName", "Value": best}], Period=1_000, Statistics=["SampleCount", "Maximum"])
        self.assertEqual(set(frame["metric_name"]), {"accuracy"})
        self.assertEqual(sum(point["SampleCount"] for point in each["Datapoints"]), 9)
        described = self.client.describe_training_job(TrainingJobName=best)
        [last] = [metric for metric in described["FinalMetricDataList"] if metric["MetricName"] == "accuracy"]
        self.assertAlmostEqual(max(point["Maximum"] for point in each["Datapoints"]), last["Value"], places=6)

    def test_a_running_tuning_is_stopped_and_a_second_stop_is_quiet(self):
        tuner = self.tuner(self.estimator(hyperparameters={"epochs": "9", "endless": "1"}))
        tuner.fit(job_name="sdk2-stopped", wait=False)
        until(lambda: tuner.describe()["TrainingJobStatusCounters"]["InProgress"] > 0, (True,))
        tuner.stop_tuning_job()
        tuner.wait()
        self.assertEqual(tuner.describe()["HyperParameterTuningJobStatus"], "Stopped")
        # The SDK accepts the ValidationException of an ended tuning.
        tuner.stop_tuning_job()

    def test_a_failed_tuning_raises_the_reason(self):
        tuner = self.tuner(self.estimator(hyperparameters={"epochs": "9", "broken": "1"}))
        with self.assertRaisesRegex(UnexpectedStatusException, "Failed.*(?s:.*)AlgorithmError") as raised:
            tuner.fit(job_name="sdk2-failed", wait=True)
        self.assertEqual(raised.exception.actual_status, "Failed")
        with self.assertRaisesRegex(Exception, "Best training job not available"):
            tuner.best_training_job()

    @nightly_on_a_stack
    def test_a_client_of_the_module_works_in_a_session(self):
        with mock.patch.dict(os.environ, HYPERBAND_ENDPOINT=self.server.endpoint):
            session = sagemaker.Session(boto3.Session(), sagemaker_client=hyperband.client(), default_bucket="bucket")
        tuner = self.tuner(self.estimator(session, environment=hyperband.Controller(EpochPattern=r"epoch (\d+)").environment()))
        tuner.fit(job_name="sdk2-module", wait=True)
        described = tuner.describe()
        self.assertEqual(described["HyperParameterTuningJobStatus"], "Completed")
        self.assertNotIn("Controller", described)
        self.assertEqual(self.server.controller("sdk2-module")["EpochPattern"], r"epoch (\d+)")

    @nightly_on_a_stack
    def test_a_framework_encodes_its_hyperparameters_and_is_attached(self):
        # A `source_dir` in S3 needs no upload.
        estimator = PyTorch(
            entry_point="train.py", source_dir="s3://bucket/source.tar.gz", image_uri=IMAGE, role=ROLE, instance_count=1,
            instance_type="ml.m5.large", output_path="s3://bucket/out", code_location="s3://bucket/code", max_run=60,
            hyperparameters={"epochs": 9, "kind": "adam"}, sagemaker_session=self.session)
        ranges = {"learning_rate": ContinuousParameter(0.001, 1), "layers": CategoricalParameter(["one", "two"])}
        self.tuner(estimator, hyperparameter_ranges=ranges).fit(job_name="sdk2-framework", wait=False)
        described = ended(self.client, "sdk2-framework")
        self.assertEqual(described["HyperParameterTuningJobStatus"], "Completed")
        self.assertEqual(described["TrainingJobDefinition"]["StaticHyperParameters"]["kind"], '"adam"')
        self.assertIn(described["BestTrainingJob"]["TunedHyperParameters"]["layers"], ('"one"', '"two"'))
        attached = HyperparameterTuner.attach(
            "sdk2-framework", sagemaker_session=self.session, estimator_cls="sagemaker.pytorch.estimator.PyTorch")
        self.assertEqual(attached.best_estimator().hyperparameters()["kind"], '"adam"')

    @nightly_on_a_stack
    def test_a_model_is_not_deployed_by_this_endpoint(self):
        self.tuner().fit(job_name="sdk2-deployed", wait=False)
        ended(self.client, "sdk2-deployed")
        attached = HyperparameterTuner.attach("sdk2-deployed", sagemaker_session=self.session)
        with self.assertRaisesRegex(self.client.exceptions.ClientError, "UnknownOperationException.*CreateModel"):
            attached.deploy(1, "ml.m5.large")

    @nightly_on_a_stack
    def test_all_settings_of_an_estimator_and_a_tuner_are_accepted(self):
        estimator = self.estimator(
            instance_count=2, use_spot_instances=True, max_wait=120, checkpoint_s3_uri="s3://bucket/checkpoints", max_retry_attempts=3,
            volume_size=50, enable_network_isolation=True, encrypt_inter_container_traffic=True, subnets=["subnet-1"],
            security_group_ids=["sg-1"], environment={"A": "b"}, tags=[{"Key": "team", "Value": "vision"}], output_kms_key="key",
            volume_kms_key="key", input_mode="FastFile")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # A stack reads data in S3, and `serve` on this machine.
        data = "s3://bucket/train" if STACK else f"file://{folder.name}"
        tuner = self.tuner(
            estimator, max_runtime_in_seconds=3600, early_stopping_type="Off", base_tuning_job_name="many",
            tags=[{"Key": "cost", "Value": "7"}],
            hyperparameter_ranges={
                "learning_rate": ContinuousParameter(0.1, 0.9, scaling_type="ReverseLogarithmic"), "depth": IntegerParameter(1, 9),
                "kind": CategoricalParameter(["a", "b"])})
        channel = TrainingInput(data, distribution="ShardedByS3Key", content_type="csv")
        tuner.fit({"train": channel}, job_name="sdk2-settings", wait=False)
        described = tuner.describe()
        definition = described["TrainingJobDefinition"]
        self.assertEqual(definition["StoppingCondition"], {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 120})
        self.assertEqual(definition["RetryStrategy"], {"MaximumRetryAttempts": 3})
        self.assertTrue(definition["EnableManagedSpotTraining"])
        tags = self.session.list_tags(described["HyperParameterTuningJobArn"])
        self.assertIn({"Key": "cost", "Value": "7"}, tags)
        ended(self.client, "sdk2-settings")
        attached = HyperparameterTuner.attach("sdk2-settings", sagemaker_session=self.session)
        self.assertEqual(attached.estimator.instance_count, 2)

    @nightly_on_a_stack
    def test_other_strategies_run(self):
        numbers, values = ContinuousParameter(0.001, 1), CategoricalParameter(["0.1", "0.2", "0.3"])
        ranges = {"Bayesian": numbers, "Random": numbers, "Grid": values}
        for strategy, rate in ranges.items():
            # The SDK sends no request with Grid and without `max_jobs`.
            tuner = self.tuner(
                strategy=strategy, strategy_config=None, hyperparameter_ranges={"learning_rate": rate}, max_jobs=3,
                early_stopping_type="Auto")
            tuner.fit(job_name=strategy.lower(), wait=False)
        for strategy in ranges:
            with self.subTest(strategy):
                self.assertEqual(ended(self.client, strategy.lower())["HyperParameterTuningJobStatus"], "Completed")
        # A tuning with another strategy starts from the results of an ended one.
        warm = WarmStartConfig(WarmStartTypes.IDENTICAL_DATA_AND_ALGORITHM, parents={"random"})
        self.tuner(warm_start_config=warm).fit(job_name="warm", wait=False)
        child = ended(self.client, "warm")
        self.assertEqual(child["HyperParameterTuningJobStatus"], "Completed")
        self.assertEqual(child["WarmStartConfig"], warm.to_input_req())

    @nightly_on_a_stack
    def test_unsupported_features_are_refused_by_name(self):
        refused = self.client.exceptions.ClientError
        warm = WarmStartConfig(warm_start_type=WarmStartTypes.TRANSFER_LEARNING, parents={"unknown"})
        for name, more in [("unknown.*WarmStartConfig", {"warm_start_config": warm}), ("Autotune", {"autotune": True})]:
            with self.subTest(name), self.assertRaisesRegex(refused, f"ValidationException.*{name}"):
                self.tuner(**more).fit(job_name="refused", wait=False)

    @nightly_on_a_stack
    def test_several_estimators_are_one_tuning(self):
        several = HyperparameterTuner.create(
            {"one": self.estimator(), "two": self.estimator()}, {"one": "accuracy", "two": "accuracy"},
            {name: {"learning_rate": ContinuousParameter(0.1, 1)} for name in ("one", "two")},
            {name: [{"Name": "accuracy", "Regex": REGEX}] for name in ("one", "two")}, max_jobs=4)
        several.fit({}, "several", include_cls_metadata={}, wait=False)
        described = ended(self.client, "several")
        self.assertEqual(described["HyperParameterTuningJobStatus"], "Completed")
        self.assertEqual([one["DefinitionName"] for one in described["TrainingJobDefinitions"]], ["one", "two"])
        jobs = self.client.list_training_jobs_for_hyper_parameter_tuning_job(HyperParameterTuningJobName="several")
        names = [job["TrainingJobDefinitionName"] for job in jobs["TrainingJobSummaries"]]
        self.assertEqual(sorted(names), ["one", "one", "two", "two"])
        self.assertIn(described["BestTrainingJob"]["TrainingJobDefinitionName"], names)

    @nightly_on_a_stack
    def test_other_operations_name_the_reason(self):
        for call in [lambda: self.client.create_training_job(
                TrainingJobName="x", AlgorithmSpecification={"TrainingInputMode": "File"}, RoleArn=ROLE,
                OutputDataConfig={"S3OutputPath": "s3://b/o"}, StoppingCondition={}), self.client.list_endpoints]:
            with self.assertRaisesRegex(self.client.exceptions.ClientError, "UnknownOperationException"):
                call()

    @nightly_on_a_stack
    def test_the_arguments_of_a_tuning_step_are_accepted(self):
        session = PipelineSession(boto3.Session(), default_bucket="bucket")
        tuner = self.tuner(self.estimator(session), tags=hyperband.Controller(MaxDivergedEpochs=2).tags())
        step = TuningStep("Tune", step_args=tuner.fit())
        definition = Pipeline("pipeline", steps=[step], sagemaker_session=session)
        self.assertIn('"Type": "Tuning"', definition.definition())
        # The pipeline's service names the tuning itself.
        self.client.create_hyper_parameter_tuning_job(HyperParameterTuningJobName="step", **step.arguments)
        self.assertEqual(ended(self.client, "step")["HyperParameterTuningJobStatus"], "Completed")


if __name__ == "__main__":
    unittest.main()
