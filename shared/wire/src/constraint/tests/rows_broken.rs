//! Violates each constraint of each row once. The cases are derived from the rows. The test fails until a request of
//! `bases` sets every row.

use serde_json::{Map, Value, json};

use super::super::{Constraint, Kind, rows};
use super::requests::Base;
use super::{bases, reported};

/// Returns the JSON pointer and the path of the first value of a row in a request. The row of a key yields its map.
fn place(body: &Value, row: &str) -> Option<(String, String)> {
    let (mut pointer, mut path) = (String::new(), String::new());
    for part in row.split('.') {
        let bare = part.trim_end_matches("{key}").trim_end_matches("{}").trim_end_matches("[]");
        pointer = format!("{pointer}/{bare}");
        path = if path.is_empty() { bare.to_owned() } else { format!("{path}.{bare}") };
        if part.trim_start_matches(bare).starts_with("[]") {
            pointer.push_str("/0");
            path.push_str("[0]");
        }
        if part.ends_with("{}") {
            let key = body.pointer(&pointer)?.as_object()?.keys().next()?;
            path = format!("{path}.{key}");
            pointer = format!("{pointer}/{key}");
        }
    }
    body.pointer(&pointer).map(|_| (pointer, path))
}

fn bad_values(row: &Constraint, good: &Value) -> Vec<(&'static str, Value)> {
    let mut bad = vec![("type", if row.kind == Kind::Boolean { json!("true") } else { json!(true) })];
    if row.path.ends_with("[]") || row.path.ends_with("{}") {
        bad.push(("null", Value::Null));
    }
    match row.kind {
        Kind::Text => bad.extend(bad_texts(row)),
        Kind::Integer => {
            let (min, max) = (row.min.unwrap_or(i64::from(i32::MIN)), row.max.unwrap_or(i64::from(i32::MAX)));
            bad.extend([("fraction", json!(1.5)), ("text", json!("1"))]);
            bad.extend(min.checked_sub(1).map(|number| ("min", json!(number))));
            bad.push(("max", max.checked_add(1).map_or(json!(u64::MAX), Value::from)));
        }
        Kind::Dollars => {
            bad.extend([
                ("zero", json!(0)),
                ("negative", json!(-0.5)),
                ("text", json!("1")),
                ("max", json!(1e300)),
            ]);
            bad.push(("max", json!(row.max.unwrap() + 1)));
        }
        Kind::Number => {
            bad.push(("text", json!("1")));
            bad.extend(row.min.map(|min| ("min", json!(min - 1))));
            bad.extend(row.max.map(|max| ("max", json!(max + 1))));
        }
        Kind::Scalar => bad.push(("max", json!("a".repeat(257)))),
        Kind::List => {
            let element = good.get(0).cloned().unwrap_or(Value::Null);
            bad.extend(row.min.filter(|min| *min > 0).map(|_| ("min", json!([]))));
            bad.extend(row.max.map(|max| ("max", json!(vec![element; usize::try_from(max).unwrap() + 1]))));
        }
        Kind::Map => {
            let (key, value) = good.as_object().unwrap().iter().next().unwrap();
            let entry = |index: i64| (format!("{key}{index}"), value.clone());
            let entries = |count: i64| Value::Object((0..count).map(entry).collect::<Map<_, _>>());
            bad.extend(row.max.map(|max| ("max", entries(max + 1))));
        }
        Kind::Structure | Kind::Boolean => {}
    }
    bad
}

fn bad_texts(row: &Constraint) -> Vec<(&'static str, Value)> {
    let of_length = |length: i64| json!("!".repeat(usize::try_from(length).unwrap()));
    let mut bad = Vec::new();
    bad.extend(row.min.filter(|min| *min > 0).map(|min| ("min", of_length(min - 1))));
    bad.extend(row.max.map(|max| ("max", of_length(max + 1))));
    match row.pattern {
        Some(".+") => bad.push(("pattern", json!("\n"))),
        Some(_) => bad.push(("pattern", of_length(row.min.unwrap_or(1).max(1)))),
        None => {}
    }
    if !row.values.is_empty() {
        bad.push(("enum", json!("Nonsense")));
    }
    bad.extend(
        row.unsupported
            .iter()
            .flat_map(|unsupported| unsupported.values)
            .map(|value| ("unsupported", json!(value))),
    );
    bad
}

/// Returns the first base that sets the row, with pointer and path. Removes tags unless the row is one of theirs: their
/// pattern covers all letters of Unicode and takes most of the time of a validation.
fn base_of(row: &Constraint) -> (Base, String, String) {
    let found =
        |path: &str| bases().into_iter().find_map(|base| place(&base.body, path).map(|place| (base, place)));
    // Some rows are only for an element of the list.
    let in_list = row.path.replacen("TrainingJobDefinition.", "TrainingJobDefinitions[].", 1);
    let found = found(row.path).or_else(|| found(&in_list));
    let (mut base, (pointer, path)) = found.unwrap_or_else(|| panic!("no base sets {}", row.path));
    if !row.path.starts_with("Tags") {
        base.body.as_object_mut().unwrap().remove("Tags");
    }
    (base, pointer, path)
}

