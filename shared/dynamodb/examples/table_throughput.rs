//! Measures the speed of the embedded table, and how it changes as the table grows.
//!
//! `table_throughput [ROWS]` prints operations per second in memory and in a file. Then it prints the effect of ROWS
//! puts (default 10,000) on the stream, the file and the time to open the file. `table_throughput pace SECONDS` writes
//! ten rows per second while a reader consumes them: run it under `time` to measure the table of an idle controller.
//! Asserts nothing.
#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use dynamodb::{DynamoTable, Embedded, StreamStart};
use port_tests::memory::MemoryTable;
use use_cases::ports::table::{Condition, Query, Table, TableError, Write};
use wire::item::{Item, Key};

type Outcome = Result<(), Box<dyn Error>>;

fn row(pk: &str, n: usize) -> Item {
    Item::new(Key::new(pk, format!("{n:08}"))).with("n", 1).with("text", "x".repeat(300))
}

fn report(name: &str, count: u32, started: Instant) {
    let each = started.elapsed() / count;
    println!("{name:<44} {each:>10.1?} each {:>9.0} /s", 1.0 / each.as_secs_f64());
}

async fn operations<T: Table>(name: &str, table: &T) -> Result<(), TableError> {
    let started = Instant::now();
    for n in 0..1000 {
        table.write(Write::Put(row("p", n), Condition::NotExists)).await?;
    }
    report(&format!("{name}: put with a condition"), 1000, started);
    let started = Instant::now();
    for n in 0..1000 {
        table.get(&row("p", n).key).await?;
    }
    report(&format!("{name}: get"), 1000, started);
    let started = Instant::now();
    for n in 0..500 {
        let writes = ["a", "b", "c"].map(|pk| Write::Put(row(pk, n), Condition::Always));
        table.transact(writes.to_vec(), &n.to_string()).await?;
    }
    report(&format!("{name}: transaction of 3 puts"), 500, started);
    let started = Instant::now();
    for _ in 0..500 {
        table.query(&Query::prefix("p", "", 100)).await?;
    }
    report(&format!("{name}: query of 100 rows"), 500, started);
    Ok(())
}

async fn puts(table: &DynamoTable, from: usize, to: usize) -> Result<(), TableError> {
    for n in from..to {
        table.write(Write::Put(row("grow", n), Condition::Always)).await?;
    }
    Ok(())
}

async fn growth(path: &Path, rows: usize) -> Outcome {
    let embedded = Embedded::open(path).await?;
    let table = embedded.table();
    puts(&table, 0, rows).await?;
    let started = Instant::now();
    puts(&table, rows, rows + 200).await?;
    report(&format!("put after {rows} rows"), 200, started);
    for (name, start) in [("oldest", StreamStart::TrimHorizon), ("newest", StreamStart::Latest)] {
        let started = Instant::now();
        let mut stream = embedded.stream(start).await?;
        report(&format!("open a stream at the {name}"), 1, started);
        for limit in [1, 100] {
            let started = Instant::now();
            let read = stream.ready(limit).await?.len();
            report(&format!("read {read} stored records"), 1, started);
        }
    }
    let mut stream = embedded.stream(StreamStart::Latest).await?;
    let started = Instant::now();
    for n in 0..200 {
        puts(&table, rows + 200 + n, rows + 201 + n).await?;
        stream.next_batch(100).await?;
    }
    report("put and read its record", 200, started);
    let started = Instant::now();
    let swept = embedded.sweep().await?;
    report(&format!("sweep ({swept:?})"), 1, started);
    let mut horizon = embedded.stream(StreamStart::TrimHorizon).await?;
    let oldest = horizon.next_batch(1000).await?;
    if let Some(sequence) = oldest.last().and_then(|record| record["dynamodb"]["SequenceNumber"].as_str()) {
        let started = Instant::now();
        let count = embedded.trim_stream(sequence).await?;
        report(&format!("trim {count} records"), 1, started);
    }
    drop((embedded, table, stream, horizon));
    println!("file after {} puts: {} bytes", rows + 400, std::fs::metadata(path)?.len());
    let started = Instant::now();
    let _embedded = Embedded::open(path).await?;
    report("open the file again", 1, started);
    Ok(())
}

async fn pace(path: &Path, seconds: usize) -> Outcome {
    let embedded = Embedded::open(path).await?;
    let mut stream = embedded.stream(StreamStart::Latest).await?;
    let reader = tokio::spawn(async move { while stream.next_batch(100).await.is_ok() {} });
    let table = embedded.table();
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    for n in 0..seconds * 10 {
        ticks.tick().await;
        puts(&table, n, n + 1).await?;
    }
    reader.abort();
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("table.db");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, seconds] = arguments.as_slice()
        && mode == "pace"
    {
        return pace(&path, seconds.parse()?).await;
    }
    operations("in-memory table", &MemoryTable::new()).await?;
    operations("embedded, memory", &Embedded::memory().await?.table()).await?;
    operations("embedded, file", &Embedded::open(directory.path().join("fast.db")).await?.table()).await?;
    growth(&path, arguments.first().map_or(Ok(10_000), |rows| rows.parse())?).await
}
