//! Finds a number in a log line that a pattern captured only in part.
//!
//! A pattern such as `([0-9.]+)` captures `1` of `1e-11`: the line has a value, but the wrong one.

use std::ops::Range;

use super::ESCAPED_TAB;
use crate::request::shortened;

/// A number in a log line of which a pattern captured only a part. A comma or a factor may continue it, as in `0,523` and
/// `15K`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The line.
    pub line: String,
    /// The captured part, for example `1`.
    pub captured: String,
    /// The number in the line, for example `1e-11`.
    pub whole: String,
    /// Whether it is the number of an epoch.
    pub is_epoch: bool,
}

impl Cut {
    /// Returns at most 120 characters of the line, with the number and some text before it.
    pub fn excerpt(&self) -> String {
        const BEFORE: usize = 60;
        let line = self.line.trim();
        let found = line.find(&self.whole).unwrap_or_default();
        let before = line.get(..found).map_or(0, |before| before.chars().count());
        let rest: String = line.chars().skip(before.saturating_sub(BEFORE)).collect();
        if before > BEFORE { format!("…{}", shortened(&rest)) } else { shortened(line) }
    }

    /// Returns the cut, if the text at `captured` is a part of a number with another value.
    pub(super) fn find(line: &str, captured: Range<usize>, is_epoch: bool) -> Option<Self> {
        let part = line.get(captured.clone())?;
        if !part.contains(|letter: char| letter.is_ascii_digit()) {
            return None;
        }
        let range = number_around(line, &captured)?;
        let whole = line.get(continued(line, &range))?;
        (finite(whole) != finite(part)).then(|| Self {
            line: line.to_owned(),
            captured: part.to_owned(),
            whole: whole.to_owned(),
            is_epoch,
        })
    }
}

/// Returns the range of the number with the comma or the factor that continues it: of `0,523`, `12,345.6` and `15K`. Items
/// of a list are no such numbers.
fn continued(line: &str, number: &Range<usize>) -> Range<usize> {
    let text = line.as_bytes();
    let digits = |from: usize| text.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let is_plain = line.get(number.clone()).is_some_and(|number| !number.contains(['.', 'e', 'E']));
    let in_list = number.start.checked_sub(1).and_then(|at| text.get(at)) == Some(&b',');
    let mut end = number.end;
    let mut groups = Vec::new();
    while text.get(end) == Some(&b',') && digits(end + 1) > 0 {
        groups.push(digits(end + 1));
        end += 1 + digits(end + 1);
    }
    let is_fraction = groups.len() == 1;
    let is_thousands = !groups.is_empty() && groups.iter().all(|digits| *digits == 3);
    if is_plain && !in_list && (is_fraction || is_thousands) {
        let rest = if text.get(end) == Some(&b'.') { 1 + digits(end + 1) } else { exponent(text, end) };
        return number.start..end + if rest > 1 { rest } else { 0 };
    }
    let is_factor = matches!(text.get(number.end), Some(b'k' | b'K' | b'M' | b'G'));
    let ends = text.get(number.end + 1).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    number.start..number.end + usize::from(is_factor && ends)
}

/// Returns the number, unless it is NaN or infinite.
fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns the range of the number that contains all of `captured`.
fn number_around(line: &str, captured: &Range<usize>) -> Option<Range<usize>> {
    let text = line.as_bytes();
    // The digits of an escaped tab belong to no number.
    let first = line.get(..captured.start)?.rfind(ESCAPED_TAB).map_or(0, |tab| tab + ESCAPED_TAB.len());
    let before = text.get(first..captured.start)?;
    let mut at = captured.start - before.iter().rev().take_while(|byte| is_part(**byte)).count();
    while at <= captured.start {
        match number_end(text, at) {
            Some(end) if end > captured.start => return (end >= captured.end).then_some(at..end),
            Some(end) => at = end,
            None => at += 1,
        }
    }
    None
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(&byte)
}

