//! Removes a terminal's escape sequences and control characters from the output of a program.

/// Ends a string sequence, such as a window's title.
const BELL: char = '\u{7}';
const ESCAPE: char = '\u{1b}';
/// The one-character form of `ESC \`.
const STRING_TERMINATOR: char = '\u{9c}';

/// Returns text without escape sequences and without control characters, except line feeds and tabs.
///
/// Removes control sequences (colors), strings (titles, links, device control) and short escapes, in the forms with ESC
/// and with one character. The text after a string without an end stays, so that no message is lost.
///
/// ```
/// let line = "\u{1b}]0;training\u{7}\u{1b}[31mValueError\u{1b}(B: x\r";
/// assert_eq!(local::training::plain_text(line), "ValueError: x");
/// ```
pub fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        rest = match letter {
            ESCAPE => after_escape(after),
            '\u{9b}' => after_control(after),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => after_string(after),
            letter => {
                if !letter.is_control() || matches!(letter, '\n' | '\t') {
                    plain.push(letter);
                }
                after
            }
        };
    }
    plain
}

/// Returns the text after the sequence that begins with ESC before `rest`.
fn after_escape(rest: &str) -> &str {
    match rest.strip_prefix('[') {
        Some(rest) => return after_control(rest),
        None if rest.starts_with([']', 'P', 'X', '^', '_']) => {
            return after_string(rest.get(1..).unwrap_or_default());
        }
        None => {}
    }
    let end = rest.trim_start_matches(|letter| (' '..='/').contains(&letter));
    end.strip_prefix(|letter| ('0'..='~').contains(&letter)).unwrap_or(end)
}

/// Returns the text after the parameters and the final character of a control sequence.
fn after_control(rest: &str) -> &str {
    let end = rest.trim_start_matches(|letter| (' '..='?').contains(&letter));
    end.strip_prefix(|letter| ('@'..='~').contains(&letter)).unwrap_or(end)
}

/// Returns the text after the end of a string sequence; all of `rest` if the string does not end on its line.
fn after_string(rest: &str) -> &str {
    let Some((at, end)) =
        rest.char_indices().find(|(_, letter)| matches!(*letter, BELL | ESCAPE | STRING_TERMINATOR | '\n'))
    else {
        return rest;
    };
    let after = rest.get(at.saturating_add(end.len_utf8())..).unwrap_or_default();
    match end {
        BELL | STRING_TERMINATOR => after,
        ESCAPE => after.strip_prefix('\\').unwrap_or(rest),
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_are_removed_and_text_stays() {
        for (text, expected) in [
            ("a\tb\nc", "a\tb\nc"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{9b}31mred\u{9b}m", "red"),
            ("\u{1b}]0;title\u{7}a", "a"),
            ("\u{1b}]8;;https://x.example/\u{1b}\\link\u{1b}]8;;\u{1b}\\ b", "link b"),
            ("\u{9d}0;title\u{9c}a", "a"),
            ("\u{1b}P1;2|17/ab\u{1b}\\a\u{1b}_x\u{1b}\\\u{1b}^y\u{1b}\\\u{1b}Xz\u{1b}\\b", "ab"),
            ("\u{1b}(Ba\u{1b}7b\u{1b}=c\u{1b}#8d\u{1b}ce", "abcde"),
            ("a\u{85}\u{8d}\u{7f}\u{0}\u{8}b", "ab"),
            ("\u{1b}", ""),
            ("\u{1b}[31", ""),
            ("\u{1b}[3é", "é"),
        ] {
            assert_eq!(plain_text(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_string_without_an_end_hides_no_message() {
        assert_eq!(plain_text("\u{1b}]0;ValueError: x"), "0;ValueError: x");
        assert_eq!(plain_text("\u{1b}]0;a\nValueError\u{7}"), "0;a\nValueError");
        assert_eq!(plain_text("\u{1b}]0;a\u{1b}[1mb"), "0;ab");
    }

    proptest! {
        #[test]
        fn no_control_character_but_line_feed_and_tab_survives(
            text in "([\u{1b}\u{7}\\[\\]\\\\PX0-9;ma\u{80}-\u{9f}\n\t\r]|\\PC){0,60}",
        ) {
            let plain = plain_text(&text);
            prop_assert!(!plain.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')));
            prop_assert_eq!(plain_text(&plain), plain.clone(), "plain text stays as it is");
        }

        #[test]
        fn text_without_control_characters_is_unchanged(text in "[^\\p{C}]{0,60}") {
            prop_assert_eq!(plain_text(&text), text);
        }
    }
}
