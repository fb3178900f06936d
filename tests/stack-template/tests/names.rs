//! Names and values that the template and the code share: environment, table, filters, events, metrics, programs,
//! time-outs.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;
use serde_json::{Value, json};
use stack_template::{Template, list, metrics, root};
use use_cases::perform::CLAIM;
use use_cases::ports::{Millis, SOURCE};
use use_cases::sweep::Limits;
use wire::events::stream::parse;
use wire::item::{EXPIRES_AT, PK, SK};
use wire::names::TAG_STACK;
use wire::stored::{ACTION_PREFIX, FACT_PREFIX, RING_PREFIX};

/// Prefix of the environment variables that Lambda sets.
const OF_LAMBDA: &str = "AWS_";

/// Returns the text of all sources below `folder`, without tests.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("tests.rs") {
            text += &source(&path);
        }
    }
    text
}

/// Returns the text of a source, without its tests.
fn source(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    text.split("#[cfg(test)]").next().unwrap().to_owned()
}

/// Returns the functions of the template: logical ID and program.
fn programs(template: &Template) -> Vec<(String, String)> {
    let functions = template.of_type("AWS::Serverless::Function");
    let programs = functions.iter().map(|(name, function)| {
        let code = function["CodeUri"].as_str().unwrap();
        let program =
            code.strip_prefix("../target/lambda/").and_then(|rest| rest.strip_suffix("/bootstrap.zip"));
        ((*name).to_owned(), program.unwrap().to_owned())
    });
    programs.collect()
}

#[test]
fn the_template_deploys_every_program() {
    let template = Template::read();
    let deployed: BTreeSet<String> = programs(&template).into_iter().map(|(_, program)| program).collect();
    let folders = fs::read_dir(root().join("functions")).unwrap();
    let built: BTreeSet<String> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(deployed, built);
}

