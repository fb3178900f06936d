//! A history as text keeps every parameter, and omits default values.

use simulator::Run;
use simulator::case::{Case, Choices};
use simulator::encode::{parse, text};
use simulator::fault::Kind;
use simulator::plan::{CrashOnce, Order, Plan};

#[test]
fn a_text_gives_the_same_run() {
    for seed in 0..500 {
        let run = Run::drawn(seed);
        assert_eq!(parse(&text(&run)), Ok(run), "seed {seed}");
    }
}

#[test]
fn a_text_gives_the_same_history_byte_for_byte() {
    for seed in [0, 5] {
        let run = Run { trace: true, ..Run::drawn(seed) };
        let again = Run { trace: true, ..parse(&text(&run)).expect("the text of a run") };
        assert!(run.history() == again.history(), "seed {seed}");
    }
}

/// Every field of the plan and of the tuning has an unusual value.
#[test]
fn every_field_survives_the_text() {
    let plan = Plan {
        safety_ms: 1,
        shards: 9,
        order: Order::Reversed(7),
        stream_outage: Some((1, 2)),
        crash_once: CrashOnce::Outside,
        stream_tries_max: 3,
        skew_ms_max: 4,
        whole_seconds: false,
        runtime_per_attempt: true,
        epoch_ms: 5,
        ..Plan::calm()
    };
    let plan = Kind::ALL.iter().fold(plan, |plan, kind| plan.with(*kind, 0.1 + 0.2));
    let choices = Choices { hyperband: None, extra: vec![("target", 0.3.into())], ..Choices::plain() };
    let mut case = Case { stop_at: Some(8), cap: Some(12), base: 3, ..Case::of("sim0", &choices) };
    case.request["Controller"]["Sampler"] = "Random".into();
    let run = Run { seed: u64::MAX, plan, cases: vec![case], trace: false };
    let text = text(&run);
    assert_eq!(parse(&text), Ok(run), "{text}");
}

#[test]
fn default_values_are_left_out() {
    let run =
        Run { seed: 7, plan: Plan::calm(), cases: vec![Case::of("sim0", &Choices::plain())], trace: false };
    assert_eq!(text(&run), r#"{"cases":[{"name":"sim0"}],"plan":{},"seed":7}"#);
}
