//! The role of each function grants the calls it makes, and no other.
//!
//! What a function does to the table is seen in histories of the fault simulator, which run the use cases as the functions
//! do; what else it calls, the simulator lists and holds to be complete. That the clients of AWS call just that is read in
//! their sources.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::collections::BTreeSet;
use std::fs;

use regex::Regex;
use serde_json::{Value, json};
use simulator::Run;
use simulator::access::{Accesses, Right};
use simulator::site::{FUNCTIONS, Function, Op, calls};
use stack_template::{Grant, Template, list, root};
use wire::names::TAG_STACK;

/// Histories that show, together, everything that is granted.
const SEEDS: u64 = 60;

/// Its logical id in the template.
fn logical(function: Function) -> String {
    format!("{function:?}Function")
}

/// The actions of IAM that an operation of the ports takes, those of the table aside.
fn actions(op: Op) -> &'static [&'static str] {
    match op {
        // A job is created with tags and with a role.
        Op::Create => &["sagemaker:CreateTrainingJob", "sagemaker:AddTags", "iam:PassRole"],
        Op::Stop => &["sagemaker:StopTrainingJob"],
        Op::Release => &["sagemaker:UpdateTrainingJob"],
        Op::Describe => &["sagemaker:DescribeTrainingJob"],
        Op::Tags => &["sagemaker:DescribeTrainingJob", "sagemaker:ListTags"],
        Op::List => &["sagemaker:ListTrainingJobs"],
        Op::ReadLog => &["logs:FilterLogEvents"],
        Op::Publish => &["events:PutEvents"],
        Op::Price => &["pricing:GetProducts"],
        Op::Get | Op::Query | Op::Write | Op::Transact => &[],
    }
}

const ALL_OPS: [Op; 13] = [
    Op::Get,
    Op::Query,
    Op::Write,
    Op::Transact,
    Op::Create,
    Op::Stop,
    Op::Release,
    Op::Describe,
    Op::Tags,
    Op::List,
    Op::ReadLog,
    Op::Publish,
    Op::Price,
];

/// What Lambda does in the name of a function's role, by what the template connects it with.
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
    actions.into_iter().map(str::to_owned).collect()
}

fn is_of_rows(action: &str) -> bool {
    ["GetItem", "Query", "PutItem", "DeleteItem", "ConditionCheckItem"]
        .iter()
        .any(|of_rows| action.strip_prefix("dynamodb:") == Some(of_rows))
}

#[test]
fn a_role_grants_the_calls_of_its_function_and_no_other() {
    let template = Template::read();
    for function in FUNCTIONS {
        let name = logical(function);
        let grants = template.grants(&name);
        let granted: BTreeSet<String> =
            grants.into_iter().map(|grant| grant.action).filter(|action| !is_of_rows(action)).collect();
        let mut made = of_lambda(&template, &name);
        made.extend(calls(function).iter().flat_map(|op| actions(*op)).map(|action| (*action).to_owned()));
        assert_eq!(granted, made, "{name}");
    }
}

/// What all functions do to the table in the histories.
fn seen() -> Accesses {
    (0..SEEDS).flat_map(|seed| Run::drawn(seed).history().accesses).chain(beside()).collect()
}

/// What histories leave out: lists of all tunings and of those that are not over, and the rows that keep what the price list said.
fn beside() -> Vec<(Function, Right, String)> {
    let api = |right, kind: &str| (Function::Api, right, kind.to_owned());
    vec![
        api(Right::Query, "INDEX"),
        api(Right::Query, "ACTIVE"),
        api(Right::GetItem, "PRICE"),
        api(Right::PutItem, "PRICE"),
    ]
}

