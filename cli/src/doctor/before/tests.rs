//! Tests each check with samples of AWS's answers.

use api_client::{ClientError, ServiceError};
use serde_json::{Value, json};
use tuning::unit::money::MicroUsd;

use super::actions::{GROUPS, Need};
use super::finding::Finding;
use super::identity::{self, Identity, Principal};
use super::network::{self, Network};
use super::permissions::{self, Decision, Simulated};
use super::prices::{self, Price};
use super::quotas::{self, Quotas};
use super::show::{Place, as_json, as_text};
use super::{logs, role};
use crate::doctor::verdict::Verdict;

const REGION: &str = "eu-west-1";
const STACK: &str = "hyperband-dev";
const ROLE: &str = "arn:aws:iam::111122223333:role/training";

fn refused(code: &str, message: &str) -> ServiceError {
    ServiceError::Refused { status: 400, code: code.to_owned(), message: message.to_owned() }
}

fn denied() -> ServiceError {
    refused("AccessDeniedException", "User is not authorized")
}

fn broken() -> ServiceError {
    ServiceError::Failed(ClientError::Foreign("status 200: <html>".to_owned()))
}

/// Returns the verdict, and the parameters as texts.
fn shown(finding: &Finding) -> (&'static str, Vec<String>) {
    let parameters = finding.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    (finding.verdict.word(), parameters.collect())
}

fn none() -> Vec<String> {
    Vec::new()
}

fn one(parameter: &str) -> Vec<String> {
    vec![parameter.to_owned()]
}

fn caller() -> Identity {
    Identity { arn: "arn:aws:iam::111122223333:user/me".to_owned(), account: "111122223333".to_owned() }
}

#[test]
fn refused_credentials_are_a_no_and_an_unreachable_service_is_not() {
    let answer =
        json!({"GetCallerIdentityResult": {"Arn": caller().arn, "Account": "111122223333", "UserId": "A"}});
    assert_eq!(Identity::parse(&Ok(answer.clone())), Some(caller()));
    assert_eq!(shown(&identity::judge(&Ok(answer), REGION)).0, "yes");
    for (error, word) in [
        (refused("ExpiredToken", "The security token included in the request is expired"), "no"),
        (refused("InvalidClientTokenId", "The security token is invalid"), "no"),
        (ServiceError::Failed(ClientError::Credentials("no provider".to_owned())), "no"),
        (broken(), "not tried"),
    ] {
        assert_eq!(shown(&identity::judge(&Err(error.clone()), REGION)).0, word, "{error}");
    }
    assert_eq!(shown(&identity::judge(&Ok(json!({})), REGION)).0, "not tried");
}

#[test]
fn the_principal_of_a_session_is_its_role() {
    let home = |arn: &str| {
        let identity = Identity { arn: arn.to_owned(), account: "111122223333".to_owned() };
        identity::home(Some(&identity), None, REGION, STACK).unwrap()
    };
    let session = home("arn:aws-us-gov:sts::111122223333:assumed-role/Admin/me@example.com");
    assert_eq!(session.principal, Principal::Role("Admin".to_owned()));
    assert_eq!((session.partition.as_str(), session.account.as_str()), ("aws-us-gov", "111122223333"));
    let user = "arn:aws:iam::111122223333:user/a/me";
    assert_eq!(home(user).principal, Principal::Known(user.to_owned()));
    for other in ["arn:aws:iam::111122223333:root", "arn:aws:sts::111122223333:federated-user/me"] {
        assert_eq!(home(other).principal, Principal::Other(other.to_owned()));
    }
    let given = identity::home(Some(&caller()), Some(ROLE), REGION, STACK).unwrap();
    assert_eq!(given.principal, Principal::Known(ROLE.to_owned()));
    assert_eq!(identity::home(None, None, REGION, STACK), None);
}

