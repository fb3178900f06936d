//! Requests against the limits that the owner of a stack set.

use serde_json::{Value, json};
use tuning::definition::Allowances;
use tuning::unit::money::MicroUsd;
use use_cases::submit::{AllowList, DefaultTags, Guardrails, RequestPrices};
use wire::sample::request;

use super::{Listed, api, rest};

#[tokio::test]
async fn a_request_outside_the_guardrails_is_refused_with_all_violations_and_not_stored() {
    let guardrails = Guardrails {
        require_cost_cap: true,
        max_tuning_cost: None,
        instance_types: AllowList::read("ml.g5.*"),
        images: AllowList::read("image:2"),
        role_arns: AllowList::read("arn:aws:iam::111122223333:role/other"),
        require_vpc: true,
        subnets: AllowList::default(),
        security_groups: AllowList::default(),
        job_tags: DefaultTags::default(),
        least_allowances: Allowances::default(),
        required_tags: vec!["team".to_owned()],
        request_prices: RequestPrices::Refused,
    };
    let api = api(Listed(Some("ml.m5.large")), guardrails);
    let mut body = request("hb1");
    body["Controller"] = json!({"InstancePricesUsdPerHour": {"ml.m5.large": 0.000_001}});
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &body).await;
    assert_eq!((status, &answer["__type"]), (400, &json!("ValidationException")));
    let violations = answer["Violations"].as_array().unwrap();
    let paths: Vec<&str> = violations.iter().map(|one| one["Path"].as_str().unwrap()).collect();
    let expected = [
        "Controller.MaxCostUsd",
        "Controller.InstancePricesUsdPerHour",
        "TrainingJobDefinition.ResourceConfig.InstanceType",
        "TrainingJobDefinition.AlgorithmSpecification.TrainingImage",
        "TrainingJobDefinition.RoleArn",
        "TrainingJobDefinition.VpcConfig",
        "Tags",
    ];
    assert_eq!(paths, expected);
    assert!(answer["message"].as_str().unwrap().contains("allowed are ml.g5.*"), "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("the tag 'hyperband:MaxCostUsd'"), "{answer}");
    assert!(api.submit.store.all("INDEX", "").await.unwrap().is_empty());
}

