//! Why a benchmark cannot be played.

use std::path::PathBuf;
use std::process::ExitCode;

use curves::TableError;
use thiserror::Error;
use wire::request::RequestError;

/// Why a benchmark cannot be played. The text says how to fix it.
#[derive(Debug, Error)]
pub enum BenchmarkError {
    /// A file or a folder could not be read.
    #[error("cannot read {path}: {why}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        why: std::io::Error,
    },
    /// A JSON file is not as expected.
    #[error(
        "invalid {path}: {why}; tests/benchmark/tables/README.md describes tables, src/peers.rs recorded peers"
    )]
    Json {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        why: serde_json::Error,
    },
    /// A table cannot be used, or has no answer.
    #[error("cannot use table {table}: {why}")]
    Table {
        /// The name of the table.
        table: String,
        /// The cause.
        #[source]
        why: TableError,
    },
    /// The space of a table does not give a valid request.
    #[error("invalid request for table {table}: {why}; check its .space.json")]
    Request {
        /// The name of the table.
        table: String,
        /// The cause.
        #[source]
        why: RequestError,
    },
    /// No table has this name.
    #[error("unknown table {name}: expected one of {known}")]
    UnknownTable {
        /// The name.
        name: String,
        /// All names.
        known: String,
    },
    /// Two options exclude each other.
    #[error("{0}")]
    Options(&'static str),
}

/// Returns the exit code of a program, and prints the error of one that failed.
#[expect(clippy::print_stderr, reason = "for command-line programs")]
pub fn exit(done: Result<(), BenchmarkError>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
