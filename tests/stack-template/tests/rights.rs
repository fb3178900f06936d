//! The role of each function grants exactly the calls that the function makes.
//!
//! Histories of the fault simulator, which runs the same use cases as the functions, show the accesses to the table.
//! The simulator lists all other calls. The sources of the AWS clients show that they make exactly these calls.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex::Regex;
use serde_json::{Value, json};
use simulator::Run;
use simulator::access::{Accesses, Right};
use simulator::site::{FUNCTIONS, Function, Op, calls};
use stack_template::{Grant, Template, list, root};
use wire::names::TAG_STACK;

/// Number of histories, enough to exercise every grant.
const SEEDS: u64 = 60;

/// ARN of the stack's tables. `CloudFormation` generates names with this prefix, and an adopted table must have it. A
/// reference would be circular, since the policy of the table names the roles.
const TABLE: &str =
    "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${AWS::StackName}-Table-*";

/// The function for direct calls: the program of `Function::Api`.
const DIRECT: &str = "InvokeFunction";

/// Returns the logical ID of a function in the template.
fn logical(function: Function) -> String {
    format!("{function:?}Function")
}

/// Returns the IAM actions that an operation of a port needs, except those on the table.
fn actions(op: Op) -> &'static [&'static str] {
    match op {
        // A new job has tags and a role.
        Op::Create => &["sagemaker:CreateTrainingJob", "sagemaker:AddTags", "iam:PassRole"],
        Op::Stop => &["sagemaker:StopTrainingJob"],
        Op::Release => &["sagemaker:UpdateTrainingJob"],
        Op::Describe => &["sagemaker:DescribeTrainingJob"],
        Op::Tags => &["sagemaker:DescribeTrainingJob", "sagemaker:ListTags"],
        Op::List => &["sagemaker:ListTrainingJobs"],
        Op::ReadLog => &["logs:FilterLogEvents"],
        Op::Publish => &["events:PutEvents"],
        Op::Price => &["pricing:GetProducts"],
        Op::HandOver => &["lambda:InvokeFunction"],
        Op::Get | Op::Query | Op::Write | Op::Transact => &[],
    }
}

/// The actions that read a parent of Automatic Model Tuning, which histories lack.
const OF_PARENTS: [&str; 2] =
    ["sagemaker:DescribeHyperParameterTuningJob", "sagemaker:ListTrainingJobsForHyperParameterTuningJob"];

/// Returns the actions of Lambda itself with a function's role, from the function's triggers in the template.
fn of_lambda(template: &Template, function: &str) -> BTreeSet<String> {
    let mut actions = vec!["logs:CreateLogStream", "logs:PutLogEvents"];
    let reference = json!({ "Ref": function });
    let of = |kind: &str| {
        let found = template.of_type(kind).into_values().filter(|found| found["FunctionName"] == reference);
        found.cloned().collect::<Vec<Value>>()
    };
    let mappings = of("AWS::Lambda::EventSourceMapping");
    if !mappings.is_empty() {
        actions.extend(["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]);
        actions.push("dynamodb:ListStreams");
    }
    if mappings.into_iter().chain(of("AWS::Lambda::EventInvokeConfig")).count() > 0 {
        actions.push("sqs:SendMessage");
    }
    actions.into_iter().chain(OF_THE_KEY).chain(OF_THE_NETWORK).map(str::to_owned).collect()
}

/// Actions that DynamoDB, SQS and Lambda perform with the owner's KMS key on behalf of a role.
const OF_THE_KEY: [&str; 6] = [
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
];

/// Actions of Lambda for a function in a VPC.
const OF_THE_NETWORK: [&str; 6] = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
];

#[test]
fn only_lambda_may_manage_network_interfaces_and_only_in_a_vpc() {
    assert!(Template::read().0["Resources"].get("NetworkPolicy").is_none(), "only the overlay adds it");
    let template = Template::whole();
    for function in FUNCTIONS {
        for action in OF_THE_NETWORK {
            let condition = json!({"Null": {"lambda:SourceFunctionArn": "true"}});
            assert_eq!(grant(&template, function, action).condition, condition, "{function:?} {action}");
        }
    }
    let lists = ["SubnetIds", "SecurityGroupIds"]
        .map(|name| (name.to_owned(), json!({"Fn::Split": [",", {"Ref": format!("Vpc{name}")}]})));
    assert_eq!(template.0["Globals"]["Function"]["VpcConfig"], Value::from_iter(lists));
}

/// Returns the managed policies of a function's role, which functions with the same rights share.
fn shared(function: Function) -> &'static [&'static str] {
    match function {
        Function::Api => &["ApiPolicy"],
        Function::JobEvents | Function::JobLogs => &["IngestPolicy"],
        Function::Decider => &["StreamPolicy"],
        Function::Actuator => &["StreamPolicy", "TrainingPolicy"],
        Function::Sweeper => &["TrainingPolicy"],
    }
}