#[test]
fn concurrency_is_reserved_only_if_100_executions_stay_unreserved() {
    let settings = |quota: u64, unreserved: u64| {
        let limit = json!({"ConcurrentExecutions": quota, "UnreservedConcurrentExecutions": unreserved});
        shown(&quotas::judge_concurrency(&Ok(
            json!({"AccountLimit": limit, "AccountUsage": {"FunctionCount": 1}}),
        )))
    };
    assert_eq!(settings(1_000, 1_000), ("yes", one("ReserveConcurrency=true")));
    assert_eq!(settings(1_000, 222), ("yes", one("ReserveConcurrency=true")));
    assert_eq!(settings(1_000, 221), ("yes", one("ReserveConcurrency=false")));
    assert_eq!(settings(10, 10), ("yes", one("ReserveConcurrency=false")));
    assert_eq!(settings(9, 9), ("no", none()));
    assert_eq!(shown(&quotas::judge_concurrency(&Ok(json!({})))), ("not tried", none()));
    let finding = quotas::judge_concurrency(&Err(denied()));
    assert!(finding.verdict.evidence().contains("lambda:GetAccountSettings"), "{finding:?}");
    assert_eq!(shown(&finding), ("not tried", none()));
}

fn groups(names: &[&str]) -> Value {
    json!({"logGroups": names.iter().map(|name| json!({"logGroupName": name})).collect::<Vec<Value>>()})
}

fn filters(names: &[&str]) -> Value {
    json!({"subscriptionFilters": names.iter().map(|name| json!({"filterName": name})).collect::<Vec<Value>>()})
}

#[test]
fn the_stack_creates_the_log_group_only_if_it_is_missing() {
    let absent = || Err(refused("ResourceNotFoundException", "The specified log group does not exist."));
    let judge = |groups, filters| shown(&logs::judge_group(&groups, &filters, STACK));
    let group = super::LOG_GROUP;
    assert_eq!(judge(Ok(groups(&[])), absent()), ("yes", one("CreateTrainingLogGroup=true")));
    let longer = format!("{group}-old");
    assert_eq!(judge(Ok(groups(&[&longer])), absent()), ("yes", one("CreateTrainingLogGroup=true")));
    assert_eq!(
        judge(Ok(groups(&[group])), Ok(filters(&["a"]))),
        ("yes", one("CreateTrainingLogGroup=false"))
    );
    // A deployed stack may own the group.
    assert_eq!(judge(Ok(groups(&[group])), Ok(filters(&["hyperband-dev-objective"]))), ("yes", none()));
    assert_eq!(judge(Err(denied()), Ok(filters(&[]))), ("yes", one("CreateTrainingLogGroup=false")));
    assert_eq!(judge(Err(denied()), absent()), ("yes", one("CreateTrainingLogGroup=true")));
    assert_eq!(judge(Err(denied()), Err(denied())), ("not tried", none()));
}

#[test]
fn two_foreign_subscriptions_require_polling() {
    let judge = |names: &[&str]| shown(&logs::judge_subscriptions(&Ok(filters(names)), STACK));
    assert_eq!(judge(&[]), ("yes", none()));
    assert_eq!(judge(&["a"]), ("yes", none()));
    assert_eq!(judge(&["a", "hyperband-dev-objective"]), ("yes", none()));
    assert_eq!(judge(&["a", "hyperband-prod-objective"]), ("warning", one("MetricsFrom=Polling")));
    let absent = Err(refused("ResourceNotFoundException", "no"));
    assert_eq!(shown(&logs::judge_subscriptions(&absent, STACK)), ("yes", none()));
    assert_eq!(shown(&logs::judge_subscriptions(&Err(denied()), STACK)), ("not tried", none()));
}

