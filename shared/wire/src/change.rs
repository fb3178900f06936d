//! The body of `PATCH /tuning-jobs/{name}`, which changes the limits of a running tuning job.
//!
//! A limit that is absent or null keeps its value. At least one limit must be present; other fields are rejected.

use serde_json::{Map, Value, json};
use tuning::unit::limits::MAX_PARALLEL_JOBS;
use tuning::unit::money::MicroUsd;

use crate::constraint;
use crate::request::{RequestError, Violation, micro_usd_down, read_body, shortened, usd};

/// New limits; `None` keeps the current value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitsChange {
    /// The new `MaxCostUsd`, rounded down to whole micro-dollars.
    pub cap: Option<MicroUsd>,
    /// The new `MaxParallelTrainingJobs`.
    pub max_parallel: Option<u32>,
    /// `paused`: `true` starts no further training jobs, `false` resumes.
    pub paused: Option<bool>,
}

impl LimitsChange {
    /// Reads and validates a body.
    pub fn parse(body: &[u8]) -> Result<Self, RequestError> {
        let Value::Object(members) = read_body(body)? else { return Err(empty_change()) };
        let mut violations = Vec::new();
        let change = Self {
            cap: member(&members, "MaxCostUsd", &mut violations, amount),
            max_parallel: member(&members, "MaxParallelTrainingJobs", &mut violations, parallel),
            paused: member(&members, "paused", &mut violations, flag),
        };
        let known = ["MaxCostUsd", "MaxParallelTrainingJobs", "paused"];
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            let name: String = name.chars().take(100).collect();
            let message =
                format!("Invalid field '{name}': it cannot be changed; expected one of {}", known.join(", "));
            violations.push(Violation { path: name, message });
        }
        if !violations.is_empty() {
            return Err(RequestError::validation(violations));
        }
        if change == Self::default() { Err(empty_change()) } else { Ok(change) }
    }

    /// Returns the body that requests this change.
    pub fn body(&self) -> Value {
        let mut members = Map::new();
        members.extend(self.cap.map(|cap| ("MaxCostUsd".to_owned(), usd(cap))));
        members.extend(self.max_parallel.map(|most| ("MaxParallelTrainingJobs".to_owned(), json!(most))));
        members.extend(self.paused.map(|paused| ("paused".to_owned(), json!(paused))));
        Value::Object(members)
    }
}

fn empty_change() -> RequestError {
    let message = "The request changes nothing: expected MaxCostUsd, MaxParallelTrainingJobs or paused, for example \
                   {\"paused\": true}";
    RequestError::validation(vec![Violation { path: String::new(), message: message.to_owned() }])
}

/// Returns member `name`, or `None` if it is absent, null or invalid. The error of `read` is the expectation.
fn member<T>(
    members: &Map<String, Value>,
    name: &str,
    violations: &mut Vec<Violation>,
    read: fn(&Value) -> Result<T, String>,
) -> Option<T> {
    let value = members.get(name).filter(|value| !value.is_null())?;
    read(value)
        .map_err(|expected| {
            let shown = shortened(&value.to_string());
            let message = format!("Invalid {name} {shown}: expected {expected} (at '{name}')");
            violations.push(Violation { path: name.to_owned(), message });
        })
        .ok()
}

fn amount(value: &Value) -> Result<MicroUsd, String> {
    // The same bound as in a new request.
    let row = constraint::rows().find(|row| row.path == "Controller.MaxCostUsd");
    let most = row.and_then(|row| u64::try_from(row.max?).ok()).unwrap_or(u64::MAX);
    let bounds = 1..=most.saturating_mul(1_000_000);
    let micro = value.as_number().and_then(micro_usd_down).filter(|micro| bounds.contains(micro));
    micro
        .map(MicroUsd)
        .ok_or_else(|| format!("a number of US dollars above 0 and at most {most}, for example 20"))
}

fn parallel(value: &Value) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| (1..=MAX_PARALLEL_JOBS).contains(number));
    number.ok_or_else(|| format!("a whole number from 1 to {MAX_PARALLEL_JOBS}, for example 4"))
}

fn flag(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "true or false".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        LimitsChange::parse(body.as_bytes()).unwrap_err().message
    }

    #[test]
    fn only_the_given_limits_change() {
        let all =
            LimitsChange::parse(br#"{"MaxCostUsd": 12.5, "MaxParallelTrainingJobs": 8, "paused": false}"#);
        let expect =
            LimitsChange { cap: Some(MicroUsd(12_500_000)), max_parallel: Some(8), paused: Some(false) };
        assert_eq!(all.unwrap(), expect);
        let one = LimitsChange::parse(br#"{"paused": true, "MaxCostUsd": null}"#).unwrap();
        assert_eq!(one, LimitsChange { paused: Some(true), ..LimitsChange::default() });
        for change in [expect, one] {
            assert_eq!(LimitsChange::parse(change.body().to_string().as_bytes()), Ok(change));
        }
    }

    #[test]
    fn regression_a_changed_cap_has_the_bound_of_a_new_request() {
        let most = LimitsChange::parse(br#"{"MaxCostUsd": 1000000000}"#).unwrap();
        assert_eq!(most.cap, Some(MicroUsd(1_000_000_000_000_000)));
        for above in ["1000000000.01", "1000000001", "1.8e13"] {
            let message = refused(&format!(r#"{{"MaxCostUsd": {above}}}"#));
            assert!(message.contains("at most 1000000000, for example 20 (at 'MaxCostUsd')"), "{message}");
        }
    }

    #[test]
    fn each_error_names_the_field_and_the_expectation() {
        assert!(refused("{}").contains("changes nothing"));
        assert!(refused("[]").contains("must be a JSON object"));
        assert!(refused(r#"{"MaxParallelTrainingJobs": 1001}"#).contains(
            "1001: expected a whole number from 1 to 1000, for example 4 (at 'MaxParallelTrainingJobs')"
        ));
        assert!(refused(r#"{"MaxCostUsd": 0}"#).contains("above 0"));
        assert!(refused(r#"{"MaxCostUsd": "5"}"#).contains("above 0"));
        assert!(refused(r#"{"paused": "yes"}"#).contains("true or false"));
        assert!(refused(r#"{"MaxJobs": 4}"#).contains("Invalid field 'MaxJobs': it cannot be changed"));
    }
}
