"""Tests boto3 with `hyperband serve` or a stack: every operation, paginators, errors.

Compares each response with botocore's service model.
"""

import contextlib
import unittest

from serve import REGEX, ROLE, Server, check_kept, ended, serve, until

import boto3
import hyperband
import shapes
from botocore.exceptions import ClientError

# Every operation that docs/STACK.md lists, except Delete, which requires two minutes after the end of a tuning.
OPERATIONS = {
    "CreateHyperParameterTuningJob", "DescribeHyperParameterTuningJob", "ListHyperParameterTuningJobs", "StopHyperParameterTuningJob",
    "ListTrainingJobsForHyperParameterTuningJob", "DescribeTrainingJob", "StopTrainingJob", "ListTags", "AddTags",
}


def request(name, **hyperparameters):
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband", "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}},
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "accuracy"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 6, "MaxParallelTrainingJobs": 4},
            "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "learning_rate", "MinValue": "0.001", "MaxValue": "1"}]},
        },
        "TrainingJobDefinition": {
            "StaticHyperParameters": {"epochs": "9"} | hyperparameters,
            "AlgorithmSpecification": {
                "TrainingImage": "image", "TrainingInputMode": "File", "MetricDefinitions": [{"Name": "accuracy", "Regex": REGEX}]},
            "RoleArn": ROLE, "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
            "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        },
    }