/// A further definition must not evade what the owner of the stack forbids.
#[tokio::test]
async fn every_training_job_definition_must_be_within_the_guardrails() {
    let guardrails = Guardrails {
        instance_types: AllowList::read("ml.m5.*"),
        images: AllowList::read("image:1"),
        role_arns: AllowList::read("arn:aws:iam::111122223333:role/example-training-role"),
        subnets: AllowList::read("subnet-1"),
        ..Guardrails::default()
    };
    let api = api(Listed(Some("ml.m5.large")), guardrails);
    let mut body = request("hb1");
    let mut one = body["TrainingJobDefinition"].take();
    let config = &mut body["HyperParameterTuningJobConfig"];
    one["TuningObjective"] = config["HyperParameterTuningJobObjective"].take();
    one["HyperParameterRanges"] = config["ParameterRanges"].take();
    one["VpcConfig"] = json!({"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]});
    let mut two = one.clone();
    (one["DefinitionName"], two["DefinitionName"]) = (json!("one"), json!("two"));
    two["ResourceConfig"]["InstanceType"] = json!("ml.g5.xlarge");
    two["AlgorithmSpecification"]["TrainingImage"] = json!("image:2");
    two["RoleArn"] = json!("arn:aws:iam::111122223333:role/administrator");
    two["VpcConfig"]["Subnets"] = json!(["subnet-2"]);
    body["TrainingJobDefinitions"] = json!([one, two]);
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &body).await;
    assert_eq!(status, 400, "{answer}");
    let violations = answer["Violations"].as_array().unwrap();
    let paths: Vec<&str> = violations.iter().map(|one| one["Path"].as_str().unwrap()).collect();
    let expected = [
        "TrainingJobDefinitions[1].ResourceConfig.InstanceType",
        "TrainingJobDefinitions[1].AlgorithmSpecification.TrainingImage",
        "TrainingJobDefinitions[1].RoleArn",
        "TrainingJobDefinitions[1].VpcConfig.Subnets[0]",
    ];
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn subnets_and_security_groups_must_be_allowed() {
    let guardrails = Guardrails {
        subnets: AllowList::read("subnet-1,subnet-2"),
        security_groups: AllowList::read("sg-1"),
        ..Guardrails::default()
    };
    let api = api(Listed(Some("ml.m5.large")), guardrails);
    let within = |name: &str, vpc: Value| {
        let mut body = request(name);
        body["TrainingJobDefinition"]["VpcConfig"] = vpc;
        body
    };
    let wrong = json!({"Subnets": ["subnet-1", "subnet-3"], "SecurityGroupIds": ["sg-2"]});
    let path = "TrainingJobDefinition.VpcConfig";
    for (vpc, paths) in [
        (wrong, vec![format!("{path}.Subnets[1]"), format!("{path}.SecurityGroupIds[0]")]),
        (Value::Null, vec![path.to_owned()]),
    ] {
        let (status, answer) = rest(&api, "POST", "/tuning-jobs", &within("bad", vpc)).await;
        let found: Vec<&str> = answer["Violations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["Path"].as_str().unwrap())
            .collect();
        assert_eq!((status, found), (400, paths.iter().map(String::as_str).collect()), "{answer}");
    }
    let allowed = json!({"Subnets": ["subnet-2"], "SecurityGroupIds": ["sg-1"]});
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &within("good", allowed)).await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn default_tags_count_as_required_tags_and_are_stored() {
    let guardrails = Guardrails {
        job_tags: DefaultTags::parse("team=ml").unwrap(),
        required_tags: vec!["team".to_owned(), "owner".to_owned()],
        ..Guardrails::default()
    };
    let api = api(Listed(Some("ml.m5.large")), guardrails);
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &request("none")).await;
    assert_eq!(status, 400);
    let wanted = "this stack requires the tag 'owner': add it to Tags";
    assert!(answer["message"].as_str().unwrap().contains(wanted), "{answer}");
    let mut body = request("good");
    body["Tags"] = json!([{"Key": "owner", "Value": "kim"}]);
    let id = api.submit.submit(body.to_string().as_bytes()).await.unwrap().id();
    let tuning = api.submit.store.tuning(&id).await.unwrap().unwrap();
    assert_eq!(tuning.request.tags().get("team").map(String::as_str), Some("ml"));
}

#[tokio::test]
async fn no_request_and_no_change_may_exceed_the_stacks_maximum_cost() {
    let guardrails = Guardrails { max_tuning_cost: Some(MicroUsd(20_000_000)), ..Guardrails::default() };
    let api = api(Listed(Some("ml.m5.large")), guardrails);
    let capped = |name: &str, cap: Value| {
        let mut body = request(name);
        body["Controller"] = json!({"MaxCostUsd": cap});
        body
    };
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &capped("none", Value::Null)).await;
    assert_eq!(
        (status, &answer["Violations"][0]["Path"]),
        (400, &json!("Controller.MaxCostUsd")),
        "{answer}"
    );
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &capped("high", json!(20.01))).await;
    assert_eq!(status, 400);
    let wanted = "this stack allows a MaxCostUsd of at most 20, not 20.01: lower it, or ask the owner";
    assert!(answer["message"].as_str().unwrap().contains(wanted), "{answer}");
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &capped("fits", json!(20))).await;
    assert_eq!(status, 201, "{answer}");
    for (cap, wanted) in [(21, 400), (19, 200)] {
        let change = json!({"MaxCostUsd": cap});
        let (status, answer) = rest(&api, "PATCH", "/tuning-jobs/fits", &change).await;
        assert_eq!(status, wanted, "{answer}");
    }
}

#[tokio::test]
async fn a_price_below_the_list_is_refused_unless_the_owner_allows_any() {
    let priced = |instance_type: &str, price: f64| {
        let mut body = request("hb1");
        body["TrainingJobDefinition"]["ResourceConfig"]["InstanceType"] = json!(instance_type);
        body["Controller"] = json!({"MaxCostUsd": 50, "InstancePricesUsdPerHour": {instance_type: price}});
        body
    };
    let stack =
        |list, request_prices| api(Listed(list), Guardrails { request_prices, ..Guardrails::default() });
    let list = Some("ml.m5.large");
    for (list, allowed, instance_type, price, wanted) in [
        (list, RequestPrices::NotBelowList, "ml.m5.large", 0.114_999, 400),
        (list, RequestPrices::NotBelowList, "ml.m5.large", 0.115, 201),
        (list, RequestPrices::NotBelowList, "ml.m5.large", 0.2, 201),
        // The list has no price, so any would do: 0.000001 USD voids the cap.
        (list, RequestPrices::NotBelowList, "ml.g5.xlarge", 0.000_001, 400),
        (list, RequestPrices::Any, "ml.g5.xlarge", 0.01, 201),
        // The list does not answer, so the price cannot be compared.
        (None, RequestPrices::NotBelowList, "ml.m5.large", 0.2, 503),
        (None, RequestPrices::Any, "ml.m5.large", 0.01, 201),
        (list, RequestPrices::Any, "ml.m5.large", 0.01, 201),
    ] {
        let api = stack(list, allowed);
        let (status, answer) = rest(&api, "POST", "/tuning-jobs", &priced(instance_type, price)).await;
        assert_eq!(status, wanted, "{allowed:?} {instance_type} {price}: {answer}");
        if status == 400 {
            let wanted = if instance_type == "ml.m5.large" {
                "the price 0.114999 USD per hour of ml.m5.large is below the list price of 0.115"
            } else {
                "ask the owner of the stack to set its price (InstancePrices=ml.g5.xlarge=<USD per hour>)"
            };
            assert!(answer["message"].as_str().unwrap().contains(wanted), "{answer}");
        }
    }
}

