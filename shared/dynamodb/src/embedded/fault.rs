//! Classifies SQLite's errors by their messages.
//!
//! The engine returns messages, not codes. The messages are constants of SQLite (`sqlite3ErrStr`) and of the engine. An
//! unknown message stays a server error, which does not promise that nothing was written.

use std::path::Path;

use dynoxide::DynoxideError;

use super::{DAMAGED, Failure};

/// The kind of an SQLite error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// No space on the disk.
    Full,
    /// The file is not an SQLite database, or belongs to another program.
    Foreign,
    /// The content of the file is damaged.
    Damaged,
    /// Read or write permission is missing, or the directory does not exist.
    Denied,
    /// Any other error.
    Other,
}

impl Fault {
    /// Classifies an error message.
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

/// Formats the engine's error as an HTTP status and body of DynamoDB. An SQLite error gets the file and a remedy.
pub(super) fn answer(error: &DynoxideError, path: Option<&Path>) -> (u16, Vec<u8>) {
    let status = error.status_code();
    if status < 500 {
        return (status, error.to_json().into_bytes());
    }
    let failure = failure(&error.to_string(), path);
    let body = serde_json::json!({ "__type": failure.code, "message": failure.message });
    (failure.status, body.to_string().into_bytes())
}

/// Converts the engine's error for a caller in this crate.
pub(super) fn of_engine(error: &DynoxideError, path: Option<&Path>) -> Failure {
    match error.status_code() {
        status if status < 500 => {
            let code = error.error_type().rsplit('#').next().unwrap_or_default().to_owned();
            Failure { status, code, message: error.to_string() }
        }
        _ => failure(&error.to_string(), path),
    }
}

/// Converts an SQLite error message. Adds the file and a remedy.
pub(super) fn failure(message: &str, path: Option<&Path>) -> Failure {
    let path = path.map_or_else(|| "the table in memory".to_owned(), |path| path.display().to_string());
    let (status, code, remedy) = match Fault::of(message) {
        Fault::Full => (500, "InternalServerError", "free some space on its disk"),
        Fault::Foreign | Fault::Damaged => {
            (400, DAMAGED, "stop, and restore a copy of the file or move it away")
        }
        Fault::Denied => {
            (500, "InternalServerError", "check the write permission of the file and its directory")
        }
        Fault::Other => {
            (500, "InternalServerError", "check the file's disk, and start again if the error persists")
        }
    };
    Failure { status, code: code.to_owned(), message: format!("{path}: {message} ({remedy})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_messages_are_classified() {
        assert_eq!(Fault::of("database or disk is full"), Fault::Full);
        assert_eq!(Fault::of("file is not a database"), Fault::Foreign);
        assert_eq!(Fault::of("database disk image is malformed"), Fault::Damaged);
        assert_eq!(Fault::of("unable to open database file: /x"), Fault::Denied);
        assert_eq!(Fault::of("attempt to write a readonly database"), Fault::Denied);
        assert_eq!(Fault::of("disk I/O error"), Fault::Other);
    }

    #[test]
    fn a_full_disk_is_a_server_error_and_a_damaged_file_a_client_error() {
        let full = failure("database or disk is full", Some(Path::new("/d/t.db")));
        assert!(
            full.status == 500
                && full.message.contains("/d/t.db")
                && full.message.contains("free some space")
        );
        assert_eq!(failure("database disk image is malformed", None).status, 400);
    }
}
