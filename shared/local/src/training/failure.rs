//! The failure reason of a job, in SageMaker's form.
//!
//! Reads at most as much of the program's failure file as it shows. The functions block.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::hosts::HostExit;
use super::plain_text::plain_text;

/// `SageMaker`'s limit on the length of a failure reason.
const REASON_CHARS_MAX: usize = 1024;
/// Enough for [`REASON_CHARS_MAX`] characters of at most four bytes each.
const READ_BYTES_MAX: u64 = 4 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedHost {
    pub(crate) name: String,
    /// How it ended.
    pub(crate) exit: HostExit,
    /// The last lines of its standard error.
    pub(crate) stderr: String,
    /// Whether the job has other hosts.
    pub(crate) has_others: bool,
}

/// Returns the `FailureReason` of a job with this failed host. `file` is the failure file of the program, which has
/// precedence over its standard error.
pub(crate) fn reason(host: &FailedHost, file: &Path) -> String {
    let FailedHost { name, exit, stderr, has_others } = host;
    let code = match exit {
        HostExit::Code(code) => *code,
        HostExit::Lost(how) => return format!("InternalServerError: host {name} was lost: {how}"),
    };
    let written = read_failure_file(file);
    let cause = if !written.is_empty() {
        written
    } else if let Some(signal) = code.checked_sub(128).filter(|signal| (1..=64).contains(signal)) {
        // The last line is the cause.
        let last = if stderr.is_empty() { String::new() } else { format!("{stderr}\n") };
        format!("{last}host {name} was ended by signal {signal}")
    } else {
        let host = if *has_others && !stderr.is_empty() { format!("host {name}: ") } else { String::new() };
        format!("{host}{stderr}")
    };
    let (start, end) = ("AlgorithmError: ", format!(", exit code: {code}"));
    let room = REASON_CHARS_MAX.saturating_sub(start.len()).saturating_sub(end.len());
    let cause: String = cause.chars().take(room).collect();
    format!("{start}{cause}{end}")
}

fn read_failure_file(file: &Path) -> String {
    let mut bytes = Vec::new();
    // The file is optional.
    let _ = open_regular(file).map(|opened| opened.take(READ_BYTES_MAX).read_to_end(&mut bytes));
    plain_text(&String::from_utf8_lossy(&bytes)).trim().to_owned()
}

/// Opens the file if it is a regular file. A named pipe would block forever.
fn open_regular(file: &Path) -> Option<File> {
    file.metadata().ok()?.is_file().then(|| File::open(file).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(code: i32, stderr: &str) -> FailedHost {
        let (name, stderr) = ("algo-1".to_owned(), stderr.to_owned());
        FailedHost { name, exit: HostExit::Code(code), stderr, has_others: false }
    }

    /// The reason named the exit code twice, and nothing else.
    #[test]
    fn regression_a_reason_has_the_exit_code_once_and_the_last_lines_of_standard_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("failure");
        let silent = reason(&host(3, ""), &file);
        assert_eq!(silent, "AlgorithmError: , exit code: 3");
        let failed = host(1, "import xgboost\nModuleNotFoundError: No module named 'xgboost'");
        let text = "import xgboost\nModuleNotFoundError: No module named 'xgboost', exit code: 1";
        assert_eq!(reason(&failed, &file), format!("AlgorithmError: {text}"));
        let one_of_many = FailedHost { has_others: true, ..failed };
        assert_eq!(reason(&one_of_many, &file), format!("AlgorithmError: host algo-1: {text}"));
    }

    #[test]
    fn a_reason_names_the_signal_that_ended_the_host() {
        let file = Path::new("/nonexistent");
        let killed = reason(&host(137, ""), file);
        assert_eq!(killed, "AlgorithmError: host algo-1 was ended by signal 9, exit code: 137");
        let killed = reason(&host(137, "warning: slow"), file);
        assert_eq!(
            killed,
            "AlgorithmError: warning: slow\nhost algo-1 was ended by signal 9, exit code: 137"
        );
    }

    #[test]
    fn the_failure_file_wins_over_standard_error_and_is_cut_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("failure");
        std::fs::write(&file, "no such column\n").unwrap();
        assert_eq!(reason(&host(1, "stderr"), &file), "AlgorithmError: no such column, exit code: 1");
        std::fs::write(&file, "\u{1b}]0;x\u{7}\u{1b}[31mno\r\nsuch\u{1b}[0m\tfile\u{8}").unwrap();
        assert_eq!(reason(&host(1, ""), &file), "AlgorithmError: no\nsuch\tfile, exit code: 1");
        std::fs::write(&file, "é".repeat(5000)).unwrap();
        let long = reason(&host(1, ""), &file);
        assert_eq!(long.chars().count(), 1024);
        assert!(long.ends_with(", exit code: 1"));
    }
}
