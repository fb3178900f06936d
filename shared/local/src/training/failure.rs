//! The failure reason of a job, in SageMaker's form.
//!
//! Reads at most as much of the program's failure file as it shows. The functions block.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::hosts::HostExit;

/// `SageMaker`'s limit on the length of a failure reason.
const REASON_CHARS_MAX: usize = 1024;
/// Enough for [`REASON_CHARS_MAX`] characters of at most four bytes each.
const READ_BYTES_MAX: u64 = 4 * 1024;

/// Returns the `FailureReason` of a job whose `host` ended with `exit`. `file` is the failure file of the program.
pub(crate) fn reason(host: &str, exit: &HostExit, file: &Path) -> String {
    let code = match exit {
        HostExit::Code(code) => *code,
        HostExit::Lost(how) => return format!("InternalServerError: host {host} was lost: {how}"),
    };
    let written = read_failure_file(file);
    let cause = if written.is_empty() { describe_exit(host, code) } else { written };
    let (start, end) = ("AlgorithmError: ", format!(", exit code: {code}"));
    let room = REASON_CHARS_MAX.saturating_sub(start.len()).saturating_sub(end.len());
    let cause: String = cause.chars().take(room).collect();
    format!("{start}{cause}{end}")
}

fn describe_exit(host: &str, code: i32) -> String {
    match code.checked_sub(128) {
        Some(signal) if (1..=64).contains(&signal) => format!("host {host} was ended by signal {signal}"),
        _ => format!("host {host} ended with exit code {code}"),
    }
}

fn read_failure_file(file: &Path) -> String {
    let mut bytes = Vec::new();
    // The file is optional: without it, the reason has the exit code.
    let _ = open_regular(file).map(|opened| opened.take(READ_BYTES_MAX).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// Opens the file if it is a regular file. A named pipe would block forever.
fn open_regular(file: &Path) -> Option<File> {
    file.metadata().ok()?.is_file().then(|| File::open(file).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_the_failure_file_cut_to_the_limit_or_the_exit_code() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("failure");
        let none = reason("algo-2", &HostExit::Code(3), &file);
        assert_eq!(none, "AlgorithmError: host algo-2 ended with exit code 3, exit code: 3");
        let killed = reason("algo-1", &HostExit::Code(137), &file);
        assert_eq!(killed, "AlgorithmError: host algo-1 was ended by signal 9, exit code: 137");
        std::fs::write(&file, "no such column\n").unwrap();
        assert_eq!(
            reason("algo-1", &HostExit::Code(1), &file),
            "AlgorithmError: no such column, exit code: 1"
        );
        std::fs::write(&file, "é".repeat(5000)).unwrap();
        let long = reason("algo-1", &HostExit::Code(1), &file);
        assert_eq!(long.chars().count(), 1024);
        assert!(long.ends_with(", exit code: 1"));
    }
}
