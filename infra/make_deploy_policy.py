"""Generates deploy-policy.json: the permissions that a deployment of the template needs, with any overlays, and placeholders for names.

    make_deploy_policy.py           writes deploy-policy.json
    make_deploy_policy.py --check   fails if deploy-policy.json is out of date

CloudFormation publishes, for each resource type, the actions that its handlers call. cfn-lint includes these lists. They cover
every property of a type, so DROPPED removes the actions of properties that the template does not set. `deploy_policy.py` replaces
the placeholders. check.sh calls this script, with cfn-lint and parliament installed.
"""

import json
import sys
from pathlib import Path

import cfnlint.decode
import overlay
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER
from parliament import iam_definition

FOLDER = Path(__file__).resolve().parent
RESULT = FOLDER / "deploy-policy.json"
SCHEMAS_OF = "us-east-1"

# AWS SAM translates a function with a role and without these properties to one AWS::Lambda::Function.
TRANSLATED = {"AWS::Serverless::Function": "AWS::Lambda::Function"}
MORE_RESOURCES = {"AutoPublishAlias", "Connectors", "DeploymentPreference", "EventInvokeConfig", "Events", "FunctionUrlConfig"}

# The resources of each type. CloudFormation generates names that begin with the stack's name and the logical ID. The IDs of APIs
# and event source mappings are random.
APIS = ["arn:${Partition}:apigateway:${Region}::/" + path for path in ["apis", "apis/*", "tags/*"]]
FUNCTIONS = ["arn:${Partition}:lambda:${Region}:${Account}:function:${StackName}-*"]
MAPPINGS = ["arn:${Partition}:lambda:${Region}:${Account}:event-source-mapping:*"]
QUEUES = ["arn:${Partition}:sqs:${Region}:${Account}:${StackName}-*"]
ROLES = ["arn:${Partition}:iam::${Account}:role${RolePath}${StackName}-*"]
POLICIES = ["arn:${Partition}:iam::${Account}:policy${RolePath}${StackName}-*"]
LOGS = "arn:${Partition}:logs:${Region}:${Account}:log-group:"
OWN_LOGS = [LOGS + "/aws/lambda/${StackName}-*", LOGS + "/aws/vendedlogs/${StackName}-*"]
TRAINING_LOGS = [LOGS + "/aws/sagemaker/TrainingJobs", LOGS + "/aws/sagemaker/TrainingJobs:*"]
ROWS = {
    "AWS::ApiGatewayV2::Api": APIS,
    "AWS::ApiGatewayV2::Integration": APIS,
    "AWS::ApiGatewayV2::Route": APIS,
    "AWS::ApiGatewayV2::Stage": APIS,
    "AWS::Budgets::Budget": ["arn:${Partition}:budgets::${Account}:budget/${StackName}-*"],
    "AWS::CloudWatch::Alarm": ["arn:${Partition}:cloudwatch:${Region}:${Account}:alarm:${StackName}-*"],
    "AWS::CloudWatch::Dashboard": ["arn:${Partition}:cloudwatch::${Account}:dashboard/${StackName}"],
    "AWS::DynamoDB::Table": ["arn:${Partition}:dynamodb:${Region}:${Account}:table/${StackName}-*"],
    "AWS::Events::EventBus": ["arn:${Partition}:events:${Region}:${Account}:event-bus/${StackName}-*"],
    "AWS::Events::Rule": ["arn:${Partition}:events:${Region}:${Account}:rule/${StackName}-*"],
    "AWS::IAM::ManagedPolicy": POLICIES,
    "AWS::IAM::Role": ROLES,
    "AWS::IAM::RolePolicy": ROLES,
    "AWS::Lambda::EventInvokeConfig": FUNCTIONS,
    "AWS::Lambda::EventSourceMapping": MAPPINGS,
    "AWS::Lambda::Function": FUNCTIONS,
    "AWS::Lambda::Permission": FUNCTIONS,
    "AWS::Logs::LogGroup": OWN_LOGS,
    "AWS::Logs::SubscriptionFilter": TRAINING_LOGS,
    "AWS::SNS::Topic": ["arn:${Partition}:sns:${Region}:${Account}:${StackName}-*"],
    "AWS::SQS::Queue": QUEUES,
    "AWS::SQS::QueuePolicy": QUEUES,
    "AWS::SSM::Parameter": ["arn:${Partition}:ssm:${Region}:${Account}:parameter/${StackName}/*"],
    "AWS::SecretsManager::Secret": ["arn:${Partition}:secretsmanager:${Region}:${Account}:secret:${StackName}-*"],
    "AWS::Scheduler::Schedule": ["arn:${Partition}:scheduler:${Region}:${Account}:schedule/default/${StackName}-*"],
}

