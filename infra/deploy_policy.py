#!/usr/bin/env python3
"""Writes the IAM policies of a role that deploys one stack with `sam deploy`, and has no other permissions.

    deploy_policy.py --stack-name hyperband-prod --account 111122223333 --region eu-west-1

Replaces the placeholders of deploy-policy.json, which lies beside this script. Writes deploy-STACK-1.json and so on: a managed
policy has at most 6,144 characters. Their names must not begin with the stack's name, since the role may change such policies.
Needs only Python 3.11+.
"""

import argparse
import json
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "deploy-policy.json"
# IAM counts no whitespace.
LIMIT = 6144
OF_SAM = "aws-sam-cli-managed-default-samclisourcebucket-*"


def size(document):
    return len(json.dumps(document, separators=(",", ":")))


def filled(node, values):
    """Returns the node with values for its placeholders, or None if a placeholder in it has no value."""
    if isinstance(node, str):
        names = re.findall(r"\$\{(\w+)\}", node)
        if any(values[name] is None for name in names):
            return None
        return re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], node)
    if isinstance(node, list):
        parts = [filled(part, values) for part in node]
        return None if None in parts else parts
    parts = {key: filled(part, values) for key, part in node.items()}
    return None if None in parts.values() else parts


def statements(source, values):
    """Returns the statements with values. An option that is not given removes its condition, or the statement of its resource."""
    for statement in source:
        conditions = {operator: filled(keys, values) for operator, keys in statement.get("Condition", {}).items()}
        conditions = {operator: keys for operator, keys in conditions.items() if keys is not None}
        result = {key: filled(part, values) for key, part in statement.items() if key != "Condition"}
        if result["Resource"] is not None:
            yield result | ({"Condition": conditions} if conditions else {})


def documents(source, values):
    """Returns the policies: as few as the maximum size allows, with the statements in their order."""
    result = []
    for statement in statements(source, values):
        longer = {"Version": "2012-10-17", "Statement": (result[-1]["Statement"] if result else []) + [statement]}
        if result and size(longer) <= LIMIT:
            result[-1] = longer
        else:
            result.append({"Version": "2012-10-17", "Statement": [statement]})
    return result


def of_form(pattern, example):
    def check(text):
        if not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(f"invalid value {text!r}: expected a value such as {example}")
        return text
    return check


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--stack-name", required=True, type=of_form(r"[A-Za-z][A-Za-z0-9-]*", "hyperband-prod"))
    parser.add_argument("--account", required=True, type=of_form(r"[0-9]{12}", "111122223333"))
    parser.add_argument("--region", required=True, type=of_form(r"[a-z0-9-]+", "eu-west-1"))
    parser.add_argument("--partition", default="aws", type=of_form(r"aws[a-z-]*", "aws-us-gov"))
    parser.add_argument("--bucket", default=OF_SAM, type=of_form(r"[a-z0-9.*-]+", "my-artifacts"),
                        help="bucket for SAM's artifacts, of the same account (default: the bucket of resolve_s3)")
    parser.add_argument("--permissions-boundary", type=of_form(r"arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+",
                                                               "arn:aws:iam::111122223333:policy/boundary"),
                        help="ARN that every role of the stack must have as its boundary (PermissionsBoundaryArn)")
    parser.add_argument("--role-path", default="/", type=of_form(r"/([\w+=,.@-]+/)*", "/teams/ml/"),
                        help="path of the stack's roles and managed policies (RolePath)")
    parser.add_argument("--kms-key", type=of_form(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[\w-]+",
                                                  "arn:aws:kms:eu-west-1:111122223333:key/1111"),
                        help="ARN of your key (KmsKeyArn)")
    parser.add_argument("--output", type=Path, default=Path(), help="folder for the policies (default: the current folder)")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    source = json.loads(SOURCE.read_text())
    longest = source["LongestStackName"]
    if len(options.stack_name) > longest:
        sys.exit(f"invalid --stack-name {options.stack_name!r}: expected at most {longest} characters, because CloudFormation "
                 "shortens longer names in the names of the stack's resources")
    values = {"StackName": options.stack_name, "Account": options.account, "Region": options.region,
              "Partition": options.partition, "Bucket": options.bucket, "RolePath": options.role_path,
              "PermissionsBoundary": options.permissions_boundary, "KmsKey": options.kms_key}
    for number, document in enumerate(documents(source["Statement"], values), 1):
        path = options.output / f"deploy-{options.stack_name}-{number}.json"
        path.write_text(json.dumps(document, indent=2) + "\n")
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