#[test]
fn a_missing_price_weakens_caps_and_only_the_organization_proves_a_denial() {
    let judge = |price: Price| {
        let found =
            [("ml.m5.large".to_owned(), price), ("volumes".to_owned(), Price::Found(MicroUsd(140_000)))];
        prices::judge(Some(&found), REGION)
    };
    let found = judge(Price::Found(MicroUsd(115_000)));
    assert_eq!(shown(&found), ("yes", none()));
    assert!(found.verdict.evidence().contains("ml.m5.large $0.115"), "{found:?}");
    let missing = judge(Price::Missing);
    assert_eq!(shown(&missing), ("warning", none()));
    assert!(missing.fix.unwrap().contains("deploy with InstancePrices="));
    assert_eq!(shown(&prices::judge(None, "xx-north-9")), ("warning", none()));
    assert_eq!(shown(&judge(Price::Unreadable("row".to_owned()))), ("not tried", none()));
    for error in [denied(), broken()] {
        let finding = judge(Price::Failed(error));
        assert_eq!(shown(&finding), ("not tried", none()));
        assert!(finding.fix.unwrap().contains("PricesInRequests=Any"));
    }
    let message =
        "is not authorized to perform: pricing:GetProducts with an explicit deny in a service control policy";
    let finding = judge(Price::Failed(refused("AccessDeniedException", message)));
    assert_eq!(shown(&finding), ("warning", one("PricesInRequests=Any")));
}

fn trust(statement: &Value) -> (&'static str, Vec<String>) {
    let policy = json!({"Version": "2012-10-17", "Statement": statement}).to_string();
    let encoded = policy.replace('%', "%25").replace('"', "%22").replace('{', "%7B").replace('}', "%7D");
    found_role(&json!({"Arn": ROLE, "AssumeRolePolicyDocument": encoded}))
}

fn found_role(found: &Value) -> (&'static str, Vec<String>) {
    let answer = Ok(json!({"GetRoleResult": {"Role": found}}));
    shown(&role::judge(Some(&role::parse(ROLE).unwrap()), Some(&answer), Some(&caller())))
}

#[test]
fn sagemaker_must_be_able_to_assume_the_role() {
    let parameter = || one(&format!("ExecutionRoleArns={ROLE}"));
    let allow = json!({"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"});
    assert_eq!(trust(&allow), ("yes", parameter()));
    let listed = json!({"Effect": "Allow", "Principal": {"Service": ["lambda.amazonaws.com", "sagemaker.amazonaws.com"]},
        "Action": ["sts:TagSession", "sts:AssumeRole"]});
    assert_eq!(trust(&json!([listed])), ("yes", parameter()));
    let mut conditional = allow.clone();
    conditional["Condition"] = json!({"StringEquals": {"aws:SourceAccount": "111122223333"}});
    assert_eq!(trust(&conditional), ("warning", parameter()));
    assert_eq!(trust(&json!([conditional, allow])), ("yes", parameter()));
    let mut deny = allow.clone();
    deny["Effect"] = json!("Deny");
    assert_eq!(trust(&json!([allow, deny])), ("no", none()));
    let other =
        json!({"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"});
    assert_eq!(trust(&other), ("no", none()));
    let user = json!({"Effect": "Allow", "Principal": {"AWS": "111122223333"}, "Action": "sts:AssumeRole"});
    assert_eq!(trust(&user), ("no", none()));
}

#[test]
fn the_role_must_exist_in_the_account_under_its_whole_arn() {
    let parsed = role::parse(ROLE).unwrap();
    let judge = |answer| shown(&role::judge(Some(&parsed), Some(&answer), Some(&caller()))).0;
    assert_eq!(judge(Err(refused("NoSuchEntity", "cannot be found"))), "no");
    assert_eq!(judge(Err(refused("AccessDenied", "no"))), "not tried");
    assert_eq!(judge(Err(broken())), "not tried");
    assert_eq!(found_role(&json!({"Arn": "arn:aws:iam::111122223333:role/path/training"})).0, "no");
    for document in ["%", "%zz", "{"] {
        assert_eq!(found_role(&json!({"Arn": ROLE, "AssumeRolePolicyDocument": document})).0, "not tried");
    }
    let foreign = role::parse("arn:aws:iam::444455556666:role/training").unwrap();
    assert_eq!(shown(&role::judge(Some(&foreign), Some(&Err(denied())), Some(&caller()))).0, "no");
    assert_eq!(shown(&role::judge(None, None, Some(&caller()))).0, "not tried");
    assert_eq!(role::parse("arn:aws:iam::111122223333:role/a/b/c").unwrap().name, "c");
    for arn in [
        "training",
        "arn:aws:iam::1:role/a",
        "arn:aws:iam::111122223333:user/a",
        "arn:aws:iam::111122223333:role/a*",
    ] {
        assert!(role::parse(arn).is_err(), "{arn}");
    }
}

