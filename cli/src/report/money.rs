//! Charts of costs: a bar of the spent and reserved amounts and the cap, and costs over time.

use std::fmt::Write;

use super::chart::{Frame, number};
use super::facts::{Facts, Money};
use crate::text::usd;
use tuning::money::MicroUsd;

/// Maximum points of the chart.
const POINTS_MAX: usize = 600;

/// Returns the bar of the spent and reserved amounts. `None` without a cap.
pub(super) fn bar(facts: &Facts) -> Option<String> {
    let ledger = &facts.loaded.state.ledger;
    let cap = ledger.cap.filter(|cap| cap.0 > 0)?;
    let percent = |amount: MicroUsd| dollars(amount.0) / dollars(cap.0) * 100.0;
    let (spent, reserved) = (percent(ledger.spent), percent(ledger.reserved));
    let label = format!("{} spent and {} reserved of {}", usd(ledger.spent), usd(ledger.reserved), usd(cap));
    Some(format!(
        "<div class=\"bar\" role=\"img\" aria-label=\"{label}\" title=\"{label}\"><i class=\"spent\" \
         style=\"width:{spent:.2}%\"></i><i class=\"reserved\" style=\"width:{reserved:.2}%\"></i></div><p \
         class=\"note\">{label} ({spent:.1} % spent)</p>"
    ))
}

/// Returns the chart of costs over time. `None` if nothing was ever reserved.
pub(super) fn chart(facts: &Facts) -> Option<String> {
    let money = thinned(&facts.money);
    let first = money.first()?.at;
    let highest = money.iter().map(|m| m.spent.saturating_add(m.reserved)).max().filter(|most| *most > 0)?;
    let spent = money.iter().map(|m| m.spent).max().unwrap_or(0);
    // A cap far above the costs would flatten the curve.
    let cap = facts.loaded.state.ledger.cap.map(|cap| cap.0);
    let top = cap.filter(|cap| *cap / 4 <= highest).unwrap_or(highest);
    let seconds = |at: i64| number(at.saturating_sub(first)) / 1_000.0;
    let end = seconds(first.saturating_add(facts.page.wall_ms())).max(seconds(money.last()?.at));
    let frame = Frame::new((0.0, end), (0.0, dollars(top) * 1.02));
    let mut svg = frame
        .open("dollars spent and reserved over time", "seconds", |y| format!("${}", crate::text::value(y)));
    if let Some(cap) = cap.filter(|cap| *cap <= top) {
        let y = frame.y(dollars(cap));
        let _ = write!(
            svg,
            "<path class=\"cap\" d=\"M{:.1} {y:.1}H{:.1}\"><title>the cap, {}</title></path>",
            frame.x(0.0),
            frame.x(end),
            usd(MicroUsd(cap))
        );
    }
    let mut steps = |class: &str, title: &str, amount: fn(&Money) -> u64| {
        let mut path = String::new();
        for (index, point) in money.iter().enumerate() {
            let (x, y) = (frame.x(seconds(point.at)), frame.y(dollars(amount(point))));
            let _ = if index == 0 { write!(path, "M{x:.1} {y:.1}") } else { write!(path, "H{x:.1}V{y:.1}") };
        }
        let _ = write!(path, "H{:.1}", frame.x(end));
        let _ = write!(svg, "<path class=\"step {class}\" d=\"{path}\"><title>{title}</title></path>");
    };
    steps("reserved", "spent and reserved", |m| m.spent.saturating_add(m.reserved));
    steps("spent", &format!("spent, {} at the end", usd(MicroUsd(spent))), |m| m.spent);
    svg.push_str("</svg>");
    Some(svg)
}

fn thinned(money: &[Money]) -> Vec<Money> {
    let step = money.len().div_ceil(POINTS_MAX).max(1);
    let mut kept: Vec<Money> = money.iter().step_by(step).copied().collect();
    if kept.last() != money.last() {
        kept.extend(money.last());
    }
    kept
}

fn dollars(micro: u64) -> f64 {
    number(i64::try_from(micro).unwrap_or(i64::MAX)) / 1e6
}
