//! Lists: their orders, filters and pages, and unreadable rows.

use serde_json::{Value, json};
use tuning::log::fact::{JobEnd, JobKey};
use tuning::unit::time::Time;
use use_cases::describe;
use use_cases::ports::table::{Condition, Table, Write};
use wire::item::Key;
use wire::stored::{self, IndexRow};

use super::{TestApi, amz, decided, get, open, place, rest, submitted};

/// Returns the names on a page.
fn names(page: &Value) -> Vec<String> {
    let jobs = page["HyperParameterTuningJobSummaries"].as_array().unwrap().iter();
    jobs.map(|job| job["HyperParameterTuningJobName"].as_str().unwrap().to_owned()).collect()
}

async fn write(api: &TestApi, write: Write) {
    api.submit.store.table.write(write).await.unwrap();
}

/// Makes a row unreadable: sets a version from the future.
async fn damage(api: &TestApi, id: &str, key: &Key) {
    let row = api.submit.store.table.get(key).await.unwrap().unwrap().with("version", 1_000);
    write(api, Write::Put(row, Condition::Always)).await;
    api.submit.store.forget(id);
}

#[tokio::test]
async fn training_jobs_are_listed_in_pages_and_in_the_requested_order() {
    let api = open();
    let id = submitted(&api, "hb1").await;
    decided(&api, &id).await;
    let (_, all) = get(&api, "/tuning-jobs/hb1/training-jobs").await;
    let names = |page: &Value| -> Vec<String> {
        let jobs = page["TrainingJobSummaries"].as_array().unwrap().iter();
        jobs.map(|job| job["TrainingJobName"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&all), [format!("{id}-0-0-1"), format!("{id}-1-0-1")]);
    let (_, first) = get(&api, "/tuning-jobs/hb1/training-jobs?MaxResults=1&SortOrder=Descending").await;
    assert_eq!(names(&first), [format!("{id}-1-0-1")]);
    let next = first["NextToken"].as_str().unwrap();
    let path = format!("/tuning-jobs/hb1/training-jobs?MaxResults=1&SortOrder=Descending&NextToken={next}");
    let (_, last) = get(&api, &path).await;
    assert_eq!((names(&last), last.get("NextToken")), (vec![format!("{id}-0-0-1")], None));
    for (query, expected) in [
        ("StatusEquals=Completed", 0),
        ("StatusEquals=InProgress", 2),
        ("SortBy=FinalObjectiveMetricValue", 0),
        ("SortBy=CreationTime", 2),
        ("SortBy=Status", 2),
    ] {
        let (status, page) = get(&api, &format!("/tuning-jobs/hb1/training-jobs?{query}")).await;
        assert_eq!((status, names(&page).len()), (200, expected), "{query}");
    }
}

#[tokio::test]
async fn tuning_jobs_are_listed_in_every_order_with_every_filter_and_page_size() {
    let api = open();
    for name in ["b-2", "a-1", "C-3", "a-4"] {
        submitted(&api, name).await;
    }
    assert_eq!(rest(&api, "POST", "/tuning-jobs/b-2/stop", &Value::Null).await.0, 200);
    for (query, expected) in [
        ("", "a-1 a-4 b-2 C-3"),
        ("SortOrder=Descending", "C-3 b-2 a-4 a-1"),
        ("SortBy=CreationTime", "b-2 a-1 C-3 a-4"),
        ("SortBy=CreationTime&SortOrder=Descending", "a-4 C-3 a-1 b-2"),
        ("SortBy=Status", "a-1 a-4 b-2 C-3"),
        ("SortBy=Status&SortOrder=Descending&StatusEquals=InProgress", "C-3 a-4 a-1"),
        ("SortBy=CreationTime&StatusEquals=InProgress", "a-1 C-3 a-4"),
        ("SortOrder=Descending&StatusEquals=InProgress", "C-3 a-4 a-1"),
        ("StatusEquals=Completed", ""),
        ("NameContains=a-", "a-1 a-4"),
        ("StatusEquals=Stopping", "b-2"),
        ("StatusEquals=InProgress&NameContains=C", "C-3"),
        ("CreationTimeAfter=1790000003", "a-4 C-3"),
        ("CreationTimeBefore=2026-09-21T14:13:24Z", "a-1 b-2"),
        ("LastModifiedTimeBefore=1790000001.5", "b-2"),
    ] {
        for limit in ["1", "2", "100"] {
            let (mut names, mut token) = (Vec::new(), String::new());
            loop {
                let page = format!("/tuning-jobs?MaxResults={limit}&{query}{token}");
                let (status, body) = get(&api, &page).await;
                assert_eq!(status, 200, "{body}");
                let shown = body["HyperParameterTuningJobSummaries"].as_array().unwrap().iter();
                names
                    .extend(shown.map(|job| job["HyperParameterTuningJobName"].as_str().unwrap().to_owned()));
                let Some(next) = body["NextToken"].as_str() else { break };
                token = format!("&NextToken={next}");
            }
            assert_eq!(names.join(" "), expected, "{query} by {limit}");
        }
    }
}

#[tokio::test]
async fn regression_an_unreadable_tuning_job_hides_no_other() {
    let api = open();
    let mut ids = Vec::new();
    for name in ["a", "b", "c", "d"] {
        ids.push(submitted(&api, name).await);
    }
    damage(&api, &ids[1], &stored::meta_key(&ids[1])).await;
    damage(&api, &ids[2], &stored::head_key(&ids[2])).await;
    for query in
        ["", "?StatusEquals=InProgress", "?SortBy=CreationTime", "?SortBy=Status&SortOrder=Descending"]
    {
        let (status, page) = get(&api, &format!("/tuning-jobs{query}")).await;
        assert_eq!(status, 200, "{query}: {page}");
        let mut shown = names(&page);
        shown.sort();
        assert_eq!(shown, ["a", "b", "c", "d"], "{query}");
        for job in page["HyperParameterTuningJobSummaries"].as_array().unwrap() {
            assert_eq!(job["HyperParameterTuningJobStatus"], "InProgress", "{job}");
            let unread = ["b", "c"].contains(&job["HyperParameterTuningJobName"].as_str().unwrap());
            assert_eq!(job["Controller"].get("Unreadable").is_some(), unread, "{job}");
        }
    }
    assert_eq!(
        rest(&api, "POST", "/tuning-jobs/b/stop", &Value::Null).await.0,
        200,
        "an unreadable tuning job can be stopped"
    );
    let (_, page) = get(&api, "/tuning-jobs?StatusEquals=Stopping").await;
    assert_eq!(names(&page), ["b"]);
}

#[tokio::test]
async fn regression_active_tuning_jobs_are_listed_without_reading_the_ended_ones() {
    let api = open();
    let over = submitted(&api, "over").await;
    submitted(&api, "runs").await;
    write(&api, Write::Delete(stored::active_row(&over).key, Condition::Always)).await;
    // A list that reads this head fails or includes the tuning job.
    damage(&api, &over, &stored::head_key(&over)).await;
    for order in ["Name", "CreationTime", "Status"] {
        let (status, page) = get(&api, &format!("/tuning-jobs?StatusEquals=InProgress&SortBy={order}")).await;
        assert_eq!((status, names(&page)), (200, vec!["runs".to_owned()]), "{order}: {page}");
    }
}

#[tokio::test]
async fn regression_names_and_tokens_are_bounded_over_both_protocols() {
    let api = open();
    for name in ["a", "b"] {
        submitted(&api, name).await;
    }
    let long = "x".repeat(2_000);
    for operation in ["DescribeHyperParameterTuningJob", "StopHyperParameterTuningJob"] {
        let body = json!({"HyperParameterTuningJobName": long}).to_string();
        let (status, answer) = amz(&api, operation, &body).await;
        assert_eq!((status, &answer["__type"]), (400, &json!("ResourceNotFound")), "{operation}");
        assert!(answer["message"].as_str().unwrap().len() < 200, "{answer}");
    }
    let (_, first) = get(&api, "/tuning-jobs?MaxResults=1").await;
    let token = first["NextToken"].as_str().unwrap();
    for (list, wrong) in [
        ("tuning-jobs?", long.as_str()),
        ("tuning-jobs?SortBy=CreationTime&", token),
        ("tuning-jobs?SortOrder=Descending&", token),
        ("tuning-jobs/a/training-jobs?", token),
        ("tuning-jobs/a/training-jobs?", long.as_str()),
    ] {
        let (status, answer) = get(&api, &format!("/{list}NextToken={wrong}")).await;
        assert_eq!((status, &answer["__type"]), (400, &json!("ValidationException")), "{list}");
        assert!(
            answer["message"]
                .as_str()
                .unwrap()
                .contains("expected the NextToken of the previous page of this list"),
            "{answer}"
        );
    }
    let body = json!({"NextToken": long}).to_string();
    assert_eq!(amz(&api, "ListHyperParameterTuningJobs", &body).await.0, 400);
    let (status, page) = amz(&api, "ListHyperParameterTuningJobs", r#"{"NextToken": ""}"#).await;
    assert_eq!((status, names(&page).len()), (200, 2), "an empty token counts as missing");
    for list in ["tuning-jobs", "tuning-jobs/a/training-jobs", "tuning-jobs/a/decisions"] {
        assert_eq!(get(&api, &format!("/{list}?NextToken=")).await.0, 200, "{list}");
    }
}

#[tokio::test]
async fn regression_a_page_of_training_jobs_reads_its_own_rows_only() {
    let api = open();
    let id = submitted(&api, "hb1").await;
    decided(&api, &id).await;
    // Adds ended jobs between and after the two running ones.
    let (_, live) = describe::summaries(&api.submit.store, &id).await.unwrap().unwrap();
    let keys = (2..9).map(|trial| JobKey::new(trial, 0, 1));
    for job in keys.chain([JobKey::new(0, 1, 1)]) {
        let mut ended = live[0].clone();
        ended.job = job;
        ended.end = Some(if job.trial.0 % 2 == 0 { JobEnd::Completed } else { JobEnd::Stopped });
        write(&api, Write::Put(stored::job_row(&id, &ended), Condition::Always)).await;
    }
    let all = describe::jobs(&api.submit.store, &place(), &id).await.unwrap().unwrap();
    let all: Vec<Value> = all.iter().map(|job| json!(job)).collect();
    assert_eq!(all.len(), 10);
    for query in ["", "StatusEquals=Completed", "StatusEquals=InProgress", "StatusEquals=Failed"] {
        let status = query.strip_prefix("StatusEquals=");
        let fits = |job: &&Value| status.is_none_or(|status| job["TrainingJobStatus"] == status);
        for descending in [false, true] {
            let mut expected: Vec<Value> = all.iter().filter(fits).cloned().collect();
            let mut order = "SortOrder=Ascending";
            if descending {
                expected.reverse();
                order = "SortOrder=Descending";
            }
            for limit in 1..12 {
                let (mut shown, mut token) = (Vec::new(), String::new());
                loop {
                    let list = format!("training-jobs?{query}&{order}&MaxResults={limit}{token}");
                    let (code, page) = get(&api, &format!("/tuning-jobs/hb1/{list}")).await;
                    assert_eq!(code, 200, "{page}");
                    shown.extend(page["TrainingJobSummaries"].as_array().unwrap().iter().cloned());
                    let Some(next) = page["NextToken"].as_str() else { break };
                    token = format!("&NextToken={next}");
                }
                assert_eq!(shown, expected, "{query} {order} by {limit}");
            }
        }
    }
    damage(&api, &id, &stored::job_key(&id, JobKey::new(8, 0, 1))).await;
    let (status, page) = get(&api, "/tuning-jobs/hb1/training-jobs?MaxResults=3").await;
    assert_eq!((status, page["TrainingJobSummaries"].as_array().unwrap().len()), (200, 3), "{page}");
}

#[tokio::test]
async fn regression_ten_thousand_tuning_jobs_are_listed_in_order_of_time() {
    let api = open();
    // A tuning job that has only an index row is not listed.
    for number in 0..10_100 {
        let name = format!("n-{number:05}");
        let row = IndexRow { id: format!("{name}-abc123"), name, created: Time(number), submitter: None };
        write(&api, Write::Put(row.row(), Condition::Always)).await;
    }
    submitted(&api, "last").await;
    // More rows precede it than the list keeps in memory.
    for query in ["NameContains=last", "CreationTimeAfter=9", "SortOrder=Descending"] {
        let (mut shown, mut token) = (Vec::new(), String::new());
        loop {
            let list = format!("/tuning-jobs?SortBy=CreationTime&MaxResults=1&{query}{token}");
            let (status, page) = get(&api, &list).await;
            assert_eq!(status, 200, "{page}");
            shown.extend(names(&page));
            // In descending order, all other rows follow it.
            let done = query == "SortOrder=Descending" && !shown.is_empty();
            let Some(next) = page["NextToken"].as_str().filter(|_| !done) else { break };
            token = format!("&NextToken={next}");
        }
        assert_eq!(shown, ["last"], "{query}");
    }
    let (status, answer) = get(&api, "/tuning-jobs?SortBy=Status").await;
    assert_eq!((status, &answer["__type"]), (400, &json!("ValidationException")));
    assert!(answer["message"].as_str().unwrap().contains("filter with NameContains"), "{answer}");
}
