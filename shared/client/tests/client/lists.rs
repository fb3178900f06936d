//! Lists are read to their end, page by page.

use client::ClientError;
use serde_json::json;
use service::memory::MemoryTable;
use stack_test::{Stack, response};

use crate::world::{client, request};

#[tokio::test]
async fn all_tunings_are_listed_newest_first_over_several_pages() {
    let stack = Stack::start(MemoryTable::default());
    let client = client(&stack);
    for number in 0..105 {
        // Names in another order than times.
        stack.set_clock_back(1_000 * number);
        client.create(&request(&format!("hb{}", (number * 8) % 105))).await.unwrap();
    }
    let before = stack.requests().len();
    let all = client.list().await.unwrap();
    assert_eq!(stack.requests().len() - before, 2, "pages");
    let times: Vec<f64> = all.iter().map(|one| one["CreationTime"].as_f64().unwrap()).collect();
    assert_eq!(times.len(), 105);
    assert!(times.is_sorted_by(|one, next| one > next), "{times:?}");
    client.stop("hb7").await.unwrap();
    assert_eq!(client.active().await.unwrap().len(), 105, "one that is stopping is not over");
}

#[tokio::test]
async fn a_list_that_leads_to_itself_or_elsewhere_ends() {
    for token in ["again", "x&MaxResults=1"] {
        let answer = json!({"HyperParameterTuningJobSummaries": [], "NextToken": token});
        let stack = Stack::with_rule(MemoryTable::default(), move |_, _| response(200, &answer));
        let error = client(&stack).list().await.unwrap_err();
        assert!(matches!(error, ClientError::Foreign(_)), "{error}");
        assert!(stack.requests().len() <= 2);
    }
}

#[tokio::test]
async fn decisions_begin_after_a_step() {
    let stack = Stack::with_rule(MemoryTable::default(), |request, _| {
        assert_eq!(request.path, "/tuning-jobs/hb1/decisions?NextToken=7");
        response(200, &json!({"Decisions": [{"n": 8}], "NextToken": "8"}))
    });
    let page = client(&stack).decisions("hb1", 7).await.unwrap();
    assert_eq!((page.steps, page.more), (vec![json!({"n": 8})], true));
}

#[tokio::test]
async fn what_cannot_be_a_name_stays_in_its_place() {
    let stack = Stack::start(MemoryTable::default());
    let error = client(&stack).describe("../x?y#z").await.unwrap_err();
    assert!(error.is("ResourceNotFound"), "{error}");
    let asked: Vec<String> = stack.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, ["/tuning-jobs/___x_y_z"]);
}
