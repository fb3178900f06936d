//! The `OpenAPI` document of the REST routes. The schemas come from the types of the responses and from the constraints of
//! requests.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use wire::constraint;
use wire::describe::{
    CreatedTuning, DecisionPage, RowPage, TrainingJobDetail, TrainingJobPage, TuningJob, TuningPage,
};
use wire::request::ErrorBody;

use crate::list::{JOB_STATUSES, MAX_RESULTS_MAX, TUNING_STATUSES};

/// The place of schemas in the document.
const SCHEMAS: &str = "#/components/schemas/";

/// Returns the document.
pub(crate) fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = SCHEMAS.trim_start_matches('#').into();
        settings.meta_schema = None;
    });
    let mut types = settings.into_generator();
    let paths = paths(&mut types);
    let mut schemas: Map<String, Value> = types.take_definitions(true);
    schemas.insert("TuningRequest".to_owned(), constraint::schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Hyperband tuning jobs",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Tuning jobs in the JSON of SageMaker Automatic Model Tuning. A deployed stack expects requests \
                signed for the service execute-api. The same operations in AWS JSON 1.1 are at POST /.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "sigv4": {"type": "apiKey", "in": "header", "name": "Authorization",
                    "description": "AWS Signature Version 4 for the service execute-api"},
            },
        },
    })
}

fn paths(types: &mut SchemaGenerator) -> Value {
    let name = path_parameter("name", "Name of the tuning job", "^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,31}$");
    let job = path_parameter("job", "Name of the training job", "^[a-zA-Z0-9-]{1,63}$");
    let order =
        |values: &[&str]| [choice("SortBy", values), choice("SortOrder", &["Ascending", "Descending"])];
    let time = |name: &str| query(name, json!({"type": "string", "format": "date-time"}));
    let tunings: Vec<Value> = page(MAX_RESULTS_MAX)
        .into_iter()
        .chain(order(&["Name", "CreationTime", "Status"]))
        .chain([
            choice("StatusEquals", &TUNING_STATUSES),
            query("NameContains", json!({"type": "string"})),
            query("Submitter", json!({"type": "string"})),
            time("CreationTimeAfter"),
            time("CreationTimeBefore"),
            time("LastModifiedTimeAfter"),
            time("LastModifiedTimeBefore"),
        ])
        .collect();
    let jobs: Vec<Value> = page(MAX_RESULTS_MAX)
        .into_iter()
        .chain(order(&["Name", "CreationTime", "Status", "FinalObjectiveMetricValue"]))
        .chain([choice("StatusEquals", &JOB_STATUSES)])
        .collect();
    let request = json!({"$ref": format!("{SCHEMAS}TuningRequest")});
    let change = json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": false,
        "properties": {
            "MaxCostUsd": {"type": "number", "exclusiveMinimum": 0},
            "MaxParallelTrainingJobs": {"type": "integer", "minimum": 1, "maximum": 1000},
            "paused": {"type": "boolean"},
        },
    });
    let created = reference::<CreatedTuning>(types);
    let error = reference::<ErrorBody>(types);
    let nothing = json!({"type": "object", "maxProperties": 0});
    let operation =
        |id: &str, summary: &str, parameters: &[Value], body: Option<&Value>, answer: (u16, Value)| {
            operation(id, summary, parameters, body, answer, &error)
        };
    let named = std::slice::from_ref(&name);
    let both = [name.clone(), job];
    let with = |more: Vec<Value>| [vec![name.clone()], more].concat();
    json!({
        "/tuning-jobs": {
            "post": operation("createTuningJob", "Start a tuning job. The same request again answers the same ARN", &[],
                Some(&request), (201, created)),
            "get": operation("listTuningJobs", "List tuning jobs", &tunings, None, (200, reference::<TuningPage>(types))),
        },
        "/tuning-jobs/{name}": {
            "get": operation("describeTuningJob", "Describe a tuning job", named, None, (200, reference::<TuningJob>(types))),
            "patch": operation("changeTuningJob", "Change limits of a running tuning job", named, Some(&change),
                (200, nothing.clone())),
            "delete": operation("deleteTuningJob", "Delete an ended tuning job", named, None, (200, nothing.clone())),
        },
        "/tuning-jobs/{name}/stop": {
            "post": operation("stopTuningJob", "Stop a tuning job and its training jobs", named, None,
                (200, nothing.clone())),
        },
        "/tuning-jobs/{name}/training-jobs": {
            "get": operation("listTrainingJobs", "List the training jobs of a tuning job", &with(jobs), None,
                (200, reference::<TrainingJobPage>(types))),
        },
        "/tuning-jobs/{name}/training-jobs/{job}": {
            "get": operation("getTrainingJob", "Show a training job with its curve", &both, None,
                (200, reference::<TrainingJobDetail>(types))),
        },
        "/tuning-jobs/{name}/training-jobs/{job}/stop": {
            "post": operation("stopTrainingJob", "Stop a training job; its tuning job goes on", &both, None,
                (200, nothing)),
        },
        "/tuning-jobs/{name}/decisions": {
            "get": operation("listDecisions", "List the recorded steps of a tuning job", &with(page(50)), None,
                (200, reference::<DecisionPage<Value>>(types))),
        },
        "/tuning-jobs/{name}/rows": {
            "get": operation("listRows", "List the stored rows of a tuning job", &with(page(200)), None,
                (200, reference::<RowPage>(types))),
        },
        "/openapi.json": {
            "get": operation("getOpenApi", "Return this document", &[], None, (200, json!({"type": "object"}))),
        },
    })
}

fn reference<T: JsonSchema>(types: &mut SchemaGenerator) -> Value {
    types.subschema_for::<T>().to_value()
}

fn operation(
    id: &str,
    summary: &str,
    parameters: &[Value],
    body: Option<&Value>,
    (status, answer): (u16, Value),
    error: &Value,
) -> Value {
    let content = |schema: &Value| json!({"application/json": {"schema": schema}});
    let mut operation = json!({
        "operationId": id,
        "summary": summary,
        "parameters": parameters,
        "responses": {
            status.to_string(): {"description": "Done", "content": content(&answer)},
            "4XX": {"description": "Refused, with a code of AWS", "content": content(error)},
            "5XX": {"description": "Failed; a retry may help", "content": content(error)},
        },
    });
    if let Some(body) = body {
        operation["requestBody"] = json!({"required": true, "content": content(body)});
    }
    operation
}

fn path_parameter(name: &str, description: &str, pattern: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "description": description,
        "schema": {"type": "string", "pattern": pattern}})
}

fn query(name: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "schema": schema})
}

fn choice(name: &str, values: &[&str]) -> Value {
    query(name, json!({"type": "string", "enum": values}))
}

/// Returns the parameters of a page of at most `most` entries.
fn page(most: u64) -> Vec<Value> {
    vec![
        query("MaxResults", json!({"type": "integer", "minimum": 1, "maximum": most})),
        query("NextToken", json!({"type": "string"})),
    ]
}
