//! Shows a log line as a terminal does: without colors, and with each state of a line that was redrawn.
//!
//! Progress bars redraw a line: they move the cursor back by carriage returns, backspaces or escape sequences, and
//! write again. SageMaker's own containers log such characters in octal, as `#015`, `#010` and `#033`.

use std::borrow::Cow;
use std::str::Chars;

/// The end of a line that a local log shows before its line feed was printed. The line goes on in a later event, which
/// repeats its last state.
pub const UNFINISHED: &str = "\r…";

/// The characters that [`states`] acts on, as SageMaker's own containers log them.
const ESCAPED: [(&str, &str); 3] = [("#015", "\r"), ("#010", "\x08"), ("#033[", "\x1b[")];
/// Maximum number of characters of a state.
const CHARACTERS_MAX: usize = 64 * 1024;
/// Maximum number of states that [`visible`] looks at.
const STATES_MAX: u32 = 1_000;

/// Calls `show` for each state of a line, oldest first: whenever the cursor moves back after text was written, and at the
/// end. Returns whether the line goes on in a later event.
///
/// `show` returns whether further states may follow. Without them, only the last state is shown.
pub(super) fn states<'a>(line: &'a str, mut show: impl FnMut(Cow<'a, str>) -> bool) -> bool {
    let (line, goes_on) = line.strip_suffix(UNFINISHED).map_or((line, false), |line| (line, true));
    if !line.contains(['\r', '\x08', '\x1b']) && !line.contains("#0") {
        show(Cow::Borrowed(line));
        return goes_on;
    }
    let mut text = Cow::Borrowed(line);
    for (escaped, character) in ESCAPED {
        if text.contains(escaped) {
            text = Cow::Owned(text.replace(escaped, character));
        }
    }
    if !text.contains(['\r', '\x08', '\x1b']) {
        show(Cow::Borrowed(line));
        return goes_on;
    }
    let mut screen = Screen::default();
    let mut characters = text.chars();
    let mut wanted = true;
    while let Some(character) = characters.next() {
        let change = match character {
            '\r' => Change::Move(0),
            '\x08' => Change::Move(screen.cursor.saturating_sub(1)),
            '\x1b' => match screen.escape(&mut characters) {
                Some(change) => change,
                None => continue,
            },
            _ => {
                screen.write(character);
                continue;
            }
        };
        if wanted && screen.is_new {
            screen.is_new = false;
            wanted = show(Cow::Owned(screen.text()));
        }
        screen.apply(change);
    }
    if screen.is_new {
        show(Cow::Owned(screen.text()));
    }
    goes_on
}

/// Returns the last state of a line that is not blank.
///
/// ```
/// use wire::events::logs::visible;
/// assert_eq!(visible("\x1b[32m1/2 loss: 0.9\r2/2 loss: 0.5\x1b[0m"), "2/2 loss: 0.5");
/// ```
pub fn visible(line: &str) -> String {
    let mut last = String::new();
    let mut left = STATES_MAX;
    states(line, |state| {
        if !state.trim().is_empty() {
            last = state.into_owned();
        }
        left = left.saturating_sub(1);
        left > 0
    });
    last
}

/// A change of the screen that writes no text.
#[derive(Clone, Copy)]
enum Change {
    /// The cursor moves to a column.
    Move(usize),
    /// The text from the cursor on is erased.
    EraseAfter,
    /// The text before the cursor is erased.
    EraseBefore,
    EraseAll,
}

#[derive(Default)]
struct Screen {
    characters: Vec<char>,
    cursor: usize,
    /// Whether text was written since the last shown state.
    is_new: bool,
}

