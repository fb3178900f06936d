//! Failed jobs by cause: the common part of their failure reasons.
//!
//! The rules compare causes ([`crate::decide`]): a change of [`cause`] or of [`is_same`] changes decisions.

use serde::{Deserialize, Serialize};

use crate::log::fact::JobKey;
use crate::unit::limits::{MAX_CAUSE_CHARS, MAX_CAUSES, MAX_MESSAGE_CHARS};

/// Failed jobs by cause, bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Failures {
    /// The causes, in the order of their first jobs.
    pub causes: Vec<Cause>,
    /// Failed jobs with further causes.
    pub others: u32,
}

/// A cause of failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The cause of its first job, in a few words.
    pub reason: String,
    /// How many jobs failed for it.
    pub count: u32,
    /// Its first job.
    pub job: JobKey,
    /// Whether the program failed in each of these jobs, and not the service.
    pub by_program: bool,
}

impl Failures {
    /// Adds a failed job with its failure reason.
    pub(crate) fn add(&mut self, job: JobKey, message: &str, by_program: bool) {
        let reason = cause(message);
        if let Some(known) = self.causes.iter_mut().find(|known| is_same(&known.reason, &reason)) {
            known.count = known.count.saturating_add(1);
            known.by_program &= by_program;
        } else if self.causes.len() < MAX_CAUSES {
            self.causes.push(Cause { reason, count: 1, job, by_program });
        } else {
            self.others = self.others.saturating_add(1);
        }
    }

    /// Returns the cause of all failed jobs, if it is one and the program failed in each.
    pub(crate) fn only_cause(&self) -> Option<&Cause> {
        match self.causes.as_slice() {
            [only] if only.by_program => Some(only),
            _ => None,
        }
    }
}

/// Returns the cause in a failure reason in a few words: the exit code, and the line that says most.
///
/// That is the last line: a traceback ends with its error. `SageMaker`'s training toolkit adds the command line after
/// the error, which has the hyperparameters of the job.
///
/// ```
/// let reason = "AlgorithmError: import xgboost\nModuleNotFoundError: No module named 'xgboost', exit code: 1";
/// let cause = tuning::state::failures::cause(reason);
/// assert_eq!(cause, "exit code 1, ModuleNotFoundError: No module named 'xgboost'");
/// ```
pub fn cause(message: &str) -> String {
    let message = message.trim();
    let message = message.strip_prefix("AlgorithmError:").unwrap_or(message);
    let is_code = |code: &str| !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit());
    let (text, code) = match message.rsplit_once(", exit code: ").filter(|(_, code)| is_code(code)) {
        Some((text, code)) => (text, Some(code)),
        None => (message, None),
    };
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Command \""));
    let lines = lines.map(|line| line.strip_prefix("ErrorMessage \"").unwrap_or(line));
    let says = lines.filter(|line| line.chars().any(char::is_alphanumeric)).last().unwrap_or_default();
    let says = says.strip_suffix('"').filter(|inner| inner.matches('"').count() % 2 == 0).unwrap_or(says);
    let code = code.map(|code| format!("exit code {code}"));
    let parts: Vec<&str> =
        code.as_deref().into_iter().chain(Some(says).filter(|says| !says.is_empty())).collect();
    let plain = parts.join(", ");
    let plain = plain.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(MAX_CAUSE_CHARS).collect()
}

/// Returns whether a failure reason says which error it was. A bare exit code does not, and a reason that was cut has
/// lost its error.
pub(crate) fn names_its_error(message: &str) -> bool {
    let cause = cause(message);
    let is_bare = cause.strip_prefix("exit code ").is_some_and(|code| !code.contains(", "));
    !cause.is_empty() && !is_bare && message.chars().count() < MAX_MESSAGE_CHARS
}

/// Returns whether two causes are the same, apart from numbers, addresses and names with numbers that differ from job
/// to job. The exit code counts.
pub fn is_same(one: &str, other: &str) -> bool {
    one == other || normalized(one) == normalized(other)
}

/// Returns a cause without its numbers: those of ports, trials, temporary files and memory addresses differ.
fn normalized(cause: &str) -> String {
    let (code, rest) = match cause.strip_prefix("exit code ") {
        Some(after) => {
            cause.split_at(cause.len().saturating_sub(after.trim_start_matches(char::is_numeric).len()))
        }
        None => ("", cause),
    };
    let mut text = code.to_owned();
    let mut word = String::new();
    for letter in rest.chars() {
        if letter.is_ascii_alphanumeric() {
            word.push(letter);
        } else {
            push_word(&mut text, &word);
            word.clear();
            text.push(letter);
        }
    }
    push_word(&mut text, &word);
    text
}

/// The least length of a word of hexadecimal digits that is taken for a number.
const HEXADECIMAL_LENGTH: usize = 6;

