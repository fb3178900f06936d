//! `doctor --before` against fake services in the protocols of AWS: an account in which all is well, one in which
//! nothing is, and one that denies every call.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use loopback::{Request, Response, serve};
use serde_json::{Value, json};

use crate::world::{Ended, QUICK, World, ended};

const ROLE: &str = "arn:aws:iam::111122223333:role/training";

/// The services of one account.
struct Services {
    endpoint: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// Returns the operation of a request: of JSON, of a form, or the path of a REST call.
fn operation(request: &Request) -> String {
    let form = String::from_utf8_lossy(&request.body).into_owned();
    let action = form.split('&').find_map(|pair| pair.strip_prefix("Action=")).map(str::to_owned);
    let target = request.header("x-amz-target").and_then(|target| target.rsplit('.').next());
    target.map(str::to_owned).or(action).unwrap_or_else(|| request.path.clone())
}

fn respond(status: u16, body: &str) -> Response {
    Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() }
}

fn ok(body: &Value) -> Response {
    respond(200, &body.to_string())
}

fn xml(operation: &str, body: &str) -> Response {
    respond(
        200,
        &format!("<{operation}Response><{operation}Result>{body}</{operation}Result></{operation}Response>"),
    )
}

fn start(rule: impl Fn(&str, &Request) -> Response + Send + Sync + 'static) -> Services {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
    let kept = Arc::clone(&requests);
    serve(listener, move |request| {
        kept.lock().unwrap().push(request.clone());
        rule(&operation(request), request)
    });
    Services { endpoint, requests }
}

fn identity() -> Response {
    let arn = "arn:aws:sts::111122223333:assumed-role/Admin/me";
    xml("GetCallerIdentity", &format!("<UserId>A:me</UserId><Account>111122223333</Account><Arn>{arn}</Arn>"))
}

/// Answers `GetRole`: the caller's role has a path, and only `trusted` may assume the execution role.
fn role(request: &Request, trusted: &str) -> Response {
    let form = String::from_utf8_lossy(&request.body);
    let path = if form.contains("RoleName=Admin") { "team/Admin" } else { "training" };
    let policy = json!({"Statement": [
        {"Effect": "Allow", "Principal": {"Service": trusted}, "Action": "sts:AssumeRole"},
    ]});
    let policy = policy.to_string().replace('"', "%22").replace('{', "%7B").replace('}', "%7D");
    let arn = format!("arn:aws:iam::111122223333:role/{path}");
    xml(
        "GetRole",
        &format!(
            "<Role><Arn>{arn}</Arn><AssumeRolePolicyDocument>{policy}</AssumeRolePolicyDocument></Role>"
        ),
    )
}

/// Answers a simulation: `allows` decides on each action.
fn simulation(request: &Request, allows: fn(&str) -> bool) -> Response {
    let form = String::from_utf8_lossy(&request.body).replace("%3A", ":");
    let actions = form.split('&').filter(|pair| pair.starts_with("ActionNames.member."));
    let results: Vec<String> = actions
        .filter_map(|pair| pair.split_once('='))
        .map(|(_, action)| {
            let (decision, organization) =
                if allows(action) { ("allowed", true) } else { ("explicitDeny", false) };
            format!(
                "<member><EvalActionName>{action}</EvalActionName><EvalDecision>{decision}</EvalDecision>\
                 <OrganizationsDecisionDetail><AllowedByOrganizations>{organization}</AllowedByOrganizations>\
                 </OrganizationsDecisionDetail><MissingContextValues/></member>"
            )
        })
        .collect();
    let body = format!(
        "<IsTruncated>false</IsTruncated><EvaluationResults>{}</EvaluationResults>",
        results.concat()
    );
    xml("SimulatePrincipalPolicy", &body)
}

fn price(request: &Request) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let usage = &body["Filters"][0]["Value"];
    let unit = if usage.as_str().unwrap().contains("Volume") { "GB-Mo" } else { "Hrs" };
    let dimension = json!({"unit": unit, "pricePerUnit": {"USD": "0.1150000000"}});
    let row = json!({
        "product": {"attributes": {"usagetype": usage}},
        "terms": {"OnDemand": {"A": {"priceDimensions": {"A.B": dimension}}}},
    });
    ok(&json!({"PriceList": [row.to_string()]}))
}

