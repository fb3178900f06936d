//! What lists may be asked: filters, order and pages, from the parameters of a path or the members of a body.
//!
//! Absent and null mean the same. What is unknown is refused by its name, with what is allowed: a filter that does nothing
//! would show the wrong jobs.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use wire::events::timestamp::parse_utc;
use wire::stored::IndexRow;

use crate::error::ApiError;
use crate::rest::shown;

/// Entries of a list, if not said: as AMT.
const MAX_RESULTS: u64 = 10;
/// Most entries of a list.
const MAX_RESULTS_MAX: u64 = 100;
/// Longest token of a page; no list gives a longer one, and the table takes no key that is longer.
const TOKEN_CHARS_MAX: usize = 400;

/// Named values: those of a query are texts, those of a body are JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Members<'a> {
    Texts(&'a BTreeMap<String, String>),
    Json(&'a Value),
}

impl<'a> Members<'a> {
    /// Refuses what is not one of `known`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        let mut names: Box<dyn Iterator<Item = &String>> = match self {
            Self::Texts(map) => Box::new(map.keys()),
            Self::Json(value) => Box::new(value.as_object().into_iter().flat_map(|map| map.keys())),
        };
        match names.find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(ApiError::validation(format!(
                "'{}' is not known here; these are: {}",
                shown(name),
                known.join(", ")
            ))),
        }
    }

    /// The text `name`.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        match self {
            Self::Texts(map) => Ok(map.get(name).map(String::as_str)),
            Self::Json(value) => match value.get(name) {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(_) => Err(wrong(name, "a string")),
            },
        }
    }

    /// The whole number `name`, from 1 to `most`.
    pub(crate) fn number(&self, name: &str, most: u64) -> Result<Option<u64>, ApiError> {
        let number = match self {
            Self::Texts(map) => map.get(name).map(|text| text.parse().ok()),
            Self::Json(value) => value.get(name).filter(|value| !value.is_null()).map(Value::as_u64),
        };
        match number {
            None => Ok(None),
            Some(Some(number)) if (1..=most).contains(&number) => Ok(Some(number)),
            Some(_) => Err(wrong(name, &format!("a whole number from 1 to {most}"))),
        }
    }

    /// The time `name` in ms since the epoch: seconds since the epoch, or as in `2026-09-10T00:26:00Z`.
    fn time(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let text = match self {
            Self::Texts(map) => map.get(name).cloned(),
            Self::Json(value) => match value.get(name) {
                None | Some(Value::Null) => None,
                Some(Value::Number(number)) => Some(number.to_string()),
                Some(Value::String(text)) => Some(text.clone()),
                Some(_) => Some(String::new()),
            },
        };
        let Some(text) = text else { return Ok(None) };
        let millis = parse_utc(&text).or_else(|| seconds(&text));
        match millis {
            Some(millis) => Ok(Some(millis)),
            None => Err(wrong(name, "a time: seconds since 1970, or as in 2026-09-10T00:26:00Z")),
        }
    }

    fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = choices.iter().find(|(word, _)| *word == text);
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        found
            .map(|(_, choice)| Some(*choice))
            .ok_or_else(|| wrong(name, &format!("one of {}", words.join(", "))))
    }

    /// The token of a page; an empty one is none.
    pub(crate) fn next_token(&self) -> Result<Option<&'a str>, ApiError> {
        Ok(self.text("NextToken")?.filter(|token| !token.is_empty()))
    }

    /// Where the page before ended in `list`.
    fn after(&self, list: &str) -> Result<Option<String>, ApiError> {
        let token = self.next_token()?;
        token.map(|token| place_in(token, list).ok_or_else(wrong_token)).transpose()
    }
}

/// The token is none of this list.
pub(crate) fn wrong_token() -> ApiError {
    wrong("NextToken", "one that a page of this list gave")
}

fn wrong(name: &str, allowed: &str) -> ApiError {
    ApiError::validation(format!("{name} must be {allowed} (at '{name}')"))
}

/// Milliseconds of a decimal number of seconds.
fn seconds(text: &str) -> Option<i64> {
    let seconds: f64 = text.parse().ok()?;
    // Within the years 1970 to 9999 a float of seconds is exact to the millisecond.
    let within = (0.0..253_402_300_800.0).contains(&seconds);
    #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
    within.then(|| (seconds * 1_000.0).round() as i64)
}

/// The token of the page after `place` of the list that is named `list`.
pub(crate) fn token(list: &str, place: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}:{place}"))
}

/// The place in a token, if it is one of that list.
pub(crate) fn place_in(token: &str, list: &str) -> Option<String> {
    let bytes = (token.len() <= TOKEN_CHARS_MAX).then(|| URL_SAFE_NO_PAD.decode(token).ok()).flatten()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.strip_prefix(list)?.strip_prefix(':')?.to_owned())
}

/// There is no tuning job of that name.
pub(crate) fn unknown(name: &str) -> ApiError {
    ApiError::not_found(format!("no hyperparameter tuning job is named {name}"))
}