/// Appends a word of letters and digits. A number, also a hexadecimal one, becomes `#`, and so do digits in other words.
fn push_word(text: &mut String, word: &str) {
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_long = digits.len() >= HEXADECIMAL_LENGTH || digits.len() < word.len();
    if has_digit && is_hexadecimal && is_long {
        text.push('#');
        return;
    }
    let mut in_number = false;
    for letter in word.chars() {
        if !letter.is_ascii_digit() {
            text.push(letter);
        } else if !in_number {
            text.push('#');
        }
        in_number = letter.is_ascii_digit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_the_exit_code_and_the_last_line() {
        for (message, expected) in [
            ("AlgorithmError: no such column, exit code: 1", "exit code 1, no such column"),
            ("AlgorithmError: a\nb\nValueError: c\n====, exit code: 2", "exit code 2, ValueError: c"),
            (
                "InternalServerError: We encountered an error.",
                "InternalServerError: We encountered an error.",
            ),
            ("AlgorithmError: exit code 1", "exit code 1"),
            ("AlgorithmError: , exit code: 7", "exit code 7"),
            ("no such role", "no such role"),
            ("  \n", ""),
            ("AlgorithmError: the exit code: x, exit code: y", "the exit code: x, exit code: y"),
            ("AlgorithmError: a\u{1b}[2J, exit code: 1", "exit code 1, a [2J"),
        ] {
            assert_eq!(cause(message), expected, "{message:?}");
        }
    }

    #[test]
    fn the_cause_of_sagemakers_toolkit_is_its_error_and_not_its_command_line() {
        let message = "AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage \"KeyError: \"lr\"\"\n\
                       Command \"/opt/conda/bin/python train.py --lr 0.25\", exit code: 1";
        assert_eq!(cause(message), "exit code 1, KeyError: \"lr\"");
        let message = "AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage \"Traceback\n ValueError: bad\n\
                       \"\nCommand \"python train.py --lr 0.25\", exit code: 1";
        assert_eq!(cause(message), "exit code 1, ValueError: bad");
    }

    #[test]
    fn causes_that_differ_in_numbers_are_the_same() {
        for (one, other) in [
            ("exit code 1, port 8080 is in use", "exit code 1, port 9 is in use"),
            ("<object at 0x7f3a10>", "<object at 0x55deadbeef>"),
            ("/data/jobs/t-a1b2c3-0-0-1/hosts/algo-1: no", "/data/jobs/t-a1b2c3-17-1-2/hosts/algo-2: no"),
            ("lr=0.25 is too large", "lr=12.5 is too large"),
            ("commit 0a1b2c3d4e", "commit ffffffff01"),
            ("depth9 fails", "depth12 fails"),
            ("error 0x1f", "error 0x2a"),
        ] {
            assert!(is_same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn other_words_and_other_exit_codes_are_other_causes() {
        for (one, other) in [
            ("exit code 1, port 8080 is in use", "exit code 2, port 8080 is in use"),
            ("exit code 1", "exit code 137"),
            ("no module named 'xgboost'", "no module named 'lightgbm'"),
            ("decade", "facade"),
            ("node 1f", "node 2a"),
            ("", "a"),
        ] {
            assert!(!is_same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn a_bare_exit_code_and_a_cut_reason_name_no_error() {
        let cut = "x".repeat(MAX_MESSAGE_CHARS);
        for (message, expected) in [
            ("AlgorithmError: no such column, exit code: 1", true),
            ("AlgorithmError: , exit code: 1", false),
            ("", false),
            (cut.as_str(), false),
        ] {
            assert_eq!(names_its_error(message), expected, "{message:?}");
        }
    }

    #[test]
    fn causes_and_their_texts_are_bounded() {
        let long = "é".repeat(2_000);
        assert_eq!(cause(&long).chars().count(), MAX_CAUSE_CHARS);
        let mut failures = Failures::default();
        for (number, letter) in ('a'..='z').enumerate() {
            let job = JobKey::new(u32::try_from(number).unwrap(), 0, 1);
            failures.add(job, &letter.to_string(), true);
        }
        assert_eq!(failures.causes.len(), MAX_CAUSES);
        let counted: u32 = failures.causes.iter().map(|cause| cause.count).sum();
        assert_eq!(counted + failures.others, 26);
    }

    #[test]
    fn one_cause_counts_only_if_the_program_failed_in_each_job() {
        let mut failures = Failures::default();
        assert_eq!(failures.only_cause(), None);
        for (trial, message) in ["bind: port 1", "bind: port 2"].into_iter().enumerate() {
            failures.add(JobKey::new(u32::try_from(trial).unwrap(), 0, 1), message, true);
        }
        let only = failures.only_cause().unwrap();
        assert_eq!((only.reason.as_str(), only.count, only.job), ("bind: port 1", 2, JobKey::new(0, 0, 1)));
        failures.add(JobKey::new(2, 0, 1), "bind: port 3", false);
        assert_eq!(failures.only_cause(), None);
        let mut two = Failures::default();
        two.add(JobKey::new(0, 0, 1), "a", true);
        two.add(JobKey::new(1, 0, 1), "b", true);
        assert_eq!(two.only_cause(), None);
    }
}
