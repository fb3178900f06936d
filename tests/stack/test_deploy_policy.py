"""Tests the policies of a deployment role: they cover every resource of the template and its overlays, and allow nothing elsewhere.

`infra/check.sh` runs this file with the tools of its checks. No test calls AWS.
"""

import contextlib
import fnmatch
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "infra"))
import check_policies  # noqa: E402
import deploy_policy  # noqa: E402
import make_deploy_policy as generator  # noqa: E402

NAMES = ["--account", "111122223333", "--region", "ap-southeast-1"]
BOUNDARY = "arn:aws:iam::111122223333:policy/boundary"
KEY = "arn:aws:kms:ap-southeast-1:111122223333:key/11111111-2222-3333-4444-555555555555"
OPTIONS = ["--permissions-boundary", BOUNDARY, "--kms-key", KEY]

# The ARN of a resource by its type, and the property with a name that the template sets. Written independently of ROWS.
PLACE = "ap-southeast-1:111122223333"
GATEWAY = ("arn:aws:apigateway:ap-southeast-1::/apis/a1b2c3d4/x", None)
FORMS = {
    "ApiGatewayV2::Api": ("arn:aws:apigateway:ap-southeast-1::/apis/a1b2c3d4", None),
    "ApiGatewayV2::Integration": GATEWAY,
    "ApiGatewayV2::Route": GATEWAY,
    "ApiGatewayV2::Stage": GATEWAY,
    "Budgets::Budget": ("arn:aws:budgets::111122223333:budget/NAME", None),
    "CloudWatch::Alarm": (f"arn:aws:cloudwatch:{PLACE}:alarm:NAME", "AlarmName"),
    "CloudWatch::Dashboard": ("arn:aws:cloudwatch::111122223333:dashboard/NAME", "DashboardName"),
    "DynamoDB::Table": (f"arn:aws:dynamodb:{PLACE}:table/NAME", "TableName"),
    "Events::EventBus": (f"arn:aws:events:{PLACE}:event-bus/NAME", "Name"),
    "Events::Rule": (f"arn:aws:events:{PLACE}:rule/NAME", "Name"),
    "IAM::ManagedPolicy": ("arn:aws:iam::111122223333:policy/NAME", "ManagedPolicyName"),
    "IAM::Role": ("arn:aws:iam::111122223333:role/NAME", "RoleName"),
    "Lambda::Function": (f"arn:aws:lambda:{PLACE}:function:NAME", "FunctionName"),
    "Logs::LogGroup": (f"arn:aws:logs:{PLACE}:log-group:NAME", "LogGroupName"),
    "SNS::Topic": (f"arn:aws:sns:{PLACE}:NAME", "TopicName"),
    "SQS::Queue": (f"arn:aws:sqs:{PLACE}:NAME", "QueueName"),
    "SSM::Parameter": (f"arn:aws:ssm:{PLACE}:parameterNAME", "Name"),
    "SecretsManager::Secret": (f"arn:aws:secretsmanager:{PLACE}:secret:NAME-AbCdEf", "Name"),
    "Scheduler::Schedule": (f"arn:aws:scheduler:{PLACE}:schedule/default/NAME", "Name"),
}
# Types that belong to a resource of another type.
PARTS = {"IAM::RolePolicy", "Lambda::EventInvokeConfig", "Lambda::EventSourceMapping", "Lambda::Permission",
         "Logs::SubscriptionFilter", "SQS::QueuePolicy"}
# Actions that are newer than parliament's list, and the ARN of SAM's transform, whose account is `aws`.
ACCEPTED = ["apigateway:TagResource", "apigateway:UntagResource", "lambda:GetFunctionScalingConfig", ":aws:transform/Serverless-"]
CREATE = {
    "ApiGatewayV2": "apigateway:POST", "Alarm": "cloudwatch:PutMetricAlarm", "Dashboard": "cloudwatch:PutDashboard",
    "Budget": "budgets:ModifyBudget",
    "Table": "dynamodb:CreateTable", "EventBus": "events:CreateEventBus", "Rule": "events:PutRule",
    "ManagedPolicy": "iam:CreatePolicy", "Role": "iam:CreateRole", "Function": "lambda:CreateFunction",
    "LogGroup": "logs:CreateLogGroup", "Topic": "sns:CreateTopic", "Queue": "sqs:CreateQueue",
    "Schedule": "scheduler:CreateSchedule", "Secret": "secretsmanager:CreateSecret", "Parameter": "ssm:PutParameter",
}


