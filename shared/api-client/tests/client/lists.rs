//! Lists over several pages, and the other operations of the client.

use api_client::ClientError;
use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use stack_api::{Stack, response};
use tuning::unit::money::MicroUsd;
use wire::change::LimitsChange;
use wire::describe::DecisionPage;

use crate::world::{client, request};

#[tokio::test]
async fn all_tunings_are_listed_newest_first_over_several_pages() {
    let stack = Stack::start(MemoryTable::default());
    let client = client(&stack);
    for number in 0..105 {
        // The order of the names differs from that of the times.
        stack.set_clock_back(1_000 * number);
        client.create(&request(&format!("hb{}", (number * 8) % 105))).await.unwrap();
    }
    let before = stack.requests().len();
    let all = client.list().await.unwrap();
    assert_eq!(stack.requests().len() - before, 2, "pages");
    let times: Vec<i64> = all.iter().map(|one| one.base.created_ms).collect();
    assert_eq!(times.len(), 105);
    assert!(times.is_sorted_by(|one, next| one > next), "{times:?}");
    let before = stack.requests().len();
    let newest = client.newest().await.unwrap();
    assert_eq!((newest.tunings.as_slice(), newest.next_token.is_some()), (&all[..100], true));
    assert_eq!(stack.requests().len() - before, 1, "one page");
    client.stop("hb7").await.unwrap();
    let (active, errors) = client.active().await;
    assert_eq!((active.len(), errors), (105, Vec::new()), "a stopping tuning job is active");
}

#[tokio::test]
async fn regression_entries_read_before_an_error_are_returned() {
    let stack = Stack::with_rule(MemoryTable::default(), |request, _| {
        let one = json!({
            "HyperParameterTuningJobName": "hb1", "HyperParameterTuningJobArn": "arn",
            "HyperParameterTuningJobStatus": "InProgress", "CreationTime": 1, "LastModifiedTime": 1.5,
            "Controller": {"Unreadable": "damaged"},
        });
        match (request.path.contains("InProgress"), request.path.contains("NextToken")) {
            (true, false) => {
                response(200, &json!({"HyperParameterTuningJobSummaries": [one], "NextToken": "t"}))
            }
            (true, true) => response(500, &json!({"message": "a row cannot be read"})),
            (false, _) => response(200, &json!({"HyperParameterTuningJobSummaries": [one]})),
        }
    });
    let (active, errors) = client(&stack).active().await;
    assert_eq!((active.len(), errors.len()), (2, 1), "{errors:?}");
}

#[tokio::test]
async fn a_change_of_limits_is_sent_as_a_patch() {
    let stack = Stack::start(MemoryTable::default());
    let client = client(&stack);
    client.create(&request("hb1")).await.unwrap();
    let change =
        LimitsChange { cap: Some(MicroUsd(7_500_000)), paused: Some(true), ..LimitsChange::default() };
    client.change("hb1", &change).await.unwrap();
    let asked = stack.requests().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("PATCH", "/tuning-jobs/hb1"));
    assert_eq!(asked.body, br#"{"MaxCostUsd":7.5,"paused":true}"#);
    let error = client.change("hb1", &LimitsChange::default()).await.unwrap_err();
    assert!(error.is("ValidationException"), "{error}");
}

#[tokio::test]
async fn a_repeated_or_invalid_token_ends_the_list_with_an_error() {
    for token in ["again", "x&MaxResults=1"] {
        let answer = json!({"HyperParameterTuningJobSummaries": [], "NextToken": token});
        let stack = Stack::with_rule(MemoryTable::default(), move |_, _| response(200, &answer));
        let error = client(&stack).list().await.unwrap_err();
        assert!(matches!(error, ClientError::Foreign(_)), "{error}");
        assert!(stack.requests().len() <= 2);
    }
}

#[tokio::test]
async fn decisions_begin_after_the_given_step() {
    let stack = Stack::with_rule(MemoryTable::default(), |request, _| {
        assert_eq!(request.path, "/tuning-jobs/hb1/decisions?NextToken=7");
        response(200, &json!({"TuningJobId": "hb1-a", "Decisions": [{"n": 8}], "NextToken": "8"}))
    });
    let page: DecisionPage<Value> = client(&stack).decisions("hb1", 7).await.unwrap();
    assert_eq!((page.steps, page.next_token.as_deref()), (vec![json!({"n": 8})], Some("8")));
}

#[tokio::test]
async fn an_invalid_name_cannot_change_the_path() {
    let stack = Stack::start(MemoryTable::default());
    let error = client(&stack).describe("../x?y#z").await.unwrap_err();
    assert!(error.is("ResourceNotFound"), "{error}");
    let asked: Vec<String> = stack.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, ["/tuning-jobs/___x_y_z"]);
}
