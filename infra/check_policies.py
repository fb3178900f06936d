"""Checks every IAM policy of templates with the linter parliament: actions, resources and condition keys exist and match.

    check_policies.py TEMPLATE…                     checks the policies
    check_policies.py --settings SAMCONFIG TEMPLATE checks samconfig.toml: names of overlays, names and values of parameters

Assumes that cfn-lint accepts the template. Placeholders replace values that only a deployment knows, such as ARNs. Every finding
is an error, except those in ACCEPTED, each with its reason.
"""

import json
import re
import sys
import tomllib

import cfnlint.decode
import overlay
from parliament import analyze_policy_string

FORMS = {
    "AWS::DynamoDB::Table": "arn:aws:dynamodb:us-east-1:111122223333:table/t",
    "AWS::SQS::Queue": "arn:aws:sqs:us-east-1:111122223333:q",
    "AWS::Logs::LogGroup": "arn:aws:logs:us-east-1:111122223333:log-group:g:*",
    "AWS::Events::EventBus": "arn:aws:events:us-east-1:111122223333:event-bus/b",
    "AWS::Events::ApiDestination": "arn:aws:events:us-east-1:111122223333:api-destination/d",
    "AWS::Serverless::Function": "arn:aws:lambda:us-east-1:111122223333:function:f",
    "AWS::Serverless::StateMachine": "arn:aws:states:us-east-1:111122223333:stateMachine:m",
}
PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "111122223333", "AWS::StackName": "stack"}
VALUES = {
    "ExecutionRoleArns": "arn:aws:iam::111122223333:role/training",
    "CentralBusArn": "arn:aws:events:us-east-1:111122223333:event-bus/b",
    "AllowedInstanceTypes": "ml.m5.*,ml.g5.xlarge",
    "KmsKeyArn": "arn:aws:kms:us-east-1:111122223333:key/11111111-2222-3333-4444-555555555555",
}
# (finding, part of its detail) -> why it is acceptable.
ACCEPTED = {
    ("RESOURCE_STAR", "ec2:CreateNetworkInterface"): "for calls of Lambda itself, as in AWSLambdaVPCAccessExecutionRole",
    ("RESOURCE_MISMATCH", "dynamodb:ListStreams"): "the streams of the table are enough, as in AWS SAM's policy for stream readers",
}


class Filled:
    """Resolves intrinsic functions to placeholders of deployed values."""

    def __init__(self, template):
        self.resources = template["Resources"]

    def value(self, node):
        if isinstance(node, list):
            return [self.value(part) for part in node]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            (key, argument), = node.items()
            if key == "Ref":
                return self.reference(argument)
            if key == "Fn::GetAtt":
                return self.attribute(argument if isinstance(argument, list) else argument.split(".", 1))
            if key == "Fn::Sub":
                text = argument if isinstance(argument, str) else argument[0]
                return re.sub(r"\$\{([^}]+)\}", lambda found: str(self.named(found[1])), text)
            if key == "Fn::If":
                return self.value(argument[1])
            if key == "Fn::Split":
                return self.value(argument[1]).split(argument[0])
        return {key: self.value(part) for key, part in node.items()}

    def named(self, name):
        return self.attribute(name.split(".", 1)) if "." in name else self.reference(name)

    def reference(self, name):
        return PSEUDO.get(name) or VALUES.get(name) or "reference"

    def attribute(self, path):
        logical, attribute = path
        form = FORMS[self.resources[logical]["Type"]]
        return f"{form}/stream/2026-01-01" if attribute == "StreamArn" else form


def policies(template):
    filled = Filled(template)
    for logical, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        for policy in properties.get("Policies", []) if resource["Type"] == "AWS::IAM::Role" else []:
            yield f"{logical}.{policy['PolicyName']}", filled.value(policy["PolicyDocument"])
        if resource["Type"] == "AWS::IAM::ManagedPolicy":
            yield logical, filled.value(properties["PolicyDocument"])
        if resource["Type"] == "AWS::Events::EventBus" and "Policy" in properties:
            yield logical, filled.value(properties["Policy"])


def findings(name, document):
    for finding in analyze_policy_string(json.dumps(document), name).findings:
        detail = f"{finding.detail} {finding.location}"
        if not any(finding.issue == issue and part in detail for issue, part in ACCEPTED):
            yield f"{name}: {finding.issue}: {detail}"


def check_policies(template):
    found, count = [], 0
    for name, document in policies(template):
        count += 1
        found += findings(name, document)
    # A self-test: a policy with a nonexistent action.
    wrong = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sqs:NoSuchAction", "Resource": "*"}]}
    if not list(findings("wrong", wrong)):
        found.append("parliament accepts an action that does not exist")
    return count, found


def check_settings(path, template):
    parameters, found = template["Parameters"], []
    with open(path, "rb") as file:
        settings = tomllib.load(file)
    stages = {stage: tables["deploy"]["parameters"] for stage, tables in settings.items() if isinstance(tables, dict)}
    for stage, tables in settings.items():
        names = tables.get("overlays", {}).get("names", "").split() if isinstance(tables, dict) else []
        found += [f"{stage}: unknown overlay {name}" for name in names if name not in overlay.known()]
    for stage, deploy in stages.items():
        for name, value in (override.split("=", 1) for override in deploy["parameter_overrides"]):
            parameter = parameters.get(name)
            if parameter is None:
                found.append(f"{stage}: the template has no parameter {name}")
            elif value not in [str(allowed) for allowed in parameter.get("AllowedValues", [value])]:
                found.append(f"{stage}: invalid {name} {value!r}")
    return len(stages), found


def read(path):
    template, problems = cfnlint.decode.decode(path)
    if problems:
        raise SystemExit(f"{path} is unreadable: {problems}")
    return template


def main(arguments):
    failed = False
    settings = arguments[1] if arguments[:1] == ["--settings"] else None
    paths = arguments[2:] if settings else arguments
    if not paths:
        raise SystemExit("check_policies.py: expected the path of a template")
    for path in paths:
        count, found = check_settings(settings, read(path)) if settings else check_policies(read(path))
        failed = failed or bool(found)
        print(f"{path}:", "\n".join(found) or f"{count} {'stages' if settings else 'policies'}, no findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
