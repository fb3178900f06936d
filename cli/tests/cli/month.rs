//! `cost --month` with a fake stack and a fake Cost Explorer.
//!
//! `cost-explorer.json` has two pages in the documented shape of `GetCostAndUsage`. No account has returned them.

use loopback::{Answer, Call, Service};
use serde_json::{Value, json};
use stack_api::Stack;

use crate::world::{Ended, QUICK, World, ended};

/// A stack with a tuning that has ended.
struct Ran {
    world: World,
    stack: Stack,
    /// The month in which its jobs ended.
    month: String,
    /// Sum of its booked bills, in dollars.
    booked: f64,
}

impl Ran {
    fn new() -> Self {
        let world = World::new(QUICK);
        world.run(&[]).with_code(0);
        let stack = world.stack();
        let described = world.at(&stack, &["describe", "t", "--output", "json"]).with_code(0).json();
        let ended = described["HyperParameterTuningEndTime"].as_f64().unwrap();
        let date = std::process::Command::new("date").args(["-u", "+%Y-%m", &format!("-d@{ended}")]).output();
        let month = String::from_utf8(date.unwrap().stdout).unwrap().trim().to_owned();
        let cost = world.at(&stack, &["cost", "t", "--output", "json"]).with_code(0).json();
        let booked = cost["Totals"]["BookedUsd"].as_f64().unwrap();
        assert!(booked > 0.0, "{cost}");
        Self { world, stack, month, booked }
    }

    /// Compares the month of the tuning with Cost Explorer at `explorer`.
    fn compare(&self, explorer: &Service, more: &[&str]) -> Ended {
        let line = [&["cost", "--month", &self.month, "--endpoint", &self.stack.endpoint], more].concat();
        let mut command = self.world.command(&line);
        command.env("AWS_ENDPOINT_URL_COST_EXPLORER", &explorer.endpoint).env("AWS_REGION", "eu-west-1");
        command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "secret");
        ended(command.spawn().unwrap())
    }

    fn json(&self, explorer: &Service) -> Value {
        self.compare(explorer, &["--output", "json"]).with_code(0).json()
    }
}

fn pages() -> Value {
    serde_json::from_str(include_str!("../cost-explorer.json")).unwrap()
}

/// Returns a Cost Explorer with the recorded pages.
fn recorded() -> Service {
    let pages = pages();
    Service::start(move |call: &Call| {
        let is_second = call.body["NextPageToken"] == "page-2";
        Answer::done(&pages[usize::from(is_second)])
    })
}

#[test]
fn the_ledger_is_compared_with_the_bill() {
    let ran = Ran::new();
    let explorer = recorded();
    let json = ran.json(&explorer);
    assert_eq!((&json["Month"], &json["StackName"]), (&json!(ran.month), &json!("prod")));
    assert_eq!((&json["TuningJobs"], &json["TrainingJobs"]), (&json!(1), &json!(6)));
    let usage = json!([
        {"UsageType": "EU-Train:VolumeUsage.gp2", "AwsUsd": 0.000_035},
        {"UsageType": "EU-Train:ml.m5.large", "AwsUsd": 0.000_765},
    ]);
    assert_eq!((&json["UsageTypes"], &json["AwsUsd"]), (&usage, &json!(0.0008)));
    assert_eq!(json["BookedUsd"], json!(ran.booked));
    let difference = json["DifferenceUsd"].as_f64().unwrap();
    assert!((ran.booked - 0.0008 - difference).abs() < 1e-9, "{json}");
    let percent = json["DifferencePercent"].as_f64().unwrap();
    assert!((difference / 0.0008 * 100.0 - percent).abs() <= 0.051, "{json}");
    assert_eq!(json["EstimatedDays"], json!(["2026-11-03", "2026-11-04"]));
    assert_eq!((&json["CostExplorerRequests"], &json["LikelyCause"]), (&json!(2), &Value::Null));

    let shown = ran.compare(&explorer, &[]).with_code(0).out;
    for part in [
        &format!("prod, {} (UTC)\n", ran.month),
        "6 training jobs of 1 tuning, which ended in the month",
        "AWS            $0.0008  usage with the stack's tag, before credits, discounts and tax",
        "% of AWS's amount, booked minus AWS",
        "EU-Train:ml.m5.large      $0.000765\n",
        "not final: 2 days from 2026-11-03 to 2026-11-04;",
        "AWS charges $0.0200 for 2 requests to Cost Explorer",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains("not booked yet") && !shown.contains("in two months"), "{shown}");
}

#[test]
fn one_question_selects_the_usage_of_the_stack_by_its_tag() {
    let ran = Ran::new();
    let explorer = recorded();
    ran.json(&explorer);
    let calls = explorer.calls();
    assert_eq!(calls.len(), 2);
    let mut asked = calls[0].body.clone();
    assert_eq!(calls[0].target, "AWSInsightsIndexService.GetCostAndUsage");
    let period = asked["TimePeriod"].take();
    assert_eq!(period["Start"], json!(format!("{}-01", ran.month)));
    assert!(period["Start"].as_str() < period["End"].as_str(), "{period}");
    let is = |key: &str, values: Value| json!({"Dimensions": {"Key": key, "Values": values}});
    let expected = json!({
        "TimePeriod": null, "Granularity": "DAILY", "Metrics": ["UnblendedCost"],
        "Filter": {"And": [
            {"Tags": {"Key": "hyperband:stack", "Values": ["prod"]}},
            is("LINKED_ACCOUNT", json!(["111122223333"])),
            is("REGION", json!(["eu-west-1"])),
            is("RECORD_TYPE", json!(["Usage", "DiscountedUsage", "SavingsPlanCoveredUsage"])),
        ]},
        "GroupBy": [{"Type": "DIMENSION", "Key": "USAGE_TYPE"}],
    });
    assert_eq!(asked, expected);
    let mut next = calls[1].body.clone();
    assert_eq!(next["NextPageToken"].take(), "page-2");
    assert_eq!(next["Filter"], expected["Filter"]);
    let signature = explorer.requests()[0].header("authorization").unwrap().to_owned();
    assert!(signature.contains("/us-east-1/ce/aws4_request"), "{signature}");
}

