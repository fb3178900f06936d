//! The `OpenAPI` document.

use std::collections::BTreeMap;

use http_api::{PATHS, ROUTES};
use serde_json::{Value, json};

use crate::{get, open, rest};

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

#[tokio::test]
async fn each_path_has_a_description_an_operation_and_an_entry_in_the_document() {
    let api = open();
    let (_, document) = get(&api, "/openapi.json").await;
    let methods = |item: &Value| -> String {
        let methods: Vec<String> =
            item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        methods.join(", ")
    };
    let paths = document["paths"].as_object().unwrap().iter();
    let documented: BTreeMap<&str, String> =
        paths.map(|(path, item)| (path.as_str(), methods(item))).collect();
    assert_eq!(documented, PATHS.map(|(path, methods)| (path, methods.to_owned())).into());
    let text = include_str!("../../../../docs/STACK.md");
    for (path, methods) in PATHS {
        let last = path.rsplit('/').find(|part| !part.starts_with('{')).unwrap();
        assert!(text.contains(&format!("{last}`")), "docs/STACK.md does not describe {path}");
        let path = path.replace("{name}", "missing").replace("{job}", "missing-abc123-0-0-1");
        for method in methods.split(", ") {
            let (status, body) = rest(&api, method, &path, &Value::Null).await;
            assert_ne!(body["__type"], "UnknownOperationException", "{method} {path}: {status}");
        }
    }
}
