//! Patterns that cut numbers, patterns that do not, and the suggested changes.

use std::path::{Path, PathBuf};

use regex::Regex;
use wire::algorithm::ALGORITHMS;
use wire::request::default_regex;

use super::*;

/// Returns the line of the warning and the captured text.
fn cut(regex: &str) -> Option<(String, String)> {
    probe::cut(regex).map(|cut| (cut.line, cut.captured))
}

#[test]
fn a_pattern_that_cuts_a_number_is_found() {
    for (regex, line, captured) in [
        ("loss=([0-9.]+)", "loss=1e-11", "1"),
        (r"loss=([0-9\.]+)", "loss=1e-11", "1"),
        (r"loss=(\d+)", "loss=1e-11", "1"),
        (r"loss=(\d+\.\d+)", "loss=1.234560e-05", "1.234560"),
        (r"loss=([0-9]\.[0-9]{4})", "loss=1.234560e-05", "1.2345"),
        ("loss=([0-9.e-]+)", "loss=2.5e+20", "2.5e"),
        (r"loss=-?([0-9.eE+-]*\d)", "loss=-0.5", "0.5"),
        ("loss.*([0-9.]+)", "loss=1e-11", "1"),
        (r"loss:?\s*(.+?)", "loss: 1e-11", "1"),
        (r"\[[0-9]+\].*#011validation-auc:([0-9.]+)", "[1]#011validation-auc:1e-11", "1"),
        (r"(?i)LOSS\s*[:=]\s*(?P<loss>[0-9.]+)", "L", "1"),
        ("loss=([0-9.]+)|acc=([0-9.]+)", "loss=1e-11", "1"),
        (r"loss=(\S+)|acc=([0-9.]+)", "acc=1e-11", "1"),
        (r"(?:acc=(?:[0-9.]+) )*loss=((?:[0-9]+)\.?[0-9]*)", "loss=1e-11", "1"),
    ] {
        let (found, part) = cut(regex).unwrap_or_else(|| panic!("{regex}"));
        assert!(found.starts_with(line) && part == captured, "{regex}: {found}, {part}");
    }
}

#[test]
fn a_pattern_that_reads_whole_numbers_causes_no_warning() {
    for regex in [
        &format!("loss={NUMBER_PATTERN}"),
        r"loss=(\S+)",
        "loss=(.*)",
        "loss: (.+)",
        "loss: (.*?), acc",
        "loss=(.*);",
        r"#011validation-auc:(\S+)",
        r"\[\d+\]\t(?:\S+\t)*validation-auc:(\S+)",
        "loss=([-+0-9.eE]+)",
        "loss=([-+.0-9a-zA-Z]+)",
        r"loss=([-+]?\d*\.?\d+(?:[eE][-+]?\d+)?)",
        r".*\[[0-9]+\].*#011validation-auc:([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?).*",
        r"loss=([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|nan|inf)",
        // These lose some numbers, but never read a wrong one.
        "accuracy=([0-9.]+)%",
        r"accuracy=([0-9.]+)\s",
        "^([0-9.]+)$",
        r"accuracy=(0\.[0-9]+)\b",
        // These have no number or no group.
        "(loss)=",
        "loss",
        "",
        "(",
    ] {
        assert_eq!(cut(regex), None, "{regex}");
    }
}

#[test]
fn the_built_in_patterns_read_whole_numbers() {
    for metric in ALGORITHMS.iter().flat_map(|algorithm| algorithm.metrics) {
        let regex = metric.pattern();
        assert_eq!(cut(&regex), None, "{regex}");
        for number in ["1e-11", "1.e-05", "-0.5", ".5", "+3", "12.", "nan", "-Infinity"] {
            assert!(probe::reads(&regex, number), "{number} by {regex}");
        }
    }
    for name in ["loss", "validation:auc", "top-1 (%)"] {
        assert_eq!(cut(&default_regex(name)), None, "{name}");
        assert!(probe::reads(&default_regex(name), "1e-11"), "{name}");
    }
}