class Boto3(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serve()
        cls.addClassCleanup(cls.server.end)
        cls.client = hyperband.client(cls.server.endpoint, "eu-west-1")
        cls.addClassCleanup(cls.client.close)
        cls.seen = set()
        shapes.watch(cls.client, cls.seen)

    def submit(self, name, tags=(), **hyperparameters):
        tags = [{"Key": "team", "Value": "vision"}, *tags]
        if "endless" in hyperparameters:
            # Its training jobs would keep their slots.
            self.addCleanup(self.stop_if_running, name)
        return self.client.create_hyper_parameter_tuning_job(**request(name, **hyperparameters), Tags=tags)["HyperParameterTuningJobArn"]

    def described(self, name):
        return self.client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)

    def stop(self, name):
        self.client.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)

    def stop_if_running(self, name):
        with contextlib.suppress(ClientError):
            self.stop(name)

    def jobs(self, name, size=100, **more):
        paginator = self.client.get_paginator("list_training_jobs_for_hyper_parameter_tuning_job")
        pages = paginator.paginate(HyperParameterTuningJobName=name, PaginationConfig={"PageSize": size}, **more)
        return [job for page in pages for job in page["TrainingJobSummaries"]]

    def running(self, name):
        """Returns the name of a running training job."""
        until(lambda: bool(self.jobs(name, StatusEquals="InProgress")), (True,))
        return self.jobs(name, StatusEquals="InProgress")[0]["TrainingJobName"]

    def refused(self, call, **members):
        """Returns the code and the message of the error."""
        with self.assertRaises(ClientError) as caught:
            call(**members)
        answer = caught.exception.response
        self.assertEqual(answer["ResponseMetadata"]["HTTPStatusCode"], 400)
        self.assertTrue(answer["ResponseMetadata"]["RequestId"])
        return answer["Error"]["Code"], answer["Error"]["Message"]

    def test_a_tuning_is_created_described_and_listed(self):
        arn = self.submit("whole", hyperband.Controller(MaxDivergedEpochs=2).tags())
        self.assertRegex(arn, "^arn:aws:sagemaker:[a-z0-9-]+:[0-9]{12}:hyper-parameter-tuning-job/whole$")
        seen = ended(self.client, "whole")
        self.assertEqual((seen["HyperParameterTuningJobStatus"], seen["HyperParameterTuningJobArn"]), ("Completed", arn))
        self.assertLess(seen["CreationTime"], seen["HyperParameterTuningEndTime"])
        self.assertNotIn("Controller", seen)
        self.assertEqual(self.server.controller("whole")["MaxDivergedEpochs"], 2)

        jobs = self.jobs("whole")
        self.assertEqual(len(jobs), 6)
        best = seen["BestTrainingJob"]
        values = [job["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] for job in jobs]
        self.assertEqual(max(values), best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"])
        names = [job["TrainingJobName"] for job in jobs]
        # Every job is on exactly one page.
        self.assertEqual([job["TrainingJobName"] for job in self.jobs("whole", 4)], names)
        by_value = self.jobs("whole", 1, SortBy="FinalObjectiveMetricValue", SortOrder="Descending")
        self.assertEqual([job["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] for job in by_value], sorted(values, reverse=True))

        job = self.client.describe_training_job(TrainingJobName=best["TrainingJobName"])
        self.assertEqual(job["TuningJobArn"], arn)
        self.assertEqual(job["HyperParameters"]["learning_rate"], best["TunedHyperParameters"]["learning_rate"])
        self.assertEqual(job["TrainingJobStatus"], best["TrainingJobStatus"])
        metrics = {metric["MetricName"]: metric["Value"] for metric in job["FinalMetricDataList"]}
        # The model has 32 bits for the value of this list.
        self.assertAlmostEqual(metrics["accuracy"], best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"], places=6)

    def test_tunings_are_listed_by_pages_and_filters(self):
        names = [f"page-{number}" for number in range(5)]
        for name in names:
            self.submit(name)
        for name in names:
            ended(self.client, name)
        paginator = self.client.get_paginator("list_hyper_parameter_tuning_jobs")

        def listed(size, **filters):
            pages = paginator.paginate(NameContains="page-", PaginationConfig={"PageSize": size}, **filters)
            return [one["HyperParameterTuningJobName"] for page in pages for one in page["HyperParameterTuningJobSummaries"]]

        self.assertEqual(listed(2, SortBy="Name", SortOrder="Ascending"), names)
        self.assertEqual(listed(100, SortBy="Name", SortOrder="Descending"), names[::-1])
        self.assertEqual(sorted(listed(1, StatusEquals="Completed")), names)
        self.assertEqual(listed(3, StatusEquals="InProgress"), [])
        created = self.described("page-2")["CreationTime"]
        self.assertEqual(listed(5, CreationTimeAfter=created, SortBy="CreationTime", SortOrder="Ascending")[-2:], names[3:])

    def test_a_training_job_and_then_its_tuning_are_stopped(self):
        self.submit("endless", endless="1")
        job = self.running("endless")
        self.client.stop_training_job(TrainingJobName=job)
        until(lambda: self.client.describe_training_job(TrainingJobName=job)["TrainingJobStatus"], ("Stopped",))
        self.assertEqual(self.described("endless")["HyperParameterTuningJobStatus"], "InProgress")
        self.assertEqual(self.refused(self.client.stop_training_job, TrainingJobName=job)[0], "ValidationException")
        self.stop("endless")
        seen = ended(self.client, "endless")
        self.assertEqual(seen["HyperParameterTuningJobStatus"], "Stopped")
        self.assertEqual({one["TrainingJobStatus"] for one in self.jobs("endless")}, {"Stopped"})

    def test_tags_are_added_and_listed(self):
        arn = self.submit("tagged", endless="1")
        self.client.add_tags(ResourceArn=arn, Tags=[{"Key": "cost", "Value": "7"}])

        def tags(resource):
            pages = self.client.get_paginator("list_tags").paginate(ResourceArn=resource)
            return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}

        self.assertEqual(tags(arn), {"team": "vision", "cost": "7"})
        job = self.client.describe_training_job(TrainingJobName=self.running("tagged"))["TrainingJobArn"]
        self.assertEqual(tags(job)["team"], "vision")
        for resource, key in [(arn, "hyperband:MaxCostUsd"), (job, "cost")]:
            code, message = self.refused(self.client.add_tags, ResourceArn=resource, Tags=[{"Key": key, "Value": "7"}])
            self.assertEqual(code, "ValidationException", message)

    def test_a_failed_tuning_has_its_reason(self):
        self.submit("failed", broken="1")
        seen = ended(self.client, "failed")
        self.assertEqual(seen["HyperParameterTuningJobStatus"], "Failed")
        self.assertIn("AlgorithmError", seen["FailureReason"])
        self.assertEqual(seen["TrainingJobStatusCounters"]["NonRetryableError"], len(self.jobs("failed", StatusEquals="Failed")))

    def test_modelled_errors_are_exceptions_of_the_client(self):
        exceptions = self.client.exceptions
        self.submit("modelled")
        with self.assertRaisesRegex(exceptions.ResourceInUse, "modelled"):
            self.submit("modelled")
        missing = {"HyperParameterTuningJobName": "missing"}
        for call, members in [
                (self.client.describe_hyper_parameter_tuning_job, missing), (self.client.stop_hyper_parameter_tuning_job, missing),
                (self.client.list_training_jobs_for_hyper_parameter_tuning_job, missing),
                (self.client.describe_training_job, {"TrainingJobName": "missing"}),
                (self.client.stop_training_job, {"TrainingJobName": "missing"}),
                (self.client.list_tags, {"ResourceArn": "arn:aws:sagemaker:eu-west-1:000000000000:hyper-parameter-tuning-job/missing"})]:
            with self.subTest(call.__name__), self.assertRaises(exceptions.ResourceNotFound):
                call(**members)

    def test_invalid_requests_name_the_member(self):
        wrong = request("wrong")
        wrong["HyperParameterTuningJobConfig"]["Strategy"] = "Evolution"
        code, message = self.refused(self.client.create_hyper_parameter_tuning_job, **wrong)
        self.assertEqual(code, "ValidationException")
        self.assertIn("Strategy", message)
        tag = [{"Key": "hyperband:MaxCost", "Value": "20"}]
        code, message = self.refused(self.client.create_hyper_parameter_tuning_job, **request("wrong"), Tags=tag)
        self.assertEqual(code, "ValidationException")
        self.assertIn("MaxCostUsd", message)
        for members in [{"SortBy": "Size"}, {"MaxResults": 101}, {"NextToken": "invalid"}]:
            code, message = self.refused(self.client.list_hyper_parameter_tuning_jobs, **members)
            self.assertEqual(code, "ValidationException", message)
        with self.assertRaises(self.client.exceptions.ResourceNotFound):
            self.described("wrong")

    def test_a_running_or_just_ended_tuning_is_not_deleted(self):
        self.submit("kept", endless="1")
        delete = self.client.delete_hyper_parameter_tuning_job
        code, message = self.refused(delete, HyperParameterTuningJobName="kept")
        self.assertEqual(code, "ValidationException")
        self.assertIn("is in status InProgress: stop it first", message)
        self.stop("kept")
        ended(self.client, "kept")
        check_kept(self.client, "kept", lambda: delete(HyperParameterTuningJobName="kept"))
        # As in Automatic Model Tuning, deletion of a missing tuning job is an error.
        with self.assertRaises(self.client.exceptions.ResourceNotFound):
            delete(HyperParameterTuningJobName="missing")

    def test_other_operations_are_refused_with_the_reason(self):
        code, message = self.refused(self.client.list_endpoints)
        self.assertEqual((code, "SageMaker's own endpoint" in message), ("UnknownOperationException", True))
        code, message = self.refused(self.client.search, Resource="TrainingJob")
        self.assertEqual((code, "experiments" in message), ("ValidationException", True))

    def test_an_unmodified_client_works_through_a_proxy(self):
        proxy = Server("proxy", "--endpoint", self.server.endpoint)
        self.addCleanup(proxy.end)
        client = boto3.client("sagemaker", endpoint_url=proxy.endpoint)
        self.addCleanup(client.close)
        shapes.watch(client, set())
        client.create_hyper_parameter_tuning_job(**request("through"))
        self.assertEqual(ended(client, "through")["HyperParameterTuningJobStatus"], "Completed")
        with self.assertRaises(client.exceptions.ResourceInUse):
            client.create_hyper_parameter_tuning_job(**request("through"))

    def test_z_every_operation_was_compared_with_the_model(self):
        # Runs last: unittest sorts the tests by their names.
        self.assertEqual(self.seen, OPERATIONS)


if __name__ == "__main__":
    unittest.main()