#[test]
fn direct_calls_need_the_name_of_the_stack() {
    let ran = Ran::new();
    let explorer = recorded();
    let compare = |more: &[&str]| {
        let address = "lambda:arn:aws:lambda:eu-west-2:111122223333:function:tune";
        let line =
            [&["cost", "--month", &ran.month, "--endpoint", address, "--output", "json"], more].concat();
        let mut command = ran.world.command(&line);
        command
            .env("AWS_ENDPOINT_URL_LAMBDA", &ran.stack.endpoint)
            .env("AWS_ENDPOINT_URL", &explorer.endpoint);
        ended(command.spawn().unwrap())
    };
    let without = compare(&[]).with_code(2).err;
    assert!(without.contains("hint: set --stack-name") && explorer.calls().is_empty(), "{without}");
    let json = compare(&["--stack-name", "other"]).with_code(0).json();
    assert_eq!((&json["StackName"], &json["AwsUsd"]), (&json!("other"), &json!(0.0008)));
    let asked = explorer.calls()[0].body["Filter"]["And"][0]["Tags"]["Values"].clone();
    assert_eq!(asked, json!(["other"]));
    let misplaced = ran.world.hyperband(&["cost", "t", "--stack-name", "other"]).with_code(2).err;
    assert!(misplaced.contains("cannot be used with"), "{misplaced}");
}

#[test]
fn a_bill_of_zero_has_a_likely_cause() {
    let ran = Ran::new();
    let day = json!({
        "TimePeriod": {"Start": "2026-11-01", "End": "2026-11-02"},
        "Total": {"UnblendedCost": {"Amount": "0", "Unit": "USD"}}, "Groups": [], "Estimated": false,
    });
    let explorer = Service::start(move |_| Answer::done(&json!({"ResultsByTime": [day]})));
    let shown = ran.compare(&explorer, &[]).with_code(0).out;
    for part in [
        "AWS            $0.0000",
        "TagKey=hyperband:stack,Status=Active",
        "all days are final",
        "for 1 request to",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let json = ran.json(&explorer);
    assert_eq!((&json["DifferenceUsd"], &json["DifferencePercent"]), (&json!(ran.booked), &Value::Null));
    assert!(json["LikelyCause"].as_str().unwrap().contains("cost allocation tag"), "{json}");
}

#[test]
fn a_refusal_names_the_action_and_the_fix() {
    let ran = Ran::new();
    for (code, fix) in [
        ("AccessDeniedException", "hint: allow ce:GetCostAndUsage on all resources"),
        ("DataUnavailableException", "hint: Cost Explorer has no data yet"),
        ("ValidationException", "hint: Cost Explorer has the days of this month and of the 13 months before"),
    ] {
        let explorer = Service::start(move |_| Answer::error(400, code, "no"));
        let refused = ran.compare(&explorer, &[]).with_code(3).err;
        let error = format!("error: cannot read AWS's bill with ce:GetCostAndUsage: {code}: no\n");
        assert!(refused.starts_with(&error) && refused.contains(fix), "{refused}");
        assert_eq!(explorer.calls().len(), 1, "{code}");
    }
}

#[test]
fn an_answer_that_cannot_be_compared_is_an_error() {
    let ran = Ran::new();
    let yuan = pages().to_string().replace("\"USD\"", "\"CNY\"");
    let yuan: Value = serde_json::from_str(&yuan).unwrap();
    let first = pages()[0].clone();
    for (answer, why) in [
        (yuan[0].clone(), "its costs are in 'CNY', and the ledger is in USD"),
        (json!({}), "no ResultsByTime"),
        (first, "its answer has more than 10 pages"),
    ] {
        let explorer = Service::start(move |_| Answer::done(&answer));
        let refused = ran.compare(&explorer, &[]).with_code(3).err;
        assert!(refused.contains(&format!("cannot compare with Cost Explorer: {why}")), "{refused}");
        assert!(explorer.calls().len() <= 10);
    }
}

#[test]
fn nothing_is_asked_about_a_month_without_jobs() {
    let ran = Ran::new();
    let explorer = recorded();
    let refuses = |month: &str, why: &str| {
        let line = ["cost", "--month", month, "--endpoint", &ran.stack.endpoint];
        let mut command = ran.world.command(&line);
        let refused =
            ended(command.env("AWS_ENDPOINT_URL", &explorer.endpoint).spawn().unwrap()).with_code(2);
        assert!(refused.err.contains(why), "{why} in {refused:?}");
    };
    refuses("2020-01", "the stack has no training job of 2020-01 to compare");
    refuses("9000-01", "the month 9000-01 has not begun (UTC)");
    refuses("2026-13", "expected a month, for example 2026-11");
    assert!(explorer.calls().is_empty());
    let without = ran.world.hyperband(&["cost", "--month"]).with_code(2).err;
    assert!(without.contains("no stack is given") && without.contains("HYPERBAND_ENDPOINT"), "{without}");
    let both = ran.world.hyperband(&["cost", "t", "--month", &ran.month]).with_code(2).err;
    assert!(both.contains("cannot be used with"), "{both}");
    let local = ran.world.at(&ran.stack, &["cost", "--month"]).with_code(2).err;
    assert!(local.contains("set AWS_ENDPOINT_URL_COST_EXPLORER or AWS_ENDPOINT_URL"), "{local}");
}
