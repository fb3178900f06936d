//! Tests of metric patterns on log lines.

use tuning::unit::time::Time;
use wire::events::logs::{Explanation, MetricPattern};
use wire::events::metric::MAX_LINE_BYTES;
use wire::request::NUMBER_PATTERN;

/// XGBoost's pattern in AMT's Describe response.
const DESCRIBED: &str = r".*\[[0-9]+\].*#011validation-auc:([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?).*";
/// XGBoost's pattern in its container.
const CONTAINER: &str = r".*\[[0-9]+\].*#011validation-auc:(\S+)";
/// A pattern that a user could write from the program's output.
const WITH_TAB: &str = r"\[\d+\]\t(?:\S+\t)*validation-auc:(\S+)";
const EPOCH: &str = r"^(?:\[\d\d:\d\d:\d\d\]\s)?\[(\d+)\](?:#011|\t)";

/// Returns epoch and value of a line.
fn metric(pattern: &str, epoch: Option<&str>, line: &str) -> Option<(Option<u64>, Option<f64>)> {
    let pattern = MetricPattern::new(pattern, epoch).expect("a pattern");
    let [found] = pattern.read(line).lines("7", Time(1)).try_into().ok()?;
    let found: tuning::log::fact::MetricLine = found;
    assert_eq!((found.id.as_str(), found.at), ("7", Time(1)));
    Some((found.index, found.value))
}

#[test]
fn all_forms_of_xgboosts_lines_are_matched() {
    for pattern in [DESCRIBED, CONTAINER, WITH_TAB] {
        for prefix in ["", "[00:30:01] "] {
            for tab in ["#011", "\t"] {
                for rest in ["", "TABvalidation-logloss:0.5"] {
                    let line = format!("{prefix}[36]TABtrain-auc:0.91429TABvalidation-auc:0.80998{rest}");
                    let line = line.replace("TAB", tab);
                    let found = metric(pattern, Some(EPOCH), &line);
                    assert_eq!(found, Some((Some(36), Some(0.80998))), "{pattern}: {line}");
                }
            }
        }
        assert_eq!(metric(pattern, None, "[36]#011train-auc:0.91429"), None);
    }
}

#[test]
fn a_non_finite_number_yields_a_line_without_a_value() {
    for number in ["nan", "NaN", "-nan", "inf", "+inf", "-Infinity", "1e999"] {
        let found = metric(CONTAINER, Some(EPOCH), &format!("[3]#011validation-auc:{number}"));
        assert_eq!(found, Some((Some(3), None)), "{number}");
    }
}

#[test]
fn all_forms_of_numbers_are_parsed() {
    for (text, value) in [
        ("1", 1.0),
        ("+1.5", 1.5),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("1e-3", 0.001),
        ("1E+03", 1000.0),
        (" 2 ", 2.0),
        ("-0", 0.0),
    ] {
        assert_eq!(metric("loss=(.*)", None, &format!("loss={text}")), Some((None, Some(value))), "{text}");
    }
    for text in ["", "x", "1,5", "0.5,", "0.5s", "0x10", "1_000", "--1", "1 2"] {
        assert_eq!(metric("loss=(.*)", None, &format!("loss={text}")), None, "{text}");
    }
}

#[test]
fn the_documented_pattern_reads_every_form_of_a_number() {
    let pattern = MetricPattern::new(&format!("loss={NUMBER_PATTERN}"), None).unwrap();
    for (text, captured, value) in [
        ("1e-11", "1e-11", Some(1e-11)),
        ("2.5E+7 acc=1", "2.5E+7", Some(2.5e7)),
        ("-0.5,", "-0.5", Some(-0.5)),
        ("+3)", "+3", Some(3.0)),
        (".5", ".5", Some(0.5)),
        ("5.", "5", Some(5.0)),
        ("0.93. Done", "0.93", Some(0.93)),
        ("1.e-05", "1.e-05", Some(1e-5)),
        ("95%", "95", Some(95.0)),
        ("0.5#011acc=1", "0.5", Some(0.5)),
        ("nan", "nan", None),
        ("NaN", "NaN", None),
        ("inf", "inf", None),
        ("-Infinity", "-Infinity", None),
    ] {
        let (captured, line) = (captured.to_owned(), format!("loss={text}"));
        let found = pattern.read(&line);
        assert_eq!(
            (found.shown, found.cut),
            (vec![Explanation::Value { captured, value, index: None }], None),
            "{line}"
        );
    }
    for text in ["0.5s", "1_000", "high", "0x10", "1.2.3"] {
        let found = pattern.explain(&format!("loss={text}"));
        assert!(matches!(found, Explanation::NotANumber { .. }), "{text}: {found:?}");
    }
}