#[test]
fn every_function_may_use_the_owners_key_through_services_and_no_role_has_another_managed_policy() {
    let (template, plain) = (Template::whole(), Template::read());
    for function in FUNCTIONS {
        let role = template.role(&logical(function)).to_owned();
        assert_eq!(plain.managed(&role), shared(function), "{role}");
        assert_eq!(
            template.managed(&role),
            [shared(function), &["KeyPolicy", "NetworkPolicy"]].concat(),
            "{role}"
        );
        for action in OF_THE_KEY {
            let grant = grant(&template, function, action);
            assert_eq!(grant.resource, json!({"Ref": "KmsKeyArn"}));
            let services = ["dynamodb", "sqs", "lambda"]
                .map(|name| json!({"Fn::Sub": format!("{name}.${{AWS::Region}}.amazonaws.com")}));
            assert_eq!(grant.condition, json!({"StringEquals": {"kms:ViaService": services}}));
        }
    }
    let key = json!({"Ref": "KmsKeyArn"});
    assert_eq!(template.properties("Table")["SSESpecification"]["KMSMasterKeyId"], key);
    assert_eq!(template.properties("DeliveryFailures")["KmsMasterKeyId"], key);
    let managed_by_sqs =
        |template: &Template| template.properties("DeliveryFailures")["SqsManagedSseEnabled"].clone();
    assert_eq!((managed_by_sqs(&plain), managed_by_sqs(&template)), (json!(true), json!(false)));
    assert_eq!(template.properties("AlarmTopic")["KmsMasterKeyId"], key);
    assert_eq!(template.properties("EventBus")["KmsKeyIdentifier"], key);
    assert_eq!(template.0["Globals"]["Function"]["KmsKeyArn"], key);
    for (name, group) in template.of_type("AWS::Logs::LogGroup") {
        // The training log group belongs to the account.
        assert_eq!(group.get("KmsKeyId"), (name != "TrainingLogGroup").then_some(&key), "{name}");
    }
    // The schedule sends its failures to the encrypted queue.
    assert_eq!(template.managed("SweeperScheduleRole"), ["KeyPolicy"]);
    let functions = FUNCTIONS.map(|function| template.role(&logical(function)));
    for role in template.of_type("AWS::IAM::Role").keys() {
        let boundary =
            json!({"Fn::If": ["HasBoundary", {"Ref": "PermissionsBoundaryArn"}, {"Ref": "AWS::NoValue"}]});
        assert_eq!(template.properties(role)["PermissionsBoundary"], boundary, "{role}");
        assert_eq!(template.properties(role)["Path"], json!({"Ref": "RolePath"}), "{role}");
        // Another test compares the role for direct calls with that of the API.
        let known = functions.contains(role) || ["SweeperScheduleRole", template.role(DIRECT)].contains(role);
        assert!(known, "{role}");
    }
    for (name, policy) in template.of_type("AWS::IAM::ManagedPolicy") {
        assert_eq!(policy["Path"], json!({"Ref": "RolePath"}), "{name}");
    }
}

