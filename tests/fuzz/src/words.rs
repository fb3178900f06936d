//! Target `words`: names of jobs and log streams, keys, times, amounts of money, classes of failures.

use serde_json::Number;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use wire::events::job_state::{classify, cut_message};
use wire::events::timestamp::{format_utc, parse_utc};
use wire::names::{
    MAX_JOB_NAME_CHARS, digest, incarnation, log_stream, parse_job_key, parse_training_job_name,
    training_job_name,
};
use wire::request::{micro_usd_down, micro_usd_up, usd};

/// Amounts below eight billion dollars are exact.
const EXACT_BELOW: u64 = 8_000_000_000_000_000;

/// The input is words separated by spaces.
pub(crate) fn run(input: &[u8]) {
    assert_eq!((incarnation(input).len(), digest(input).len()), (6, 32));
    if let Some(bytes) = input.first_chunk() {
        let number = i64::from_le_bytes(*bytes);
        let time = format_utc(Time(number));
        assert!(parse_utc(&time).is_some_and(|read| format_utc(read) == time), "{number}: {time}");
        money(u64::from_le_bytes(*bytes));
    }
    let text = String::from_utf8_lossy(input);
    let mut words = text.split(' ');
    let (status, secondary) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    assert_eq!(
        classify(status, secondary, Some(&text)),
        classify(status, secondary, Some(&cut_message(&text)))
    );
    for word in text.split(' ') {
        names(word);
        times(word);
        if let Ok(number) = serde_json::from_str::<Number>(word) {
            amounts(&number);
        }
    }
}

fn names(word: &str) {
    if let Some((id, key)) = parse_training_job_name(word) {
        assert_eq!(training_job_name(&id, key), word);
        assert!(word.len() <= MAX_JOB_NAME_CHARS);
        assert_eq!(parse_job_key(&key.to_string()), Some(key));
    }
    if let Some(key) = parse_job_key(word) {
        assert_eq!(key.to_string(), word);
    }
    if let Some(stream) = log_stream(word) {
        assert_eq!(format!("{}/{}-{}", stream.job, stream.host, stream.started_digits), word);
        assert!(stream.job.len() <= MAX_JOB_NAME_CHARS);
    }
}

fn times(word: &str) {
    if let Some(time) = parse_utc(word) {
        assert!(time >= Time(0), "{word}: {time}");
        assert_eq!(parse_utc(&format_utc(time)), Some(time), "{word}");
        assert!(word.starts_with(&format_utc(time)[..19]), "{word}: {time}");
    }
}

fn amounts(number: &Number) {
    let (down, up) = (micro_usd_down(number), micro_usd_up(number));
    if let (Some(down), Some(up)) = (down, up) {
        assert!(up == down || up == down + 1, "{number}: {down} {up}");
    }
    assert!(down.is_some() || up.is_none(), "{number}");
    let dollars = number.as_f64().unwrap_or_default();
    assert!(dollars >= 0.0 || (down.is_none() && up.is_none()), "{number} is not an amount");
    assert!(up != Some(0) || dollars <= 0.0, "{number} was rounded to 0");
    let exact = down.filter(|down| *down < EXACT_BELOW);
    exact.into_iter().for_each(money);
}

fn money(micro: u64) {
    let serde_json::Value::Number(number) = usd(MicroUsd(micro)) else { panic!("an amount is a number") };
    if micro < EXACT_BELOW {
        assert_eq!((micro_usd_down(&number), micro_usd_up(&number)), (Some(micro), Some(micro)), "{number}");
    }
}
