"""What `infra/samconfig.toml` deploys, once a role is written into it; every optional part; a first deployment that fails.

Run by `run.sh`. The file is used as people use it: a line is put in, and `sam deploy --config-env …` is given nothing else. The
emulator takes boundaries of roles, a table's key and reserved concurrency, and forgets them: tests/stack-template looks at those.
"""

import os
import tempfile
import unittest
from pathlib import Path

from emulator import Emulator
from stack import FUNCTIONS, ROOT, TRAINING_ROLE, Stack, stage

TRAINING_LOGS = "/aws/sagemaker/TrainingJobs"
ROLE_LINE = '  # "ExecutionRoleArns=arn:aws:iam::111122223333:role/training",\n'


def settings(infra, parameters=(), without=()):
    """Writes `samconfig.toml` with the role put in, and with other parameters in both stages."""
    text = (ROOT / "infra" / "samconfig.toml").read_text()
    assert text.count(ROLE_LINE) == 2, "a line for the role in each stage"
    for line in without:
        assert line in text, line
        text = text.replace(f'  "{line}",\n', "")
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
        """Deploys a stage by the file alone; the stack, and the names of its resources."""
        stack = Stack(self.emulator, self.infra, os.environ["SAM"], f"hyperband-{stage_name}")
        environment = [] if stage_name == "dev" else ["--config-env", stage_name]
        # Nobody is there to confirm the changes.
        stack.run("deploy", *environment, "--no-confirm-changeset", "--no-progressbar")
        return stack, stack.physical()

    def api_settings(self, ids):
        found = self.client("lambda").get_function_configuration(FunctionName=ids["ApiFunction"])
        return found["Environment"]["Variables"]

    def alarms(self):
        pages = self.client("cloudwatch").get_paginator("describe_alarms").paginate()
        return [alarm for page in pages for alarm in page["MetricAlarms"]]

    def test_regression_the_file_s_own_stages_are_what_is_deployed(self):
        # An account in which a training job has run.
        self.client("logs").create_log_group(logGroupName=TRAINING_LOGS)
        settings(self.infra)
        stack, ids = self.deploy("prod")
        found = self.api_settings(ids)
        wanted = {"ALLOWED_ROLE_ARNS": TRAINING_ROLE, "LISTED_PRICES_ONLY": "true", "REQUIRE_COST_CAP": "true",
                  "REQUIRE_VPC": "false", "MONTHLY_CAP_USD": "", "STACK_NAME": "hyperband-prod"}
        self.assertEqual({name: found[name] for name in wanted}, wanted)
        table = self.client("dynamodb").describe_table(TableName=ids["Table"])["Table"]
        self.assertTrue(table["DeletionProtectionEnabled"])
        group = self.client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/hyperband-prod-api")
        self.assertEqual(group["logGroups"][0]["retentionInDays"], 90)
        self.assertEqual(len(self.alarms()), sum(name.endswith("Alarm") for name in ids))
        self.assertIn("DashboardUrl", stack.outputs())

        _, ids = self.deploy("dev")
        found = self.api_settings(ids)
        wanted |= {"LISTED_PRICES_ONLY": "false", "STACK_NAME": "hyperband-dev"}
        self.assertEqual({name: found[name] for name in wanted}, wanted, "dev, too, refuses tunings without a cap")
        self.assertEqual([name for name in ids if name.endswith("Alarm")], [])

    def test_every_optional_part_deploys(self):
        self.client("logs").create_log_group(logGroupName=TRAINING_LOGS)
        key = self.client("kms").create_key()["KeyMetadata"]["Arn"]
        topic = self.client("sns").create_topic(Name="alarms")["TopicArn"]
        boundary = self.client("iam").create_policy(
            PolicyName="boundary",
            PolicyDocument='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}',
        )["Policy"]["Arn"]
        settings(
            self.infra, without=["CreateDashboard=true"],
            parameters=[f"KmsKeyArn={key}", f"PermissionsBoundaryArn={boundary}", f"AlarmTopicArn={topic}",
                        "AlarmEmail=somebody@example.org", "RequireVpc=true", "CreateDashboard=false",
                        "MonthlyCapUsd=99.5", "AllowedInstanceTypes=ml.m5.*,ml.g5.xlarge"])
        stack, ids = self.deploy("prod")
        iam = self.client("iam")
        for logical in [name for name in ids if name.endswith("Role")]:
            with self.subTest(logical):
                attached = iam.list_attached_role_policies(RoleName=ids[logical])["AttachedPolicies"]
                wanted = [] if logical == "SweeperScheduleRole" else [ids["KeyPolicy"]]
                self.assertEqual([policy["PolicyArn"] for policy in attached], wanted)
        groups = self.client("logs").describe_log_groups()["logGroups"]
        keys = {group["logGroupName"]: group.get("kmsKeyId") for group in groups}
        self.assertIsNone(keys.pop(TRAINING_LOGS))
        self.assertEqual((set(keys.values()), len(keys)), ({key}, len(FUNCTIONS) + 1))
        self.assertNotIn("AlarmTopic", ids, "the topic that is given is used, and the address then is not")
        self.assertEqual({tuple(alarm["AlarmActions"]) for alarm in self.alarms()}, {(topic,)})
        self.assertEqual(self.client("cloudwatch").list_dashboards()["DashboardEntries"], [])
        self.assertNotIn("DashboardUrl", stack.outputs())
        found = self.api_settings(ids)
        wanted = {"REQUIRE_VPC": "true", "MONTHLY_CAP_USD": "99.5", "ALLOWED_INSTANCE_TYPES": "ml.m5.*,ml.g5.xlarge"}
        self.assertEqual({name: found[name] for name in wanted}, wanted)

    def test_regression_a_first_deployment_that_fails_is_in_no_way_of_the_next(self):
        stack = Stack(self.emulator, self.infra, os.environ["SAM"])
        # Somebody else has a bus of that name.
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
        self.assertEqual([group["logGroupName"] for group in groups], [TRAINING_LOGS], "an ordinary deletion keeps it")


if __name__ == "__main__":
    unittest.main()
