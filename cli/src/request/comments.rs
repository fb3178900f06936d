//! Removes comments, trailing commas and a byte order mark from a request's file.
//!
//! Spaces replace comments and commas, so that the line and the byte of all other text stay the same.

/// UTF-8's byte order mark. Some editors begin a file with it.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Replaces the byte order mark, `//` and `/* */` comments, and trailing commas by spaces. Returns the offset of a
/// comment without an end.
pub(super) fn blank(text: &mut [u8]) -> Result<(), usize> {
    if text.starts_with(MARK) {
        fill(text, 0, MARK.len());
    }
    // The comma that would be a trailing one if the object or array ends.
    let mut comma = None;
    // Whether a value is complete, so that a comma can follow it.
    let mut after_value = false;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let next = text.get(at + 1);
        match byte {
            b'/' if next == Some(&b'/') => {
                let end = find(text, at, b"\n").unwrap_or(text.len());
                fill(text, at, end);
                at = end;
                continue;
            }
            b'/' if next == Some(&b'*') => {
                let end = find(text, at + 2, b"*/").ok_or(at)? + 2;
                fill(text, at, end);
                at = end;
                continue;
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b',' => {
                comma = after_value.then_some(at);
                after_value = false;
            }
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    fill(text, comma, comma + 1);
                }
                after_value = true;
            }
            b'{' | b'[' | b':' => (comma, after_value) = (None, false),
            b'"' => {
                at = end_of_string(text, at);
                (comma, after_value) = (None, true);
            }
            _ => (comma, after_value) = (None, true),
        }
        at += 1;
    }
    Ok(())
}

/// Returns the offset of the closing quote of the string at `start`, or of the last byte.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut escaped = false;
    for (offset, byte) in text.iter().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return offset,
            _ => {}
        }
    }
    text.len()
}

fn find(text: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.windows(wanted.len()).position(|part| part == wanted).map(|offset| from + offset)
}

/// Replaces the bytes from `start` to `end` by spaces, except line ends.
fn fill(text: &mut [u8], start: usize, end: usize) {
    for byte in text.get_mut(start..end).into_iter().flatten() {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blanked(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        assert_eq!(blank(&mut bytes), Ok(()), "{text}");
        assert_eq!(bytes.len(), text.len(), "{text}");
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn comments_become_spaces_of_the_same_length() {
        assert_eq!(blanked("{} // a\n"), "{}     \n");
        assert_eq!(blanked("{/* a\n b */}"), "{    \n     }");
        assert_eq!(blanked("{\"a\": 1 /**/ // \u{e9}"), format!("{{\"a\": 1 {}", " ".repeat(10)));
        assert_eq!(blanked("\u{feff}{}"), "   {}");
        assert_eq!(blanked("// a /* b\n{} /* // */"), "         \n{}         ");
    }

    #[test]
    fn strings_keep_their_content() {
        for text in [
            r#"{"a": "s3://b/c"}"#,
            r#"{"a": "/* b */ \" // c"}"#,
            r#"{"a\\": "//"}"#,
            r#"{"a": ",}"}"#,
            "\"//",
        ] {
            assert_eq!(blanked(text), text);
        }
    }

    #[test]
    fn only_a_comma_between_a_value_and_an_end_is_a_trailing_one() {
        assert_eq!(blanked("[1,]"), "[1 ]");
        assert_eq!(blanked("{\"a\": [{},{},],\n// b\n}"), "{\"a\": [{},{} ] \n    \n}");
        for text in ["[,]", "{,}", "[1,,]", "[1,2]", "{\"a\":,}"] {
            assert_eq!(blanked(text), text);
        }
    }

    #[test]
    fn a_comment_without_an_end_has_its_place() {
        assert_eq!(blank(&mut b"{} /* a *".to_vec()), Err(3));
        assert_eq!(blank(&mut b"/*/".to_vec()), Err(0));
    }
}
