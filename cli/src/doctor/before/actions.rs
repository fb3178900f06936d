//! The IAM actions of a deployment, grouped by the resource types of the template without overlays, and the actions of
//! the deployed functions.
//!
//! A test compares the types with the template. `CloudFormation`'s handlers need these actions to create the types with
//! the template's properties. `sam deploy` needs the others.

use super::identity::Home;

/// How much a deployment depends on an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The deployment fails without it.
    Deployment,
    /// The deployment works without it if this parameter has this value.
    Unless(&'static str, &'static str),
    /// The roles of the stack need it. Only policies of the organization apply to them.
    Stack,
    /// The caller just made this call.
    Control,
}

#[derive(Debug)]
pub(super) struct Group {
    /// The resource types that need them. Empty: no type of the template.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the comparison with the template reads it"))]
    pub(super) types: &'static [&'static str],
    pub(super) actions: &'static [&'static str],
    /// An ARN with `{partition}`, `{region}`, `{account}` and `{stack}`.
    resource: &'static str,
    /// The value of `iam:PassedToService`.
    pub(super) passed_to: Option<&'static str>,
    pub(super) need: Need,
}

/// Makes the table of groups: types and resource, the actions, and how the need differs from that of a deployment.
macro_rules! groups {
    ($(
        [$($of:literal),*] $resource:literal: $($action:literal),+ $(=> $change:ident($($with:literal),*))?;
    )*) => {
        &[$(Group {
            types: &[$($of),*],
            actions: &[$($action),+],
            resource: $resource,
            passed_to: None,
            need: Need::Deployment,
        }$(.$change($($with),*))?),*]
    };
}

impl Group {
    const fn unless(mut self, parameter: &'static str, value: &'static str) -> Self {
        self.need = Need::Unless(parameter, value);
        self
    }

    const fn of_stack(mut self) -> Self {
        self.need = Need::Stack;
        self
    }

    const fn to(mut self, service: &'static str) -> Self {
        self.passed_to = Some(service);
        self
    }

    /// Returns the ARN of the resource. Names of resources end as `CloudFormation` would generate them.
    pub(super) fn resource(&self, home: &Home) -> String {
        self.resource
            .replace("{partition}", &home.partition)
            .replace("{region}", &home.region)
            .replace("{account}", &home.account)
            .replace("{stack}", &home.stack)
    }
}

