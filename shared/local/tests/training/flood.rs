//! A process that prints without end: memory stays small, and an unread feed delays no stop.

use std::process::Command;
use std::time::{Duration, Instant};

use use_cases::ports::training::TrainingJobs;

use crate::world::{World, config, request, until};

#[test]
fn printing_100_megabytes_needs_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("request.json");
    std::fs::write(&file, request("flood").to_string()).unwrap();
    let line = "x".repeat(99);
    // The feed is not read for the first second.
    let output = Command::new(env!("CARGO_BIN_EXE_local-test-host"))
        .args(["serve".as_ref(), folder.path().join("root").as_os_str(), file.as_os_str()])
        .args(["1", "--", "/bin/sh", "-c", &format!("yes {line} | head -c 100000000; echo; echo end")])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |start: &str| -> u64 {
        let found = text.lines().find_map(|line| line.strip_prefix(start)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("{text}"))
    };
    eprintln!("{text}");
    assert!(text.contains("Completed"));
    assert!(number("log bytes") > 100_000_000);
    assert!(number("peak kB") < 150_000);
    let logs: Vec<_> =
        std::fs::read_dir(folder.path().join("root/jobs/flood/logs")).unwrap().flatten().collect();
    assert_eq!(logs.len(), 1);
    assert!(logs[0].metadata().unwrap().len() < 33 * 1024 * 1024 + 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_feed_delays_no_stop() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&folder.path().join("root"), "exec yes");
    let (service, mut feeds) = local::training::TrainingService::open(config).await.unwrap();
    service.create(&request("job")).await.unwrap();
    until("the feed is full", || feeds.logs.len() == feeds.logs.max_capacity()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let start = Instant::now();
    service.stop("job").await.unwrap();
    loop {
        let event = feeds.events.recv().await.unwrap();
        if event["detail"]["SecondaryStatus"] == "Stopped" {
            break;
        }
    }
    // The grace period, and the few seconds for the delivery of the last lines.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    service.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_very_long_line_is_split_and_invalid_utf_8_is_replaced() {
    let world = World::new("head -c 700000 /dev/zero | tr '\\0' x; printf '\\377\\376\\n'").await;
    world.create(&request("job")).await;
    world.ended("job").await;
    let messages = world.messages("job/");
    let lengths: Vec<usize> = messages.iter().map(String::len).collect();
    assert_eq!(lengths, [262_144, 262_144, 700_000 - 2 * 262_144 + 6]);
    assert!(messages[2].ends_with("x\u{fffd}\u{fffd}"));
}
