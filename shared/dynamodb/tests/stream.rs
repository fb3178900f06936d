//! The stream of the embedded table delivers every change once, in order, in the form that Lambda receives.

use std::time::{Duration, Instant};

use dynamodb::{ChangeStream, DynamoTable, Embedded, StreamStart, event};
use serde_json::{Value, json};
use use_cases::ports::table::{Condition, Table, Write};
use wire::item::{EXPIRES_AT, Item, Key};

async fn put(table: &DynamoTable, sk: &str, n: i64) {
    table.write(Write::Put(row(sk, n), Condition::Always)).await.expect("the write succeeds");
}

fn row(sk: &str, n: i64) -> Item {
    Item::new(Key::new("p", sk)).with("n", n)
}

fn sort_keys(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["dynamodb"]["Keys"]["sk"]["S"].as_str().expect("a sort key")).collect()
}

fn sequence(record: &Value) -> String {
    record["dynamodb"]["SequenceNumber"].as_str().expect("a sequence number").to_owned()
}

async fn open() -> (Embedded, DynamoTable, ChangeStream) {
    let embedded = Embedded::memory().await.expect("a table in memory");
    let (table, stream) = (embedded.table(), embedded.stream(StreamStart::Latest).await.expect("a stream"));
    (embedded, table, stream)
}

#[tokio::test]
async fn changes_arrive_in_order_in_the_form_of_a_lambda_event() {
    let (_embedded, table, mut stream) = open().await;
    put(&table, "a", 1).await;
    put(&table, "a", 2).await;
    table.write(Write::Delete(Key::new("p", "a"), Condition::Always)).await.unwrap();
    let records = stream.next_batch(100).await.unwrap();
    let names: Vec<&Value> = records.iter().map(|record| &record["eventName"]).collect();
    assert_eq!(names, ["INSERT", "MODIFY", "REMOVE"]);
    let sequences: Vec<String> = records.iter().map(sequence).collect();
    assert!(sequences.is_sorted() && sequences.iter().all(|number| number.len() == 21), "{sequences:?}");

    let modified = &records[1];
    let time = modified["dynamodb"]["ApproximateCreationDateTime"].as_i64().expect("whole seconds");
    assert!(time > 1_700_000_000, "{time}");
    let arn = modified["eventSourceARN"].as_str().unwrap();
    assert!(arn.starts_with("arn:aws:dynamodb:us-east-1:000000000000:table/hyperband/stream/"), "{arn}");
    let mut shape = modified.clone();
    for path in ["/eventID", "/eventSourceARN"] {
        *shape.pointer_mut(path).unwrap() = "-".into();
    }
    for (path, value) in
        [("ApproximateCreationDateTime", json!(0)), ("SequenceNumber", "-".into()), ("SizeBytes", 0.into())]
    {
        shape["dynamodb"][path] = value;
    }
    let keys = json!({ "pk": { "S": "p" }, "sk": { "S": "a" } });
    let expected = json!({
        "eventID": "-", "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1", "eventSourceARN": "-",
        "dynamodb": {
            "ApproximateCreationDateTime": 0, "Keys": keys, "SequenceNumber": "-", "SizeBytes": 0,
            "StreamViewType": "NEW_IMAGE",
            "NewImage": { "pk": { "S": "p" }, "sk": { "S": "a" }, "n": { "N": "2" } },
        },
    });
    assert_eq!(shape, expected);
    assert_eq!(records[2]["dynamodb"].get("NewImage"), None, "a removed row has no new image");
    assert_eq!(event(records.clone())["Records"].as_array(), Some(&records));
}

#[tokio::test]
async fn a_batch_has_at_most_the_requested_size_and_the_next_continues() {
    let (_embedded, table, mut stream) = open().await;
    let writes = ["a", "b", "c", "d", "e"].map(|sk| Write::Put(row(sk, 1), Condition::Always));
    table.transact(writes.to_vec(), "t").await.unwrap();
    table.transact(writes.to_vec(), "t").await.unwrap();
    assert_eq!(sort_keys(&stream.next_batch(2).await.unwrap()), ["a", "b"]);
    assert_eq!(sort_keys(&stream.next_batch(2).await.unwrap()), ["c", "d"]);
    assert_eq!(sort_keys(&stream.next_batch(2).await.unwrap()), ["e"]);
    assert_eq!(stream.ready(2).await.unwrap(), [] as [Value; 0], "a repeated token changes nothing");
}