#[test]
fn a_functions_environment_has_exactly_the_variables_that_it_reads() {
    let template = Template::whole();
    let quoted = Regex::new(r#""([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)""#).unwrap();
    for (function, program) in programs(&template) {
        let folder = root().join("functions").join(&program);
        let mut text = sources(&folder.join("src"));
        if text.contains("use sagemaker::actuator") {
            text += &sources(&root().join("shared/sagemaker/src/actuator"));
        }
        let has_cap = text.contains("monthly_cap(");
        text += &source(&root().join("shared/lambda/src/settings.rs"));
        let read: BTreeSet<&str> = quoted
            .captures_iter(&text)
            .map(|found| found.get(1).unwrap().as_str())
            .filter(|name| !name.starts_with(OF_LAMBDA))
            // Every function links the reader of this setting, but only functions with a cap call it.
            .filter(|name| has_cap || *name != "MONTHLY_CAP_USD")
            // The program reads it only if API Gateway calls it.
            .filter(|name| function != "InvokeFunction" || *name != "API_SECRET")
            .collect();
        assert_eq!(template.variables(&function), read, "{function}");
    }
}

#[test]
fn the_table_has_the_keys_stream_and_expiry_of_the_code() {
    let template = Template::read();
    let table = template.properties("Table");
    let keys =
        [(PK, "HASH"), (SK, "RANGE")].map(|(name, kind)| json!({"AttributeName": name, "KeyType": kind}));
    assert_eq!(table["KeySchema"], json!(keys));
    let attributes = [PK, SK].map(|name| json!({"AttributeName": name, "AttributeType": "S"}));
    assert_eq!(table["AttributeDefinitions"], json!(attributes));
    assert_eq!(table["TimeToLiveSpecification"], json!({"AttributeName": EXPIRES_AT, "Enabled": true}));
    assert_eq!(table["StreamSpecification"]["StreamViewType"], "NEW_IMAGE");
    for retained in ["DeletionPolicy", "UpdateReplacePolicy"] {
        assert_eq!(template.0["Resources"]["Table"][retained], "Retain");
    }
}

#[test]
fn an_adopted_table_replaces_the_stacks_table_everywhere() {
    let template = Template::with(&["restored-table"]);
    let name = json!({"Ref": "TableName"});
    assert_eq!(template.0["Globals"]["Function"]["Environment"]["Variables"]["TABLE_NAME"], name);
    assert_eq!(template.0["Outputs"]["TableName"]["Value"], name);
    assert_eq!(template.properties("TableNameParameter")["Value"], name);
    for mapping in template.of_type("AWS::Lambda::EventSourceMapping").values() {
        assert_eq!(mapping["EventSourceArn"], json!({"Ref": "TableStreamArn"}));
    }
    assert!(template.of_type("AWS::DynamoDB::Table").is_empty());
    let named = |template: &Template| {
        let text = template.0.to_string();
        [r#"{"Ref":"Table"}"#, r#""Fn::GetAtt":["Table","#].map(|name| text.matches(name).count())
    };
    // No other overlay names the table either, so none breaks with an adopted one.
    assert_eq!((named(&Template::whole()), named(&template)), ([3, 2], [0, 0]));
}

#[test]
fn regression_a_failed_first_deployment_does_not_block_the_next() {
    let template = Template::read();
    let mut kept = 0;
    for (name, resource) in template.0["Resources"].as_object().unwrap() {
        let policy = &resource["DeletionPolicy"];
        if policy.is_null() {
            continue;
        }
        // A retained resource with a fixed name would block the next deployment, so a failed one must delete it.
        let named = resource["Properties"].as_object().unwrap().keys().any(|key| key.ends_with("Name"));
        assert_eq!(policy, if named { "RetainExceptOnCreate" } else { "Retain" }, "{name}");
        assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{name}");
        kept += 1;
    }
    assert_eq!(kept, 2);
}

/// Returns the key prefixes that a stream mapping passes, each with its kinds of change.
fn filters(template: &Template, mapping: &str) -> Vec<(String, Value)> {
    let filters = template.properties(mapping)["FilterCriteria"]["Filters"].as_array().unwrap();
    let read = |filter: &Value| {
        let pattern: Value = serde_json::from_str(filter["Pattern"].as_str().unwrap()).unwrap();
        let key = &pattern["dynamodb"]["Keys"][PK]["S"];
        (key[0]["prefix"].as_str().unwrap().to_owned(), pattern["eventName"].clone())
    };
    filters.iter().map(read).collect()
}

#[test]
fn the_stream_filters_pass_the_rows_of_decider_and_actuator() {
    let template = Template::read();
    let facts =
        [(FACT_PREFIX.to_owned(), json!(["INSERT"])), (RING_PREFIX.to_owned(), json!(["INSERT", "MODIFY"]))];
    assert_eq!(filters(&template, "DeciderStream"), facts);
    assert_eq!(filters(&template, "ActuatorStream"), [(ACTION_PREFIX.to_owned(), json!(["INSERT"]))]);
    // A higher factor reorders a tuning's facts. The order of its actions does not matter.
    let parallel = |mapping| template.properties(mapping)["ParallelizationFactor"].as_i64().unwrap();
    assert_eq!((parallel("DeciderStream"), parallel("ActuatorStream")), (1, 4));
    // The filters and the code read the key at the same path of a record.
    let sample =
        fs::read_to_string(root().join("events/aws.dynamodb/stream-records.other-tables.json")).unwrap();
    let sample: Value = serde_json::from_str(&sample).unwrap();
    let key = &sample["Records"][0]["dynamodb"]["Keys"][PK]["S"];
    assert_eq!(key, &json!(parse(&sample)[0].as_ref().unwrap().key.pk));
    for mapping in ["DeciderStream", "ActuatorStream"] {
        let mapping = template.properties(mapping);
        assert_eq!(mapping["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
        for bounded in ["MaximumRetryAttempts", "MaximumRecordAgeInSeconds"] {
            assert!(mapping[bounded].as_i64().unwrap() > 0, "an unreadable record must not block its shard");
        }
    }
}

#[test]
fn the_rule_passes_the_state_changes_of_our_jobs() {
    let template = Template::read();
    let pattern = &template.properties("TrainingJobRule")["EventPattern"];
    let sample = root().join("events/aws.sagemaker/training-job-state-change.completed.json");
    let sample: Value = serde_json::from_str(&fs::read_to_string(sample).unwrap()).unwrap();
    assert_eq!(pattern["detail-type"], json!([sample["detail-type"]]));
    assert_eq!(pattern["source"], json!([sample["source"]]));
    assert!(wire::events::job_state::JobStateChange::parse(&sample).is_ok());
    // The function decides about events without the tag.
    let ours = json!({"Tags": {TAG_STACK: [{"Ref": "AWS::StackName"}]}});
    let untagged = json!({"Tags": {TAG_STACK: [{"exists": false}]}});
    assert_eq!(pattern["detail"], json!({"$or": [ours, untagged]}));
    assert!(sample["detail"]["Tags"][TAG_STACK].is_string());
    let bus = template.0["Outputs"]["EventBusName"]["Description"].as_str().unwrap();
    assert!(bus.contains(SOURCE), "{bus}");
}

#[test]
fn parameters_that_cannot_work_together_are_refused_before_anything_is_created() {
    let template = Template::whole();
    let rules = template.0["Rules"].as_object().unwrap();
    let is = |name: &str, value: &str| json!({"Fn::Equals": [{"Ref": name}, value]});
    let not = |condition: Value| json!({"Fn::Not": [condition]});
    let has_target = not(json!({"Fn::And": [is("AlarmEmail", ""), is("AlarmTopicArn", "")]}));
    let wanted = [
        ("AlarmsHaveATarget", is("CreateAlarms", "true"), has_target.clone()),
        ("BudgetsHaveATarget", Value::Null, has_target),
        ("PatternsNeedASubscription", is("MetricsFrom", "Polling"), is("TrainingLogPattern", "")),
        ("TicketsAreAlarms", not(is("TicketTopicArn", "")), is("CreateAlarms", "true")),
    ];
    assert_eq!(rules.len(), wanted.len());
    for (name, when, assertion) in wanted {
        assert_eq!(
            (&rules[name]["RuleCondition"], &rules[name]["Assertions"][0]["Assert"]),
            (&when, &assertion)
        );
    }
    for name in ["TrainingLogSubscription", "JobLogsPermission"] {
        assert_eq!(template.0["Resources"][name]["Condition"], "Subscribes");
    }
}

#[test]
fn the_log_group_is_the_one_that_the_code_reads() {
    let template = Template::read();
    let source = sources(&root().join("shared/sagemaker/src"));
    let group =
        Regex::new(r#"LOG_GROUP: &str = "([^"]+)""#).unwrap().captures(&source).unwrap()[1].to_owned();
    assert_eq!(template.properties("TrainingLogGroup")["LogGroupName"], group.as_str());
    let subscribed = &template.properties("TrainingLogSubscription")["LogGroupName"]["Fn::If"];
    assert_eq!(subscribed[2], group.as_str());
}

#[test]
fn functions_time_out_before_their_claims_and_leases_expire() {
    let template = Template::read();
    let limit =
        |function: &str| Millis::from_seconds(template.properties(function)["Timeout"].as_u64().unwrap());
    assert!(limit("ActuatorFunction") < CLAIM, "a claim would expire while its action is performed");
    let Limits { time_ms, lease_ms, .. } = Limits::CLOUD;
    assert!(time_ms < limit("SweeperFunction") && limit("SweeperFunction") < lease_ms);
    let integration = template.properties("ApiIntegration")["TimeoutInMillis"].as_i64().unwrap();
    assert!(limit("ApiFunction") < Millis(integration));
    assert_eq!(template.properties("SweeperSchedule")["ScheduleExpression"], "rate(1 minute)");
}

#[test]
fn charts_and_alarms_use_existing_metrics() {
    let template = Template::whole();
    let dashboard = template.properties("Dashboard")["DashboardBody"]["Fn::Sub"].as_str().unwrap();
    let body: Value = serde_json::from_str(dashboard).unwrap();
    let charts =
        body["widgets"].as_array().unwrap().iter().flat_map(|widget| list(&widget["properties"]["metrics"]));
    let shown: Vec<&str> = charts
        .filter(|metric| metric[0] == "Hyperband")
        .map(|metric| {
            assert_eq!((&metric[2], &metric[3]), (&json!("Stack"), &json!("${AWS::StackName}")));
            metric[1].as_str().unwrap()
        })
        .collect();
    assert!(shown.len() > 20, "{shown:?}");
    let alarms = template.of_type("AWS::CloudWatch::Alarm");
    let watched: Vec<&str> = alarms
        .values()
        .flat_map(|alarm| metrics(alarm))
        .filter(|metric| metric["Namespace"] == "Hyperband")
        .map(|metric| {
            assert_eq!(metric["Dimensions"], json!([{"Name": "Stack", "Value": {"Ref": "AWS::StackName"}}]));
            metric["MetricName"].as_str().unwrap()
        })
        .collect();
    for metric in &watched {
        assert!(shown.contains(metric), "{metric} has an alarm but no chart");
    }
    let emitted = root().join("shared/lambda/src/telemetry");
    if emitted.is_dir() {
        let source = sources(&emitted);
        for name in shown.iter().chain(&watched).chain(&["Hyperband", "Stack"]) {
            assert!(source.contains(&format!("\"{name}\"")), "shared/lambda does not emit {name}");
        }
    }
}

#[test]
fn every_alarm_has_a_class_and_the_queue_and_the_effects_of_failures_are_watched() {
    let template = Template::read();
    let alarms = template.of_type("AWS::CloudWatch::Alarm");
    assert!(alarms.len() <= 10, "{}", alarms.len());
    for (name, alarm) in &alarms {
        let described = alarm["AlarmDescription"].as_str().unwrap();
        // Alarms that can wait may have a target of their own.
        let target = alarm["AlarmActions"][0]["Fn::If"][0].as_str().unwrap();
        assert!(
            matches!(
                (described.split(": ").next(), target),
                (Some("Page"), "HasTopic") | (Some("Ticket"), "HasTickets")
            ),
            "{name}: {described}"
        );
    }
    let queues: Vec<&str> = template.of_type("AWS::SQS::Queue").into_keys().collect();
    assert_eq!(queues, ["DeliveryFailures"]);
    let queue = &metrics(alarms["DeliveryFailuresAlarm"])[0]["Dimensions"][0]["Value"];
    assert_eq!(queue, &json!({"Fn::GetAtt": ["DeliveryFailures", "QueueName"]}));
    // Errors and throttles of a function have no alarm of their own: these metrics show their effects.
    let effects: [(&str, &[&str]); 5] = [
        ("TuningsStuckAlarm", &["TuningsStuck"]),
        ("ActionsMissedAlarm", &["ActionsMissed"]),
        // A sweeper that crashes writes no metric, and no other function sees it.
        ("SweepFailedAlarm", &["SweepFailed", "Errors"]),
        ("ApiFaultsAlarm", &["5xx"]),
        ("DeliveryFailuresAlarm", &["NumberOfMessagesSent", "EventsUnreadable"]),
    ];
    for (name, wanted) in effects {
        let shown: Vec<&Value> =
            metrics(alarms[name]).into_iter().map(|metric| &metric["MetricName"]).collect();
        assert_eq!(json!(shown), json!(wanted), "{name}");
    }
}

#[test]
fn an_alarm_on_a_sum_counts_each_metric_and_zero_for_a_missing_one() {
    let template = Template::read();
    let alarms = template.of_type("AWS::CloudWatch::Alarm");
    let sums: Vec<&Vec<Value>> = alarms.values().filter_map(|alarm| alarm["Metrics"].as_array()).collect();
    assert_eq!(sums.len(), 2);
    for parts in sums {
        let ids = parts[1..].iter().map(|part| {
            // Only the sum is compared with the threshold.
            assert_eq!((&part["ReturnData"], &part["MetricStat"]["Stat"]), (&json!(false), &json!("Sum")));
            format!("FILL({}, 0)", part["Id"].as_str().unwrap())
        });
        let sum = format!("SUM([{}])", ids.collect::<Vec<_>>().join(", "));
        assert_eq!(parts[0], json!({"Id": parts[0]["Id"], "Expression": sum}));
    }
}

/// Returns an alarm: metric, period in seconds, periods, treatment of missing data.
fn watched(template: &Template, name: &str) -> (String, i64, i64, String) {
    let alarm = template.properties(name);
    let text = |key: &str| alarm[key].as_str().unwrap().to_owned();
    let number = |key: &str| alarm[key].as_i64().unwrap();
    (text("MetricName"), number("Period"), number("EvaluationPeriods"), text("TreatMissingData"))
}

#[test]
fn regression_a_sweeper_without_invocations_raises_an_alarm() {
    let template = Template::read();
    let silent = watched(&template, "SweeperSilentAlarm");
    assert_eq!(silent, ("Invocations".to_owned(), 300, 3, "breaching".to_owned()));
    let alarm = template.properties("SweeperSilentAlarm");
    assert_eq!((&alarm["ComparisonOperator"], &alarm["Threshold"]), (&json!("LessThanThreshold"), &json!(1)));
    assert_eq!(alarm["Dimensions"][0]["Value"], json!({"Ref": "SweeperFunction"}));
}

#[test]
fn the_function_for_direct_calls_differs_from_the_api_only_in_its_callers() {
    assert!(Template::read().0["Resources"].get("InvokeFunction").is_none(), "only the overlay adds it");
    let template = Template::whole();
    let of = |function: &str| {
        let mut properties = template.properties(function).clone();
        let calls = properties["Environment"]["Variables"]["CALLS_FROM"].take();
        // Only API Gateway adds the secret.
        let secret = properties["Environment"]["Variables"].as_object_mut().unwrap().remove("API_SECRET");
        assert_eq!(secret.is_some(), calls == json!("ApiGateway"), "{function}");
        let names = ["Description", "Role", "LoggingConfig"].map(|name| properties[name].take());
        (properties, calls, names)
    };
    let (direct, api) = (of("InvokeFunction"), of("ApiFunction"));
    assert_eq!(direct.0, api.0);
    assert_eq!((direct.1, api.1), (json!("Invoke"), json!("ApiGateway")));
    assert_ne!(direct.2, api.2);
    // The payload of API Gateway names its caller, so no other service may send one. The owner of the stack permits direct
    // callers.
    let permissions = template.of_type("AWS::Lambda::Permission");
    let invoking = |function: &str| -> Vec<&Value> {
        let of = permissions.values().filter(|found| found["FunctionName"] == json!({ "Ref": function }));
        of.map(|permission| &permission["Principal"]).collect()
    };
    assert_eq!(invoking("ApiFunction"), [&json!("apigateway.amazonaws.com")]);
    assert!(invoking("InvokeFunction").is_empty());
}

#[test]
fn api_gateway_sends_the_secret_that_the_function_compares() {
    let template = Template::read();
    let integrations = template.of_type("AWS::ApiGatewayV2::Integration");
    assert_eq!(integrations.keys().collect::<Vec<_>>(), [&"ApiIntegration"], "each one must send the secret");
    let sent = &template.properties("ApiIntegration")["RequestParameters"];
    let expected = &template.properties("ApiFunction")["Environment"]["Variables"]["API_SECRET"];
    assert_eq!(sent, &json!({"overwrite:header.x-hyperband-gateway": expected}));
    assert_eq!(expected, &json!({"Fn::Sub": "{{resolve:secretsmanager:${GatewaySecret}}}"}));
    // The function refuses other characters, and CloudFormation resolves a changed reference only.
    let secret = template.properties("GatewaySecret");
    let generated = json!({"PasswordLength": 22, "ExcludePunctuation": true});
    assert_eq!(secret["GenerateSecretString"], generated);
    assert_eq!(secret["Name"], json!({"Fn::Sub": "${AWS::StackName}-gateway-${GatewaySecretNumber}"}));
    let log = template.properties("ApiStage")["AccessLogSettings"]["Format"].as_str().unwrap();
    assert!(!log.to_lowercase().contains("header"), "{log}");
}

#[test]
fn the_routes_are_those_of_the_api_and_require_a_signature() {
    let template = Template::read();
    let routes = template.of_type("AWS::ApiGatewayV2::Route");
    assert!(routes.values().all(|route| route["AuthorizationType"] == "AWS_IAM"), "{routes:?}");
    let keys: BTreeSet<&str> = routes.values().map(|route| route["RouteKey"].as_str().unwrap()).collect();
    assert_eq!(keys, http_api::ROUTES.into());
}

#[test]
fn a_stop_does_not_share_its_limit_with_other_requests() {
    let template = Template::read();
    let routes = template.of_type("AWS::ApiGatewayV2::Route");
    let stops = routes.iter().filter(|(_, route)| route["RouteKey"].as_str().unwrap().ends_with("/stop"));
    let (names, keys): (BTreeSet<&str>, BTreeSet<&str>) =
        stops.map(|(name, route)| (*name, route["RouteKey"].as_str().unwrap())).unzip();
    assert_eq!(keys.len(), 2);
    let stage = template.properties("ApiStage");
    let limited = stage["RouteSettings"].as_object().unwrap();
    assert_eq!(limited.keys().map(String::as_str).collect::<BTreeSet<_>>(), keys);
    for limit in limited.values() {
        // CloudFormation converts a parameter to a number in DefaultRouteSettings only.
        assert!(limit["ThrottlingRateLimit"].is_u64() && limit["ThrottlingBurstLimit"].is_u64(), "{limit}");
    }
    let first = list(&template.0["Resources"]["ApiStage"]["DependsOn"]);
    assert_eq!(first.into_iter().map(|name| name.as_str().unwrap()).collect::<BTreeSet<_>>(), names);
}
