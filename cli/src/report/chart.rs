//! The frame of an SVG chart: its coordinates and axes.
//!
//! Coordinates have one decimal, to keep files with many curves small. Colors come from the style sheet.

use std::fmt::Write;

use super::escape;

/// Width of a chart in SVG units. The page scales it.
pub(super) const WIDTH: f64 = 900.0;
pub(super) const HEIGHT: f64 = 320.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 36.0;
/// Maximum number of grid lines per axis.
const TICKS_MAX: f64 = 7.0;

/// The ranges of a chart's axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Frame {
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    /// Returns a frame for these ranges. Widens an empty range.
    pub(super) fn new(x: (f64, f64), y: (f64, f64)) -> Self {
        let wide = |(low, high): (f64, f64)| {
            if high > low {
                (low, high)
            } else {
                let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.05 };
                (low - margin, high + margin)
            }
        };
        Self { x: wide(x), y: wide(y) }
    }

    /// Returns the coordinate of `x`.
    pub(super) fn x(&self, x: f64) -> f64 {
        LEFT + (x - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Returns the coordinate of `y`. Values outside the range are at the edge.
    pub(super) fn y(&self, y: f64) -> f64 {
        let share = ((y - self.y.0) / (self.y.1 - self.y.0)).clamp(0.0, 1.0);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    /// Returns the beginning of the SVG with its grid. `label` is the description for screen readers.
    pub(super) fn open(&self, label: &str, x_label: &str, y_text: impl Fn(f64) -> String) -> String {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\"><g class=\"grid\">",
            escape::text(label)
        );
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in ticks(self.y) {
            let y = self.y(tick);
            let _ = write!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                escape::text(&y_text(tick))
            );
        }
        for tick in ticks(self.x) {
            let x = self.x(tick);
            let _ = write!(
                svg,
                "<path d=\"M{x:.1} {bottom}v4\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                crate::text::value(tick)
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}</text></g>",
            HEIGHT - 3.0,
            escape::text(x_label)
        );
        svg
    }

    /// Returns a vertical line over the full height.
    pub(super) fn vertical(&self, x: f64, class: &str, title: &str) -> String {
        format!(
            "<path class=\"{class}\" d=\"M{:.1} {TOP}V{:.1}\"><title>{}</title></path>",
            self.x(x),
            HEIGHT - BOTTOM,
            escape::text(title)
        )
    }
}

/// Returns round numbers within a range.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let rough = (high - low) / TICKS_MAX;
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= rough).unwrap_or(power);
    let mut ticks = Vec::new();
    let mut tick = (low / step).ceil() * step;
    while tick <= high + step * 1e-9 && ticks.len() < 20 {
        // Replaces values such as 1e-17 and -0 by 0.
        ticks.push(if tick.abs() < step * 1e-9 { 0.0 } else { tick });
        tick += step;
    }
    ticks
}

/// Converts an integer to a coordinate.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "53 bits are far more precise than a pixel"
)]
pub(super) fn number(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let shown = |range| ticks(range).into_iter().map(crate::text::value).collect::<Vec<_>>().join(" ");
        assert_eq!(shown((0.0, 1.0)), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(shown((-0.1, 0.35)), "-0.1 0 0.1 0.2 0.3");
        assert_eq!(shown((1.0, 27.0)), "5 10 15 20 25");
    }

    #[test]
    fn an_empty_range_is_widened() {
        let frame = Frame::new((1.0, 1.0), (0.0, 0.0));
        assert!(frame.x(1.0).is_finite() && frame.y(0.0).is_finite());
        assert!(frame.y(1e300) <= HEIGHT && frame.y(-1e300) >= 0.0);
    }
}