impl Screen {
    fn write(&mut self, character: char) {
        if self.cursor >= CHARACTERS_MAX {
            return;
        }
        match self.characters.get_mut(self.cursor) {
            Some(place) => *place = character,
            None => self.characters.push(character),
        }
        self.cursor += 1;
        self.is_new = true;
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Move(column) => self.cursor = column,
            Change::EraseAfter => self.characters.truncate(self.cursor),
            Change::EraseBefore => {
                self.characters.iter_mut().take(self.cursor).for_each(|place| *place = ' ');
            }
            // The cursor stays where it is.
            Change::EraseAll => {
                self.characters.truncate(self.cursor);
                self.characters.fill(' ');
            }
        }
    }

    /// Reads the rest of an escape sequence. Colors and all that other lines or windows show change nothing.
    fn escape(&self, characters: &mut Chars<'_>) -> Option<Change> {
        let rest = characters.as_str();
        let mut skip = |bytes: usize| *characters = rest.get(bytes..).unwrap_or_default().chars();
        let Some(sequence) = rest.strip_prefix('[') else {
            if rest.starts_with(']') {
                // A title or a link, up to BEL or ESC \.
                let end = rest.find(['\x07', '\x1b']).unwrap_or(rest.len());
                skip(end + if rest.get(end..).is_some_and(|end| end.starts_with('\x1b')) { 2 } else { 1 });
            } else {
                // `(` and `)` choose a character set by a further letter.
                let letters = if rest.starts_with(['(', ')']) { 2 } else { 1 };
                skip(rest.chars().take(letters).map(char::len_utf8).sum());
            }
            return None;
        };
        let end = sequence.find(|letter: char| ('@'..='~').contains(&letter)).unwrap_or(sequence.len());
        skip(end + 2);
        let (numbers, letter) = sequence.split_at(end);
        let number = numbers.split(';').next().and_then(|number| number.parse::<usize>().ok());
        match (letter.chars().next()?, number) {
            ('K', None | Some(0)) => Some(Change::EraseAfter),
            ('K', Some(1)) => Some(Change::EraseBefore),
            ('K', Some(_)) => Some(Change::EraseAll),
            ('G', column) => {
                Some(Change::Move(column.unwrap_or(1).saturating_sub(1).min(self.characters.len())))
            }
            ('D', columns) => Some(Change::Move(self.cursor.saturating_sub(columns.unwrap_or(1)))),
            _ => None,
        }
    }

    fn text(&self) -> String {
        self.characters.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Vec<String> {
        let mut all = Vec::new();
        states(line, |state| {
            all.push(state.trim_end().to_owned());
            true
        });
        all
    }

    #[test]
    fn a_plain_line_has_one_state_and_is_not_copied() {
        for line in ["", "loss=0.5", "3#011loss=0.5", "color #0a0a0a"] {
            let mut count = 0;
            states(line, |state| {
                count += 1;
                assert!(matches!(state, Cow::Borrowed(text) if text == line));
                true
            });
            assert_eq!(count, 1, "{line}");
        }
    }

    #[test]
    fn a_redrawn_line_shows_each_state() {
        for (line, expected) in [
            ("\r1/2 a\r2/2 b", vec!["1/2 a", "2/2 b"]),
            ("1/2 a#0152/2 b#015", vec!["1/2 a", "2/2 b"]),
            ("loss: 0.50\x08\x08\x08\x080.40", vec!["loss: 0.50", "loss: 0.40"]),
            ("loss: 0.50#010#010#010#0100.40", vec!["loss: 0.50", "loss: 0.40"]),
            ("a long text\rshort", vec!["a long text", "shortg text"]),
            ("a long text\r\x1b[Kshort", vec!["a long text", "short"]),
            ("a long text\x1b[2K\rshort", vec!["a long text", "short"]),
            ("12%\x1b[1G34%", vec!["12%", "34%"]),
            ("12%\x1b[3D34%", vec!["12%", "34%"]),
            ("text\r\r\r", vec!["text"]),
            ("100%|##| loss=0.1\r                 \r", vec!["100%|##| loss=0.1", ""]),
        ] {
            assert_eq!(shown(line), expected, "{line:?}");
        }
    }

    #[test]
    fn colors_titles_and_links_are_no_text() {
        for line in [
            "\x1b[32mloss\x1b[0m=\x1b[1;33m0.5\x1b[m",
            "#033[32mloss#033[0m=0.5",
            "\x1b]0;title\x07loss=0.5",
            "\x1b]8;;http://x\x1b\\loss=0.5",
            "\x1b(Bloss=0.5",
            "loss=0.5\x1b[",
        ] {
            assert_eq!(shown(line), ["loss=0.5"], "{line:?}");
        }
    }

    #[test]
    fn an_unfinished_line_goes_on() {
        let all = |_: Cow<'_, str>| true;
        assert!(states("1/2\r2/2\r…", all));
        assert!(!states("1/2\r2/2\r", all));
        assert_eq!(shown("1/2\r2/2\r…"), ["1/2", "2/2"]);
    }

    #[test]
    fn only_the_last_state_follows_when_no_further_is_wanted() {
        let mut all = Vec::new();
        states("1\r2\r3\r4", |state| {
            all.push(state.into_owned());
            all.len() < 2
        });
        assert_eq!(all, ["1", "2", "4"]);
    }
}