/// Returns the end of the number that begins at `start`. A final dot ends a sentence and is not part of the number.
fn number_end(text: &[u8], start: usize) -> Option<usize> {
    let digits = |from: usize| from + text.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let sign = |at: usize| usize::from(matches!(text.get(at), Some(b'+' | b'-')));
    if sign(start) == 1 && !can_precede_sign(start.checked_sub(1).and_then(|at| text.get(at))) {
        return None;
    }
    let whole = start + sign(start);
    let mut end = digits(whole);
    if text.get(end) == Some(&b'.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    if end == whole {
        return None;
    }
    Some(end + exponent(text, end))
}

/// Returns the length of the exponent that begins at `start`; 0 if there is none.
fn exponent(text: &[u8], start: usize) -> usize {
    if !matches!(text.get(start), Some(b'e' | b'E')) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(start + 1), Some(b'+' | b'-')));
    let digits = text.iter().skip(start + 1 + sign).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { 0 } else { 1 + sign + digits }
}

/// Returns whether a `+` or `-` after `byte` is the sign of a number, not a hyphen or an operator.
fn can_precede_sign(byte: Option<&u8>) -> bool {
    byte.is_none_or(|byte| byte.is_ascii_whitespace() || b"=:([{<,;|'\"".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number that the text between `<` and `>` is cut from.
    fn whole(marked: &str) -> Option<String> {
        let (start, end) = (marked.find('<').unwrap(), marked.find('>').unwrap() - 1);
        Cut::find(&marked.replace(['<', '>'], ""), start..end, false).map(|cut| cut.whole)
    }

    #[test]
    fn a_part_of_a_number_is_a_cut() {
        for (marked, number) in [
            ("loss=<1>e-11", "1e-11"),
            ("loss=<1.5>E+3 acc=1", "1.5E+3"),
            ("loss=<1e>-11", "1e-11"),
            ("loss=<3>.14", "3.14"),
            ("loss=<12>3", "123"),
            ("loss=0.12<3>", "0.123"),
            ("loss=0.<25>", "0.25"),
            ("loss=.<5>", ".5"),
            ("loss=1e-<11>%", "1e-11"),
            ("loss=-<0.5>", "-0.5"),
            ("loss: -<.5>,", "-.5"),
            ("-<1>", "-1"),
            ("#011loss:<1>e-11#011acc:1", "1e-11"),
            ("loss=<1>e999", "1e999"),
            ("loss=<0>,523", "0,523"),
            ("loss=-<12>,345.6 acc=1", "-12,345.6"),
            ("loss=<1>,234,567", "1,234,567"),
            ("loss=<1>,2e-05", "1,2e-05"),
            ("step <15>K(15127)", "15K"),
            ("'epoch': <0>.99", "0.99"),
        ] {
            assert_eq!(whole(marked).as_deref(), Some(number), "{marked}");
        }
    }

    #[test]
    fn a_whole_number_is_not_a_cut() {
        for marked in [
            "loss=<1e-11>",
            "loss=<0.5>.",
            "loss=<0.5>...",
            "loss=<5.>",
            "loss=<0.5>0",
            "loss=+<3>",
            "loss=<12>ms",
            "loss=<95>%",
            "loss=<3>e",
            "loss=<3>epochs",
            "top5=<0.5>",
            "auc-<0.5>",
            "0.5-<0.7>",
            "2026-<01>-02",
            "<12>:30",
            "0.5,<1>,5",
            "loss=<0.5>,0.25",
            "loss=<1>,2,3",
            "loss=<1>,",
            "<12>Mbit",
            "'epoch': <2>.0",
            "#011<0.5>#011",
            "loss=<nan>",
            "-<inf>inity",
            "loss=<0.5s>",
            "1.2<.3.4>",
            "loss<>=0.5",
            "<ä>1e-11",
        ] {
            assert_eq!(whole(marked), None, "{marked}");
        }
    }
}