# Reason -> actions of handlers that a deployment does not need, or must not have.
DROPPED = {
    "the template has no imported, replicated or streamed table": [
        "dynamodb:AssociateTableReplica", "dynamodb:BatchWriteItem", "dynamodb:CreateTableReplica", "dynamodb:DeleteItem",
        "dynamodb:DescribeImport", "dynamodb:DisableKinesisStreamingDestination", "dynamodb:EnableKinesisStreamingDestination",
        "dynamodb:GetItem", "dynamodb:ImportTable", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem",
        "dynamodb:UpdateKinesisStreamingDestination",
    ],
    "the functions have no layer, code signing, version, capacity provider or setting of their runtime": [
        "lambda:AssociateRuntimeAlias", "lambda:DeleteFunctionCodeSigningConfig", "lambda:GetCodeSigningConfig",
        "lambda:GetLayerVersion", "lambda:PassCapacityProvider", "lambda:PublishVersion", "lambda:PutFunctionCodeSigningConfig",
        "lambda:PutFunctionRecursionConfig", "lambda:PutFunctionScalingConfig", "lambda:PutRuntimeManagementConfig",
    ],
    "the log groups have no data protection, index or resource policy": [
        "logs:DeleteDataProtectionPolicy", "logs:DeleteIndexPolicy", "logs:DeleteResourcePolicy",
        "logs:PutBearerTokenAuthentication", "logs:PutDataProtectionPolicy", "logs:PutIndexPolicy",
        "logs:PutLogGroupDeletionProtection",
    ],
    "the topic has no data protection": ["sns:PutDataProtectionPolicy"],
    "the bus has no policy, and these actions are for every bus": ["events:PutPermission", "events:RemovePermission"],
    "policies of the stack belong to its roles only: statement AttachOwn": [
        "iam:AttachGroupPolicy", "iam:AttachRolePolicy", "iam:AttachUserPolicy", "iam:DetachGroupPolicy", "iam:DetachRolePolicy",
        "iam:DetachUserPolicy",
    ],
    "a deployment must not free its roles from a boundary": ["iam:DeleteRolePermissionsBoundary"],
    "the secret has no replicas": ["secretsmanager:RemoveRegionsFromReplication", "secretsmanager:ReplicateSecretToRegions"],
    "KmsKeyArn is an ARN, not an alias": ["kms:ListAliases"],
    "no such action": ["kms:ReEncrypt"],
}
NOT_NEEDED = {action for actions in DROPPED.values() for action in actions}

# Actions of other services. The handlers list more: for properties that the template does not set, for SAM's bucket (statement
# Artifacts), and iam:PassRole (statement PassRole). API Gateway requires the deliveries for access logs. Lambda checks VpcSubnetIds.
ADDED = {
    "AWS::Lambda::Function": [
        "ec2:DescribeNetworkInterfaces", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs",
    ],
    "AWS::ApiGatewayV2::Stage": [
        "logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups", "logs:DescribeResourcePolicies",
        "logs:GetLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
    ],
}

# The training log group has the logs of all jobs of the account: a deployment may create it, but neither delete nor shorten it.
OF_TRAINING_LOGS = {"logs:CreateLogGroup", "logs:GetDataProtectionPolicy", "logs:ListTagsForResource", "logs:TagResource",
                    "logs:UntagResource"}

