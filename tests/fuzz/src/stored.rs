//! Target `stored`: table rows, possibly damaged or from a newer version. Each row is refused with its key in the
//! error, or reads back the same and can be used.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use tuning::decide;
use tuning::definition::{Definition, RULES_VERSION};
use tuning::log::fact::{Fact, Recorded};
use tuning::state::State;
use tuning::step::{advance, load};
use tuning::unit::limits::{MAX_FACTS_PER_STEP, MAX_RULINGS_PER_STEP};
use tuning::unit::time::Time;
use wire::events::stream;
use wire::item::{Item, Key};
use wire::request::Request;
use wire::stored::{
    self, ActionRow, DATA, Head, IndexRow, MonthRow, StoredError, SweepRow, snapshot_chunks,
    snapshot_key_prefix, snapshot_state, status_word,
};

use crate::decider::definition;

const ID: &str = "hb1-3fa1c2";
const AT: i64 = 1_789_000_000_000;
/// Maximum length of an error text without the row's key, in bytes.
const REASON_BYTES_MAX: usize = 1_000;

/// The first character is the kind of the row, the others are its content.
pub(crate) fn run(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    if *kind == b'8' {
        return check_snapshot(&[chunk(rest)]);
    }
    let text = String::from_utf8_lossy(rest);
    let (first, others) = text.split_once('\n').unwrap_or((&text, ""));
    let words: Vec<&str> = first.split(' ').collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<i64>().ok());
    let item = match kind {
        b'0' => row("fact").with("key", words[0]).with("at", number(1).unwrap_or(AT)).with(DATA, others),
        b'1' => row("step").with("at", AT).with(DATA, &*text),
        b'2' => row("job").with(DATA, &*text),
        b'3' => row("tuning").with("definition", first).with("request", others),
        b'4' => with_numbers(
            row("action").with("status", words[0]).with(DATA, others),
            &["revision", "claimed_until", "not_before", "tries"],
            &words,
        ),
        b'5' => with_numbers(
            row("head").with("status", words[0]),
            &["step", "snapshot", "at", "deadline", "version"],
            &words,
        ),
        b'6' => with_numbers(
            row("index").with("name", words[0]).with("id", others),
            &["created", "version"],
            &words,
        ),
        b'a' => with_numbers(row("month"), &["granted", "reached", "revision", "version"], &words),
        b'b' => with_numbers(
            row("sweep").with("owner", words[0]).with(DATA, others),
            &["fence", "expires", "version"],
            &words,
        ),
        b'7' => return check_snapshot(&[chunk(&deflate(rest))]),
        _ => {
            let Ok(image) = serde_json::from_slice::<Value>(rest) else { return };
            let keys = json!({"pk": {"S": "T#hb1"}, "sk": {"S": "HEAD"}});
            let change = json!({"Keys": keys, "SequenceNumber": "1", "NewImage": image});
            let record = json!({"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": change});
            let record = stream::parse(&stream::encode_payload([record])).pop().and_then(Result::ok);
            let Some(item) = record.and_then(|record| record.new) else { return };
            item
        }
    };
    read_by_all(&item);
}

fn row(kind: &str) -> Item {
    Item::new(Key::new("T#hb1", "ROW")).with("type", kind).with("version", 1)
}

/// Adds the words after the first as number attributes. A word that is not a number leaves its attribute out.
fn with_numbers(item: Item, names: &[&str], words: &[&str]) -> Item {
    let numbers = names.iter().zip(words.iter().skip(1));
    numbers.fold(item, |item, (name, word)| match word.parse::<i64>() {
        Ok(number) => item.with(name, number),
        Err(_) => item,
    })
}

