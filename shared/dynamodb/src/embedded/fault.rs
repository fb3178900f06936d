//! What kind of trouble SQLite has with a file, by its message.
//!
//! The engine passes messages on, not codes. The messages are constants of SQLite (`sqlite3ErrStr`) and of the engine;
//! a message that is not known here must stay a server fault, never become a promise that nothing was written.

use std::path::Path;

use dynoxide::DynoxideError;

use super::{DAMAGED, Failure};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// No space on the disk.
    Full,
    /// The file is not SQLite's, or another program's.
    Foreign,
    /// The file's content is broken.
    Damaged,
    /// No right to read or write it, or no such directory.
    Denied,
    /// Something else.
    Other,
}

impl Fault {
    /// The kind of trouble that `message` tells.
    pub(super) fn of(message: &str) -> Self {
        let has = |text| message.contains(text);
        if has("disk is full") {
            Self::Full
        } else if has("not a database") || has("not a valid SQLite database") || has("not a valid database") {
            Self::Foreign
        } else if has("malformed") || has(DAMAGED) {
            Self::Damaged
        } else if has("unable to open database file") || has("readonly database") {
            Self::Denied
        } else {
            Self::Other
        }
    }
}

/// The engine's error as an answer of DynamoDB: its own errors as they are, SQLite's with the file and a way out.
pub(super) fn answer(error: &DynoxideError, path: Option<&Path>) -> (u16, Vec<u8>) {
    let status = error.status_code();
    if status < 500 {
        return (status, error.to_json().into_bytes());
    }
    let failure = failure(&error.to_string(), path);
    let body = serde_json::json!({ "__type": failure.code, "message": failure.message });
    (failure.status, body.to_string().into_bytes())
}

/// The engine's error for a caller in this crate.
pub(super) fn of_engine(error: &DynoxideError, path: Option<&Path>) -> Failure {
    match error.status_code() {
        status if status < 500 => {
            let code = error.error_type().rsplit('#').next().unwrap_or_default().to_owned();
            Failure { status, code, message: error.to_string() }
        }
        _ => failure(&error.to_string(), path),
    }
}

/// Trouble with SQLite, told with the file and a way out.
pub(super) fn failure(message: &str, path: Option<&Path>) -> Failure {
    let path = path.map_or_else(|| "the table in memory".to_owned(), |path| path.display().to_string());
    let (status, code, way_out) = match Fault::of(message) {
        Fault::Full => (500, "InternalServerError", "free some space on its disk"),
        Fault::Foreign | Fault::Damaged => {
            (400, DAMAGED, "stop, and restore a copy of the file or move it away")
        }
        Fault::Denied => {
            (500, "InternalServerError", "make sure that the file and its directory may be written")
        }
        Fault::Other => {
            (500, "InternalServerError", "look at the file's disk, and start again if it stays so")
        }
    };
    Failure { status, code: code.to_owned(), message: format!("{path}: {message} ({way_out})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_sqlite_are_known() {
        assert_eq!(Fault::of("database or disk is full"), Fault::Full);
        assert_eq!(Fault::of("file is not a database"), Fault::Foreign);
        assert_eq!(Fault::of("database disk image is malformed"), Fault::Damaged);
        assert_eq!(Fault::of("unable to open database file: /x"), Fault::Denied);
        assert_eq!(Fault::of("attempt to write a readonly database"), Fault::Denied);
        assert_eq!(Fault::of("disk I/O error"), Fault::Other);
    }

    #[test]
    fn a_full_disk_may_get_better_and_a_damaged_file_does_not() {
        let full = failure("database or disk is full", Some(Path::new("/d/t.db")));
        assert!(
            full.status == 500
                && full.message.contains("/d/t.db")
                && full.message.contains("free some space")
        );
        assert_eq!(failure("database disk image is malformed", None).status, 400);
    }
}
