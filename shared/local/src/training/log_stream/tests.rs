//! Tests the stored file and its limit. Tests of whole jobs cover the delivery.

use super::*;
use tuning::unit::time::Time;

fn messages(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str::<LogEvent>(line).unwrap().message).collect()
}

#[test]
fn above_the_size_limit_only_one_notice_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut stream = LogStream::open(folder.path(), "job", "algo-1", Time(1_789_000_000_000)).unwrap();
    stream.stored_max = 1000;
    for _ in 0..20 {
        let events = vec![stream.event("a line of text".to_owned())];
        stream.store(&events).unwrap();
    }
    let stored = messages(&stream.path);
    assert!(stored.len() < 10);
    assert!(stored.last().unwrap().contains("later lines are not stored"), "{stored:?}");
    assert_eq!(stored.iter().filter(|line| line.starts_with("[hyperband]")).count(), 1);
}

#[test]
fn line_ids_have_a_fixed_width_and_increase() {
    let folder = tempfile::tempdir().unwrap();
    let mut stream = LogStream::open(folder.path(), "job", "algo-1", Time(1_789_000_000_000)).unwrap();
    let ids: Vec<String> = (0..1200).map(|_| stream.event(String::new()).id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b && a.len() == 56 && b.len() == 56));
    assert_eq!(ids[7], line_id("job/algo-1-1789000000000", Time(1_789_000_000_000), 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_reported_once_and_lines_are_still_delivered() {
    let mut stream = LogStream::open(tempfile::tempdir().unwrap().path(), "job", "algo-1", Time(1)).unwrap();
    stream.file = Some(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let (feed, mut lines) = mpsc::channel(16);
    let (_closer, closing) = watch::channel(false);
    let (errors, mut reported) = mpsc::unbounded_channel();
    let outlets = Outlets { owner: "1".to_owned(), feed, closing, errors };
    let out: &[u8] = b"one\n";
    pump(out, tokio::io::empty(), stream, outlets, vec!["zero".to_owned()]).await;
    assert!(reported.recv().await.unwrap().contains("No space left on device"));
    assert!(reported.recv().await.is_none());
    assert!(lines.recv().await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_feed_does_not_block_the_stream_after_a_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let stream = LogStream::open(folder.path(), "job", "algo-1", Time(1)).unwrap();
    let path = stream.path.clone();
    let (feed, _lines) = mpsc::channel(1);
    let (closer, closing) = watch::channel(false);
    let (errors, _reported) = mpsc::unbounded_channel();
    let outlets = Outlets { owner: "1".to_owned(), feed, closing, errors };
    let out = "line\n".repeat(10_000);
    let pumped = tokio::spawn(async move {
        pump(out.as_bytes(), tokio::io::empty(), stream, outlets, Vec::new()).await;
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!pumped.is_finished(), "the full feed blocks it");
    closer.send(true).unwrap();
    tokio::time::timeout(Duration::from_secs(20), pumped).await.unwrap().unwrap();
    assert_eq!(messages(&path).len(), 10_000);
}
