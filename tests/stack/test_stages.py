"""Tests the stages of `infra/samconfig.toml`, every optional part of the template, and a failed first deployment.

Run by `run.sh`. The tests use the file like a user: they write a role into it and run `deploy.sh --config-env …`. The emulator
ignores permissions boundaries, a table's key, a function's VPC and reserved concurrency; tests/stack-template checks these.
"""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from emulator import SECONDS, Emulator
from stack import FUNCTIONS, ROOT, TRAINING_ROLE, Stack, stage

TRAINING_LOGS = "/aws/sagemaker/TrainingJobs"
ROLE_LINE = '  # "ExecutionRoleArns=arn:aws:iam::111122223333:role/training",\n'


OVERLAYS_LINE = 'names = "dashboard"\n'


def settings(infra, parameters=(), without=(), overlays=None):
    """Writes `samconfig.toml` with the role and other parameters in both stages, and other overlays for prod."""
    text = (ROOT / "infra" / "samconfig.toml").read_text()
    assert text.count(ROLE_LINE) == 2, "each stage has a line for the role"
    for line in without:
        assert line in text, line
        text = text.replace(f'  "{line}",\n', "")
    assert text.count(OVERLAYS_LINE) == 1
    if overlays is not None:
        text = text.replace(OVERLAYS_LINE, f'names = "{overlays}"\n')
    lines = [f"ExecutionRoleArns={TRAINING_ROLE}", *parameters]
    text = text.replace(ROLE_LINE, "".join(f'  "{line}",\n' for line in lines))
    (infra / "samconfig.toml").write_text(text)