/// IAM repeats the limits of the API for which `SageMaker` has condition keys.
#[test]
fn a_role_cannot_start_jobs_beyond_the_limits_of_the_owner() {
    let template = Template::read();
    let allowed = |condition: &str, parameter: &str| json!({"Fn::If": [condition, {"Fn::Split": [",", {"Ref": parameter}]}, "*"]});
    let set = |parameter: &str| json!({"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]});
    for function in [Function::Actuator, Function::Sweeper] {
        let condition = grant(&template, function, "sagemaker:CreateTrainingJob").condition;
        assert_eq!(
            condition["ForAllValues:StringLike"],
            json!({
                "sagemaker:InstanceTypes": allowed("LimitsTypes", "AllowedInstanceTypes"),
                "sagemaker:VpcSubnets": allowed("LimitsSubnets", "AllowedSubnets"),
                "sagemaker:VpcSecurityGroupIds": allowed("LimitsGroups", "AllowedSecurityGroups"),
            })
        );
        let subnets = json!({"sagemaker:VpcSubnets": "false"});
        assert_eq!(condition["Null"], json!({"Fn::If": ["NeedsVpc", subnets, {"Ref": "AWS::NoValue"}]}));
    }
    let conditions = &template.0["Conditions"];
    assert_eq!(conditions["LimitsTypes"], set("AllowedInstanceTypes"));
    assert_eq!(conditions["LimitsSubnets"], set("AllowedSubnets"));
    assert_eq!(conditions["LimitsGroups"], set("AllowedSecurityGroups"));
    let required = json!({"Fn::Equals": [{"Ref": "RequireVpc"}, "true"]});
    let limited = ["LimitsSubnets", "LimitsGroups"].map(|name| json!({ "Condition": name }));
    assert_eq!(conditions["NeedsVpc"], json!({"Fn::Or": [required, limited[0], limited[1]]}));
}

fn is_of_rows(action: &str) -> bool {
    ["GetItem", "Query", "PutItem", "DeleteItem", "ConditionCheckItem"]
        .iter()
        .any(|of_rows| action.strip_prefix("dynamodb:") == Some(of_rows))
}

#[test]
fn the_function_for_direct_calls_has_the_rights_of_the_api_and_its_own_log() {
    let template = Template::whole();
    let rights = |function: &str, log: &str| -> Vec<String> {
        let grants = template.grants(function).into_iter();
        let texts = grants.map(|grant| json!([grant.action, grant.resource, grant.condition]).to_string());
        texts.map(|text| text.replace(log, "its log")).collect()
    };
    let api = logical(Function::Api);
    assert_eq!(rights(DIRECT, "InvokeLogs"), rights(&api, "ApiLogs"));
    assert_ne!(template.role(DIRECT), template.role(&api));
    for property in ["ManagedPolicyArns", "PermissionsBoundary", "AssumeRolePolicyDocument", "Path"] {
        let of = |function: &str| &template.properties(template.role(function))[property];
        assert_eq!(of(DIRECT), of(&api), "{property}");
    }
}

#[test]
fn a_role_grants_exactly_the_calls_of_its_function() {
    let template = Template::whole();
    for function in FUNCTIONS {
        let name = logical(function);
        let grants = template.grants(&name);
        let granted: BTreeSet<String> =
            grants.into_iter().map(|grant| grant.action).filter(|action| !is_of_rows(action)).collect();
        let mut made = of_lambda(&template, &name);
        made.extend(calls(function).iter().flat_map(|op| actions(*op)).map(|action| (*action).to_owned()));
        if function == Function::Api {
            made.extend(OF_PARENTS.map(str::to_owned));
        }
        assert_eq!(granted, made, "{name}");
    }
}

/// Returns the accesses of all functions to the table in the histories.
fn seen() -> Accesses {
    (0..SEEDS).flat_map(|seed| Run::drawn(seed).history().accesses).chain(beside()).collect()
}

/// Returns accesses that histories lack: lists of all and of active tunings, rows with listed prices, stored changes
/// of limits, and deletions. A test on the emulated stack performs the deletions with the roles.
fn beside() -> Vec<(Function, Right, String)> {
    let api = [
        (Right::Query, "INDEX"),
        (Right::Query, "ACTIVE"),
        (Right::Query, "F#"),
        (Right::GetItem, "PRICE"),
        (Right::PutItem, "PRICE"),
    ];
    // The first part of a deletion.
    let deletion = [
        (Right::GetItem, "ACTIVE"),
        (Right::DeleteItem, "INDEX"),
        (Right::DeleteItem, "T#"),
        (Right::PutItem, "DELETED"),
    ];
    let sweeper = [
        (Right::GetItem, "ACTIVE"),
        (Right::Query, "INDEX"),
        (Right::DeleteItem, "INDEX"),
        (Right::PutItem, "DELETED"),
        (Right::DeleteItem, "DELETED"),
    ];
    let purged = ["T#", "A#", "F#", "R#"].map(|kind| [(Right::Query, kind), (Right::DeleteItem, kind)]);
    let of = |function, accesses: Vec<(Right, &str)>| -> Vec<(Function, Right, String)> {
        accesses.into_iter().map(|(right, kind)| (function, right, kind.to_owned())).collect()
    };
    let mut beside = of(Function::Api, api.into_iter().chain(deletion).collect());
    beside.extend(of(Function::Sweeper, sweeper.into_iter().chain(purged.into_iter().flatten()).collect()));
    beside
}

#[test]
fn a_role_grants_exactly_the_rows_that_its_function_accesses() {
    let template = Template::read();
    let seen = seen();
    let mut wrong = Vec::new();
    for function in FUNCTIONS {
        let granted: BTreeSet<(String, String)> = template
            .grants(&logical(function))
            .iter()
            .filter(|grant| is_of_rows(&grant.action))
            .flat_map(|grant| {
                assert_eq!(grant.resource, json!({"Fn::Sub": TABLE}));
                let keys = &grant.condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
                assert!(keys.is_array(), "{function:?}: {} on every row", grant.action);
                let kind = |key: &Value| key.as_str().unwrap().trim_end_matches('*').to_owned();
                list(keys).into_iter().map(kind).map(|kind| (grant.action.clone(), kind)).collect::<Vec<_>>()
            })
            .collect();
        let touched: BTreeSet<(String, String)> = seen
            .iter()
            .filter(|(who, _, _)| *who == function)
            .map(|(_, right, kind)| (right.action(), kind.clone()))
            .collect();
        wrong.extend(touched.difference(&granted).map(|right| format!("{function:?} lacks {right:?}")));
        wrong
            .extend(granted.difference(&touched).map(|right| format!("{function:?} does not use {right:?}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_table_refuses_writes_of_all_but_the_functions_and_a_break_glass_principal() {
    let template = Template::whole();
    let policy = &template.properties("Table")["ResourcePolicy"]["PolicyDocument"];
    let [statement] = policy["Statement"].as_array().unwrap().as_slice() else { panic!("{policy}") };
    assert_eq!((&statement["Effect"], &statement["Principal"]), (&json!("Deny"), &json!("*")));
    let denied: BTreeSet<&str> =
        list(&statement["Action"]).into_iter().map(|action| action.as_str().unwrap()).collect();
    // The actions of DynamoDB's data plane that change items. Transactions need the same actions.
    let writes = "BatchWriteItem DeleteItem PartiQLDelete PartiQLInsert PartiQLUpdate PutItem UpdateItem";
    let writes: Vec<String> = writes.split(' ').map(|action| format!("dynamodb:{action}")).collect();
    assert_eq!(denied, writes.iter().map(String::as_str).collect());
    let mut allowed_writers: BTreeSet<String> = FUNCTIONS
        .into_iter()
        .filter(|function| {
            let grants = template.grants(&logical(*function));
            grants.iter().any(|grant| denied.contains(grant.action.as_str()))
        })
        .map(|function| json!({"Fn::GetAtt": [template.role(&logical(function)), "Arn"]}).to_string())
        .collect();
    allowed_writers.insert(json!({"Fn::GetAtt": [template.role(DIRECT), "Arn"]}).to_string());
    allowed_writers.insert(
        json!({"Fn::If": ["HasBreakGlass", {"Ref": "BreakGlassArn"}, {"Ref": "AWS::NoValue"}]}).to_string(),
    );
    // Both must hold for a denial. Without a principal's ARN the first alone would deny calls of AWS.
    assert_eq!(statement["Condition"]["Bool"], json!({"aws:PrincipalIsAWSService": "false"}));
    let allowed = list(&statement["Condition"]["ArnNotEquals"]["aws:PrincipalArn"]);
    assert_eq!(allowed.into_iter().map(Value::to_string).collect::<BTreeSet<_>>(), allowed_writers);
}

/// Returns the AWS operations that the sources below `folder` call, on any client. Asserts that each `send()` belongs
/// to one of them.
fn called(folder: &Path) -> BTreeSet<String> {
    let verbs = "add|batch|create|delete|describe|execute|filter|get|invoke|list|put|query|scan|start|stop|transact|update";
    let call = Regex::new(&format!(r"\.\s*((?:{verbs})(?:_[a-z_]+)?)\(\)")).unwrap();
    let mut made = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        // Only tests create the table. In an account, the template does.
        if file.ends_with("schema.rs") || file.ends_with("embedded.rs") || file.ends_with("embedded") {
            continue;
        }
        if file.is_dir() {
            made.append(&mut called(&file));
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let calls: Vec<&str> =
            call.captures_iter(&text).map(|found| found.get(1).unwrap().as_str()).collect();
        assert_eq!(text.matches(".send()").count(), calls.len(), "{}: {calls:?}", file.display());
        made.extend(calls.into_iter().map(|name| {
            name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect::<String>()
        }));
    }
    made
}

/// Returns the packages with clients of AWS services, and the services.
fn clients() -> BTreeMap<String, Vec<String>> {
    let service = Regex::new(r"(?m)^aws-sdk-([a-z]+)\b").unwrap();
    let packages = ["shared", "functions"].map(|group| fs::read_dir(root().join(group)).unwrap());
    let packages = packages.into_iter().flatten().map(|entry| entry.unwrap().path());
    let with_clients = packages.filter_map(|package| {
        let manifest = fs::read_to_string(package.join("Cargo.toml")).ok()?;
        let services: Vec<String> =
            service.captures_iter(&manifest).map(|found| found[1].to_owned()).collect();
        let name = package.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        (!services.is_empty()).then_some((name, services))
    });
    with_clients.collect()
}

#[test]
fn the_aws_clients_make_exactly_the_known_calls() {
    let mut clients = clients();
    // A local service that sends lines to CloudWatch Logs. No function contains it.
    assert!(clients.remove("shared/training-service").is_some());
    let made: BTreeMap<&str, BTreeSet<String>> =
        clients.keys().map(|package| (package.as_str(), called(&root().join(package).join("src")))).collect();
    let of = |services: &[&str]| -> BTreeSet<String> {
        let all = FUNCTIONS
            .into_iter()
            .flat_map(calls)
            .flat_map(|op| actions(*op).iter().copied())
            .chain(OF_PARENTS)
            .map(|action| action.split_once(':').unwrap());
        // CreateTrainingJob needs this permission, but it is no call.
        let calls = all.filter(|(service, call)| services.contains(service) && *call != "AddTags");
        // The permission of the call Invoke has another name.
        calls.map(|(_, call)| if call == "InvokeFunction" { "Invoke" } else { call }.to_owned()).collect()
    };
    let rows = ["GetItem", "Query", "PutItem", "DeleteItem", "TransactWriteItems"].map(str::to_owned);
    let known = BTreeMap::from([
        ("shared/dynamodb", BTreeSet::from(rows)),
        ("shared/aws", of(&["events", "lambda", "pricing"])),
        ("shared/sagemaker", of(&["sagemaker", "logs"])),
    ]);
    assert_eq!(made, known);
}

/// Returns the only grant of `action`.
fn grant(template: &Template, function: Function, action: &str) -> Grant {
    let mut grants = template.grants(&logical(function));
    grants.retain(|grant| grant.action == action);
    assert_eq!(grants.len(), 1, "{function:?} {action}");
    grants.remove(0)
}

#[test]
fn a_role_cannot_change_training_jobs_of_others() {
    let template = Template::read();
    let stack = json!({"Ref": "AWS::StackName"});
    for function in [Function::Actuator, Function::Sweeper] {
        let equals = |action: &str| grant(&template, function, action).condition["StringEquals"].clone();
        let request = format!("aws:RequestTag/{TAG_STACK}");
        assert_eq!(equals("sagemaker:CreateTrainingJob"), json!({ &request: stack }));
        // The statement of CreateTrainingJob compares the tags. This one allows tags in that call only.
        assert_eq!(equals("sagemaker:AddTags"), json!({"sagemaker:TaggingAction": "CreateTrainingJob"}));
        for action in ["sagemaker:StopTrainingJob", "sagemaker:UpdateTrainingJob"] {
            assert_eq!(equals(action), json!({ format!("aws:ResourceTag/{TAG_STACK}"): stack }));
        }
        let pass = grant(&template, function, "iam:PassRole");
        assert_eq!(pass.resource, json!({"Fn::Split": [",", {"Ref": "ExecutionRoleArns"}]}));
        assert_eq!(
            pass.condition,
            json!({"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}})
        );
    }
}

#[test]
fn only_actions_without_resources_and_those_on_network_interfaces_are_granted_on_all_resources() {
    let template = Template::whole();
    let of_all = |function: Function| {
        let grants = template.grants(&logical(function)).into_iter();
        let wide = grants.filter(|grant| grant.resource == "*").map(move |grant| (function, grant.action));
        wide.collect::<Vec<_>>()
    };
    let wide = FUNCTIONS.into_iter().flat_map(of_all);
    let wide: Vec<(Function, String)> =
        wide.filter(|(_, action)| !OF_THE_NETWORK.contains(&action.as_str())).collect();
    let known = [(Function::Api, "pricing:GetProducts"), (Function::Sweeper, "sagemaker:ListTrainingJobs")];
    assert_eq!(wide, known.map(|(function, action)| (function, action.to_owned())));
    for function in FUNCTIONS {
        assert!(template.grants(&logical(function)).iter().all(|grant| !grant.action.contains('*')));
    }
}

/// Long stack names broke every hand-over: `CloudFormation` shortens generated names, so that no pattern of the whole
/// stack name matches.
#[test]
fn regression_no_policy_names_a_function_by_a_pattern() {
    let template = Template::whole();
    let itself = grant(&template, Function::Actuator, "lambda:InvokeFunction");
    assert_eq!(itself.resource, json!({"Fn::GetAtt": [logical(Function::Actuator), "Arn"]}));
    let of = |kind| template.of_type(kind).into_iter();
    let resources = of("AWS::IAM::Role").chain(of("AWS::IAM::ManagedPolicy"));
    let policies = resources.flat_map(|(name, resource)| {
        let inline = list(&resource["Policies"]).into_iter().chain([resource]);
        inline.map(move |policy| (name, &policy["PolicyDocument"]["Statement"]))
    });
    let statements = policies.flat_map(|(name, all)| list(all).into_iter().map(move |one| (name, one)));
    let invokes = |statement: &Value| list(&statement["Action"]).contains(&&json!("lambda:InvokeFunction"));
    let mut found = 0;
    for (name, statement) in statements.filter(|(_, statement)| invokes(statement)) {
        found += 1;
        for resource in list(&statement["Resource"]) {
            assert!(resource.get("Fn::GetAtt").is_some(), "{name} allows to invoke {resource}");
        }
    }
    assert_eq!(found, 2, "the schedule invokes the sweeper, and the actuator itself");
}