/// Whether a time is after the one and before the other.
pub(crate) fn within(ms: i64, (after, before): (Option<i64>, Option<i64>)) -> bool {
    after.is_none_or(|after| ms > after) && before.is_none_or(|before| ms < before)
}

/// Statuses of tuning jobs.
const TUNING_STATUSES: [&str; 7] =
    ["Completed", "InProgress", "Failed", "Stopped", "Stopping", "Deleting", "DeleteFailed"];
/// Statuses of training jobs.
const JOB_STATUSES: [&str; 6] = ["InProgress", "Completed", "Failed", "Stopping", "Stopped", "Deleting"];

/// What a list of tuning jobs is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TuningOrder {
    /// Name, without regard to case.
    #[default]
    Name,
    /// When they were submitted.
    CreationTime,
    /// Status.
    Status,
}

/// A question for tuning jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuningsQuery {
    /// Order.
    pub order: TuningOrder,
    /// Highest first.
    pub descending: bool,
    /// Only names that contain this.
    pub name_contains: Option<String>,
    /// Only those submitted after this, and before that; ms.
    pub created: (Option<i64>, Option<i64>),
    /// Only those changed after this, and before that; ms.
    pub modified: (Option<i64>, Option<i64>),
    /// Only those in this status.
    pub status: Option<&'static str>,
    /// Where the page before ended.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl TuningsQuery {
    pub(crate) fn read(members: &Members<'_>) -> Result<Self, ApiError> {
        members.only(&[
            "NextToken",
            "MaxResults",
            "SortBy",
            "SortOrder",
            "NameContains",
            "CreationTimeAfter",
            "CreationTimeBefore",
            "LastModifiedTimeAfter",
            "LastModifiedTimeBefore",
            "StatusEquals",
        ])?;
        let orders = [
            ("Name", TuningOrder::Name),
            ("CreationTime", TuningOrder::CreationTime),
            ("Status", TuningOrder::Status),
        ];
        let query = Self {
            order: members.choice("SortBy", &orders)?.unwrap_or_default(),
            descending: descending(members)?,
            name_contains: members.text("NameContains")?.map(str::to_owned),
            created: (members.time("CreationTimeAfter")?, members.time("CreationTimeBefore")?),
            modified: (members.time("LastModifiedTimeAfter")?, members.time("LastModifiedTimeBefore")?),
            status: members.choice("StatusEquals", &TUNING_STATUSES.map(|status| (status, status)))?,
            after: None,
            limit: limit(members)?,
        };
        Ok(Self { after: members.after(&query.list())?, ..query })
    }

    /// What a token of this list begins with: in another order its place would be another.
    pub(crate) fn list(&self) -> String {
        format!("tunings-{:?}-{}", self.order, self.descending)
    }

    /// Whether only such are asked for as are not over.
    pub(crate) fn is_of_active(&self) -> bool {
        matches!(self.status, Some("InProgress" | "Stopping"))
    }

    /// Whether a tuning job may be among those asked for, as far as its name and time tell.
    pub(crate) fn fits(&self, row: &IndexRow) -> bool {
        let named = self.name_contains.as_ref().is_none_or(|part| row.name.contains(part.as_str()));
        named && within(row.created, self.created)
    }
}

/// What a list of training jobs is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobOrder {
    /// Trial, rung, attempt.
    #[default]
    Name,
    /// When they were ordered.
    CreationTime,
    /// Status.
    Status,
    /// The objective's last value; jobs without one are left out, as AMT does.
    FinalObjectiveMetricValue,
}

/// A question for training jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsQuery {
    /// Order.
    pub order: JobOrder,
    /// Highest first.
    pub descending: bool,
    /// Only those in this status.
    pub status: Option<&'static str>,
    /// Where the page before ended.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl JobsQuery {
    pub(crate) fn read(members: &Members<'_>) -> Result<Self, ApiError> {
        members.only(&["NextToken", "MaxResults", "SortBy", "SortOrder", "StatusEquals"])?;
        let orders = [
            ("Name", JobOrder::Name),
            ("CreationTime", JobOrder::CreationTime),
            ("Status", JobOrder::Status),
            ("FinalObjectiveMetricValue", JobOrder::FinalObjectiveMetricValue),
        ];
        let query = Self {
            order: members.choice("SortBy", &orders)?.unwrap_or_default(),
            descending: descending(members)?,
            status: members.choice("StatusEquals", &JOB_STATUSES.map(|status| (status, status)))?,
            after: None,
            limit: limit(members)?,
        };
        Ok(Self { after: members.after(&query.list())?, ..query })
    }

    /// What a token of this list begins with.
    pub(crate) fn list(&self) -> String {
        format!("jobs-{:?}-{}", self.order, self.descending)
    }
}

fn descending(members: &Members<'_>) -> Result<bool, ApiError> {
    Ok(members.choice("SortOrder", &[("Ascending", false), ("Descending", true)])?.unwrap_or(false))
}

fn limit(members: &Members<'_>) -> Result<usize, ApiError> {
    let results = members.number("MaxResults", MAX_RESULTS_MAX)?.unwrap_or(MAX_RESULTS);
    Ok(usize::try_from(results).unwrap_or(1))
}