# Actions on roles that IAM can limit to roles with a permissions boundary.
BOUND = {"iam:CreateRole", "iam:DeleteRolePolicy", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"}
ATTACH = ["iam:AttachRolePolicy", "iam:DetachRolePolicy"]
BOUNDARY = {"iam:PermissionsBoundary": "${PermissionsBoundary}"}

# The maximum length of names that CloudFormation generates, of the types with the shortest limits. It appends a hyphen and 12
# or 13 characters, and shortens the stack's name if the whole is too long.
LIMITS = {"AWS::IAM::Role": 64, "AWS::Lambda::Function": 64, "AWS::Scheduler::Schedule": 64, "AWS::Events::Rule": 64,
          "AWS::SQS::Queue": 80}
SUFFIX = 1 + 13


def resource_types():
    """Returns the actions that support resources, in lower case, with their resource types."""
    types = {}
    for service in iam_definition:
        for privilege in service["privileges"]:
            action = f"{service['prefix']}:{privilege['privilege']}".lower()
            types[action] = {kind["resource_type"].rstrip("*") for kind in privilege["resource_types"]} - {""}
    return types


def by_type(template):
    """Returns the resources of each type of the translated template."""
    types = {}
    for logical, resource in template["Resources"].items():
        kind = TRANSLATED.get(resource["Type"], resource["Type"])
        if kind.startswith("AWS::Serverless::"):
            raise ValueError(f"{logical}: TRANSLATED has no row for {resource['Type']}")
        more = MORE_RESOURCES & set(resource.get("Properties", {})) if kind != resource["Type"] else set()
        if more:
            raise ValueError(f"{logical}: SAM creates further resources for {', '.join(sorted(more))}")
        types.setdefault(kind, {})[logical] = resource
    return types


def actions(kind, resources):
    """Returns the actions of the handlers of a type, also those that a deployment does not need."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(SCHEMAS_OF, kind).schema
    kept = all(resource.get(policy) == "Retain" for resource in resources for policy in ["DeletionPolicy", "UpdateReplacePolicy"])
    # A deployment lists nothing, and never deletes a resource that the template keeps.
    handlers = {"create", "read", "update"} if kept else {"create", "read", "update", "delete"}
    found = set(schema.get("tagging", {}).get("permissions", [])) | set(ADDED.get(kind, []))
    for name, handler in schema["handlers"].items():
        found |= set(handler["permissions"]) if name in handlers else set()
    return found


def is_needed(kind, action):
    """Returns whether a deployment needs an action of the handlers of a type."""
    service = {"ApiGatewayV2": "apigateway"}.get(kind.split("::")[1], kind.split("::")[1].lower())
    own = action.startswith((f"{service}:", "kms:"))
    return action in ADDED.get(kind, []) or own and action not in NOT_NEEDED


def of_types(types):
    """Returns the actions by resources. Actions without resources have `*`, those with the key its placeholder."""
    known, found = resource_types(), {}
    for kind, resources in types.items():
        if kind not in ROWS:
            raise ValueError(f"ROWS has no row for {kind}: add its resources")
        for action in filter(lambda action: is_needed(kind, action), actions(kind, resources.values())):
            if action.startswith("kms:"):
                where = ("${KmsKey}",)
            elif known.get(action.lower(), True):
                where = tuple(ROWS[kind])
            else:
                where = ("*",)
            found.setdefault(where, set()).add(action)
    return found


def statement(sid, allowed, resources, **conditions):
    condition = {"Condition": conditions} if conditions else {}
    return {"Sid": sid, "Effect": "Allow", "Action": sorted(allowed), "Resource": sorted(resources)} | condition


def of_deployment():
    """Returns the statements for the calls of SAM's command line."""
    stacks = "arn:${Partition}:cloudformation:${Region}:${Account}:stack/"
    calls = [
        "ContinueUpdateRollback", "CreateChangeSet", "DeleteChangeSet", "DeleteStack", "DescribeChangeSet", "DescribeStackEvents",
        "DescribeStackResource", "DescribeStackResources", "DescribeStacks", "ExecuteChangeSet", "GetTemplate",
        "GetTemplateSummary", "ListChangeSets", "ListStackResources", "RollbackStack", "TagResource", "UntagResource",
    ]
    # A wildcard in the bucket's name must match only buckets of the account.
    owner = {"aws:ResourceAccount": "${Account}"}
    bucket = "arn:${Partition}:s3:::${Bucket}"
    objects = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"]
    return [
        statement("Stack", ["cloudformation:" + call for call in calls], [stacks + "${StackName}/*"]),
        statement("Transform", ["cloudformation:CreateChangeSet"],
                  ["arn:${Partition}:cloudformation:${Region}:aws:transform/Serverless-2016-10-31"]),
        statement("BucketOfSam", ["cloudformation:DescribeStacks"], [stacks + "aws-sam-cli-managed-default/*"]),
        statement("Artifacts", objects, [bucket + "/${StackName}/*"], StringEquals=owner),
        statement("ListArtifacts", ["s3:ListBucket"], [bucket], StringEquals=owner, StringLike={"s3:prefix": "${StackName}/*"}),
    ]


def of_roles(allowed):
    """Returns the statements for the actions on roles."""
    passed = {"iam:PassedToService": ["lambda.amazonaws.com", "scheduler.amazonaws.com"]}
    return [
        statement("Roles", allowed - BOUND, ROLES),
        statement("BoundRoles", allowed & BOUND, ROLES, ArnEquals=BOUNDARY),
        statement("AttachOwn", ATTACH, ROLES, ArnEquals=BOUNDARY, ArnLike={"iam:PolicyARN": POLICIES}),
        statement("PassRole", ["iam:PassRole"], ROLES, StringEquals=passed),
    ]


def of_mappings(allowed):
    """Returns the statements for event source mappings: only those of the stack's functions."""
    tags = {action for action in allowed if "Tag" in action or "tag" in action}
    own = {"lambda:FunctionArn": FUNCTIONS}
    return [
        # A new mapping has no ID yet.
        statement("NewMappings", ["lambda:CreateEventSourceMapping"], ["*"], ArnLike=own),
        statement("Mappings", allowed - tags, MAPPINGS, ArnLike=own),
        statement("MappingTags", tags, MAPPINGS),
    ]


def statements(template):
    types = by_type(template)
    found = of_types(types)
    found[("*",)].discard("lambda:CreateEventSourceMapping")
    # CloudWatch checks this action against all alarms.
    found[tuple(ROWS["AWS::CloudWatch::Alarm"])].discard("cloudwatch:DescribeAlarms")
    found[("arn:${Partition}:cloudwatch:${Region}:${Account}:alarm:*",)] = {"cloudwatch:DescribeAlarms"}
    found[tuple(TRAINING_LOGS)] |= OF_TRAINING_LOGS & found[tuple(OWN_LOGS)]
    result = of_deployment() + of_roles(found.pop(tuple(ROLES))) + of_mappings(found.pop(tuple(MAPPINGS)))
    result.append(statement("Unscoped", found.pop(("*",)), ["*"]))
    services = {"kms:ViaService": "*.${Region}.amazonaws.com*"}
    result.append(statement("Key", found.pop(("${KmsKey}",)), ["${KmsKey}"], StringLike=services))
    for where, allowed in sorted(found.items()):
        result.append(statement(f"Resources{len(result)}", allowed, where))
    return result


def longest_stack_name(template):
    """Returns the length up to which CloudFormation keeps the whole stack name at the start of every generated name."""
    return min(LIMITS[kind] - SUFFIX - 1 - len(logical)
               for kind, resources in by_type(template).items() if kind in LIMITS for logical in resources)


def whole_template():
    """Returns the template with every overlay but restored-table, which adds nothing and removes the table."""
    template, problems = cfnlint.decode.decode_str(overlay.merged(overlay.known().keys() - {"restored-table"}))
    if problems:
        raise SystemExit(f"the merged template is unreadable: {problems}")
    return template


def generate():
    template = whole_template()
    return {"LongestStackName": longest_stack_name(template), "Statement": statements(template)}


def main(arguments):
    text = json.dumps(generate(), indent=1) + "\n"
    if arguments == ["--check"]:
        if not RESULT.exists() or RESULT.read_text() != text:
            raise SystemExit(f"{RESULT.name} is out of date: run infra/.work/check/bin/python infra/{Path(__file__).name}")
    elif arguments:
        raise SystemExit(__doc__)
    else:
        RESULT.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