fn quota(value: f64) -> Response {
    let names = ["ml.m5.large for training job usage", "ml.m5.large for spot training job usage"];
    let quotas = names.map(|name| json!({"QuotaName": name, "QuotaCode": "L-1", "Value": value}));
    ok(&json!({"Quotas": quotas}))
}

fn settings(executions: u64) -> Response {
    ok(
        &json!({"AccountLimit": {"ConcurrentExecutions": executions, "UnreservedConcurrentExecutions": executions}}),
    )
}

/// An account in which all is well.
fn good() -> Services {
    start(|operation, request| match operation {
        "GetCallerIdentity" => identity(),
        "/2016-08-19/account-settings" => settings(1_000),
        "DescribeLogGroups" => ok(&json!({"logGroups": []})),
        "DescribeSubscriptionFilters" => {
            respond(400, r#"{"__type": "ResourceNotFoundException", "message": "does not exist"}"#)
        }
        "GetProducts" => price(request),
        "GetRole" => role(request, "sagemaker.amazonaws.com"),
        "ListServiceQuotas" => quota(4.0),
        "DescribeRouteTables" => respond(
            200,
            "<DescribeRouteTablesResponse><routeTableSet><item><routeTableId>rtb-1</routeTableId><routeSet><item>\
             <destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><natGatewayId>nat-1</natGatewayId>\
             <state>active</state></item></routeSet></item></routeTableSet></DescribeRouteTablesResponse>",
        ),
        "DescribeVpcEndpoints" => {
            respond(200, "<DescribeVpcEndpointsResponse><vpcEndpointSet/></DescribeVpcEndpointsResponse>")
        }
        "SimulatePrincipalPolicy" => simulation(request, |_| true),
        other => panic!("{other}"),
    })
}

/// An account in which nothing works.
fn bad() -> Services {
    start(|operation, request| match operation {
        "GetCallerIdentity" => identity(),
        "/2016-08-19/account-settings" => settings(5),
        "DescribeLogGroups" => ok(&json!({"logGroups": [{"logGroupName": "/aws/sagemaker/TrainingJobs"}]})),
        "DescribeSubscriptionFilters" => {
            ok(&json!({"subscriptionFilters": [{"filterName": "a"}, {"filterName": "b"}]}))
        }
        "GetProducts" => respond(
            400,
            r#"{"__type": "AccessDeniedException",
                "Message": "is not authorized with an explicit deny in a service control policy"}"#,
        ),
        "GetRole" => role(request, "ec2.amazonaws.com"),
        "ListServiceQuotas" => quota(0.0),
        "DescribeSubnets" => respond(
            400,
            "<Response><Errors><Error><Code>InvalidSubnetID.NotFound</Code><Message>no</Message></Error></Errors></Response>",
        ),
        "SimulatePrincipalPolicy" => simulation(request, |action| !action.starts_with("scheduler")),
        other => panic!("{other}"),
    })
}