#[test]
fn a_line_whose_number_is_cut_is_reported() {
    let cut = |pattern: &str, line: &str| {
        let cut = MetricPattern::new(pattern, None).unwrap().read(line).cut;
        cut.map(|cut| (cut.captured, cut.whole))
    };
    let part = |captured: &str, whole: &str| Some((captured.to_owned(), whole.to_owned()));
    assert_eq!(cut("loss=([0-9.]+)", "loss=1e-11"), part("1", "1e-11"));
    assert_eq!(cut("loss=( *[0-9]+)", "loss=  3.14"), part("3", "3.14"));
    assert_eq!(cut("loss=([0-9.e]+)", "loss=1e-11"), part("1e", "1e-11"));
    assert_eq!(cut("#011loss:([0-9.]+)", "[1]\tloss:1e-11"), part("1", "1e-11"));
    assert_eq!(cut("loss=([0-9.]+)", "loss=0.5"), None);
    assert_eq!(cut("loss=([0-9.]+)", "acc=1e-11"), None);
    assert_eq!(cut(r"#011loss:(\S+)", "[1]#011loss:0.5#0111e-11"), None);
}

#[test]
fn the_first_participating_group_has_the_value() {
    let pattern = r"(?:loss=(\d+)|acc=(\d+))";
    assert_eq!(metric(pattern, None, "acc=7"), Some((None, Some(7.0))));
    assert_eq!(metric(r"loss=\d+", None, "loss=7"), None);
    assert_eq!(metric(r"loss=(\d+)?", None, "loss="), None);
}

#[test]
fn an_epoch_outside_the_range_is_ignored() {
    let epoch = |text: &str| {
        metric(r"loss=(\S+)", Some(r"epoch=(\S+) "), &format!("epoch={text} loss=1")).expect("a line").0
    };
    assert_eq!(epoch("18446744073709551615"), Some(u64::MAX));
    for text in ["18446744073709551616", "-1", "1.5", "x"] {
        assert_eq!(epoch(text), None, "{text}");
    }
    assert_eq!(metric("loss=(.+)", Some("epoch=(.+) "), "loss=1"), Some((None, Some(1.0))));
}

#[test]
fn a_line_above_the_maximum_length_is_skipped() {
    let padding = " ".repeat(MAX_LINE_BYTES);
    assert_eq!(metric(r"loss=(\S+)", None, &format!("{padding}loss=1")), None);
    let fits = format!("{}loss=1", &padding[6..]);
    assert_eq!(metric(r"loss=(\S+)", None, &fits), Some((None, Some(1.0))));
}

/// The product of pattern size and line length bounds the time. This pattern took 30 seconds for the longest line.
#[test]
fn a_large_pattern_has_a_smaller_maximum_line_length() {
    let limit = |metric: &str, epoch| MetricPattern::new(metric, epoch).unwrap().max_line_bytes();
    let large = "((?:a|b|ab){1,3000}c)";
    assert_eq!(limit(r".*\[[0-9]+\].*#011validation-auc:(\S+)", Some(r"\[(\d+)\]")), MAX_LINE_BYTES);
    assert_eq!(limit(large, None), 2_048);
    assert_eq!(limit(r"loss=(\S+)", Some(large)), 2_048);
    let pattern = MetricPattern::new(large, None).unwrap();
    assert_eq!(pattern.explain("ab"), Explanation::NoMatch);
    assert_eq!(pattern.explain(&"ab".repeat(1_025)), Explanation::TooLong);
}

#[test]
fn unsupported_patterns_are_rejected() {
    for pattern in [r"(?<=loss=)([-+.\w]*\w)", r"(a)\1", "(a", r"((\w{50}){50}){50}"] {
        assert!(MetricPattern::new(pattern, None).is_err(), "{pattern}");
        assert!(MetricPattern::new("(a)", Some(pattern)).is_err(), "{pattern}");
    }
}

#[test]
fn each_outcome_of_a_pattern_is_explained() {
    let pattern = MetricPattern::new(r"loss=(\S+)", Some(r"epoch=(\d+)")).unwrap();
    assert_eq!(pattern.explain("hello"), Explanation::NoMatch);
    assert_eq!(pattern.explain("loss=high"), Explanation::NotANumber { captured: "high".to_owned() });
    let captured = "0.50".to_owned();
    assert_eq!(
        pattern.explain("epoch=3 loss=0.50"),
        Explanation::Value { captured, value: Some(0.5), index: Some(3) }
    );
    assert_eq!(pattern.explain(&"x".repeat(MAX_LINE_BYTES + 1)), Explanation::TooLong);
}

/// Returns epoch and value of each line that the log line yields.
fn metrics(pattern: &MetricPattern, line: &str) -> Vec<(Option<u64>, Option<f64>)> {
    let lines = pattern.read(line).lines("7", Time(1));
    let ids: std::collections::BTreeSet<&str> = lines.iter().map(|line| line.id.as_str()).collect();
    assert_eq!(ids.len(), lines.len());
    lines.iter().map(|line| (line.index, line.value)).collect()
}

