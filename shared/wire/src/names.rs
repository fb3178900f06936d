//! Names and tags that link a training job and its log streams to a tuning job.
//!
//! The name of a training job consists of tuning ID and job key. It is parsed from the right, so the name of the tuning
//! job may contain dashes. Tuning names have at most 32 characters (constraint table). A name alone proves nothing: a
//! valid name may belong to another stack, so the callers compare the tags.

use std::collections::BTreeMap;

use search::Configuration;
use sha2::{Digest, Sha256};
use tuning::definition::JobLimits;
use tuning::log::fact::JobKey;
use tuning::log::ruling::Launch;

/// Prefix of the keys of the controller's tags, and of the user's tags that set fields of `Controller`.
pub const TAG_PREFIX: &str = "hyperband:";
/// Prefix of the environment variables that set fields of `Controller`. Training jobs do not get such variables.
pub(crate) const VARIABLE_PREFIX: &str = "HYPERBAND_";
/// Maximum number of tags of a resource in AWS.
pub const TAGS_MAX: usize = 50;
/// Tag with the stack ID.
pub const TAG_STACK: &str = "hyperband:stack";
/// Tag with the tuning ID, `<tuning>-<inc6>`.
pub const TAG_TUNING: &str = "hyperband:tuning";
/// Tag with the value of [`decision`], `<trial>-<rung>-<attempt>.<digest>`.
pub const TAG_DECISION: &str = "hyperband:decision";

/// Maximum length of a training job name, by SageMaker's limit.
pub const MAX_JOB_NAME_CHARS: usize = 63;
/// Maximum length of a tuning job name, by AMT's limit.
pub const MAX_TUNING_NAME_CHARS: usize = 32;
/// Length of an incarnation, in characters.
pub const INCARNATION_CHARS: usize = 6;

/// Digits of base 36.
const BASE_36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Returns the name of a training job: `<tuning>-<inc6>-<trial>-<rung>-<attempt>`, where `tuning_id` is
/// `<tuning>-<inc6>`.
///
/// The name has at most [`MAX_JOB_NAME_CHARS`] for every job within [`tuning::unit::limits`].
///
/// ```
/// # use tuning::log::fact::JobKey;
/// let key = JobKey::new(7, 1, 1);
/// assert_eq!(wire::names::training_job_name("hb1-3fa1c2", key), "hb1-3fa1c2-7-1-1");
/// ```
pub fn training_job_name(tuning_id: &str, key: JobKey) -> String {
    format!("{tuning_id}-{key}")
}

/// Returns the tuning ID and the job key of a training job name, or `None` for a name that [`training_job_name`] never
/// returns.
pub fn parse_training_job_name(name: &str) -> Option<(String, JobKey)> {
    if name.len() > MAX_JOB_NAME_CHARS {
        return None;
    }
    let mut parts = name.rsplitn(4, '-');
    let attempt = canonical_number(parts.next()?)?;
    let rung = canonical_number(parts.next()?)?;
    let trial = canonical_number(parts.next()?)?;
    let tuning_id = parts.next()?;
    if attempt == 0 || !is_tuning_id(tuning_id) {
        return None;
    }
    Some((tuning_id.to_owned(), JobKey::new(trial, rung, attempt)))
}

/// Returns the controller's tags of a training job: [`TAG_STACK`], [`TAG_TUNING`] and [`TAG_DECISION`].
pub fn job_tags(stack: &str, tuning_id: &str, decision: String) -> BTreeMap<String, String> {
    let tags = [(TAG_STACK, stack.to_owned()), (TAG_TUNING, tuning_id.to_owned()), (TAG_DECISION, decision)];
    tags.map(|(key, value)| (key.to_owned(), value)).into()
}

