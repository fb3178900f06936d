//! The `OpenAPI` document of the REST routes. The schemas come from the types of the responses and from the constraints
//! of requests.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use wire::constraint;
use wire::cost::CostPage;
use wire::describe::{
    CreatedTuning, DecisionPage, RowPage, TrainingJobDetail, TrainingJobPage, TuningJob, TuningPage,
};
use wire::request::ErrorBody;

use crate::list::{JOB_STATUSES, MAX_RESULTS_MAX, TUNING_STATUSES};
use crate::rest::{ROWS_MAX, STEPS_MAX};

/// The place of schemas in the document.
const SCHEMAS: &str = "#/components/schemas/";
/// How times are written.
const TIME: &str = "Seconds since 1970, or as in 2026-09-10T00:26:00Z";
/// The values of `SortOrder`.
const ORDERS: [&str; 2] = ["Ascending", "Descending"];

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
                signed for the service execute-api. The same operations in AWS JSON 1.1 are at POST /. `hyperband \
                serve` also accepts requests without the members of AWS that have defaults on one machine.",
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
    let error = reference::<ErrorBody>(types);
    let name = path_parameter("name", "Name of the tuning job", "^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,31}$");
    let job = path_parameter("job", "Name of the training job", "^[a-zA-Z0-9-]{1,63}$");
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for Row { route, id, summary, parameters, body, answer } in routes(types) {
        let (method, path) = route.split_once(' ').unwrap_or_default();
        let of_path =
            [("{name}", &name), ("{job}", &job)].into_iter().filter(|(part, _)| path.contains(part));
        let parameters: Vec<Value> = of_path.map(|(_, one)| one.clone()).chain(parameters).collect();
        let created = (id == "createTuningJob").then_some("201");
        let content = |schema: &Value| json!({"application/json": {"schema": schema}});
        let kind = if answer["type"] == "string" { "text/html" } else { "application/json" };
        let mut operation = json!({
            "operationId": id,
            "summary": summary,
            "parameters": parameters,
            "responses": {
                "200": {"description": "Done", "content": {kind: {"schema": answer}}},
                "4XX": {"description": "Refused, with a code of AWS", "content": content(&error)},
                "5XX": {"description": "Failed; a retry may help", "content": content(&error)},
            },
        });
        if let Some(status) = created {
            operation["responses"][status] = operation["responses"]["200"].clone();
        }
        if let Some(body) = body {
            operation["requestBody"] = json!({"required": true, "content": content(&body)});
        }
        paths.entry(path).or_default().insert(method.to_lowercase(), operation);
    }
    json!(paths)
}

/// One operation.
struct Row {
    route: &'static str,
    id: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answer: Value,
}

impl Row {
    fn new(route: &'static str, id: &'static str, summary: &'static str, answer: Value) -> Self {
        Self { route, id, summary, parameters: Vec::new(), body: None, answer }
    }

    fn body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    fn with(self, parameters: Vec<Value>) -> Self {
        Self { parameters, ..self }
    }
}

#[rustfmt::skip]
fn routes(types: &mut SchemaGenerator) -> Vec<Row> {
    let nothing = json!({"type": "object", "maxProperties": 0});
    let row = Row::new;
    vec![
        row("POST /tuning-jobs", "createTuningJob", "Start a tuning job. The same request again answers the same ARN",
            reference::<CreatedTuning>(types)).body(json!({"$ref": format!("{SCHEMAS}TuningRequest")})),
        row("GET /tuning-jobs", "listTuningJobs", "List tuning jobs", reference::<TuningPage>(types))
            .with(tuning_filters()),
        row("GET /tuning-jobs/{name}", "describeTuningJob", "Describe a tuning job", reference::<TuningJob>(types)),
        row("PATCH /tuning-jobs/{name}", "changeTuningJob", "Change limits of a running tuning job", nothing.clone())
            .body(change()),
        row("DELETE /tuning-jobs/{name}", "deleteTuningJob", "Delete an ended tuning job", nothing.clone()),
        row("POST /tuning-jobs/{name}/stop", "stopTuningJob", "Stop a tuning job and its training jobs",
            nothing.clone()),
        row("GET /tuning-jobs/{name}/training-jobs", "listTrainingJobs", "List the training jobs of a tuning job",
            reference::<TrainingJobPage>(types)).with(job_filters()),
        row("GET /tuning-jobs/{name}/training-jobs/{job}", "getTrainingJob", "Show a training job with its curve",
            reference::<TrainingJobDetail>(types)),
        row("POST /tuning-jobs/{name}/training-jobs/{job}/stop", "stopTrainingJob",
            "Stop a training job; its tuning job goes on", nothing),
        row("GET /tuning-jobs/{name}/decisions", "listDecisions", "List the recorded steps of a tuning job",
            reference::<DecisionPage<Value>>(types)).with(page(STEPS_MAX)),
        row("GET /tuning-jobs/{name}/rows", "listRows", "List the stored rows of a tuning job",
            reference::<RowPage>(types)).with(page(ROWS_MAX)),
        row("GET /tuning-jobs/{name}/cost", "getCost", "Show the booked costs of a tuning job",
            reference::<CostPage>(types)).with(page(MAX_RESULTS_MAX)),
        row("GET /tuning-jobs/{name}/report", "getReport", "Return the report of a tuning job, an HTML page",
            json!({"type": "string"})),
        row("GET /openapi.json", "getOpenApi", "Return this document", json!({"type": "object"})),
    ]
}

fn tuning_filters() -> Vec<Value> {
    let text = |name: &str| query(name, &json!({"type": "string"}));
    let time = |name: &str| query(name, &json!({"type": "string", "description": TIME}));
    let order = [choice("SortBy", &["Name", "CreationTime", "Status"]), choice("SortOrder", &ORDERS)];
    let filters = [choice("StatusEquals", &TUNING_STATUSES), text("NameContains"), text("Submitter")];
    let times =
        ["CreationTimeAfter", "CreationTimeBefore", "LastModifiedTimeAfter", "LastModifiedTimeBefore"]
            .map(time);
    page(MAX_RESULTS_MAX).into_iter().chain(order).chain(filters).chain(times).collect()
}

fn job_filters() -> Vec<Value> {
    let order = choice("SortBy", &["Name", "CreationTime", "Status", "FinalObjectiveMetricValue"]);
    let others = [order, choice("SortOrder", &ORDERS), choice("StatusEquals", &JOB_STATUSES)];
    page(MAX_RESULTS_MAX).into_iter().chain(others).collect()
}

fn change() -> Value {
    json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": false,
        "properties": {
            "MaxCostUsd": {"type": "number", "exclusiveMinimum": 0},
            "MaxParallelTrainingJobs": {"type": "integer", "minimum": 1, "maximum": 1000},
            "paused": {"type": "boolean"},
        },
    })
}

fn reference<T: JsonSchema>(types: &mut SchemaGenerator) -> Value {
    types.subschema_for::<T>().to_value()
}

fn path_parameter(name: &str, description: &str, pattern: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "description": description,
        "schema": {"type": "string", "pattern": pattern}})
}

fn query(name: &str, schema: &Value) -> Value {
    json!({"name": name, "in": "query", "schema": schema})
}

fn choice(name: &str, values: &[&str]) -> Value {
    query(name, &json!({"type": "string", "enum": values}))
}

/// Returns the parameters of a page of at most `most` entries.
fn page(most: u64) -> Vec<Value> {
    vec![
        query("MaxResults", &json!({"type": "integer", "minimum": 1, "maximum": most})),
        query("NextToken", &json!({"type": "string"})),
    ]
}
