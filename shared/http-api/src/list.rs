//! Filters, order and pages of lists, from the parameters of a path or the members of a body.
//!
//! A null member counts as missing. Unknown parameters are refused, because an ignored filter would show the wrong
//! jobs.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use tuning::unit::time::Time;
use wire::events::timestamp::parse_utc;
use wire::stored::IndexRow;

use crate::error::{ApiError, shortened};

/// Default number of entries per page, as in AMT.
const MAX_RESULTS: u64 = 10;
/// Maximum number of entries per page.
pub(crate) const MAX_RESULTS_MAX: u64 = 100;
/// Maximum length of a page token: a sort key of DynamoDB has at most 1,024 bytes.
const TOKEN_CHARS_MAX: usize = 1_500;

/// Named values: texts in a query, JSON in a body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Members<'a> {
    Texts(&'a BTreeMap<String, String>),
    Json(&'a Value),
}

impl<'a> Members<'a> {
    /// Refuses members that are not in `known`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        let mut names: Box<dyn Iterator<Item = &String>> = match self {
            Self::Texts(map) => Box::new(map.keys()),
            Self::Json(value) => Box::new(value.as_object().into_iter().flat_map(|map| map.keys())),
        };
        match names.find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(ApiError::validation(format!(
                "unknown parameter '{}': expected one of {}",
                shortened(name),
                known.join(", ")
            ))),
        }
    }

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

    /// Returns the whole number `name`, from 1 to `most`.
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

    /// Returns the time `name` in ms since the epoch. The value is in seconds since the epoch, or as in
    /// `2026-09-10T00:26:00Z`.
    fn time(&self, name: &str) -> Result<Option<Time>, ApiError> {
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
        let time = parse_utc(&text).or_else(|| seconds(&text));
        match time {
            Some(time) => Ok(Some(time)),
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

    /// Returns the page token. An empty token counts as missing.
    pub(crate) fn next_token(&self) -> Result<Option<&'a str>, ApiError> {
        Ok(self.text("NextToken")?.filter(|token| !token.is_empty()))
    }

    /// Returns the last position of the previous page of `list`.
    pub(crate) fn after(&self, list: &str) -> Result<Option<String>, ApiError> {
        let token = self.next_token()?;
        token.map(|token| place_in(token, list).ok_or_else(wrong_token)).transpose()
    }
}

/// Returns the error for a token of another list, or an invalid one.
pub(crate) fn wrong_token() -> ApiError {
    wrong("NextToken", "the NextToken of the previous page of this list")
}

/// Returns the error for a token of another tuning job, which may have had the same name.
fn token_of_another() -> ApiError {
    ApiError::validation(
        "invalid NextToken: it belongs to another tuning job, which may have been deleted: list again without it (at \
         'NextToken')",
    )
}

fn wrong(name: &str, allowed: &str) -> ApiError {
    ApiError::validation(format!("invalid {name}: expected {allowed} (at '{name}')"))
}

/// Converts a decimal number of seconds since the epoch.
fn seconds(text: &str) -> Option<Time> {
    let seconds: f64 = text.parse().ok()?;
    // Within the years 1970 to 9999 a float of seconds is exact to the millisecond.
    let within = (0.0..253_402_300_800.0).contains(&seconds);
    #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
    within.then(|| Time((seconds * 1_000.0).round() as i64))
}

/// Returns the token of the page after `place` of `list`.
pub(crate) fn token(list: &str, place: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}:{place}"))
}

/// Returns the place in a token of `list`; `None` for any other token.
pub(crate) fn place_in(token: &str, list: &str) -> Option<String> {
    let bytes = (token.len() <= TOKEN_CHARS_MAX).then(|| URL_SAFE_NO_PAD.decode(token).ok()).flatten()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.strip_prefix(list)?.strip_prefix(':')?.to_owned())
}

/// Returns the token of the page after `place` of a `list` of tuning `id`. A later tuning may have the same name, so the
/// token has the ID.
pub(crate) fn token_of(list: &str, id: &str, place: &str) -> String {
    token(list, &format!("{id}/{place}"))
}

