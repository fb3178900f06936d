//! Durability of the table file, and the errors for an unusable file.

use std::fs;
use std::path::Path;
use std::process::Command;

use dynamodb::{Embedded, OpenError, StreamStart};
use use_cases::ports::table::{Condition, Query, Table, TableError, Write};
use wire::item::{Item, Key};

fn row(n: usize) -> Item {
    Item::new(Key::new("p", format!("{n:06}"))).with("text", "x".repeat(1000))
}

async fn fill(embedded: &Embedded, rows: usize) {
    let table = embedded.table();
    for n in 0..rows {
        table.write(Write::Put(row(n), Condition::NotExists)).await.expect("the request succeeds");
    }
}

async fn count(embedded: &Embedded) -> usize {
    embedded.table().query(&Query::prefix("p", "", 1000)).await.expect("the request succeeds").items.len()
}

async fn open_error(path: &Path) -> OpenError {
    Embedded::open(path).await.expect_err("the file does not open")
}

#[tokio::test]
async fn a_reopened_file_has_its_rows_and_stream_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    let embedded = Embedded::open(&path).await.unwrap();
    fill(&embedded, 20).await;
    let mut stream = embedded.stream(StreamStart::TrimHorizon).await.unwrap();
    let last = stream.next_batch(15).await.unwrap().pop().unwrap();
    drop((embedded, stream));

    let embedded = Embedded::open(&path).await.unwrap();
    assert_eq!(count(&embedded).await, 20);
    let start = StreamStart::After(last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned());
    let mut stream = embedded.stream(start).await.unwrap();
    assert_eq!(stream.next_batch(100).await.unwrap().len(), 5, "the stream continues at its position");
}

#[tokio::test]
async fn acknowledged_writes_survive_the_end_of_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    let embedded = Embedded::open(&path).await.unwrap();
    for rows in [0, 1, 50] {
        for n in 0..rows {
            embedded.table().write(Write::Put(row(n), Condition::Always)).await.unwrap();
        }
        // A killed process leaves the file and its log as they are now, not closed.
        let copy = directory.path().join(format!("copy-{rows}.db"));
        for suffix in ["", "-wal"] {
            fs::copy(format!("{}{suffix}", path.display()), format!("{}{suffix}", copy.display())).unwrap();
        }
        assert_eq!(count(&Embedded::open(&copy).await.unwrap()).await, rows);
    }
}

#[tokio::test]
async fn a_second_owner_gets_the_process_id_of_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    let first = Embedded::open(&path).await.unwrap();
    let table = first.table();
    drop(first);
    let error = open_error(&path).await;
    let process = format!("process {}", std::process::id());
    assert!(matches!(&error, OpenError::InUse { holder, .. } if *holder == process), "{error}");
    assert!(error.to_string().contains("table.db is in use by process"), "{error}");
    drop(table);
    Embedded::open(&path).await.expect("the file is released");
}

#[tokio::test]
async fn a_file_with_other_data_is_refused_and_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("garbage");
    let garbage = "not a database, but long enough to look like one. ".repeat(100);
    fs::write(&path, &garbage).unwrap();
    let error = open_error(&path).await;
    assert!(matches!(error, OpenError::NotATable { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), garbage);

    let path = directory.path().join("other.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE experiments (name TEXT)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    let error = open_error(&path).await;
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn an_empty_file_becomes_a_table() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty.db");
    fs::write(&path, "").unwrap();
    fill(&Embedded::open(&path).await.unwrap(), 1).await;
}

#[tokio::test]
async fn a_truncated_or_overwritten_file_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    fill(&Embedded::open(&path).await.unwrap(), 300).await;
    let whole = fs::read(&path).unwrap();
    let half = whole.len() / 2;
    let mut overwritten = whole.clone();
    overwritten[half..half + 20_000].fill(0xA5);
    for content in [&whole[..half], &whole[..half + 100], &whole[..5000], &whole[..50], &overwritten] {
        fs::write(&path, content).unwrap();
        let error = open_error(&path).await;
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains("restore a copy"), "{error}");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(count(&Embedded::open(&path).await.unwrap()).await, 300);
}

#[tokio::test]
async fn damage_to_an_open_file_is_refused_with_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    fill(&Embedded::open(&path).await.unwrap(), 300).await;
    let embedded = Embedded::open(&path).await.unwrap();
    let length = fs::metadata(&path).unwrap().len();
    let file = fs::File::options().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(
        &file,
        &vec![0xA5; usize::try_from(length).unwrap() - 8192],
        8192,
    )
    .unwrap();
    let table = embedded.table();
    let mut errors = Vec::new();
    for n in 0..300 {
        errors.extend(table.get(&row(n).key).await.err());
        errors.extend(table.write(Write::Put(row(n), Condition::Always)).await.err());
    }
    let names_file =
        |error: &TableError| matches!(error, TableError::Refused(text) if text.contains("table.db"));
    assert!(!errors.is_empty() && errors.iter().all(names_file), "{:?}", errors.first());
}

#[tokio::test]
async fn an_unwritable_path_is_an_access_error_with_the_path() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    let missing = directory.path().join("none/table.db");
    let below_a_file = directory.path().join("file/table.db");
    for path in [missing.as_path(), &below_a_file, directory.path(), Path::new("/proc/table.db")] {
        let error = open_error(path).await;
        assert!(matches!(error, OpenError::Access { .. }), "{error:?}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

/// The part of the next test that runs in a process with a limit on file sizes.
#[tokio::test]
async fn child_process_that_fills_the_disk() {
    let Some(path) = std::env::var_os("DYNAMODB_TEST_FILL") else { return };
    let embedded = Embedded::open(Path::new(&path)).await.unwrap();
    let table = embedded.table();
    let mut written = 0;
    let error = loop {
        match table.write(Write::Put(row(written), Condition::NotExists)).await {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100_000, "the disk never filled");
    };
    let names_file =
        matches!(&error, TableError::Unavailable(text) if text.contains(&*path.to_string_lossy()));
    assert!(names_file, "{error:?}");
    assert_eq!(table.get(&row(written).key).await, Ok(None), "the row that did not fit");
    assert_eq!(table.get(&row(written - 1).key).await, Ok(Some(row(written - 1))));
    let writes = (0..10).map(|n| Write::Put(row(written + n), Condition::Always)).collect();
    assert!(matches!(table.transact(writes, "t").await, Err(TableError::Unavailable(_))));
    println!("written={written} error={error}");
}

#[tokio::test]
async fn a_full_disk_loses_no_acknowledged_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    // A limit on file sizes stands for a full disk: setting it needs no privileges.
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 12000; exec \"$0\" --exact child_process_that_fills_the_disk --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .env("DYNAMODB_TEST_FILL", &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let written = text.split("written=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let written: usize = written.parse().unwrap();
    let embedded = Embedded::open(&path).await.unwrap();
    assert!(written > 100 && embedded.table().get(&row(written - 1).key).await.unwrap().is_some(), "{text}");
    let more = embedded.table().write(Write::Put(row(written), Condition::NotExists)).await;
    assert_eq!(more, Ok(()), "writes succeed when space is free again");
}
