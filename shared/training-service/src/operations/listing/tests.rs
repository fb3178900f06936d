//! Tests filters, sort orders and pages on made-up jobs.

use super::*;
use use_cases::ports::Millis;
use use_cases::ports::Time;

fn job(name: &str, status: &'static str, created: Time) -> Summary {
    Summary {
        name: name.to_owned(),
        arn: format!("arn:{name}"),
        status,
        secondary_status: status,
        created,
        modified: created + Millis(500),
        ended: None,
        warm_pool: (status == "Completed").then(|| json!({"Status": "Available"})),
    }
}

fn jobs() -> Vec<Summary> {
    vec![
        job("alpha", "Completed", Time(3_000)),
        job("Beta-1", "InProgress", Time(1_000)),
        job("beta-2", "Failed", Time(2_000)),
        job("gamma", "Completed", Time(1_000)),
    ]
}

fn page(members: &Value, jobs: Vec<Summary>) -> (Vec<String>, Option<String>) {
    let page = Query::read(members).unwrap().page(jobs);
    let names = page["TrainingJobSummaries"].as_array().unwrap().iter();
    let names = names.map(|job| job["TrainingJobName"].as_str().unwrap().to_owned()).collect();
    (names, page["NextToken"].as_str().map(str::to_owned))
}

fn names(members: &Value) -> Vec<String> {
    page(members, jobs()).0
}

#[test]
fn jobs_are_sorted_as_requested_and_by_creation_time_by_default() {
    assert_eq!(names(&json!({})), ["Beta-1", "gamma", "beta-2", "alpha"]);
    assert_eq!(names(&json!({"SortOrder": "Descending"})), ["alpha", "beta-2", "gamma", "Beta-1"]);
    assert_eq!(names(&json!({"SortBy": "Name"})), ["Beta-1", "alpha", "beta-2", "gamma"]);
    assert_eq!(names(&json!({"SortBy": "Status"})), ["gamma", "alpha", "beta-2", "Beta-1"]);
}

#[test]
fn a_job_must_match_all_filters() {
    assert_eq!(names(&json!({"StatusEquals": "Completed"})), ["gamma", "alpha"]);
    assert_eq!(names(&json!({"NameContains": "BETA"})), ["Beta-1", "beta-2"]);
    assert_eq!(names(&json!({"WarmPoolStatusEquals": "Available", "NameContains": "g"})), ["gamma"]);
    assert_eq!(names(&json!({"CreationTimeAfter": 1.0})), ["beta-2", "alpha"]);
    assert_eq!(names(&json!({"CreationTimeAfter": 0.999, "CreationTimeBefore": 2})), ["Beta-1", "gamma"]);
    assert_eq!(names(&json!({"LastModifiedTimeAfter": 2.4, "LastModifiedTimeBefore": 3.5})), ["beta-2"]);
    assert_eq!(names(&json!({"StatusEquals": "Deleting"})), Vec::<String>::new());
}

#[test]
fn pages_list_each_job_once_when_listed_jobs_disappear() {
    for by in ["Name", "CreationTime", "Status"] {
        for order in ["Ascending", "Descending"] {
            let mut query = json!({"SortBy": by, "SortOrder": order, "MaxResults": 1});
            let whole = names(&json!({"SortBy": by, "SortOrder": order}));
            let mut seen = Vec::new();
            loop {
                let mut all = jobs();
                // Listed jobs disappear.
                all.retain(|job| !seen.contains(&job.name));
                let (shown, next) = page(&query, all);
                assert_eq!(shown.len(), 1);
                seen.extend(shown);
                let Some(next) = next else { break };
                query["NextToken"] = json!(next);
            }
            assert_eq!(seen, whole, "{by} {order}");
        }
    }
}

#[test]
fn invalid_members_are_refused() {
    let token = page(&json!({"MaxResults": 1}), jobs()).1.unwrap();
    for members in [
        json!({"MaxResults": 0}),
        json!({"MaxResults": 101}),
        json!({"MaxResults": "5"}),
        json!({"SortBy": "Age"}),
        json!({"SortOrder": "Up"}),
        json!({"StatusEquals": "Done"}),
        json!({"StatusEquals": 1}),
        json!({"WarmPoolStatusEquals": "Cold"}),
        json!({"NameContains": "x".repeat(64)}),
        json!({"CreationTimeAfter": "yesterday"}),
        json!({"NextToken": "rubbish"}),
        json!({"NextToken": token, "SortBy": "Name"}),
        json!({"NextToken": token, "SortOrder": "Descending"}),
    ] {
        assert!(Query::read(&members).is_err(), "{members}");
    }
}
