//! Reads the file of a request: JSON in which comments and trailing commas are allowed.
//!
//! An error names the file, the line and the column.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;
use wire::request::{ErrorCode, JsonError, MAX_BODY_BYTES, RequestError, parse_json};

use super::comments;
use crate::failure::Failure;

pub(crate) fn text(path: &Path) -> Result<Vec<u8>, Failure> {
    bytes(path).map_err(|error| unreadable(&error, path))
}

/// Returns the JSON object in `text`, the content of `path`.
pub(crate) fn parse(path: &Path, text: &[u8]) -> Result<Value, RequestError> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let mut plain = text.to_vec();
    // A text that is too long was cut, perhaps in a comment.
    if text.len() <= MAX_BODY_BYTES
        && let Err(offset) = comments::blank(&mut plain)
    {
        let (line, column) = place(text, offset);
        return Err(invalid(format!(
            "{name}:{line}:{column}: expected '*/' at the end of this comment; add it"
        )));
    }
    parse_json(&plain).map_err(|error| {
        invalid(match error {
            JsonError::TooLong { bytes } => {
                format!("{name} has at least {bytes} bytes: expected at most {MAX_BODY_BYTES}; shorten it")
            }
            JsonError::NotAnObject => {
                format!(
                    "{name}:1:1: expected a JSON object; begin the request with '{{' and end it with '}}'"
                )
            }
            JsonError::Invalid { .. } if text.contains(&0) => {
                format!("{name}: expected text in UTF-8, but found zero bytes; save the file as UTF-8")
            }
            JsonError::Invalid { .. } if is_no_json(&plain) => format!(
                "{name}: requests are JSON; convert YAML with `yq -o json {name}`, or begin with `hyperband init`"
            ),
            JsonError::Invalid { reason, line, column } => {
                format!("{name}:{line}:{}: {}", characters(text, line, column), explained(&reason))
            }
        })
    })
}

/// Returns whether a text begins like no JSON value, for example YAML.
fn is_no_json(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    let first = lines.filter_map(<[u8]>::first).find(|first| **first != b'#');
    first.is_some_and(|first| first.is_ascii_alphabetic() || *first == b'-')
}

fn invalid(message: String) -> RequestError {
    RequestError { code: ErrorCode::SerializationException, message, violations: Vec::new() }
}

/// Returns the line and the column of an offset, from 1.
fn place(text: &[u8], offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.split(|byte| *byte == b'\n').count();
    let byte = before.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len);
    (line, characters(text, line, byte.saturating_add(1)))
}

/// Returns the column of a byte of a line in characters. All count from 1.
fn characters(text: &[u8], line: usize, byte: usize) -> usize {
    let line = text.split(|byte| *byte == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let before = line.get(..byte.saturating_sub(1)).unwrap_or(line);
    let before = before.strip_prefix(b"\xef\xbb\xbf").unwrap_or(before);
    String::from_utf8_lossy(before).chars().count() + 1
}

/// Returns the expectation and the fix for an error of the JSON parser.
fn explained(reason: &str) -> String {
    let fixed = |expected: &str, fix: &str| format!("expected {expected}; {fix}");
    match reason {
        "expected value" => fixed(
            "a value",
            "write a number, a string in double quotes, true, false, null, a list or an object",
        ),
        "expected `,` or `}`" => fixed("',' or '}'", "add a comma after the value before, or end the object"),
        "expected `,` or `]`" => fixed("',' or ']'", "add a comma after the value before, or end the list"),
        "expected `:`" => fixed("':'", "add a colon between the name and the value"),
        "key must be a string" => fixed("a name in double quotes", "write each member as \"NAME\": VALUE"),
        "trailing comma" => fixed("a value or a name", "remove one of the commas"),
        "trailing characters" => fixed("the end of the request", "remove the text after its last '}'"),
        "invalid escape" => fixed("an escape such as \\n or \\\\", "in a pattern, write each \\ as \\\\"),
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            fixed("the end of the string in its line", "add the closing double quote, or write \\n or \\t")
        }
        "EOF while parsing a string" => fixed("the end of the string", "add the closing double quote"),
        "EOF while parsing an object" => fixed("'}'", "end the object"),
        "EOF while parsing a list" => fixed("']'", "end the list"),
        "EOF while parsing a value" => fixed("a value", "complete the request"),
        "invalid number" | "number out of range" => {
            fixed("a number such as 0.5 or 1e-3", "correct the number")
        }
        "invalid unicode code point" => fixed("text in UTF-8", "save the file as UTF-8"),
        other => other.to_owned(),
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // One byte above the maximum, so that a longer text is rejected.
    let limit = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut text = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut text)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut text)?;
    }
    Ok(text)
}

fn unreadable(error: &io::Error, path: &Path) -> Failure {
    let failure = Failure::file("cannot read the request", path, error);
    if error.kind() == io::ErrorKind::NotFound {
        failure.hint(
            "REQUEST is a JSON file with a CreateHyperParameterTuningJob request, or - for standard input; \
             `hyperband init` writes one",
        )
    } else {
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &[u8]) -> String {
        parse(Path::new("r.json"), text).unwrap_err().message
    }

    #[test]
    fn comments_and_a_byte_order_mark_are_accepted() {
        let text = b"\xef\xbb\xbf// One.\n{\"a\": /* two */ \"//\",\n // \"b\": 1\n}";
        assert_eq!(parse(Path::new("-"), text), Ok(serde_json::json!({"a": "//"})));
    }

    #[test]
    fn an_error_names_the_file_the_line_and_the_column() {
        for (text, expected) in [
            ("{\n  \"a\": }", "r.json:2:8: expected a value; "),
            ("{\"a\": 1 // one\n \"b\": 2}", "r.json:2:2: expected ',' or '}'; add a comma"),
            ("{/* \u{e9}\u{e9} */ \"a\" 1}", "r.json:1:15: expected ':'; "),
            ("\u{feff}{a: 1}", "r.json:1:2: expected a name in double quotes; "),
            ("{\"a\": [1,,2]}", "r.json:1:10: expected a value; "),
            (
                "{\"a\": \"\\d\"}",
                "r.json:1:9: expected an escape such as \\n or \\\\; in a pattern, write each \\ as",
            ),
            ("{} {}", "r.json:1:4: expected the end of the request; "),
            ("{\"a\": 1", "r.json:1:7: expected '}'; end the object"),
            ("", "r.json:1:1: expected a value; complete the request"),
            ("[]", "r.json:1:1: expected a JSON object; "),
            ("{\"a\":1,\n\"a\":2}", "r.json:2:6: duplicate key 'a' in one object; remove one of the two"),
            ("{\n /* a\n}", "r.json:2:2: expected '*/' at the end of this comment; add it"),
            ("{\"a\": 1e999}", "r.json:1:11: expected a number such as 0.5 or 1e-3; "),
        ] {
            let message = error(text.as_bytes());
            assert!(message.starts_with(expected), "{text:?}: {message}");
        }
        assert!(error(b"\xff\xfe{\0}\0").contains("save the file as UTF-8"));
        assert!(error(b"{\"a\": \"\xff\"}").contains("save the file as UTF-8"));
        assert!(error(&vec![b' '; MAX_BODY_BYTES + 1]).contains("at most 1048576"));
    }
}