#[test]
fn the_warning_names_the_metric_the_line_the_part_and_a_pattern_that_reads_it() {
    let Warning { code, message, advice } = sample("train:loss", "loss=([0-9.]+)").unwrap();
    assert_eq!(code.name(), "NumberCut");
    assert_eq!(
        message,
        "The Regex of metric 'train:loss' cuts numbers: in a line such as \"loss=1e-11\" it captures '1', so 1e-11 \
         would be read as 1."
    );
    assert_eq!(
        advice,
        r#"Use the Regex 'loss=([-+.\w]*\w)' (in JSON "loss=([-+.\\w]*\\w)"): it reads numbers with sign and exponent whole."#
    );
    let lost = sample("loss", "loss=([0-9.e-]+)").unwrap();
    assert!(lost.message.ends_with("it captures '2.5e', so the value would be lost."), "{lost:?}");
    for (regex, repaired) in [
        (r"a=(?:\d+) loss=([0-9.]+), b", Some(r"a=(?:\d+) loss=([-+.\w]*\w), b")),
        (r"loss=(\S+)|acc=([0-9.]+)", Some(r"loss=(\S+)|acc=([-+.\w]*\w)")),
        ("loss=(?P<loss>[0-9]+)", Some(r"loss=([-+.\w]*\w)")),
        // A change of the group alone does not help here.
        ("loss.*([0-9.]+)", None),
        ("loss=-?([0-9.]+)", None),
    ] {
        assert_eq!(probe::repaired(regex).as_deref(), repaired, "{regex}");
    }
    let general = sample("loss", "loss.*([0-9.]+)").unwrap();
    assert!(general.advice.starts_with(r"Capture the whole number with '([-+.\w]*\w)'"), "{general:?}");
}

#[test]
fn a_long_line_is_shown_around_the_number() {
    let line = format!("{}loss=1e-11 {}", "é".repeat(300), "x".repeat(300));
    let cut = Cut { line, captured: "1".to_owned(), whole: "1e-11".to_owned(), is_epoch: false };
    let warning = log_line("loss", "loss=([0-9.]+)", &cut);
    assert_eq!(warning.code.name(), "NumberCutInLog");
    assert!(warning.message.contains("éloss=1e-11 xxx"), "{warning:?}");
    assert!(warning.message.chars().count() < 300, "{warning:?}");
}

/// Returns the files of users below `path`: samples, scripts and documents.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    let kinds = ["json", "md", "py", "sh", "yaml"];
    if path.is_file() && path.extension().is_some_and(|kind| kinds.iter().any(|known| kind == *known)) {
        found.push(path.to_owned());
    }
    for entry in path.read_dir().into_iter().flatten() {
        let entry = entry.unwrap();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !hidden && !entry.file_type().unwrap().is_symlink() {
            files(&entry.path(), found);
        }
    }
}

#[test]
fn the_patterns_of_samples_and_documents_read_1e_11_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for place in ["README.md", "docs", "examples", "events", "infra"] {
        files(&root.join(place), &mut found);
    }
    let definition = Regex::new(r#""Regex": ("(?:[^"\\]|\\.)*")"#).unwrap();
    let digits = Regex::new(r"\(\[[^\]a-zA-Z]*0-9[^\]a-zA-Z]*\.[^\]a-zA-Z]*\][+*]\)").unwrap();
    let mut patterns = 0;
    for file in &found {
        let text = std::fs::read_to_string(file).unwrap();
        for given in definition.captures_iter(&text) {
            let regex: String = serde_json::from_str(&given[1]).unwrap();
            assert!(probe::reads(&regex, "1e-11"), "{}: {regex}", file.display());
            assert_eq!(cut(&regex), None, "{}: {regex}", file.display());
            patterns += 1;
        }
        let short = digits.find(&text).map(|found| found.as_str());
        assert_eq!(short, None, "{} teaches a pattern that cuts numbers", file.display());
    }
    assert!(patterns >= 20, "only {patterns} patterns were found");
    let json = json!(NUMBER_PATTERN).to_string();
    let json = json.trim_matches('"');
    for (file, pattern) in [
        ("README.md", json),
        ("docs/REQUEST.md", json),
        ("docs/REQUEST.md", NUMBER_PATTERN),
        ("examples/hello/request.json", json),
        ("examples/hello/promote.json", json),
        ("examples/first.json", json),
        ("examples/xgboost-allreduce/make_request.py", NUMBER_PATTERN),
        ("examples/dnn-parameter-server/make_request.py", NUMBER_PATTERN),
    ] {
        assert!(std::fs::read_to_string(root.join(file)).unwrap().contains(pattern), "{pattern} in {file}");
    }
    let documented = default_regex("name");
    assert!(
        std::fs::read_to_string(root.join("docs/REQUEST.md")).unwrap().contains(&documented),
        "{documented}"
    );
}