def template():
    return generator.whole_template()


def written(*arguments):
    """Returns the policies that the script writes."""
    with tempfile.TemporaryDirectory(prefix="hyperband-deploy-") as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        deploy_policy.main([*arguments, "--output", folder])
        return [json.loads(Path(path).read_text()) for path in printed.getvalue().split()]


def arn_of_file(stack):
    """Returns the ARN of a policy with the name of the file that the script writes."""
    with tempfile.TemporaryDirectory(prefix="hyperband-deploy-") as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        deploy_policy.main(["--stack-name", stack, *NAMES, "--output", folder])
        return f"arn:aws:iam::111122223333:policy/{Path(printed.getvalue().split()[0]).stem}"


def granted(policies, action):
    """Returns the statements that allow an action."""
    statements = [statement for policy in policies for statement in policy["Statement"]]
    return [statement for statement in statements if action in statement["Action"]]


def arn(kind, logical, resource, stack):
    form, named = FORMS[kind]
    name = resource.get("Properties", {}).get(named)
    name = check_policies.Filled(template()).value(name) if name else f"{stack}-{logical}-1A2B3C4D5E6F7"
    return form.replace("NAME", name)


class DeployPolicy(unittest.TestCase):
    def test_the_file_is_up_to_date(self):
        self.assertEqual(json.loads(generator.RESULT.read_text()), generator.generate())
        generator.main(["--check"])

    def test_every_type_of_the_template_has_a_row(self):
        types = generator.by_type(template())
        self.assertLessEqual({kind.removeprefix("AWS::") for kind in types}, set(FORMS) | PARTS)
        for kind in types:
            rows = {other: row for other, row in generator.ROWS.items() if other != kind}
            with mock.patch.object(generator, "ROWS", rows), self.assertRaisesRegex(ValueError, kind):
                generator.generate()

    def test_a_function_with_further_resources_is_refused(self):
        given = template()
        given["Resources"]["ApiFunction"]["Properties"]["Events"] = {}
        with self.assertRaisesRegex(ValueError, "ApiFunction"):
            generator.by_type(given)

    def test_every_resource_may_be_created_and_no_resource_of_another_stack(self):
        # The template's names refer to a stack named `stack`.
        policies = written("--stack-name", "stack", *NAMES)
        for kind, resources in generator.by_type(template()).items():
            short = kind.removeprefix("AWS::")
            if short in PARTS:
                continue
            service, last = short.split("::")
            action = CREATE.get(service) or CREATE[last]
            patterns = [pattern for statement in granted(policies, action) for pattern in statement["Resource"]]
            for logical, resource in resources.items():
                ours = arn(short, logical, resource, "stack")
                self.assertTrue(any(fnmatch.fnmatchcase(ours, pattern) for pattern in patterns), f"{action} on {ours}")
            others = FORMS[short][0].replace("NAME", "other-Resource-1A2B3C4D5E6F7")
            # APIs have random IDs.
            if service != "ApiGatewayV2":
                self.assertFalse(any(fnmatch.fnmatchcase(others, pattern) for pattern in patterns), f"{action} on {others}")

    def test_no_statement_has_a_wildcard_action_or_a_placeholder(self):
        for policy in written("--stack-name", "hyperband-prod", *NAMES, *OPTIONS):
            self.assertNotIn("${", json.dumps(policy))
            for statement in policy["Statement"]:
                self.assertTrue(all("*" not in action for action in statement["Action"]), statement)
        scoped = {"cloudformation", "dynamodb", "events", "iam", "kms", "s3", "scheduler", "sqs"}
        for policy in written("--stack-name", "hyperband-prod", *NAMES, *OPTIONS):
            for statement in policy["Statement"]:
                services = {action.split(":")[0] for action in statement["Action"]}
                self.assertFalse("*" in statement["Resource"] and services & scoped, statement)

    def test_the_linter_of_policies_finds_nothing(self):
        for policy in written("--stack-name", "hyperband-prod", *NAMES, *OPTIONS):
            found = list(check_policies.findings("deployment", policy))
            self.assertEqual([line for line in found if not any(part in line for part in ACCEPTED)], [])

    def test_the_longest_names_fit_two_managed_policies(self):
        longest = "h" * json.loads(generator.RESULT.read_text())["LongestStackName"]
        policies = written("--stack-name", longest, *NAMES, *OPTIONS, "--partition", "aws-us-gov", "--bucket", "b" * 63,
                           "--role-path", "/teams/machine-learning/")
        self.assertEqual(len(policies), 2)
        for policy in policies:
            self.assertLessEqual(len("".join(json.dumps(policy, separators=(",", ":")).split())), 6144)

    def test_a_stack_name_that_cloudformation_shortens_is_refused(self):
        longest = json.loads(generator.RESULT.read_text())["LongestStackName"]
        # With this limit and a suffix of 14 characters, the longest name of a role has 64 characters.
        roles = generator.by_type(template())["AWS::IAM::Role"]
        self.assertEqual(longest + 1 + max(map(len, roles)) + 14, 64)
        with self.assertRaisesRegex(SystemExit, f"at most {longest} characters"):
            written("--stack-name", "h" * (longest + 1), *NAMES)

    def test_a_boundary_is_a_condition_of_every_change_of_a_role(self):
        changes = sorted(generator.BOUND) + generator.ATTACH
        bound = written("--stack-name", "hyperband-prod", *NAMES, *OPTIONS)
        for action in changes:
            for statement in granted(bound, action):
                self.assertEqual(statement["Condition"]["ArnEquals"]["iam:PermissionsBoundary"], BOUNDARY)
            self.assertTrue(granted(bound, action), action)
        self.assertNotIn("iam:PermissionsBoundary", json.dumps(written("--stack-name", "hyperband-prod", *NAMES)))
        self.assertEqual(granted(bound, "iam:DeleteRolePermissionsBoundary"), [])

    def test_roles_get_policies_of_the_stack_only_and_serve_two_services(self):
        policies = written("--stack-name", "hyperband-prod", *NAMES)
        [attach] = granted(policies, "iam:AttachRolePolicy")
        own = {"iam:PolicyARN": ["arn:aws:iam::111122223333:policy/hyperband-prod-*"]}
        self.assertEqual(attach["Condition"], {"ArnLike": own})
        [passed] = granted(policies, "iam:PassRole")
        services = {"iam:PassedToService": ["lambda.amazonaws.com", "scheduler.amazonaws.com"]}
        self.assertEqual(passed["Condition"], {"StringEquals": services})
        self.assertEqual(passed["Resource"], ["arn:aws:iam::111122223333:role/hyperband-prod-*"])

    def test_a_deployment_reads_no_rows_and_deletes_neither_the_table_nor_the_training_logs(self):
        policies = written("--stack-name", "hyperband-prod", *NAMES, *OPTIONS)
        for action in ["GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "DeleteTable"]:
            self.assertEqual(granted(policies, f"dynamodb:{action}"), [], action)
        for action in ["logs:DeleteLogGroup", "logs:PutRetentionPolicy"]:
            for statement in granted(policies, action):
                self.assertNotIn("TrainingJobs", json.dumps(statement))

    def test_a_path_bounds_roles_and_managed_policies(self):
        policies = written("--stack-name", "hyperband-prod", *NAMES, "--role-path", "/teams/ml/")
        for action, kind in [("iam:CreateRole", "role"), ("iam:PassRole", "role"), ("iam:CreatePolicy", "policy")]:
            [statement] = granted(policies, action)
            self.assertEqual(statement["Resource"], [f"arn:aws:iam::111122223333:{kind}/teams/ml/hyperband-prod-*"])

    def test_a_deployment_cannot_change_its_own_policies(self):
        policies = written("--stack-name", "hyperband-prod", *NAMES)
        self.assertEqual(len(policies), 2)
        for action in ["iam:CreatePolicyVersion", "iam:DeletePolicy"]:
            for statement in granted(policies, action):
                for pattern in statement["Resource"]:
                    self.assertFalse(fnmatch.fnmatchcase(arn_of_file("hyperband-prod"), pattern), pattern)

    def test_without_a_key_no_statement_names_kms(self):
        self.assertNotIn("kms:", json.dumps(written("--stack-name", "hyperband-prod", *NAMES)))
        [statement] = granted(written("--stack-name", "hyperband-prod", *NAMES, *OPTIONS), "kms:CreateGrant")
        self.assertEqual(statement["Resource"], [KEY])


if __name__ == "__main__":
    unittest.main()
