//! The `OpenAPI` document.

use http_api::ROUTES;
use serde_json::json;

use crate::{get, open};

#[tokio::test]
async fn the_document_of_the_api_has_every_route_and_no_dangling_reference() {
    let api = open();
    let (status, document) = get(&api, "/openapi.json").await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    let routes = document["paths"].as_object().unwrap().iter();
    let routes: Vec<String> = routes
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    for route in ROUTES.iter().filter(|route| !route.contains("{proxy+}") && **route != "POST /") {
        assert!(routes.iter().any(|documented| documented == route), "{route}");
    }
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
    }
    // The schema of a request has what validation accepts.
    let request = &document["components"]["schemas"]["TuningRequest"];
    assert_eq!(request["required"], json!(["HyperParameterTuningJobConfig", "HyperParameterTuningJobName"]));
}