#[test]
fn a_role_opens_the_rows_that_its_function_touches_and_no_other() {
    let template = Template::read();
    let seen = seen();
    let mut wrong = Vec::new();
    for function in FUNCTIONS {
        let granted: BTreeSet<(String, String)> = template
            .grants(&logical(function))
            .iter()
            .filter(|grant| is_of_rows(&grant.action))
            .flat_map(|grant| {
                assert_eq!(grant.resource, json!({"Fn::GetAtt": ["Table", "Arn"]}));
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

/// The calls in the sources of a crate that is a client of AWS, as actions of IAM. A client is a field named as one
/// of these.
fn called(folder: &str, service: &str) -> BTreeSet<String> {
    let call = Regex::new(r"\bself\s*\.(client|reads|writes|logs)\s*\.([a-z_]+)\(\)").unwrap();
    let files = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut actions = BTreeSet::new();
    for file in files.filter(|file| file.is_file()) {
        // The table is created by its tests; in an account, by the template.
        if file.ends_with("schema.rs") || file.ends_with("embedded.rs") {
            continue;
        }
        for found in call.captures_iter(&fs::read_to_string(file).unwrap()) {
            let words = found[2].split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
            let service = if &found[1] == "logs" { "logs" } else { service };
            actions.insert(format!("{service}:{}", words.collect::<String>()));
        }
    }
    actions
}

#[test]
fn the_clients_of_aws_make_just_these_calls() {
    let known: BTreeSet<String> =
        ALL_OPS.iter().flat_map(|op| actions(*op)).map(|action| (*action).to_owned()).collect();
    let implied = BTreeSet::from(["sagemaker:AddTags", "iam:PassRole"].map(str::to_owned));
    let mut made = called("shared/sagemaker/src", "sagemaker");
    made.append(&mut called("shared/eventbridge/src", "events"));
    made.append(&mut called("shared/pricing/src", "pricing"));
    assert_eq!(made, &known - &implied);
    let rows = ["GetItem", "Query", "PutItem", "DeleteItem", "TransactWriteItems"];
    let rows: BTreeSet<String> = rows.iter().map(|call| format!("dynamodb:{call}")).collect();
    assert_eq!(called("shared/dynamodb/src", "dynamodb"), rows);
}

/// The only grant of `action`.
fn grant(template: &Template, function: Function, action: &str) -> Grant {
    let mut grants = template.grants(&logical(function));
    grants.retain(|grant| grant.action == action);
    assert_eq!(grants.len(), 1, "{function:?} {action}");
    grants.remove(0)
}

#[test]
fn training_jobs_of_others_are_out_of_reach() {
    let template = Template::read();
    let stack = json!({"Ref": "AWS::StackName"});
    for function in [Function::Actuator, Function::Sweeper] {
        let equals = |action: &str| grant(&template, function, action).condition["StringEquals"].clone();
        let request = format!("aws:RequestTag/{TAG_STACK}");
        assert_eq!(equals("sagemaker:CreateTrainingJob"), json!({ &request: stack }));
        let tags = json!({ &request: stack, "sagemaker:TaggingAction": "CreateTrainingJob" });
        assert_eq!(equals("sagemaker:AddTags"), tags);
        for action in ["sagemaker:StopTrainingJob", "sagemaker:UpdateTrainingJob"] {
            assert_eq!(equals(action), json!({ format!("aws:ResourceTag/{TAG_STACK}"): stack }));
        }
        let pass = grant(&template, function, "iam:PassRole");
        assert_eq!(pass.resource, json!({"Ref": "ExecutionRoleArns"}));
        assert_eq!(
            pass.condition,
            json!({"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}})
        );
    }
}

#[test]
fn only_what_has_no_resource_is_granted_on_all() {
    let template = Template::read();
    let of_all = |function: Function| {
        let grants = template.grants(&logical(function)).into_iter();
        let wide = grants.filter(|grant| grant.resource == "*").map(move |grant| (function, grant.action));
        wide.collect::<Vec<_>>()
    };
    let wide: Vec<(Function, String)> = FUNCTIONS.into_iter().flat_map(of_all).collect();
    let known = [(Function::Api, "pricing:GetProducts"), (Function::Sweeper, "sagemaker:ListTrainingJobs")];
    assert_eq!(wide, known.map(|(function, action)| (function, action.to_owned())));
    for function in FUNCTIONS {
        assert!(template.grants(&logical(function)).iter().all(|grant| !grant.action.contains('*')));
    }
}
