//! Runs the contract of tables on another implementation of DynamoDB, through the client of the Lambda functions.
//!
//! `contract_at NAME ENDPOINT TABLE` creates TABLE, runs each case on it and prints the results. NAME selects the known
//! differences of that implementation from DynamoDB. A difference must show with its own message: the program fails
//! when it disappears or changes. `tests/dynamodb/run.sh` starts the implementations and runs this program on each.
#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::any::Any;
use std::collections::BTreeSet;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use aws::account_at;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::types::TableStatus;
use dynamodb::{Client, DynamoTable, create_table};
use port_tests::table as contract;
use use_cases::ports::table::{Table, TableError};
use wire::item::Key;

/// A known difference of an implementation from DynamoDB.
struct Difference {
    /// The case that fails.
    case: &'static str,
    /// A part of the failure's message.
    message: &'static str,
    /// How the implementation differs.
    reason: &'static str,
}

/// The error of dynalite for a missing operation.
const MISSING: &str = "UnknownOperationException";
const NO_TRANSACTIONS: &str = "dynalite has no TransactWriteItems";
const DYNALITE: &[Difference] = &[
    Difference {
        case: "the_table_is_created_with_stream_and_expiry",
        message: MISSING,
        reason: "dynalite has no UpdateTimeToLive; the table exists without it",
    },
    Difference { case: "a_check_writes_nothing", message: MISSING, reason: NO_TRANSACTIONS },
    Difference { case: "one_of_two_concurrent_writers_wins", message: MISSING, reason: NO_TRANSACTIONS },
    Difference {
        case: "a_transaction_performs_all_writes_or_none",
        message: MISSING,
        reason: NO_TRANSACTIONS,
    },
    Difference { case: "a_token_identifies_a_transaction", message: MISSING, reason: NO_TRANSACTIONS },
    Difference { case: "a_failed_transaction_can_be_retried", message: MISSING, reason: NO_TRANSACTIONS },
    Difference { case: "a_transaction_without_writes_is_refused", message: MISSING, reason: NO_TRANSACTIONS },
    Difference {
        case: "a_transaction_beyond_the_limits_is_refused",
        message: MISSING,
        reason: NO_TRANSACTIONS,
    },
];
const MOTO: &[Difference] = &[
    Difference {
        case: "at_least_is_false_for_a_text",
        message: "Unavailable",
        reason: "moto fails with status 500 where a text is compared with a number",
    },
    Difference {
        case: "a_delete_with_a_bad_key_is_refused",
        message: "a key of 0 and 2 bytes: expected a refusal, got Ok",
        reason: "moto does not check the key of a delete",
    },
    Difference {
        case: "a_get_with_a_bad_key_is_refused",
        message: "a key of 2 and 1025 bytes: expected a refusal, got Ok",
        reason: "moto does not check the length of a key that it reads",
    },
    Difference {
        case: "a_token_identifies_a_transaction",
        message: "sent again",
        reason: "moto ignores ClientRequestToken",
    },
    Difference {
        case: "a_transaction_without_writes_is_refused",
        message: "no write: expected a refusal, got Ok",
        reason: "moto performs an empty transaction",
    },
];

/// The results of the cases so far.
#[derive(Default)]
struct Results {
    hold: u32,
    differ: u32,
    failed: u32,
    seen: BTreeSet<&'static str>,
}

impl Results {
    /// Runs one case. The default panic hook prints the place of a failure.
    async fn run(
        &mut self,
        name: &'static str,
        known: &[Difference],
        case: impl Future<Output = ()> + Send + 'static,
    ) {
        self.seen.insert(name);
        let known = known.iter().find(|difference| difference.case == name);
        let failure = tokio::spawn(case).await.err().map(|error| message(error.into_panic().as_ref()));
        match (failure, known) {
            (None, None) => {
                self.hold += 1;
                println!("holds    {name}");
            }
            (Some(failure), Some(known)) if failure.contains(known.message) => {
                self.differ += 1;
                println!("differs  {name}: {}", known.reason);
            }
            (None, Some(known)) => {
                self.failed += 1;
                println!("FAILED   {name}: holds now: remove the difference {:?}", known.message);
            }
            (Some(failure), _) => {
                self.failed += 1;
                println!("FAILED   {name}: {failure}");
            }
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// Waits until the table is active, at most 30 seconds.
async fn active(client: &Client, table: &str) -> Result<(), String> {
    for _ in 0..300 {
        let answer = client.describe_table().table_name(table).send().await;
        let answer = answer.map_err(|error| format!("cannot describe table {table}: {error:?}"))?;
        if answer.table().and_then(|table| table.table_status()) == Some(&TableStatus::Active) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(format!("table {table} is not active after 30 s"))
}

async fn a_missing_table_is_refused(table: DynamoTable) {
    let read = table.get(&Key::new("p", "s")).await;
    assert!(
        matches!(&read, Err(TableError::Refused(text)) if text.contains("ResourceNotFoundException")),
        "{read:?}"
    );
}

async fn run(known: &'static [Difference], endpoint: &str, name: String) -> Result<Results, String> {
    // No time-out: an emulator on a busy machine may take longer than AWS, and moto does not know a retried transaction.
    // The caller ends a suite that hangs.
    let settings = Builder::from(&account_at(endpoint).await).timeout_config(TimeoutConfig::disabled());
    let client = Client::from_conf(settings.build());
    let mut results = Results::default();
    // Fails if the endpoint does not answer, so that no case reports a difference without one.
    let listed = client.list_tables().send().await;
    listed.map_err(|error| format!("no answer from {endpoint}: {error:?}"))?;
    let (creator, created) = (client.clone(), name.clone());
    let create = async move { assert_eq!(create_table(&creator, &created).await, Ok(())) };
    results.run("the_table_is_created_with_stream_and_expiry", known, create).await;
    active(&client, &name).await?;
    let missing = DynamoTable::new(client.clone(), format!("{name}-missing"));
    results.run("a_missing_table_is_refused", known, a_missing_table_is_refused(missing)).await;
    let table = DynamoTable::new(client, name);
    for case in contract::cases::<DynamoTable>() {
        let table = table.clone();
        results.run(case.name, known, async move { (case.run)(&table, case.name).await }).await;
    }
    match known.iter().find(|difference| !results.seen.contains(difference.case)) {
        Some(unknown) => Err(format!("no case has the name {}", unknown.case)),
        None => Ok(results),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, endpoint, table] = arguments.as_slice() else {
        println!("usage: contract_at dynalite|moto|ministack ENDPOINT TABLE");
        return ExitCode::from(2);
    };
    let known: &[Difference] = match name.as_str() {
        "dynalite" => DYNALITE,
        "moto" => MOTO,
        "ministack" => &[],
        _ => {
            println!("unknown implementation {name:?}: expected dynalite, moto or ministack");
            return ExitCode::from(2);
        }
    };
    match run(known, endpoint, table.clone()).await {
        Ok(results) => {
            println!(
                "{name}: {} cases hold, {} differ, {} failed",
                results.hold, results.differ, results.failed
            );
            ExitCode::from(u8::from(results.failed > 0))
        }
        Err(reason) => {
            println!("FAILED   {name}: {reason}");
            ExitCode::FAILURE
        }
    }
}
