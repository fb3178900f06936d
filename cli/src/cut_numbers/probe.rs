//! Tries a metric pattern on sample lines with numbers of many forms.
//!
//! The sample lines come from the parsed pattern: the shortest text before and after its group. A line that the pattern
//! does not match is no evidence, so a strict pattern causes no warning.

use regex_syntax::ast::{self, Ast, Visitor};
use regex_syntax::hir::{Class, ClassUnicodeRange, Hir, HirKind};
use wire::events::logs::{Cut, Explanation, MetricPattern};
use wire::request::NUMBER_PATTERN;

/// Numbers as training programs print them. The first ones show a cut best.
const NUMBERS: &[&str] = &["1e-11", "1.234560e-05", "-0.5", "0.25", "12.5", "123", "2.5e+20"];
/// Text between a name and a number, for a pattern that allows any, such as `loss.*([0-9.]+)`.
const SEPARATORS: &[&str] = &["=", ": ", " "];
/// Characters that stand for a class in sample lines, if the class has them.
const TYPICAL: &[char] = &['=', ' ', ':', 'x', '1'];
/// Maximum number of sample lines, for a pattern with many alternatives.
const SAMPLES_MAX: usize = 16;

/// The text around the number in a line that a pattern matches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sample {
    before: String,
    after: String,
    /// Number of the group that captures the number; `None` = this part of the pattern has no group.
    group: Option<u32>,
}

/// Returns the first cut of a sample number.
pub(super) fn cut(regex: &str) -> Option<Cut> {
    found(regex).map(|(cut, _)| cut)
}

/// Returns the pattern with [`NUMBER_PATTERN`] in place of the group that cuts a number, if this pattern reads the
/// sample numbers.
pub(super) fn repaired(regex: &str) -> Option<String> {
    let parsed = ast::parse::Parser::new().parse(regex).ok()?;
    let groups = ast::visit(&parsed, Groups::default()).ok()?;
    // A cut in a log need not be the cut of a sample. Then the group is the first one.
    let group = found(regex).map_or(Some(1), |(_, group)| group)?;
    let &(_, start, end) = groups.iter().find(|(number, ..)| *number == group)?;
    let repaired = format!("{}{NUMBER_PATTERN}{}", regex.get(..start)?, regex.get(end..)?);
    (repaired != regex && cut(&repaired).is_none() && reads(&repaired, "1e-11")).then_some(repaired)
}

/// Returns whether the pattern reads `number` whole in each of its sample lines.
pub(super) fn reads(regex: &str, number: &str) -> bool {
    let Some((pattern, samples)) = parsed(regex) else { return false };
    !samples.is_empty()
        && samples.iter().all(|sample| {
            lines(sample, number).iter().any(|line| match pattern.explain(line) {
                Explanation::Value { captured, .. } => captured == number,
                Explanation::TooLong | Explanation::NoMatch | Explanation::NotANumber { .. } => false,
            })
        })
}

/// Returns the first cut of a sample number, and the number of the group.
fn found(regex: &str) -> Option<(Cut, Option<u32>)> {
    let (pattern, samples) = parsed(regex)?;
    let tried = NUMBERS.iter().flat_map(|number| samples.iter().map(move |sample| (number, sample)));
    tried.into_iter().find_map(|(number, sample)| {
        let cut = lines(sample, number).iter().find_map(|line| pattern.read(line).cut)?;
        Some((cut, sample.group))
    })
}

fn parsed(regex: &str) -> Option<(MetricPattern, Vec<Sample>)> {
    let pattern = MetricPattern::new(regex, None).ok()?;
    let hir = regex_syntax::parse(regex).ok()?;
    let samples = samples(&hir).into_iter().filter(|sample| sample.group.is_some()).collect();
    Some((pattern, samples))
}

/// Returns the sample's lines with `number`, the most likely first.
fn lines(sample: &Sample, number: &str) -> Vec<String> {
    let Sample { before, after, .. } = sample;
    let after_word = before.ends_with(|letter: char| letter.is_alphanumeric());
    let separators = SEPARATORS.iter().filter(|_| after_word).chain([&""]);
    separators.map(|separator| format!("{before}{separator}{number}{after}")).collect()
}

fn samples(hir: &Hir) -> Vec<Sample> {
    match hir.kind() {
        HirKind::Capture(capture) => vec![Sample { group: Some(capture.index), ..Sample::default() }],
        HirKind::Alternation(alternatives) => {
            alternatives.iter().flat_map(samples).take(SAMPLES_MAX).collect()
        }
        HirKind::Concat(parts) => parts.iter().fold(vec![Sample::default()], joined),
        HirKind::Repetition(repetition) if has_group(hir) => samples(&repetition.sub),
        HirKind::Repetition(_)
        | HirKind::Empty
        | HirKind::Literal(_)
        | HirKind::Class(_)
        | HirKind::Look(_) => vec![Sample { before: text(hir), ..Sample::default() }],
    }
}

/// Appends `part` to each sample. Only the first group of a line captures the number.
fn joined(samples: Vec<Sample>, part: &Hir) -> Vec<Sample> {
    let (rest, parts) = (text(part), self::samples(part));
    let appended = samples.into_iter().flat_map(|sample| {
        if sample.group.is_some() {
            return vec![Sample { after: sample.after + &rest, ..sample }];
        }
        let with =
            |part: &Sample| Sample { before: format!("{}{}", sample.before, part.before), ..part.clone() };
        parts.iter().map(with).collect()
    });
    appended.take(SAMPLES_MAX).collect()
}

fn has_group(hir: &Hir) -> bool {
    hir.properties().explicit_captures_len() > 0
}

/// Returns a short text that the part of a pattern matches.
fn text(hir: &Hir) -> String {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => String::new(),
        HirKind::Literal(literal) => String::from_utf8_lossy(&literal.0).into_owned(),
        HirKind::Class(class) => typical(class).map(String::from).unwrap_or_default(),
        HirKind::Repetition(repetition) => {
            text(&repetition.sub).repeat(usize::try_from(repetition.min).unwrap_or_default())
        }
        HirKind::Capture(capture) => text(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(text).collect(),
        HirKind::Alternation(alternatives) => alternatives.first().map(text).unwrap_or_default(),
    }
}

/// Returns a typical character of the class, else its first.
fn typical(class: &Class) -> Option<char> {
    match class {
        Class::Unicode(class) => {
            let has =
                |letter: &char| class.iter().any(|range| (range.start()..=range.end()).contains(letter));
            TYPICAL.iter().copied().find(has).or_else(|| class.iter().next().map(ClassUnicodeRange::start))
        }
        Class::Bytes(class) => {
            let has = |letter: &char| {
                class
                    .iter()
                    .any(|range| (range.start()..=range.end()).any(|byte| char::from(byte) == *letter))
            };
            TYPICAL
                .iter()
                .copied()
                .find(has)
                .or_else(|| class.iter().next().map(|range| range.start().into()))
        }
    }
}

/// The groups of a pattern: number, start and end.
#[derive(Debug, Default)]
struct Groups(Vec<(u32, usize, usize)>);

impl Visitor for Groups {
    type Output = Vec<(u32, usize, usize)>;
    type Err = ();

    fn finish(self) -> Result<Self::Output, Self::Err> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        if let Ast::Group(group) = ast
            && let Some(number) = group.capture_index()
        {
            self.0.push((number, group.span.start.offset, group.span.end.offset));
        }
        Ok(())
    }
}
