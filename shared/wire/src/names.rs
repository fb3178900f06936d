//! Names of training jobs, log streams and tags: how they are made and read. Pure; strict when reading.

use sha2::{Digest, Sha256};
use tuning::fact::JobKey;

/// Tag with the stack's name, on every training job.
pub const TAG_STACK: &str = "hyperband:stack";
/// Tag with the tuning's id.
pub const TAG_TUNING: &str = "hyperband:tuning";
/// Tag with the job's key, `<trial>-<rung>-<attempt>`.
pub const TAG_DECISION: &str = "hyperband:decision";

/// Characters of an incarnation.
const INCARNATION_CHARS: usize = 6;

/// The name of a training job: `<tuning>-<incarnation>-<trial>-<rung>-<attempt>`, at most 63 characters.
///
/// ```
/// use tuning::fact::JobKey;
/// use wire::names::{parse_training_job_name, training_job_name};
/// let job = JobKey { trial: 7, rung: 0, attempt: 1 };
/// let name = training_job_name("hb1-3fa1c2", job);
/// assert_eq!(name, "hb1-3fa1c2-7-0-1");
/// assert_eq!(parse_training_job_name(&name), Some(("hb1-3fa1c2".to_owned(), job)));
/// ```
pub fn training_job_name(tuning_id: &str, job: JobKey) -> String {
    format!("{tuning_id}-{job}")
}

/// The tuning id and the job in a training job's name; `None` if it is not a name of ours.
pub fn parse_training_job_name(name: &str) -> Option<(String, JobKey)> {
    let mut parts = name.rsplitn(4, '-');
    let attempt = number(parts.next()?)?;
    let rung = number(parts.next()?)?;
    let trial = number(parts.next()?)?;
    let id = parts.next()?;
    let (tuning, incarnation) = id.rsplit_once('-')?;
    let is_ours = incarnation.len() == INCARNATION_CHARS
        && incarnation.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
        && !tuning.is_empty();
    is_ours.then(|| (id.to_owned(), JobKey { trial, rung, attempt }))
}

/// A whole number as we write it: no sign, no leading zero.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

/// Six base-36 characters from the hash of what a tuning was submitted with.
pub fn incarnation(submitted: &[u8]) -> String {
    let digest = Sha256::digest(submitted);
    let mut number = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    let mut text = String::new();
    for _ in 0..INCARNATION_CHARS {
        let digit = u32::try_from(number % 36).unwrap_or(0);
        text.push(char::from_digit(digit, 36).unwrap_or('0'));
        number /= 36;
    }
    text
}

/// A log stream's name in its parts: `<job>/<host>-<digits>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStream {
    /// Training job name.
    pub job: String,
    /// Host, such as `algo-1`.
    pub host: String,
    /// When the stream was opened, as digits (seconds or milliseconds).
    pub started_digits: String,
}

/// The parts of a log stream's name; `None` if it is not a training job's.
pub fn log_stream(name: &str) -> Option<LogStream> {
    let (job, rest) = name.split_once('/')?;
    let (host, digits) = rest.rsplit_once('-')?;
    let index = host.strip_prefix("algo-")?;
    let whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (whole(index) && whole(digits) && !job.is_empty()).then(|| LogStream {
        job: job.to_owned(),
        host: host.to_owned(),
        started_digits: digits.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_are_not_ours_are_not_read() {
        for name in
            ["hb1", "hb1-3fa1c2-7-0", "hb1-3fa1c2-07-0-1", "hb1-3FA1C2-7-0-1", "-3fa1c2-7-0-1", "a-b-c-d-e"]
        {
            assert_eq!(parse_training_job_name(name), None, "{name}");
        }
    }

    #[test]
    fn log_streams_are_read_from_both_ends() {
        let stream = log_stream("hb1-3fa1c2-7-1-1/algo-12-1789000000").unwrap();
        assert_eq!((stream.job.as_str(), stream.host.as_str()), ("hb1-3fa1c2-7-1-1", "algo-12"));
        for name in ["x", "x/algo-1", "x/beta-1-5", "/algo-1-5", "x/algo--5", "x/algo-1-5x"] {
            assert_eq!(log_stream(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_read_as_it_was_made(tuning in "[a-zA-Z0-9](-?[a-zA-Z0-9]){0,15}", trial: u32, rung in 0_u32..20, attempt in 1_u32..20) {
            let id = format!("{tuning}-{}", incarnation(tuning.as_bytes()));
            let job = JobKey { trial, rung, attempt };
            let name = training_job_name(&id, job);
            prop_assert!(name.len() <= 63);
            prop_assert_eq!(parse_training_job_name(&name), Some((id, job)));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".*") {
            let _ = parse_training_job_name(&text);
            let _ = log_stream(&text);
        }
    }
}