/// Passes a row to the readers of all kinds. At most one of them may accept it.
pub(crate) fn read_by_all(item: &Item) {
    let mut accepted = 0;
    accepted += i32::from(read(item, stored::fact, |recorded| {
        let (key, at) = (item.text("key"), item.time("at"));
        assert_eq!((Some(recorded.key.as_str()), Some(recorded.at)), (key, at));
        check_fact(recorded);
    }));
    accepted += i32::from(read(item, stored::step, |step| {
        assert_eq!(stored::step(&stored::step_row(ID, &step)).as_ref(), Ok(&step));
        let definition = definition(0, 0);
        load(&definition, &mut State::new(&definition), &step);
    }));
    accepted += i32::from(read(item, stored::job, |job| {
        assert_eq!(stored::job(&stored::job_row(ID, &job)), Ok(job));
    }));
    accepted += i32::from(read(item, ActionRow::read, |action| {
        let again = ActionRow::read(&action.row(ID));
        assert_eq!(again.as_ref(), Ok(&action));
        let numbers = [action.revision, action.claimed_until.0, action.not_before.0, action.tries].map(Some);
        let stored = ["revision", "claimed_until", "not_before", "tries"].map(|name| item.number(name));
        assert_eq!((numbers, action.action.as_str()), (stored, item.key.sk.as_str()));
        assert!(!action.order.action().is_empty());
    }));
    accepted += i32::from(read(item, Head::read, |head| {
        assert_eq!((Some(head.at), head.deadline), (item.time("at"), item.time("deadline")));
        assert_eq!(Some(head.status.as_str()), item.text("status"));
        assert_eq!(Head::read(&head.row(ID)), Ok(head));
    }));
    accepted += i32::from(read(item, IndexRow::read, |index| {
        assert_eq!(index.row().key, IndexRow::key(&index.name.to_ascii_uppercase()));
        assert_eq!(IndexRow::read(&index.row()), Ok(index));
    }));
    accepted += i32::from(read(item, MonthRow::read, |month| {
        let stored = ["granted", "reached", "revision"].map(|name| item.number(name));
        let granted = i64::try_from(month.granted.0).ok();
        assert_eq!([granted, Some(i64::from(month.reached)), Some(month.revision)], stored);
        assert_eq!(MonthRow::read(&month.row()), Ok(month));
    }));
    accepted += i32::from(read(item, SweepRow::read, |sweep| {
        assert_eq!((Some(sweep.fence), Some(sweep.expires)), (item.number("fence"), item.time("expires")));
        assert_eq!(SweepRow::read(&sweep.row()), Ok(sweep));
    }));
    accepted +=
        i32::from(read(item, stored::meta, |(definition, request)| check_meta(&definition, &request)));
    assert!(accepted <= 1, "several readers accept the row {item:?}");
    if accepted == 0 {
        check_snapshot(std::slice::from_ref(item));
    }
}

/// Passes the row to `reader` and checks the value or the error. Returns whether the reader accepts the row.
fn read<T>(item: &Item, reader: impl Fn(&Item) -> Result<T, StoredError>, check: impl Fn(T)) -> bool {
    match reader(item) {
        Ok(value) => {
            check(value);
            true
        }
        Err(error) => {
            check_error(&error);
            false
        }
    }
}

fn check_error(error: &StoredError) {
    let (StoredError::Newer { key, .. }
    | StoredError::NewerFact { key, .. }
    | StoredError::Unreadable { key, .. }) = error;
    let text = error.to_string();
    assert!(!key.is_empty() && text.contains(key), "the error does not name its row: {text}");
    assert!(text.len() <= key.len() + REASON_BYTES_MAX, "an error text of {} bytes", text.len());
}

fn check_fact(recorded: Recorded) {
    let row = stored::fact_row(ID, &recorded);
    assert_eq!(stored::fact(&row).as_ref(), Ok(&recorded));
    let definition = definition(0, 0);
    advance_once(&definition, &mut State::new(&definition), &[submitted(), recorded]);
}

fn check_meta(definition: &Definition, request: &str) {
    let row = stored::meta_row(definition, request);
    assert_eq!(stored::meta(&row).as_ref(), Ok(&(definition.clone(), request.to_owned())));
    if definition.rules_version <= RULES_VERSION {
        advance_once(definition, &mut State::new(definition), &[submitted()]);
    }
    if let Ok(body) = serde_json::from_str(request) {
        let request = Request::from_stored(body);
        let _ = (request.metric_regex(), request.metric_host(), request.tags());
    }
}

fn check_snapshot(chunks: &[Item]) {
    let n = 64;
    let state = match snapshot_state(ID, n, chunks) {
        Ok(state) => state,
        Err(error) => return check_error(&error),
    };
    let Ok(again) = snapshot_chunks(ID, n, &state) else { panic!("a state that was read must be writable") };
    assert!(again.iter().all(|item| item.key.sk.starts_with(&snapshot_key_prefix(n))));
    again.iter().for_each(crate::check_row);
    assert_eq!(snapshot_state(ID, n, &again).as_ref(), Ok(&state), "the state reads back the same");
    assert!(!status_word(&state).is_empty());
    let passed = Recorded { key: "time".to_owned(), at: Time(AT), fact: Fact::TimePassed };
    let mut state = state;
    advance_once(&definition(0, 0), &mut state, &[submitted(), passed]);
}

/// Advances the state by one step. A damaged state only guarantees that the step is within its bounds.
fn advance_once(definition: &Definition, state: &mut State, facts: &[Recorded]) {
    let advanced = advance(definition, state, 1, facts);
    if let Some(step) = &advanced.step {
        assert!(step.facts.len() <= MAX_FACTS_PER_STEP && step.rulings.len() <= MAX_RULINGS_PER_STEP + 1);
    }
    let _ = (decide::deadline(definition, state), decide::must_fold_first(definition, state, Time(AT)));
}

fn submitted() -> Recorded {
    Recorded { key: "submitted".to_owned(), at: Time(AT), fact: Fact::TuningSubmitted }
}

fn chunk(bytes: &[u8]) -> Item {
    row("snapshot").with("chunks", 1).with("state", bytes.to_vec())
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    // Writing to a vector cannot fail.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
}
