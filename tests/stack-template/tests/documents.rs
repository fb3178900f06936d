//! Compares the documents for operators with the template: every output, alarm and right, and no other.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use regex::Regex;
use serde_json::Value;
use stack_template::{Template, root};
use wire::request::Request;

/// The labels of each section of the runbook, in order.
const ANSWERS: [&str; 5] = ["Means", "Urgency", "Check", "Do", "Safe"];

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the names of the members of a part of the template.
fn names<'a>(template: &'a Template, part: &str) -> BTreeSet<&'a str> {
    template.0[part].as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns the part of a document below the heading `title`, up to the next heading of its level or above.
fn below<'a>(text: &'a str, title: &str) -> &'a str {
    let start = text.find(&format!("\n{title}\n")).unwrap_or_else(|| panic!("no heading '{title}'"));
    let rest = &text[start + title.len() + 2..];
    let level = title.split(' ').next().unwrap().len();
    let ends = (1..=level).filter_map(|level| rest.find(&format!("\n{} ", "#".repeat(level))));
    &rest[..ends.min().unwrap_or(rest.len())]
}

/// Returns the sections of the runbook by alarm.
fn sections(runbook: &str) -> BTreeMap<&str, &str> {
    let alarms = below(runbook, "## Alarms").split("\n### ").skip(1);
    let named = alarms.map(|section| {
        let (title, body) = section.split_once('\n').unwrap();
        (title.trim_matches('`'), body)
    });
    named.collect()
}

#[test]
fn every_alarm_has_its_section_in_the_runbook() {
    let (template, text) = (Template::read(), document("docs/OPERATIONS.md"));
    let sections = sections(&text);
    let alarms: BTreeSet<&str> = template.of_type("AWS::CloudWatch::Alarm").into_keys().collect();
    assert_eq!(sections.keys().copied().collect::<BTreeSet<_>>(), alarms);
    let answers = Regex::new(r"(?m)^- \*\*(\w+):\*\* \S").unwrap();
    for (alarm, section) in sections {
        let given: Vec<&str> =
            answers.captures_iter(section).map(|found| found.get(1).unwrap().as_str()).collect();
        assert_eq!(given, ANSWERS, "{alarm}");
    }
}

#[test]
fn every_output_has_its_row() {
    let (template, text) = (Template::whole(), document("docs/DEPLOY.md"));
    let step = below(&text, "## 4. Deploy the stack");
    let listed: String = step.lines().filter(|line| line.starts_with("| `")).collect();
    let name = Regex::new(r"`(\w+)`").unwrap();
    let cells: BTreeSet<&str> =
        name.captures_iter(&listed).map(|found| found.get(1).unwrap().as_str()).collect();
    let outputs = names(&template, "Outputs");
    assert!(outputs.is_subset(&cells), "{outputs:?} {cells:?}");
}