/// Returns the value of [`TAG_DECISION`]: the job key and a digest of what the decision ordered.
///
/// The key alone does not identify a decision. After a restore of the table to an earlier time, the decider may order
/// another job under the same key.
pub fn decision(job: JobKey, configuration: &Configuration, limits: JobLimits, launch: Launch) -> String {
    let Launch { resource, on_demand, instances, refit: _ } = launch;
    let JobLimits { max_runtime_seconds, max_wait_seconds, keep_alive_seconds } = limits;
    let seconds = (max_runtime_seconds, max_wait_seconds, keep_alive_seconds);
    // Serialization cannot fail: all keys are strings, and there are no floating-point numbers.
    let ordered = serde_json::to_vec(&(configuration, seconds, resource, on_demand, instances));
    format!("{job}.{}", digest(&ordered.unwrap_or_default()))
}

/// Returns the job key in a text `<trial>-<rung>-<attempt>`.
pub fn parse_job_key(text: &str) -> Option<JobKey> {
    let mut parts = text.split('-');
    let trial = canonical_number(parts.next()?)?;
    let rung = canonical_number(parts.next()?)?;
    let attempt = canonical_number(parts.next()?)?;
    (parts.next().is_none() && attempt > 0).then_some(JobKey::new(trial, rung, attempt))
}

/// Returns the first 128 bits of the SHA-256 of `bytes` as 32 hexadecimal characters.
pub fn digest(bytes: &[u8]) -> String {
    let nibble = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    let digest = Sha256::digest(bytes);
    digest.iter().take(16).flat_map(|byte| [nibble(byte >> 4), nibble(byte & 15)]).collect()
}

/// Returns six base-36 characters of the SHA-256 of `input`. They distinguish tuning jobs with the same name.
pub fn incarnation(input: &[u8]) -> String {
    let digest = Sha256::digest(input);
    let mut number = digest.iter().take(8).fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
    let mut text = String::with_capacity(INCARNATION_CHARS);
    for _ in 0..INCARNATION_CHARS {
        let digit = usize::try_from(number % 36).unwrap_or_default();
        text.push(char::from(BASE_36[digit]));
        number /= 36;
    }
    text
}

/// The name of a training job's log stream, `<job>/<host>-<digits>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStream {
    /// Training job name.
    pub job: String,
    /// Host, such as `algo-1`.
    pub host: String,
    /// Start time of the host, as the digits of epoch seconds or milliseconds.
    pub started_digits: String,
}

/// Parses the name of a log stream. Returns `None` unless it belongs to a host of a training job.
///
/// This check is cheap, so callers use it first to drop the log streams of other users of the log group.
pub fn log_stream(name: &str) -> Option<LogStream> {
    let (job, rest) = name.split_once('/')?;
    let (host, started_digits) = rest.rsplit_once('-')?;
    canonical_number(host.strip_prefix("algo-")?).filter(|number| *number > 0)?;
    let digits =
        (1..=20).contains(&started_digits.len()) && started_digits.bytes().all(|b| b.is_ascii_digit());
    (is_name(job, MAX_JOB_NAME_CHARS) && digits).then(|| LogStream {
        job: job.to_owned(),
        host: host.to_owned(),
        started_digits: started_digits.to_owned(),
    })
}

/// Returns whether `id` is `<tuning>-<inc6>` with a valid tuning name.
fn is_tuning_id(id: &str) -> bool {
    let Some((name, incarnation)) = id.rsplit_once('-') else { return false };
    incarnation.len() == INCARNATION_CHARS
        && incarnation.bytes().all(|b| BASE_36.contains(&b))
        && is_name(name, MAX_TUNING_NAME_CHARS)
}