#[test]
fn a_redrawn_line_counts_as_a_terminal_shows_it() {
    let pattern = MetricPattern::new(&format!("loss: {NUMBER_PATTERN}"), None).unwrap();
    for line in [
        " 1/3 [>..] - loss: 0.9\r 2/3 [=>.] - loss: 0.7\r 3/3 [===] - loss: 0.5",
        " 1/3 [>..] - loss: 0.9#015 2/3 [=>.] - loss: 0.7#015 3/3 [===] - loss: 0.5",
        " 1/3 - loss: 0.9\x08\x08\x080.7\x08\x08\x080.5",
        // A bar that is cleared at its end.
        " 3/3 - loss: 0.5\r                \r",
        "1/3 - loss: 0.9 2/3 - loss: 0.7 3/3 - loss: 0.5",
        "\x1b[1mloss\x1b[0m: \x1b[33m0.5\x1b[0m",
    ] {
        assert_eq!(metrics(&pattern, line), [(None, Some(0.5))], "{line:?}");
    }
    assert_eq!(metrics(&pattern, "1/3 - loss: 0.9\r…"), [], "the line goes on");
    for line in ["loss: 0.5 - val_loss: 0.7", "val_loss: 0.7 - loss: 0.5", "val_loss: 0.4 test_loss: 0.5"] {
        assert_eq!(metrics(&pattern, line), [(None, Some(0.5))], "{line:?}");
    }
    assert!(!pattern.read("val_loss: 0.7 - loss: 0.5 - val_loss: 0.4").has_several);
    let shown = pattern.read("loss: 0.9\rloss: 0.7 end");
    assert_eq!((shown.redrawn.as_deref(), shown.has_several), (Some("loss: 0.7 end"), false));
    let shown = pattern.read("loss: 0.9 loss: 0.7");
    assert_eq!((shown.redrawn, shown.has_several), (None, true));
    assert!(!pattern.read("loss: 0.9 loss: 0.9").has_several);
}

#[test]
fn with_an_epoch_pattern_a_redrawn_line_has_a_value_for_each_epoch() {
    let pattern = MetricPattern::new(&format!("loss: {NUMBER_PATTERN}"), Some(r"Epoch (\d+)")).unwrap();
    let epochs = "Epoch 1: loss: 0.9\rEpoch 1: loss: 0.8\rEpoch 2: loss: 0.7\rEpoch 2: loss: 0.6";
    assert_eq!(metrics(&pattern, epochs), [(Some(1), Some(0.8)), (Some(2), Some(0.6))]);
    // The bar of an epoch ends with the next epoch, or with its line.
    let open = format!("{epochs}\r…");
    assert_eq!(metrics(&pattern, &open), [(Some(1), Some(0.8))]);
    // An epoch in one state of a line holds for the next ones.
    assert_eq!(metrics(&pattern, "Epoch 3\r1/2 loss: 0.7\r2/2 loss: 0.6"), [(Some(3), Some(0.6))]);
    // A plain line has the epoch that is nearest before its value.
    for (line, epoch) in [
        ("Epoch 3 loss: 0.5 (best: Epoch 1)", 3),
        ("Epoch 1 loss: 0.7 Epoch 2 loss: 0.5", 2),
        ("loss: 0.5 in Epoch 4 of Epoch 9", 4),
    ] {
        assert_eq!(metrics(&pattern, line), [(Some(epoch), Some(0.5))], "{line}");
    }
    assert_eq!(pattern.read("Epoch 3/20").epoch, Some(3));
    assert_eq!(pattern.read("Epoch 3 loss: 0.5").epoch, None, "the value has it");
}

#[test]
fn a_long_redrawn_line_is_read_in_bounded_time() {
    let pattern = MetricPattern::new(&format!("loss: {NUMBER_PATTERN}"), None).unwrap();
    let text = "x".repeat(pattern.max_line_bytes() / 2);
    let line = format!("{text}{}loss: 0.5", "\x08y".repeat(100_000));
    assert_eq!(metrics(&pattern, &line), [(None, Some(0.5))]);
    let line = "loss: 0.1 ".repeat(20_000);
    assert_eq!(pattern.explain(&line), Explanation::TooLong);
}

#[test]
fn an_epoch_that_is_cut_is_reported() {
    let cut = |epoch: &str, line: &str| {
        let pattern = MetricPattern::new(&format!("loss'?: {NUMBER_PATTERN}"), Some(epoch)).unwrap();
        pattern.read(line).cut.map(|cut| (cut.captured, cut.whole, cut.is_epoch))
    };
    let found = |captured: &str, whole: &str| Some((captured.to_owned(), whole.to_owned(), true));
    assert_eq!(cut(r"'epoch': (\d+)", "{'loss': 0.5, 'epoch': 0.99}"), found("0", "0.99"));
    assert_eq!(cut(r"'epoch': (\d+)", "{'loss': 0.5, 'epoch': 2.0}"), None);
    assert_eq!(cut(r"step (\d+)", "step 15K(15127) loss: 0.5"), found("15", "15K"));
}