#[test]
fn every_resource_that_the_documents_name_exists() {
    let template = Template::whole();
    let known: BTreeSet<&str> = ["Resources", "Parameters", "Outputs", "Conditions"]
        .iter()
        .flat_map(|part| names(&template, part))
        .collect();
    let named = Regex::new(
        r"\b[A-Z][A-Za-z]+(?:Alarm|Failures|Function|Rule|Subscription|Policy|PolicyArn|Schedule)\b",
    )
    .unwrap();
    let mut seen = 0;
    let documents = "OPERATIONS REFERENCE DEPLOY ENTERPRISE LIFECYCLE PARAMETERS SECURITY UNVERIFIED";
    for name in documents.split(' ') {
        let path = format!("docs/{name}.md");
        let text = document(&path);
        for found in named.find_iter(&text) {
            // IAM's own names: an action follows its service and a colon; `UpdateReplacePolicy` is a property.
            let of_iam = text[..found.start()].ends_with(':') || found.as_str() == "UpdateReplacePolicy";
            assert!(of_iam || known.contains(found.as_str()), "{path} names {}", found.as_str());
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn all_functions_are_built_and_the_document_has_the_sum_of_their_concurrency() {
    let (template, text) = (Template::read(), document("docs/DEPLOY.md"));
    // The list that build.sh builds and release.sh packs.
    let packing = document("infra/pack.py");
    let list = packing.split("FUNCTIONS = [").nth(1).unwrap().split(']').next().unwrap();
    let built: BTreeSet<&str> = list.split(", ").map(|name| name.trim_matches('"')).collect();
    let functions = template.of_type("AWS::Serverless::Function");
    let uris = functions.values().map(|function| function["CodeUri"].as_str().unwrap());
    let deployed: BTreeSet<&str> = uris.map(|uri| uri.split('/').rev().nth(1).unwrap()).collect();
    assert_eq!(built, deployed);
    let reserved = |function: &&Value| function["ReservedConcurrentExecutions"]["Fn::If"][1].as_i64();
    let sum: i64 = functions.values().map(|function| reserved(function).unwrap()).sum();
    let shown = format!("reserves {sum} concurrent executions");
    assert!(text.contains(&shown), "{shown}");
    let quota = format!("quota must be at least {}", sum + 100);
    assert!(text.contains(&quota), "{quota}");
}

#[test]
fn the_first_requests_are_valid() {
    let text = document("docs/DEPLOY.md");
    let role = deployed_role(&text);
    for name in ["first-xgboost", "first"] {
        let path = format!("examples/{name}.json");
        assert!(below(&text, "## 5. The first tuning").contains(&path), "{path}");
        let request = Request::parse(document(&path).as_bytes()).unwrap();
        assert_eq!(request.name(), name);
        assert_eq!(request.at("Controller.MaxCostUsd").unwrap().as_u64(), Some(1));
        assert_eq!(request.at("TrainingJobDefinition.RoleArn").unwrap().as_str(), Some(role));
    }
}

/// Returns the role that the document writes into the settings.
fn deployed_role(text: &str) -> &str {
    let role = below(text, "## 4. Deploy the stack").split("ExecutionRoleArns=").nth(1).unwrap();
    role.split('"').next().unwrap()
}

/// Rights in the format of `docs/SECURITY.md`: an IAM action and, for rows, the partition.
type Rights = BTreeSet<(String, String)>;

/// Returns the functions that a first cell of the table of rights names.
fn functions_of(cell: &str) -> Vec<&str> {
    let all = ["api", "invoke", "job-events", "job-logs", "decider", "actuator", "sweeper"];
    match cell.split_once("all") {
        None => cell.split(", ").collect(),
        Some((_, rest)) => {
            let without: Vec<&str> = rest.trim_start_matches(" but ").split(", ").collect();
            all.into_iter().filter(|name| !without.contains(name)).collect()
        }
    }
}

/// Returns the rights in a cell such as "`GetItem`, `Query` on `T#`, `F#`" or "`logs:A`, `B` on their own log group".
fn rights_of(cell: &str) -> Rights {
    let code = Regex::new("`([^`]+)`").unwrap();
    let codes =
        |text: &str| -> Vec<String> { code.captures_iter(text).map(|found| found[1].to_owned()).collect() };
    let (what, place) = cell.split_once(" on ").unwrap_or((cell, ""));
    let actions = codes(what.split(" if ").next().unwrap());
    let service = actions[0].split_once(':').map_or("dynamodb", |(service, _)| service).to_owned();
    let named = actions.iter().map(|action| match action.split_once(':') {
        Some(_) => action.clone(),
        None => format!("{service}:{action}"),
    });
    let rows = |action: &str| ROWS.iter().any(|of_rows| action.strip_prefix("dynamodb:") == Some(of_rows));
    let of_place = |action: String| {
        let partitions = if rows(&action) { codes(place) } else { vec![String::new()] };
        partitions.into_iter().map(move |partition| (action.clone(), partition))
    };
    named.flat_map(of_place).collect()
}

const ROWS: [&str; 4] = ["GetItem", "Query", "PutItem", "DeleteItem"];

#[test]
fn the_table_of_rights_equals_the_roles() {
    let (template, text) = (Template::whole(), document("docs/SECURITY.md"));
    let mut documented: BTreeMap<&str, Rights> = BTreeMap::new();
    let mut functions = Vec::new();
    for row in
        below(&text, "### What each function may do").lines().filter(|line| line.starts_with('|')).skip(2)
    {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        if !cells[0].is_empty() {
            functions = functions_of(cells[0]);
        }
        for function in &functions {
            documented.entry(function).or_default().extend(rights_of(cells[1]));
        }
    }
    let mut granted: BTreeMap<&str, Rights> = BTreeMap::new();
    for (name, function) in template.of_type("AWS::Serverless::Function") {
        // Two functions have the same program, so the document names functions by their logs.
        let log = function["LoggingConfig"]["LogGroup"]["Ref"].as_str().unwrap();
        let log = template.properties(log)["LogGroupName"]["Fn::Sub"].as_str().unwrap();
        let title = log.strip_prefix("/aws/lambda/${AWS::StackName}-").unwrap();
        // A sentence below the table covers the owner's KMS key.
        let grants = template.grants(name).into_iter().filter(|grant| !grant.action.starts_with("kms:"));
        let rights = grants.flat_map(|grant| {
            let keys = grant.condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"].as_array().cloned();
            let kind = |key: Value| key.as_str().unwrap().trim_end_matches('*').to_owned();
            let kinds: Vec<String> =
                keys.map_or(vec![String::new()], |keys| keys.into_iter().map(kind).collect());
            kinds.into_iter().map(move |kind| (grant.action.clone(), kind))
        });
        granted.insert(title, rights.collect());
    }
    assert_eq!(documented, granted);
}