/// Returns whether `name` matches `[a-zA-Z0-9](-*[a-zA-Z0-9])*` and has at most `limit` characters.
fn is_name(name: &str, limit: usize) -> bool {
    (1..=limit).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Parses a number in the form that `Display` writes: digits only, without leading zeros.
fn canonical_number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let canonical = digits && (text == "0" || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_invalid(name: &str) {
        assert_eq!(parse_training_job_name(name), None, "{name}");
    }

    #[test]
    fn a_name_from_the_samples_is_parsed() {
        let key = JobKey::new(7, 1, 1);
        assert_eq!(parse_training_job_name("hb1-3fa1c2-7-1-1"), Some(("hb1-3fa1c2".to_owned(), key)));
        assert_eq!(parse_job_key("7-1-1"), Some(key));
    }

    #[test]
    fn invalid_names_are_rejected() {
        for name in [
            "",
            "-",
            "hb1-3fa1c2",
            "3fa1c2-7-1-1",
            "hb1-3fa1c2-7-1-0",
            "hb1-3fa1c2-07-1-1",
            "hb1-3fa1c2-7-1-+1",
            "hb1-3fa1c2-7--1-1",
            "hb1-3FA1c2-7-1-1",
            "hb1-3fa1c-7-1-1",
            "hb1--3fa1c2-7-1-1",
            "-hb1-3fa1c2-7-1-1",
            "hb_1-3fa1c2-7-1-1",
            "hb1-3fa1c2-7-1-4294967296",
            "hb1-3fa1c2-7-1-1-",
            "hbé-3fa1c2-7-1-1",
        ] {
            assert_invalid(name);
        }
        assert_invalid(&format!("{}-3fa1c2-7-1-1", "a".repeat(33)));
        assert_invalid(&format!("{}-3fa1c2-4294967295-4294967295-4294967295", "a".repeat(32)));
    }

    #[test]
    fn the_longest_name_is_within_sagemakers_limit() {
        let key = JobKey::new(tuning::unit::limits::MAX_TRAINING_JOBS, 999, u32::MAX);
        let id = format!("{}-abc123", "a".repeat(MAX_TUNING_NAME_CHARS));
        let name = training_job_name(&id, key);
        assert!(name.len() <= MAX_JOB_NAME_CHARS, "{name}");
        assert_eq!(parse_training_job_name(&name), Some((id, key)));
    }

    #[test]
    fn an_incarnation_depends_only_on_its_input() {
        // Running tunings depend on this value.
        assert_eq!(incarnation(b""), "gt33ue");
        assert_ne!(incarnation(b"a"), incarnation(b"b"));
    }

    #[test]
    fn only_log_streams_of_hosts_are_parsed() {
        let stream = log_stream("hb1-3fa1c2-7-1-1/algo-12-1789000000123");
        let parts = stream.map(|s| [s.job, s.host, s.started_digits]);
        assert_eq!(parts, Some(["hb1-3fa1c2-7-1-1", "algo-12", "1789000000123"].map(str::to_owned)));
        for name in [
            "hb1-3fa1c2-7-1-1",
            "hb1-3fa1c2-7-1-1/",
            "hb1/algo-1",
            "hb1/algo--1",
            "hb1/algo-1-",
            "hb1/algo-x-1",
            "hb1/algo-1-1x",
            "hb1/algo-0-1",
            "hb1/profiler-1-1",
            "/algo-1-1",
            "a/b/algo-1-1",
            "hb1/algo-1-123456789012345678901",
        ] {
            assert_eq!(log_stream(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_parses_to_its_parts(
            name in "[a-zA-Z0-9](-{0,2}[a-zA-Z0-9]){0,10}",
            input in any::<Vec<u8>>(),
            trial in 0_u32..=10_000,
            rung in 0_u32..=99,
            attempt in 1_u32..=9_999,
        ) {
            let id = format!("{name}-{}", incarnation(&input));
            let key = JobKey::new(trial, rung, attempt);
            let job = training_job_name(&id, key);
            prop_assert_eq!(parse_training_job_name(&job), Some((id, key)));
            prop_assert_eq!(parse_job_key(&key.to_string()), Some(key));
            let stream = format!("{job}/algo-1-1789000000");
            prop_assert_eq!(log_stream(&stream).map(|s| s.job), Some(job));
        }

        #[test]
        fn a_parsed_name_is_written_unchanged(name in "[a-z0-9]{1,4}-[a-z0-9]{5,7}-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}") {
            if let Some((id, key)) = parse_training_job_name(&name) {
                prop_assert_eq!(training_job_name(&id, key), name);
            }
        }

        #[test]
        fn no_text_causes_a_panic(text in any::<String>()) {
            let _ = (parse_training_job_name(&text), parse_job_key(&text), log_stream(&text));
        }
    }
}