/// Returns the place in the content of a token of [`token_of`]. Refuses a token of another tuning than `id`.
pub(crate) fn place_of<'a>(content: &'a str, id: &str) -> Result<&'a str, ApiError> {
    content.strip_prefix(id).and_then(|rest| rest.strip_prefix('/')).ok_or_else(token_of_another)
}

/// Returns the error for a missing tuning job.
pub(crate) fn unknown(name: &str) -> ApiError {
    ApiError::not_found(format!("no hyperparameter tuning job is named {name}"))
}

/// Returns whether a time is within both bounds, exclusive.
pub(crate) fn within(time: Time, (after, before): (Option<Time>, Option<Time>)) -> bool {
    after.is_none_or(|after| time > after) && before.is_none_or(|before| time < before)
}

/// Statuses of tuning jobs in AMT.
pub(crate) const TUNING_STATUSES: [&str; 7] =
    ["Completed", "InProgress", "Failed", "Stopped", "Stopping", "Deleting", "DeleteFailed"];
/// Statuses of training jobs in SageMaker.
pub(crate) const JOB_STATUSES: [&str; 6] =
    ["InProgress", "Completed", "Failed", "Stopping", "Stopped", "Deleting"];

/// The sort key of a list of tuning jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TuningOrder {
    /// Name, case-insensitive.
    #[default]
    Name,
    CreationTime,
    Status,
}

/// A query for tuning jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuningsQuery {
    /// Sort key.
    pub order: TuningOrder,
    /// Whether the order is descending.
    pub descending: bool,
    /// Name filter: a substring.
    pub name_contains: Option<String>,
    /// Bounds of the submission time, exclusive.
    pub created: (Option<Time>, Option<Time>),
    /// Bounds of the time of the last change, exclusive.
    pub modified: (Option<Time>, Option<Time>),
    /// Status filter.
    pub status: Option<&'static str>,
    /// Filter by the principal that submitted the tuning job.
    pub submitter: Option<String>,
    /// The only principal whose tuning jobs the caller may see.
    pub of_caller: Option<String>,
    /// Last position of the previous page.
    pub after: Option<String>,
    /// Maximum number of entries.
    pub limit: usize,
}

impl TuningsQuery {
    pub(crate) fn parse(members: &Members<'_>) -> Result<Self, ApiError> {
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
            "Submitter",
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
            submitter: members.text("Submitter")?.map(str::to_owned),
            of_caller: None,
            after: None,
            limit: limit(members)?,
        };
        Ok(Self { after: members.after(&query.list())?, ..query })
    }

    /// Returns the prefix of this list's tokens. It includes the order, because a place is valid only in one order.
    pub(crate) fn list(&self) -> String {
        format!("tunings-{:?}-{}", self.order, self.descending)
    }

    /// Returns whether the query selects only active tuning jobs.
    pub(crate) fn is_of_active(&self) -> bool {
        matches!(self.status, Some("InProgress" | "Stopping"))
    }

    /// Returns whether the name, the submitter and the submission time of a tuning job match.
    pub(crate) fn fits(&self, row: &IndexRow) -> bool {
        let named = self.name_contains.as_ref().is_none_or(|part| row.name.contains(part.as_str()));
        let submitted_by = |wanted: &Option<String>| wanted.is_none() || row.submitter == *wanted;
        named
            && submitted_by(&self.submitter)
            && submitted_by(&self.of_caller)
            && within(row.created, self.created)
    }
}

/// The sort key of a list of training jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobOrder {
    /// Trial, rung, attempt.
    #[default]
    Name,
    /// Time of the order.
    CreationTime,
    Status,
    /// Last value of the objective. Jobs without a value are omitted, as in AMT.
    FinalObjectiveMetricValue,
}

/// A query for training jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsQuery {
    /// Sort key.
    pub order: JobOrder,
    /// Whether the order is descending.
    pub descending: bool,
    /// Status filter.
    pub status: Option<&'static str>,
    /// Last position of the previous page.
    pub after: Option<String>,
    /// Maximum number of entries.
    pub limit: usize,
}

impl JobsQuery {
    pub(crate) fn parse(members: &Members<'_>) -> Result<Self, ApiError> {
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

    /// Returns the prefix of this list's tokens.
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