/// Expects one violation at `path` and no others, except those of the base and, for a list, those of its elements.
fn expect(row: &Constraint, what: &str, base: &Base, body: &Value, path: &str) {
    let paths = reported(body);
    let elsewhere = |found: &&String| {
        let inner = row.kind == Kind::List && found.starts_with(path);
        *found != path && !inner && !base.rejected.contains(&found.as_str())
    };
    assert_eq!(
        paths.iter().filter(|found| *found == path).count(),
        1,
        "{} {what}: {path} in {paths:?}",
        row.path
    );
    assert_eq!(paths.iter().find(elsewhere), None, "{} {what}: reported besides {path}", row.path);
}

#[test]
fn each_violated_row_is_reported_alone_with_its_path() {
    let mut cases = 0;
    for row in rows().filter(|row| !row.path.ends_with("{key}")) {
        let (base, pointer, path) = base_of(row);
        let good = base.body.pointer(&pointer).unwrap();
        for (what, value) in bad_values(row, good) {
            let mut body = base.body.clone();
            *body.pointer_mut(&pointer).unwrap() = value;
            expect(row, what, &base, &body, &path);
            cases += 1;
        }
        if row.required {
            let mut body = base.body.clone();
            let (parent, member) = pointer.rsplit_once('/').unwrap();
            body.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(member);
            expect(row, "required", &base, &body, &path);
            cases += 1;
        }
        if row.kind == Kind::Structure {
            let mut body = base.body.clone();
            body.pointer_mut(&pointer).unwrap()["Surprise"] = json!(1);
            expect(row, "unknown member", &base, &body, &format!("{path}.Surprise"));
            cases += 1;
        }
    }
    assert!(cases > 400, "{cases}");
}

#[test]
fn each_violated_row_of_keys_is_reported_alone_with_its_path() {
    for row in rows().filter(|row| row.path.ends_with("{key}")) {
        let (base, pointer, path) = base_of(row);
        for (what, key) in bad_texts(row) {
            let key = key.as_str().unwrap();
            let mut body = base.body.clone();
            let entries = body.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
            let value = entries.values().next().unwrap().clone();
            entries.insert(key.to_owned(), value);
            assert_eq!(
                reported(&body),
                [format!("{path}.{}", crate::request::shortened(key))],
                "{} {what}",
                row.path
            );
        }
    }
}

#[test]
fn an_unsupported_value_is_rejected_with_the_alternative() {
    for row in rows() {
        let Some(unsupported) = row.unsupported else { continue };
        let suits = |base: &Base| {
            let found = place(&base.body, row.path);
            found.is_some_and(|(_, path)| {
                !unsupported.values.is_empty() || base.rejected.contains(&path.as_str())
            })
        };
        let base = bases().into_iter().find(suits).unwrap_or_else(|| panic!("no base has {}", row.path));
        let mut body = base.body;
        let (pointer, path) = place(&body, row.path).unwrap();
        if let Some(value) = unsupported.values.first() {
            *body.pointer_mut(&pointer).unwrap() = json!(value);
        }
        let error = super::Request::check(body).unwrap_err();
        let found = error.violations.iter().find(|violation| violation.path == path).unwrap();
        assert!(
            found.message.contains(&format!("is not supported yet; {}", unsupported.advice)),
            "{}",
            found.message
        );
    }
}

#[test]
fn values_at_their_bounds_are_valid() {
    for row in rows().filter(|row| !row.path.ends_with("{key}")) {
        let (base, pointer, path) = base_of(row);
        let text_of = |length: i64| json!("a".repeat(usize::try_from(length).unwrap()));
        let good: Vec<Value> = match row.kind {
            Kind::Integer => vec![
                json!(row.min.unwrap_or(i64::from(i32::MIN))),
                json!(row.max.unwrap_or(i64::from(i32::MAX))),
            ],
            Kind::Text if row.values.is_empty() && matches!(row.pattern, None | Some(".+")) => {
                row.min.into_iter().chain(row.max).map(text_of).collect()
            }
            Kind::Text => row.values.iter().map(|value| json!(value)).collect(),
            Kind::Dollars => vec![json!(row.max.unwrap()), json!(0.000_001)],
            Kind::Number => {
                vec![row.min.map_or(json!(-1e300), Value::from), row.max.map_or(json!(0), Value::from)]
            }
            Kind::Scalar => vec![json!("a".repeat(256)), json!(0.5)],
            Kind::Boolean => vec![json!(true), json!(false)],
            Kind::Structure | Kind::List | Kind::Map => Vec::new(),
        };
        for value in good {
            let mut body = base.body.clone();
            *body.pointer_mut(&pointer).unwrap() = value.clone();
            let violations = super::Request::check(body).err().map_or(Vec::new(), |error| error.violations);
            let breaks = |message: &str| message.contains("failed to satisfy constraint");
            let found =
                violations.iter().find(|violation| violation.path == path && breaks(&violation.message));
            assert_eq!(found, None, "{} at {value}", row.path);
        }
    }
}