#[tokio::test]
async fn a_write_wakes_a_waiting_reader_and_a_failed_one_does_not() {
    let (_embedded, table, mut stream) = open().await;
    let reader = tokio::spawn(async move { (stream.next_batch(10).await.unwrap(), Instant::now()) });
    table.write(Write::Put(row("a", 1), Condition::equals("n", 1))).await.unwrap_err();
    put(&table, "b", 1).await;
    let written = Instant::now();
    let (records, read) = reader.await.unwrap();
    assert_eq!(sort_keys(&records), ["b"]);
    let waited = read.saturating_duration_since(written);
    assert!(waited < Duration::from_millis(900), "the write wakes the reader: {waited:?}");
}

#[tokio::test]
async fn a_stream_starts_at_the_oldest_after_the_newest_or_after_a_given_record() {
    let (embedded, table, mut latest) = open().await;
    for (sk, n) in [("a", 1), ("b", 2), ("c", 3)] {
        put(&table, sk, n).await;
    }
    let all = latest.next_batch(10).await.unwrap();
    let mut horizon = embedded.stream(StreamStart::TrimHorizon).await.unwrap();
    assert_eq!(horizon.next_batch(10).await.unwrap(), all);
    let mut after = embedded.stream(StreamStart::After(sequence(&all[0]))).await.unwrap();
    assert_eq!(sort_keys(&after.next_batch(10).await.unwrap()), ["b", "c"]);
    let mut newest = embedded.stream(StreamStart::Latest).await.unwrap();
    put(&table, "d", 4).await;
    assert_eq!(sort_keys(&newest.next_batch(10).await.unwrap()), ["d"]);
    assert!(embedded.stream(StreamStart::After("5".to_owned())).await.is_err(), "an unknown sequence number");
}

#[tokio::test]
async fn trimmed_records_are_gone_and_readers_keep_their_position() {
    let (embedded, table, mut stream) = open().await;
    for n in 0..5 {
        put(&table, "a", n).await;
    }
    let all = stream.next_batch(10).await.unwrap();
    assert_eq!(embedded.trim_stream(&sequence(&all[2])).await, Ok(3));
    let mut horizon = embedded.stream(StreamStart::TrimHorizon).await.unwrap();
    assert_eq!(horizon.next_batch(10).await.unwrap(), all[3..]);
    assert_eq!(embedded.trim_stream(&sequence(&all[4])).await, Ok(1), "the last record is kept");
    put(&table, "b", 1).await;
    assert_eq!(sort_keys(&stream.next_batch(10).await.unwrap()), ["b"]);
    assert!(embedded.trim_stream("nonsense").await.is_err());
}

#[tokio::test]
async fn a_sweep_removes_expired_rows_and_the_stream_has_the_removals() {
    let (embedded, table, mut stream) = open().await;
    let expired = row("old", 1).with(EXPIRES_AT, 1_700_000_000);
    let fresh = row("new", 1).with(EXPIRES_AT, 32_000_000_000);
    for item in [&expired, &fresh] {
        table.write(Write::Put(item.clone(), Condition::Always)).await.unwrap();
    }
    stream.next_batch(10).await.unwrap();
    let swept = embedded.sweep().await.unwrap();
    assert_eq!((swept.rows, swept.records), (1, 0));
    let records = stream.next_batch(10).await.unwrap();
    assert_eq!(sort_keys(&records), ["old"]);
    assert_eq!(records[0]["userIdentity"]["principalId"], "dynamodb.amazonaws.com");
    assert_eq!(table.get(&expired.key).await, Ok(None));
    assert_eq!(table.get(&fresh.key).await, Ok(Some(fresh)));
}
