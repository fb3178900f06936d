//! Learning curves: one line per trial over its epochs, rung levels as vertical lines, the best trial on top.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tuning::definition::Objective;
use tuning::ids::TrialId;
use tuning::summary::JobSummary;
use use_cases::describe::state_of;

use super::chart::Frame;
use super::escape;
use super::facts::Facts;
use crate::event_text::parameters;
use crate::text::{maybe, value};

/// Maximum points of one curve.
const POINTS_MAX: usize = 120;
/// Percentage of values within the axis range. The worst values are drawn at the edge, so that a diverged trial does
/// not flatten the other curves.
const SHOWN_PERCENT: usize = 98;

/// A curve and the job for its tooltip.
struct Curve<'a> {
    job: &'a JobSummary,
    points: Vec<(u32, f64)>,
}

/// Returns the chart. `None` if there is no value yet.
pub(super) fn chart(facts: &Facts) -> Option<String> {
    let curves = curves(facts);
    let last_epoch = curves.iter().filter_map(|curve| curve.points.last()).map(|point| point.0).max()?;
    let definition = &facts.loaded.tuning.definition;
    let plan = definition.plan();
    let known_max = Some(plan.max_resource()).filter(|max| *max != u32::MAX);
    let x_max = known_max.unwrap_or(last_epoch).max(last_epoch);
    let frame = Frame::new(
        (1.0_f64.min(f64::from(x_max)), f64::from(x_max)),
        y_range(&curves, definition.objective)?,
    );
    let metric = facts.page.metric();
    let label = format!("{metric} by epoch, one line for each of {} trials", curves.len());
    let mut svg = frame.open(&label, "epoch", value);
    let levels: BTreeSet<u32> = plan
        .brackets()
        .iter()
        .flat_map(hyperband::plan::BracketPlan::rungs)
        .map(|rung| rung.resource)
        .collect();
    for level in levels.into_iter().filter(|level| known_max.is_some_and(|max| *level < max)) {
        svg.push_str(&frame.vertical(f64::from(level), "rung", &format!("rung at epoch {level}")));
    }
    let best = facts.loaded.state.best.as_ref().map(|best| best.job.trial);
    // The last curve is on top.
    let (top, others): (Vec<_>, Vec<_>) = curves.iter().partition(|curve| Some(curve.job.job.trial) == best);
    for curve in others {
        draw(&mut svg, &frame, curve, "curve");
    }
    for curve in top {
        draw(&mut svg, &frame, curve, "curve best");
    }
    svg.push_str("</svg>");
    Some(svg)
}

fn curves(facts: &Facts) -> Vec<Curve<'_>> {
    // The last attempt of a trial has the complete curve of the trial.
    let last: BTreeMap<TrialId, &JobSummary> = facts.jobs.iter().map(|job| (job.job.trial, job)).collect();
    let curve = |job: &JobSummary| {
        let live = facts.live_curves.get(&job.job.trial);
        let all = if job.curve.is_empty() { live.map_or(&[][..], Vec::as_slice) } else { &job.curve };
        let known: Vec<(u32, f64)> =
            all.iter().filter_map(|(epoch, value)| value.map(|value| (epoch.0, value))).collect();
        thinned(&known)
    };
    let curves = last.into_values().map(|job| Curve { job, points: curve(job) });
    curves.filter(|curve| !curve.points.is_empty()).collect()
}

fn thinned(points: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    let mut kept: Vec<_> = points.iter().step_by(step).copied().collect();
    if kept.last() != points.last() {
        kept.extend(points.last());
    }
    kept
}

/// Returns the range of most values. It always includes the best value.
fn y_range(curves: &[Curve<'_>], objective: Objective) -> Option<(f64, f64)> {
    let mut values: Vec<f64> = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).collect();
    values.sort_by(f64::total_cmp);
    let cut = values.len().saturating_sub(values.len().saturating_mul(SHOWN_PERCENT).div_ceil(100));
    let worst_last = values.len().saturating_sub(1).saturating_sub(cut);
    let (low, high) = match objective {
        Objective::Maximize => (values.get(cut)?, values.last()?),
        Objective::Minimize => (values.first()?, values.get(worst_last)?),
    };
    let margin = (high - low) * 0.04;
    Some((low - margin, high + margin))
}

fn draw(svg: &mut String, frame: &Frame, curve: &Curve<'_>, class: &str) {
    let Curve { job, points } = curve;
    let trial = job.job.trial;
    let title = format!(
        "trial {trial}, {}: epoch {}, last {}, best {}\n{}",
        state_of(job),
        job.resource,
        maybe(job.last_value),
        maybe(job.best_value),
        parameters(&job.configuration)
    );
    let title = escape::text(&title);
    // Twelve colors are enough to distinguish neighbors.
    let colour = trial.0 % 12;
    let place = |point: &(u32, f64)| format!("{:.1} {:.1}", frame.x(f64::from(point.0)), frame.y(point.1));
    if let [only] = points.as_slice() {
        let (x, y) = (frame.x(f64::from(only.0)), frame.y(only.1));
        let _ = write!(
            svg,
            "<circle class=\"{class} c{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{title}</title></circle>"
        );
        return;
    }
    let path: Vec<String> = points.iter().map(place).collect();
    let _ = write!(
        svg,
        "<path class=\"{class} c{colour}\" d=\"M{}\"><title>{title}</title></path>",
        path.join("L")
    );
}