class Stages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hyperband-stages-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.emulator = Emulator(self.folder)
        self.addCleanup(self.emulator.stop)
        self.emulator.start()
        self.infra = stage(self.folder / "stage")

    def client(self, service):
        return self.emulator.client(service)

    def deploy(self, stage_name):
        """Deploys a stage with the file alone. Returns the stack and the names of its resources."""
        stack = Stack(self.emulator, self.infra, os.environ["SAM"], f"hyperband-{stage_name}")
        chosen = [] if stage_name == "dev" else ["--config-env", stage_name]
        environment = self.emulator.environment()
        environment["PATH"] = os.pathsep.join([*(str(Path(os.environ[tool]).parent) for tool in ("SAM", "AWS")), environment["PATH"]])
        done = subprocess.run(
            ["bash", "deploy.sh", *chosen, "--no-progressbar"], cwd=self.infra, env=environment, capture_output=True, text=True,
            timeout=SECONDS, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"deploy.sh failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return stack, stack.physical()

    def api_settings(self, ids):
        found = self.client("lambda").get_function_configuration(FunctionName=ids["ApiFunction"])
        return found["Environment"]["Variables"]

    def alarms(self):
        pages = self.client("cloudwatch").get_paginator("describe_alarms").paginate()
        return [alarm for page in pages for alarm in page["MetricAlarms"]]

    def test_regression_a_deployment_uses_the_parameters_of_its_stage_in_the_file(self):
        # The log group exists if a training job has run in the account.
        self.client("logs").create_log_group(logGroupName=TRAINING_LOGS)
        settings(self.infra)
        # The alarms of this stage have no target yet.
        with self.assertRaisesRegex(RuntimeError, "Set AlarmEmail or AlarmTopicArn"):
            self.deploy("prod")
        settings(self.infra, parameters=["AlarmEmail=operator@example.org"])
        stack, ids = self.deploy("prod")
        found = self.api_settings(ids)
        wanted = {"ALLOWED_ROLE_ARNS": TRAINING_ROLE, "PRICES_IN_REQUESTS": "Refused", "MAX_TUNING_COST_USD": "200",
                  "REQUIRE_COST_CAP": "true", "REQUIRE_VPC": "false", "MONTHLY_CAP_USD": "1000", "STACK_NAME": "hyperband-prod"}
        self.assertEqual({name: found[name] for name in wanted}, wanted)
        table = self.client("dynamodb").describe_table(TableName=ids["Table"])["Table"]
        self.assertTrue(table["DeletionProtectionEnabled"])
        group = self.client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/hyperband-prod-api")
        self.assertEqual(group["logGroups"][0]["retentionInDays"], 90)
        self.assertEqual(len(self.alarms()), sum(name.endswith("Alarm") for name in ids))
        outputs = stack.outputs()
        self.assertIn("DashboardUrl", outputs)
        pages = self.client("ssm").get_paginator("get_parameters_by_path").paginate(Path="/hyperband-prod")
        parameters = {one["Name"]: one["Value"] for page in pages for one in page["Parameters"]}
        self.assertEqual(parameters, {f"/hyperband-prod/{name}": outputs[name] for name in ["ApiUrl", "TableName", "EventBusArn"]})

        _, ids = self.deploy("dev")
        found = self.api_settings(ids)
        wanted |= {"PRICES_IN_REQUESTS": "NotBelowList", "MAX_TUNING_COST_USD": "", "MONTHLY_CAP_USD": "100",
                   "STACK_NAME": "hyperband-dev"}
        self.assertEqual({name: found[name] for name in wanted}, wanted, "dev also refuses tunings without a cap")
        self.assertEqual([name for name in ids if name.endswith("Alarm")], [])

    def test_every_optional_part_deploys(self):
        self.client("logs").create_log_group(logGroupName=TRAINING_LOGS)
        key = self.client("kms").create_key()["KeyMetadata"]["Arn"]
        topic, tickets = (self.client("sns").create_topic(Name=name)["TopicArn"] for name in ("alarms", "tickets"))
        boundary = self.client("iam").create_policy(
            PolicyName="boundary",
            PolicyDocument='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}',
        )["Policy"]["Arn"]
        vpc = self.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = self.client("ec2").create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        group = self.client("ec2").create_security_group(VpcId=vpc, GroupName="g", Description="g")["GroupId"]
        settings(
            self.infra, without=["MonthlyCapUsd=1000"], overlays="direct-calls kms vpc",
            parameters=[f"VpcSubnetIds={subnet}", f"VpcSecurityGroupIds={group}", f"AllowedSubnets={subnet}",
                        "RolePath=/teams/ml/", "JobTags=team=ml,stage=prod", "RequiredTags=owner",
                        f"KmsKeyArn={key}", f"PermissionsBoundaryArn={boundary}", f"AlarmTopicArn={topic}",
                        f"TicketTopicArn={tickets}",
                        "AlarmEmail=operator@example.org", "RequireVpc=true",
                        "MonthlyCapUsd=99.5", "AllowedInstanceTypes=ml.m5.*,ml.g5.xlarge"])
        stack, ids = self.deploy("prod")
        iam = self.client("iam")
        for logical in [name for name in ids if name.endswith("Role")]:
            with self.subTest(logical):
                attached = iam.list_attached_role_policies(RoleName=ids[logical])["AttachedPolicies"]
                of_all = ["KeyPolicy", "NetworkPolicy"]
                wanted = {
                    "SweeperScheduleRole": ["KeyPolicy"],
                    "ApiRole": [*of_all, "ApiPolicy"],
                    "InvokeRole": [*of_all, "ApiPolicy"],
                    "JobEventsRole": [*of_all, "IngestPolicy"],
                    "JobLogsRole": [*of_all, "IngestPolicy"],
                    "DeciderRole": [*of_all, "StreamPolicy"],
                    "ActuatorRole": [*of_all, "StreamPolicy", "TrainingPolicy", "HandOverPolicy"],
                    "SweeperRole": [*of_all, "TrainingPolicy"],
                }[logical]
                self.assertEqual({policy["PolicyArn"] for policy in attached}, {ids[name] for name in wanted})
                self.assertEqual(iam.get_role(RoleName=ids[logical])["Role"]["Path"], "/teams/ml/")
        queue = self.client("sqs").get_queue_attributes(QueueUrl=ids["DeliveryFailures"], AttributeNames=["KmsMasterKeyId"])
        self.assertEqual(queue["Attributes"], {"KmsMasterKeyId": key})
        groups = self.client("logs").describe_log_groups()["logGroups"]
        keys = {group["logGroupName"]: group.get("kmsKeyId") for group in groups}
        self.assertIsNone(keys.pop(TRAINING_LOGS))
        # Two functions have the program of the API, and its access log is a group too.
        self.assertEqual((set(keys.values()), len(keys)), ({key}, len(FUNCTIONS) + 2))
        self.assertNotIn("AlarmTopic", ids, "an existing topic replaces the address")
        targets = {(alarm["AlarmDescription"].split(":")[0], *alarm["AlarmActions"]) for alarm in self.alarms()}
        self.assertEqual(targets, {("Page", topic), ("Ticket", tickets)})
        self.assertEqual(self.client("cloudwatch").list_dashboards()["DashboardEntries"], [])
        self.assertNotIn("DashboardUrl", stack.outputs())
        found = self.api_settings(ids)
        wanted = {"REQUIRE_VPC": "true", "MONTHLY_CAP_USD": "99.5", "ALLOWED_INSTANCE_TYPES": "ml.m5.*,ml.g5.xlarge",
                  "ALLOWED_SUBNETS": subnet, "JOB_TAGS": "team=ml,stage=prod", "REQUIRED_TAGS": "owner"}
        self.assertEqual({name: found[name] for name in wanted}, wanted)

    def test_regression_a_failed_first_deployment_does_not_block_the_next(self):
        stack = Stack(self.emulator, self.infra, os.environ["SAM"])
        # A bus with this name exists, so the deployment fails.
        self.client("events").create_event_bus(Name=f"{stack.name}-tunings")
        with self.assertRaises(RuntimeError):
            stack.deploy()
        groups = self.client("logs").describe_log_groups()["logGroups"]
        self.assertEqual([group["logGroupName"] for group in groups], [])
        self.client("events").delete_event_bus(Name=f"{stack.name}-tunings")
        stack.delete()
        stack.deploy()
        self.assertIn("TrainingLogGroup", stack.physical())
        stack.delete()
        groups = self.client("logs").describe_log_groups()["logGroups"]
        self.assertEqual([group["logGroupName"] for group in groups], [TRAINING_LOGS], "a deletion keeps the training logs")


if __name__ == "__main__":
    unittest.main()