/// An account that denies every call.
fn denying() -> Services {
    start(|operation, request| match (operation, request.header("x-amz-target")) {
        ("GetCallerIdentity", _) => identity(),
        ("DescribeVpcEndpoints" | "DescribeRouteTables", _) => respond(
            403,
            "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>",
        ),
        ("GetRole" | "SimulatePrincipalPolicy", _) => respond(
            403,
            "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>",
        ),
        (_, Some(_)) => respond(400, r#"{"__type": "AccessDeniedException", "Message": "no"}"#),
        (_, None) => {
            let code = ("x-amzn-errortype".to_owned(), "AccessDeniedException".to_owned());
            Response { status: 403, headers: vec![code], body: br#"{"Message": "no"}"#.to_vec() }
        }
    })
}

fn check(services: &Services, options: &[&str]) -> Ended {
    let world = World::new(QUICK);
    let mut command = world.command(&[&["doctor", "--before"], options].concat());
    command.env("AWS_ENDPOINT_URL", &services.endpoint).env("AWS_REGION", "us-east-2");
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "secret");
    ended(command.spawn().unwrap())
}

fn verdicts(answer: &Value) -> Vec<(&str, &str)> {
    let checks = answer["Checks"].as_array().unwrap().iter();
    checks.map(|check| (check["Check"].as_str().unwrap(), check["Verdict"].as_str().unwrap())).collect()
}

#[test]
fn a_good_account_gets_its_parameters_and_every_call_is_signed_and_reads() {
    let services = good();
    let json = ["--output=json", "--region=eu-west-1", "--vpc=vpc-1", "--role", ROLE];
    let answer = check(&services, &json).with_code(0).json();
    assert!(verdicts(&answer).iter().all(|(_, verdict)| *verdict == "yes"), "{answer:#}");
    assert_eq!(verdicts(&answer).len(), 12, "{answer:#}");
    assert_eq!((&answer["Account"], &answer["Region"]), (&json!("111122223333"), &json!("eu-west-1")));
    let expected =
        json!({"ReserveConcurrency": "true", "CreateTrainingLogGroup": "true", "ExecutionRoleArns": ROLE});
    assert_eq!(answer["Parameters"], expected);
    let requests = services.requests.lock().unwrap().clone();
    for request in &requests {
        let operation = operation(request);
        let region = match operation.as_str() {
            "GetRole" | "SimulatePrincipalPolicy" => "us-east-1/iam",
            "GetProducts" => "eu-central-1/pricing",
            _ => "eu-west-1/",
        };
        let signature = request.header("authorization").unwrap();
        assert!(signature.contains(region), "{operation}: {signature}");
        let reads = ["Get", "List", "Describe", "Simulate", "/2016-08-19/account-settings"];
        assert!(reads.iter().any(|prefix| operation.starts_with(prefix)), "{operation}");
    }
    let simulated = requests.iter().filter(|request| operation(request) == "SimulatePrincipalPolicy");
    for request in simulated {
        let form = String::from_utf8_lossy(&request.body).into_owned();
        assert!(
            form.contains("PolicySourceArn=arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2Fteam%2FAdmin"),
            "{form}"
        );
    }
    let text = check(&services, &["--role", ROLE]).with_code(0).out;
    let end = format!(
        "\n  \"ExecutionRoleArns={ROLE}\",\n  \"ReserveConcurrency=true\",\n  \"CreateTrainingLogGroup=true\",\n"
    );
    assert!(
        text.contains("10 yes, 0 warnings, 0 no, 2 not tried; nothing was started") && text.ends_with(&end),
        "{text}"
    );
}

#[test]
fn a_bad_account_gets_reasons_fixes_and_exit_code_1() {
    let ended = check(&bad(), &["--output=json", "--subnet=subnet-1", "--spot", "--role", ROLE]).with_code(1);
    let answer = ended.json();
    let expected = [
        ("credentials", "yes"),
        ("lambda-concurrency", "no"),
        ("log-group", "yes"),
        ("log-subscriptions", "warning"),
        ("prices", "warning"),
        ("execution-role", "no"),
        ("training-quota", "no"),
        ("spot-quota", "no"),
        ("vpc-jobs", "no"),
        ("vpc-functions", "no"),
        ("permissions", "yes"),
        ("organization", "no"),
    ];
    assert_eq!(verdicts(&answer), expected, "{answer:#}");
    for check in answer["Checks"].as_array().unwrap() {
        assert_eq!(check["Fix"].is_string(), check["Verdict"] != "yes", "{check:#}");
    }
    let expected =
        json!({"CreateTrainingLogGroup": "false", "MetricsFrom": "Polling", "PricesInRequests": "Any"});
    assert_eq!(answer["Parameters"], expected);
}

#[test]
fn a_denied_call_is_not_tried_and_names_its_permission() {
    let answer = check(&denying(), &["--output=json", "--vpc=vpc-1", "--role", ROLE]).with_code(0).json();
    let checks = answer["Checks"].as_array().unwrap();
    for (id, permission) in [
        ("lambda-concurrency", "lambda:GetAccountSettings"),
        ("log-group", "logs:DescribeLogGroups"),
        ("log-subscriptions", "logs:DescribeSubscriptionFilters"),
        ("prices", "pricing:GetProducts"),
        ("execution-role", "iam:GetRole"),
        ("training-quota", "servicequotas:ListServiceQuotas"),
        ("spot-quota", "servicequotas:ListServiceQuotas"),
        ("vpc-jobs", "ec2:DescribeVpcEndpoints"),
        ("vpc-functions", "ec2:DescribeVpcEndpoints"),
        ("permissions", "iam:SimulatePrincipalPolicy"),
        ("organization", "iam:SimulatePrincipalPolicy"),
    ] {
        let check = checks.iter().find(|check| check["Check"] == id).unwrap();
        let seen = check["Seen"].as_str().unwrap();
        assert!(check["Verdict"] == "not tried" && seen.contains(permission), "{check:#}");
        assert!(check["Fix"].as_str().unwrap().contains(&format!("grant {permission}")), "{check:#}");
    }
    assert_eq!(answer["Parameters"], json!({"ExecutionRoleArns": ROLE}));
}

#[test]
fn without_valid_credentials_no_other_call_is_made() {
    let services = start(|_, _| {
        respond(
            403,
            "<ErrorResponse><Error><Code>ExpiredToken</Code><Message>expired</Message></Error></ErrorResponse>",
        )
    });
    let text = check(&services, &[]).with_code(1).out;
    assert!(text.starts_with("no         credentials: ") && text.contains("ExpiredToken"), "{text}");
    assert!(text.ends_with("0 yes, 0 warnings, 1 no, 0 not tried; nothing was started\n"), "{text}");
    assert_eq!(services.requests.lock().unwrap().len(), 1);
}

#[test]
fn quotas_are_read_page_by_page_and_then_their_defaults() {
    let services = start(|operation, request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let quota = |name: &str, value: f64| json!({"QuotaName": name, "Value": value});
        let training = "ml.m5.large for training job usage";
        match (operation, body["NextToken"].as_str()) {
            ("GetCallerIdentity", _) => identity(),
            ("ListServiceQuotas", None) => ok(&json!({"Quotas": [quota("other", 0.0)], "NextToken": "2"})),
            ("ListServiceQuotas", Some("2")) => ok(&json!({"Quotas": [quota(training, 7.0)]})),
            ("ListAWSDefaultServiceQuotas", None) => ok(
                &json!({"Quotas": [quota(training, 0.0), quota("ml.m5.large for spot training job usage", 3.0)]}),
            ),
            _ => respond(400, r#"{"__type": "ValidationException", "message": "no"}"#),
        }
    });
    let answer = check(&services, &["--output=json"]).with_code(0).json();
    let seen = |id: &str| {
        let checks = answer["Checks"].as_array().unwrap();
        checks.iter().find(|check| check["Check"] == id).unwrap()["Seen"].clone()
    };
    assert_eq!(seen("training-quota"), "instances: ml.m5.large: 7");
    assert_eq!(seen("spot-quota"), "instances: ml.m5.large: 3");
}

#[test]
fn options_of_the_other_mode_are_refused() {
    let world = World::new(QUICK);
    for option in
        ["--image=x", "--yes", "--max-cost=0.1", "--endpoint=http://localhost:1", "--security-group=sg-1"]
    {
        let refused = world.hyperband(&["doctor", "--before", option]).with_code(2);
        let name = option.split('=').next().unwrap();
        assert!(
            refused.err.contains("'--before' cannot be used with") && refused.err.contains(name),
            "{refused:?}"
        );
    }
    let full =
        ["doctor", "--role", ROLE, "--image=x", "--s3-output=s3://b/o", "--endpoint=http://127.0.0.1:9"];
    for option in ["--region=eu-west-1", "--vpc=vpc-1", "--stack-name=s", "--principal", "--subnet=subnet-1"]
    {
        let value = if option == "--principal" { &[option, ROLE][..] } else { &[option] };
        let refused = world.hyperband(&[&full[..], value].concat()).with_code(2);
        assert!(refused.err.contains("--before"), "{refused:?}");
    }
    let twice = ["--instance-type=ml.m5.large", "--instance-type=ml.m5.xlarge"];
    let refused = world.hyperband(&[&full[..], &twice].concat()).with_code(2);
    assert!(refused.err.contains("expected one without --before"), "{refused:?}");
    let missing = world.hyperband(&["doctor", "--image=x"]).with_code(2);
    assert!(missing.err.contains("--role") && missing.err.contains("--s3-output"), "{missing:?}");
}

/// The credentials of an emulator must never reach AWS.
#[test]
fn if_one_service_is_on_this_machine_all_must_be_named() {
    let world = World::new(QUICK);
    let mut command = world.command(&["doctor", "--before"]);
    let refused =
        ended(command.env("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9").spawn().unwrap()).with_code(2);
    assert!(refused.err.contains("AWS_ENDPOINT_URL_IAM"), "{refused:?}");
    let mut command = world.command(&["doctor", "--before", "--role=training"]);
    let refused = ended(command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9").spawn().unwrap()).with_code(2);
    assert!(refused.err.contains("invalid --role \"training\""), "{refused:?}");
}