#[test]
fn a_training_quota_of_0_is_a_no_and_of_spot_only_with_spot() {
    let types = ["ml.m5.large".to_owned(), "ml.g5.xlarge".to_owned()];
    let quotas = |values: &[(&str, f64)]| -> Quotas {
        Ok(values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
    };
    let all = quotas(&[
        ("ml.m5.large for training job usage", 15.0),
        ("ml.g5.xlarge for training job usage", 0.0),
        ("ml.m5.large for spot training job usage", 0.0),
        ("ml.g5.xlarge for spot training job usage", 2.0),
    ]);
    let finding = quotas::judge_training(&all, &types);
    assert_eq!(shown(&finding).0, "no");
    assert_eq!(finding.verdict.evidence(), "instances: ml.m5.large: 15, ml.g5.xlarge: 0");
    assert!(finding.fix.unwrap().contains("\"ml.g5.xlarge for training job usage\""));
    assert_eq!(shown(&quotas::judge_training(&all, &types[..1])).0, "yes");
    assert_eq!(shown(&quotas::judge_spot(&all, &types, true)).0, "no");
    assert_eq!(shown(&quotas::judge_spot(&all, &types, false)).0, "warning");
    assert_eq!(shown(&quotas::judge_training(&quotas(&[]), &types)).0, "not tried");
    let failed = Err(("servicequotas:ListServiceQuotas".to_owned(), denied()));
    let finding = quotas::judge_training(&failed, &types);
    assert!(finding.verdict.evidence().contains("servicequotas:ListServiceQuotas"), "{finding:?}");
}

fn table(id: &str, association: &Value, routes: &Value) -> Value {
    json!({"routeTableId": id, "associationSet": [association], "routeSet": routes})
}

fn gateway(service: &str, tables: &[&str]) -> Value {
    json!({"serviceName": format!("com.amazonaws.{REGION}.{service}"), "vpcEndpointType": "Gateway",
        "state": "available", "routeTableIdSet": tables})
}

fn interface(service: &str, state: &str) -> Value {
    json!({"serviceName": format!("com.amazonaws.{REGION}.{service}"), "vpcEndpointType": "Interface", "state": state,
        "routeTableIdSet": ""})
}

/// A VPC with a private subnet `subnet-1` in the main table, and a public subnet `subnet-2`.
fn vpc(subnets: &[&str], private: &Value, endpoints: &[Value]) -> Network {
    let described =
        subnets.iter().map(|id| json!({"subnetId": id, "vpcId": "vpc-1"})).collect::<Vec<Value>>();
    let public = json!([{"destinationCidrBlock": "0.0.0.0/0", "gatewayId": "igw-1", "state": "active"}]);
    let tables = [
        table("rtb-1", &json!({"main": "true", "routeTableId": "rtb-1"}), private),
        table("rtb-2", &json!({"main": "false", "subnetId": "subnet-2"}), &public),
    ];
    Network {
        subnets: subnets.iter().map(|id| (*id).to_owned()).collect(),
        described: (!subnets.is_empty()).then(|| Ok(json!({"subnetSet": described}))),
        vpc: Some("vpc-1".to_owned()),
        endpoints: Some(Ok(json!({"vpcEndpointSet": endpoints}))),
        tables: Some(Ok(json!({"routeTableSet": tables}))),
    }
}

fn judged(network: &Network) -> [&'static str; 2] {
    let findings = network::judge(Some(network), REGION);
    [shown(&findings[0]).0, shown(&findings[1]).0]
}

#[test]
fn jobs_in_a_vpc_need_an_endpoint_of_s3_or_a_route() {
    let local = json!([{"destinationCidrBlock": "10.0.0.0/16", "gatewayId": "local", "state": "active"}]);
    let route =
        |state: &str| json!([{"destinationCidrBlock": "0.0.0.0/0", "natGatewayId": "nat-1", "state": state}]);
    let s3 = |tables: &[&str]| [gateway("s3", tables)];
    assert_eq!(judged(&vpc(&["subnet-1"], &local, &[])), ["warning", "warning"]);
    assert_eq!(judged(&vpc(&["subnet-1"], &route("active"), &[])), ["yes", "yes"]);
    assert_eq!(judged(&vpc(&["subnet-1"], &route("blackhole"), &[])), ["warning", "warning"]);
    assert_eq!(judged(&vpc(&["subnet-1"], &local, &s3(&["rtb-1"])))[0], "yes");
    // The endpoint is in the route table of another subnet.
    assert_eq!(judged(&vpc(&["subnet-1"], &local, &s3(&["rtb-2"])))[0], "warning");
    assert_eq!(judged(&vpc(&["subnet-1"], &local, &[interface("s3", "available")]))[0], "yes");
    assert_eq!(judged(&vpc(&["subnet-1"], &local, &[interface("s3", "pending")]))[0], "warning");
    // Jobs have no public address, so an internet gateway is no way out.
    assert_eq!(judged(&vpc(&["subnet-2"], &local, &[]))[0], "warning");
    assert_eq!(judged(&vpc(&[], &route("active"), &[]))[0], "warning");
}

#[test]
fn missing_endpoints_of_functions_are_named_with_the_regions_of_the_price_list() {
    let local = json!([]);
    let mut endpoints: Vec<Value> = ["sagemaker.api", "logs", "events", "lambda"]
        .iter()
        .map(|name| interface(name, "available"))
        .collect();
    endpoints.push(gateway("dynamodb", &["rtb-1"]));
    let finding = network::judge(Some(&vpc(&["subnet-1"], &local, &endpoints)), REGION).remove(1);
    assert!(finding.verdict.evidence().starts_with("no endpoint of: pricing.api;"), "{finding:?}");
    let fix = finding.fix.unwrap();
    assert!(fix.contains("eu-central-1") && fix.contains("PricesInRequests=Any"), "{fix}");
    endpoints.push(interface("pricing.api", "available"));
    assert_eq!(judged(&vpc(&["subnet-1"], &local, &endpoints))[1], "yes");
}

#[test]
fn a_wrong_vpc_is_a_no_and_a_denied_call_is_not_tried() {
    let local = json!([]);
    let mut network = vpc(&["subnet-1", "subnet-2"], &local, &[]);
    network.described = Some(Ok(json!({"subnetSet": [{"vpcId": "vpc-1"}, {"vpcId": "vpc-2"}]})));
    assert_eq!(judged(&network), ["no", "no"]);
    network.described = Some(Err(refused("InvalidSubnetID.NotFound", "does not exist")));
    assert_eq!(judged(&network), ["no", "no"]);
    network.described = Some(Err(refused("UnauthorizedOperation", "no")));
    assert_eq!(judged(&network), ["not tried", "not tried"]);
    let mut network = vpc(&[], &local, &[]);
    network.tables = Some(Ok(json!({"routeTableSet": ""})));
    assert_eq!(judged(&network), ["no", "no"]);
    network.tables = Some(Err(refused("UnauthorizedOperation", "no")));
    assert_eq!(judged(&network), ["warning", "warning"]);
    network.endpoints = Some(Err(refused("UnauthorizedOperation", "no")));
    assert_eq!(judged(&network), ["not tried", "not tried"]);
    let findings = network::judge(None, REGION);
    assert!(findings.iter().all(|finding| shown(finding).0 == "not tried"));
}

fn decision(action: &str, need: Need) -> Decision {
    Decision {
        action: action.to_owned(),
        need,
        allowed: true,
        by_organization: Some(true),
        beyond_boundary: false,
        missing_keys: Vec::new(),
    }
}

fn both(decisions: Vec<Decision>) -> [(&'static str, Vec<String>); 2] {
    let simulated = Simulated::Done(ROLE.to_owned(), decisions);
    [shown(&permissions::judge(&simulated)), shown(&permissions::judge_organization(&simulated))]
}

#[test]
fn a_denied_action_is_a_no_unless_a_parameter_avoids_it() {
    let create = || decision("lambda:CreateFunction", Need::Deployment);
    let alarm = || decision("cloudwatch:PutMetricAlarm", Need::Unless("CreateAlarms", "false"));
    assert_eq!(both(vec![create(), alarm()]), [("yes", none()), ("yes", none())]);
    let deny = |mut decision: Decision| {
        decision.allowed = false;
        decision
    };
    let by_organization = |mut decision: Decision| {
        decision.by_organization = Some(false);
        deny(decision)
    };
    assert_eq!(both(vec![deny(create()), alarm()]), [("no", none()), ("yes", none())]);
    assert_eq!(
        both(vec![create(), deny(alarm())]),
        [("warning", one("CreateAlarms=false")), ("yes", none())]
    );
    assert_eq!(both(vec![by_organization(create())]), [("yes", none()), ("no", none())]);
    assert_eq!(
        both(vec![create(), by_organization(alarm())]),
        [("yes", none()), ("warning", one("CreateAlarms=false"))]
    );
    // A policy with a condition may still allow the action.
    let mut unknown = deny(create());
    unknown.missing_keys = vec!["aws:RequestTag/team".to_owned()];
    assert_eq!(both(vec![unknown, alarm()]), [("warning", none()), ("yes", none())]);
    let mut bounded = deny(create());
    bounded.beyond_boundary = true;
    let simulated = Simulated::Done(ROLE.to_owned(), vec![bounded]);
    assert!(permissions::judge(&simulated).verdict.evidence().contains("permissions boundary"));
}

#[test]
fn calls_of_the_stack_depend_only_on_the_organization() {
    let mut train = decision("sagemaker:CreateTrainingJob", Need::Stack);
    train.allowed = false;
    let create = || decision("lambda:CreateFunction", Need::Deployment);
    assert_eq!(both(vec![create(), train.clone()]), [("yes", none()), ("yes", none())]);
    train.by_organization = Some(false);
    assert_eq!(both(vec![create(), train]), [("yes", none()), ("warning", none())]);
    let mut prices = decision("pricing:GetProducts", Need::Stack);
    prices.by_organization = Some(false);
    assert_eq!(both(vec![create(), prices])[1], ("warning", one("PricesInRequests=Any")));
}

/// In some organizations the simulator denies every action.
#[test]
fn a_simulation_that_denies_a_performed_call_is_not_trusted() {
    let mut denied = decision("lambda:CreateFunction", Need::Deployment);
    (denied.allowed, denied.by_organization) = (false, Some(false));
    let mut control = decision("logs:DescribeLogGroups", Need::Control);
    (control.allowed, control.by_organization) = (false, Some(false));
    assert_eq!(both(vec![denied, control]), [("not tried", none()), ("not tried", none())]);
    assert_eq!(both(Vec::new()), [("not tried", none()), ("not tried", none())]);
    let failed = Simulated::Failed(refused("AccessDenied", "no"));
    let finding = permissions::judge(&failed);
    assert!(finding.verdict.evidence().contains("iam:SimulatePrincipalPolicy"), "{finding:?}");
}

#[test]
fn each_resource_type_of_the_template_has_its_actions() {
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/template.yaml");
    let template = std::fs::read_to_string(template).unwrap();
    let mut types: Vec<&str> = template
        .lines()
        .filter_map(|line| line.strip_prefix("    Type: "))
        .filter(|kind| kind.starts_with("AWS::"))
        .collect();
    types.sort_unstable();
    types.dedup();
    let mut known: Vec<&str> = GROUPS.iter().flat_map(|group| group.types).copied().collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known, types);
    for group in GROUPS {
        if let Need::Unless(name, value) = group.need {
            assert!(template.contains(&format!("\n  {name}:\n")), "the template has no parameter {name}");
            assert!(template.contains(value), "{name}={value}");
        }
        assert!(group.actions.iter().all(|action| action.split(':').count() == 2), "{group:?}");
    }
}

#[test]
fn a_resource_is_in_the_home_of_the_stack() {
    let home = identity::home(None, Some("arn:aws-cn:iam::111122223333:role/a"), "cn-north-1", "hb").unwrap();
    for group in GROUPS {
        let resource = group.resource(&home);
        assert!(!resource.contains(['{', '}']), "{resource}");
        assert!(resource == "*" || resource.starts_with("arn:aws-cn:"), "{resource}");
    }
}

#[test]
fn the_output_ends_with_parameters_to_paste() {
    let check = ("id", "assumption");
    let findings = [
        Finding::new(("execution-role", "a"), Verdict::Yes("e".to_owned())).set("ExecutionRoleArns", ROLE),
        Finding::new(("lambda-concurrency", "a"), Verdict::Yes("e".to_owned()))
            .set("ReserveConcurrency", "true"),
        // A later check overrides an earlier one.
        Finding::new(check, Verdict::Warning("w\u{1b}[2J".to_owned()))
            .fix("f")
            .set("ReserveConcurrency", "false"),
        Finding::new(check, Verdict::not_tried("n")),
    ];
    let place = Place { identity: Some(caller()), region: REGION, stack: STACK };
    let text = as_text(&findings, &place);
    let end = format!(
        "2 yes, 1 warning, 0 no, 1 not tried; nothing was started\n\n\
         parameters of {STACK} in {REGION}, for parameter_overrides in infra/samconfig.toml:\n\n  \
         \"ExecutionRoleArns={ROLE}\",\n  \"ReserveConcurrency=false\",\n"
    );
    assert!(text.ends_with(&end), "{text}");
    assert!(text.contains("fix: f") && !text.contains("\u{1b}[2J"), "{text:?}");
    let without_role = as_text(&findings[1..], &place);
    assert!(without_role.contains("  # \"ExecutionRoleArns="), "{without_role}");
    let json = as_json(&findings, &place);
    assert_eq!(json["Parameters"], json!({"ExecutionRoleArns": ROLE, "ReserveConcurrency": "false"}));
    assert_eq!((&json["Account"], &json["Region"]), (&json!("111122223333"), &json!(REGION)));
    assert_eq!(
        json["Checks"][2],
        json!({"Check": "id", "Verdict": "warning", "Assumption": "assumption",
        "Seen": "w\u{1b}[2J", "Fix": "f"})
    );
}

/// Both lists come from the handlers of `CloudFormation`. An action that only one has is an error of one.
#[test]
fn regression_the_checked_actions_of_a_deployment_are_those_of_its_policy() {
    let policy = include_str!("../../../../infra/deploy-policy.json");
    let needed = GROUPS.iter().filter(|group| matches!(group.need, Need::Deployment | Need::Unless(..)));
    let actions = needed.flat_map(|group| group.actions.iter().copied());
    let missing: Vec<&str> = actions.filter(|action| !policy.contains(&format!("\"{action}\""))).collect();
    assert_eq!(missing, [""; 0]);
}