/// Without a cap nothing depends on the price.
#[tokio::test]
async fn an_unlisted_type_without_a_cap_needs_no_price_of_the_owner() {
    let guardrails = Guardrails { request_prices: RequestPrices::NotBelowList, ..Guardrails::default() };
    let api = api(Listed(Some("ml.m5.large")), guardrails);
    let mut body = request("hb1");
    body["TrainingJobDefinition"]["ResourceConfig"]["InstanceType"] = json!("ml.g5.xlarge");
    body["Controller"] = json!({"InstancePricesUsdPerHour": {"ml.g5.xlarge": 0.01}});
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &body).await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn a_request_may_not_change_the_owners_tags() {
    let job_tags = DefaultTags::parse("cost-center=42").unwrap();
    let api = api(Listed(Some("ml.m5.large")), Guardrails { job_tags, ..Guardrails::default() });
    let tagged = |name: &str, value: &str| {
        let mut body = request(name);
        body["Tags"] = json!([{"Key": "cost-center", "Value": value}]);
        body
    };
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &tagged("other", "7")).await;
    let wanted = "this stack sets the tag 'cost-center' to '42': remove it from Tags";
    assert!(status == 400 && answer["message"].as_str().unwrap().contains(wanted), "{answer}");
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &tagged("same", "42")).await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn a_stack_has_a_floor_for_the_allowances_of_reservations() {
    let least = Allowances { startup_seconds: 300, upload_seconds: 600 };
    let api =
        api(Listed(Some("ml.m5.large")), Guardrails { least_allowances: least, ..Guardrails::default() });
    let body = |name: &str, controller: Value| {
        let mut body = request(name);
        body["Controller"] = controller;
        body.to_string()
    };
    let made = async |name: &str, controller: Value| {
        let definition = api.submit.submit(body(name, controller).as_bytes()).await.unwrap();
        definition.job.allowances
    };
    assert_eq!(made("none", json!({})).await, least, "the floor is the default");
    let more = Allowances { startup_seconds: 900, upload_seconds: 600 };
    assert_eq!(made("more", json!({"StartupAllowanceSeconds": 900})).await, more);
    let less = body("less", json!({"UploadAllowanceSeconds": 599, "StartupAllowanceSeconds": 300}));
    let error = api.submit.submit(less.as_bytes()).await.unwrap_err().to_string();
    let wanted = "invalid UploadAllowanceSeconds 599: this stack requires at least 600; raise or remove it";
    assert!(error.contains(wanted), "{error}");
}

#[tokio::test]
async fn regression_a_refused_instance_type_has_the_path_of_its_field() {
    let guardrails = Guardrails { instance_types: AllowList::read("ml.m5.large"), ..Guardrails::default() };
    let api = api(Listed(Some("ml.m5.large")), guardrails);
    let on = |kind: &str| json!({"InstanceType": kind, "InstanceCount": 1, "VolumeSizeInGB": 1});
    let form = "TrainingJobDefinition.HyperParameterTuningResourceConfig";
    for (resources, path) in [
        (on("ml.g5.xlarge"), format!("{form}.InstanceType")),
        (
            json!({"InstanceConfigs": [on("ml.m5.large"), on("ml.g5.xlarge")]}),
            format!("{form}.InstanceConfigs[1].InstanceType"),
        ),
    ] {
        let mut body = request("hb1");
        let job = body["TrainingJobDefinition"].as_object_mut().unwrap();
        job.remove("ResourceConfig");
        job.insert("HyperParameterTuningResourceConfig".to_owned(), resources);
        let (status, answer) = rest(&api, "POST", "/tuning-jobs", &body).await;
        assert_eq!((status, &answer["Violations"][0]["Path"]), (400, &json!(path)), "{answer}");
    }
}