pub(super) const GROUPS: &[Group] = groups! {
    [] "arn:{partition}:cloudformation:{region}:{account}:stack/{stack}/example":
        "cloudformation:CreateChangeSet", "cloudformation:DescribeChangeSet",
        "cloudformation:DescribeStackEvents", "cloudformation:DescribeStacks",
        "cloudformation:ExecuteChangeSet", "cloudformation:GetTemplateSummary";
    ["AWS::Serverless::Function"]
        "arn:{partition}:cloudformation:{region}:aws:transform/Serverless-2016-10-31":
        "cloudformation:CreateChangeSet";
    // The bucket that `resolve_s3` of infra/samconfig.toml uses.
    ["AWS::Serverless::Function"]
        "arn:{partition}:s3:::aws-sam-cli-managed-default-samclisourcebucket-example/{stack}/example":
        "s3:GetObject", "s3:PutObject";
    ["AWS::Serverless::Function", "AWS::Lambda::Permission", "AWS::Lambda::EventInvokeConfig"]
        "arn:{partition}:lambda:{region}:{account}:function:{stack}-ApiFunction-example":
        "lambda:AddPermission", "lambda:CreateFunction", "lambda:GetFunction",
        "lambda:PutFunctionEventInvokeConfig", "lambda:TagResource";
    ["AWS::Serverless::Function"]
        "arn:{partition}:lambda:{region}:{account}:function:{stack}-ApiFunction-example":
        "lambda:PutFunctionConcurrency" => unless("ReserveConcurrency", "false");
    ["AWS::Lambda::EventSourceMapping"]
        "arn:{partition}:lambda:{region}:{account}:event-source-mapping:example":
        "lambda:CreateEventSourceMapping", "lambda:GetEventSourceMapping";
    ["AWS::DynamoDB::Table"] "arn:{partition}:dynamodb:{region}:{account}:table/{stack}-Table-example":
        "dynamodb:CreateTable", "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTable",
        "dynamodb:DescribeTimeToLive", "dynamodb:GetResourcePolicy", "dynamodb:PutResourcePolicy",
        "dynamodb:TagResource", "dynamodb:UpdateContinuousBackups", "dynamodb:UpdateTimeToLive";
    ["AWS::IAM::Role"] "arn:{partition}:iam::{account}:role/{stack}-ApiRole-example":
        "iam:AttachRolePolicy", "iam:CreateRole", "iam:GetRole", "iam:PutRolePolicy", "iam:TagRole";
    ["AWS::Serverless::Function"] "arn:{partition}:iam::{account}:role/{stack}-ApiRole-example":
        "iam:PassRole" => to("lambda.amazonaws.com");
    ["AWS::Scheduler::Schedule"] "arn:{partition}:iam::{account}:role/{stack}-SweeperScheduleRole-example":
        "iam:PassRole" => to("scheduler.amazonaws.com");
    ["AWS::IAM::ManagedPolicy"] "arn:{partition}:iam::{account}:policy/{stack}-TrainingPolicy-example":
        "iam:CreatePolicy";
    ["AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Route",
        "AWS::ApiGatewayV2::Stage"]
        "arn:{partition}:apigateway:{region}::/apis":
        "apigateway:GET", "apigateway:POST";
    // The access log of the API.
    ["AWS::ApiGatewayV2::Stage"] "*":
        "logs:CreateLogDelivery", "logs:DescribeResourcePolicies", "logs:PutResourcePolicy";
    ["AWS::Events::Rule"] "arn:{partition}:events:{region}:{account}:rule/{stack}-TrainingJobRule-example":
        "events:DescribeRule", "events:PutRule", "events:PutTargets", "events:TagResource";
    ["AWS::Events::EventBus"] "arn:{partition}:events:{region}:{account}:event-bus/{stack}-tunings":
        "events:CreateEventBus", "events:DescribeEventBus", "events:TagResource";
    ["AWS::Scheduler::Schedule"]
        "arn:{partition}:scheduler:{region}:{account}:schedule/default/{stack}-SweeperSchedule-example":
        "scheduler:CreateSchedule", "scheduler:GetSchedule";
    ["AWS::SQS::Queue", "AWS::SQS::QueuePolicy"]
        "arn:{partition}:sqs:{region}:{account}:{stack}-DeliveryFailures-example":
        "sqs:CreateQueue", "sqs:GetQueueAttributes", "sqs:SetQueueAttributes", "sqs:TagQueue";
    ["AWS::SSM::Parameter"] "arn:{partition}:ssm:{region}:{account}:parameter/{stack}/ApiUrl":
        "ssm:AddTagsToResource", "ssm:GetParameters", "ssm:PutParameter";
    // The dynamic references read the secret.
    ["AWS::SecretsManager::Secret"]
        "arn:{partition}:secretsmanager:{region}:{account}:secret:{stack}-gateway-1-example":
        "secretsmanager:CreateSecret", "secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue",
        "secretsmanager:TagResource";
    ["AWS::SecretsManager::Secret"] "*": "secretsmanager:GetRandomPassword";
    ["AWS::Logs::LogGroup"] "arn:{partition}:logs:{region}:{account}:log-group:/aws/lambda/{stack}-api:*":
        "logs:CreateLogGroup", "logs:DescribeLogGroups", "logs:PutRetentionPolicy", "logs:TagResource";
    ["AWS::Logs::SubscriptionFilter"]
        "arn:{partition}:logs:{region}:{account}:log-group:/aws/sagemaker/TrainingJobs:*":
        "logs:DescribeSubscriptionFilters", "logs:PutSubscriptionFilter" => unless("MetricsFrom", "Polling");
    ["AWS::CloudWatch::Alarm"]
        "arn:{partition}:cloudwatch:{region}:{account}:alarm:{stack}-OverrunAlarm-example":
        "cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm",
        "cloudwatch:TagResource" => unless("CreateAlarms", "false");
    ["AWS::SNS::Topic"] "arn:{partition}:sns:{region}:{account}:{stack}-AlarmTopic-example":
        "sns:CreateTopic", "sns:GetTopicAttributes", "sns:Subscribe",
        "sns:TagResource" => unless("CreateAlarms", "false");
    [] "*": "pricing:GetProducts", "sagemaker:ListTrainingJobs" => of_stack();
    [] "arn:{partition}:sagemaker:{region}:{account}:training-job/example":
        "sagemaker:AddTags", "sagemaker:CreateTrainingJob", "sagemaker:DescribeTrainingJob",
        "sagemaker:ListTags", "sagemaker:StopTrainingJob", "sagemaker:UpdateTrainingJob" => of_stack();
    [] "arn:{partition}:logs:{region}:{account}:log-group:/aws/sagemaker/TrainingJobs:*":
        "logs:FilterLogEvents" => of_stack();
};
