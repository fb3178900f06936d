//! Quotas: concurrent executions of Lambda, and instances of training jobs.

use std::collections::BTreeMap;

use api_client::{Service, ServiceError};
use serde_json::{Value, json};

use super::finding::{Check, Finding};
use crate::doctor::account::Answer;
use crate::doctor::verdict::Verdict;

const CONCURRENCY: Check =
    ("lambda-concurrency", "the quota of concurrent executions of Lambda is enough for the functions");
const TRAINING: Check = ("training-quota", "training jobs may use the instance types");
const SPOT: Check = ("spot-quota", "spot training jobs may use the instance types");
/// Minimum quota of an account, that of a new account.
const EXECUTIONS_MIN: u64 = 10;
/// Executions that the template reserves, and those that Lambda requires to stay unreserved.
const RESERVABLE_MIN: u64 = 122 + 100;
/// Maximum pages of a listing. SageMaker has some thousand quotas, 100 a page.
const PAGES_MAX: usize = 100;

pub(super) fn judge_concurrency(answer: &Answer) -> Finding {
    let limits = match answer {
        Ok(answer) => &answer["AccountLimit"],
        Err(error) => return Finding::unanswered(CONCURRENCY, "lambda:GetAccountSettings", error),
    };
    let number = |member: &str| limits[member].as_u64();
    let (Some(quota), Some(unreserved)) =
        (number("ConcurrentExecutions"), number("UnreservedConcurrentExecutions"))
    else {
        return Finding::new(CONCURRENCY, Verdict::not_tried("lambda:GetAccountSettings returned no quota"));
    };
    let seen = format!("the quota is {quota}, {unreserved} of it unreserved");
    if quota < EXECUTIONS_MIN {
        let fix = format!(
            "request an increase of the quota \"Concurrent executions\" of AWS Lambda (L-B99A9384) to at least \
             {EXECUTIONS_MIN}"
        );
        return Finding::new(CONCURRENCY, Verdict::No(seen)).fix(fix);
    }
    let can_reserve = unreserved >= RESERVABLE_MIN;
    let seen =
        if can_reserve { seen } else { format!("{seen}; reserving needs {RESERVABLE_MIN} unreserved") };
    Finding::new(CONCURRENCY, Verdict::Yes(seen)).set("ReserveConcurrency", can_reserve.to_string())
}

/// The values of quotas by name, or the call that failed.
pub(super) type Quotas = Result<BTreeMap<String, f64>, (String, ServiceError)>;

fn training(instance_type: &str) -> String {
    format!("{instance_type} for training job usage")
}

fn spot(instance_type: &str) -> String {
    format!("{instance_type} for spot training job usage")
}

/// Reads the quotas of `types`. A quota without an applied value has its default.
pub(super) async fn read(service: &Service<'_>, types: &[String]) -> Quotas {
    let mut found = BTreeMap::new();
    let wanted: Vec<String> = types.iter().flat_map(|kind| [training(kind), spot(kind)]).collect();
    for operation in ["ListServiceQuotas", "ListAWSDefaultServiceQuotas"] {
        let mut asked = json!({"ServiceCode": "sagemaker", "MaxResults": 100});
        for _ in 0..PAGES_MAX {
            if wanted.iter().all(|name| found.contains_key(name)) {
                return Ok(found);
            }
            let page = service.read(operation, &asked).await;
            let page = page.map_err(|error| (service.action(operation), error))?;
            for quota in page["Quotas"].as_array().into_iter().flatten() {
                let (Some(name), Some(value)) = (quota["QuotaName"].as_str(), quota["Value"].as_f64()) else {
                    continue;
                };
                if wanted.iter().any(|wanted| wanted == name) {
                    // The applied value, which is read first, has precedence.
                    found.entry(name.to_owned()).or_insert(value);
                }
            }
            match &page["NextToken"] {
                Value::String(token) if !token.is_empty() => asked["NextToken"] = json!(token),
                _ => break,
            }
        }
    }
    Ok(found)
}

pub(super) fn judge_training(quotas: &Quotas, types: &[String]) -> Finding {
    judge(TRAINING, quotas, types, training, Verdict::No)
}

/// Judges the quotas of spot jobs. Without `--spot`, a quota of 0 prevents nothing.
pub(super) fn judge_spot(quotas: &Quotas, types: &[String], uses_spot: bool) -> Finding {
    judge(SPOT, quotas, types, spot, if uses_spot { Verdict::No } else { Verdict::Warning })
}

fn judge(
    check: Check,
    quotas: &Quotas,
    types: &[String],
    name: fn(&str) -> String,
    none: fn(String) -> Verdict,
) -> Finding {
    let quotas = match quotas {
        Ok(quotas) => quotas,
        Err((action, error)) => return Finding::unanswered(check, action, error),
    };
    let value = |kind: &String| quotas.get(&name(kind)).copied();
    let seen: Vec<String> = types
        .iter()
        .map(|kind| value(kind).map_or(format!("{kind}: unknown"), |value| format!("{kind}: {value}")))
        .collect();
    let seen = format!("instances: {}", seen.join(", "));
    let empty: Vec<String> = types
        .iter()
        .filter(|kind| value(kind).is_some_and(|value| value < 1.0))
        .map(|kind| format!("\"{}\"", name(kind)))
        .collect();
    if !empty.is_empty() {
        let fix =
            format!("request an increase of {} of Amazon SageMaker in Service Quotas", empty.join(" and "));
        return Finding::new(check, none(seen)).fix(fix);
    }
    match types.iter().find(|kind| value(kind).is_none()) {
        Some(kind) => {
            Finding::new(check, Verdict::not_tried(format!("there is no quota \"{}\"", name(kind))))
                .fix("check the instance type and its availability in the Region")
        }
        None => Finding::new(check, Verdict::Yes(seen)),
    }
}
