//! The stored size of facts and rulings: upper estimates, so that a step always fits its row.

use search::{Configuration, Domain, Parameter, Space};

use crate::definition::Definition;
use crate::log::fact::{Fact, Recorded};
use crate::log::reasons::{EndReason, TrialEnd};
use crate::log::ruling::{
    AttemptRuling, Booking, GrantOrder, Judged, NoticeOrder, Order, Ruling, SearchRuling,
};
use crate::unit::limits::{CURVE_POINTS_KEPT, MAX_MESSAGE_CHARS};

/// Bytes for names, numbers and punctuation of one fact or ruling.
const FRAME_BYTES: usize = 400;
/// Bytes for the keep-alive period of a job.
const KEPT_BYTES: usize = 50;
/// Bytes for the origin of a configuration.
const ORIGIN_BYTES: usize = 280;
/// Bytes for the comparison that stopped or promoted a trial.
const JUDGED_BYTES: usize = 250;
/// Bytes for the key of a job and its billed seconds.
const BILL_BYTES: usize = 100;
/// Bytes of a metric's place and value.
const METRIC_BYTES: usize = 40;
/// Bytes for the names and numbers of a job's summary.
const SUMMARY_BYTES: usize = 2_000;
/// Bytes for an epoch and its value.
const POINT_BYTES: usize = 45;
/// Bytes for a number as text.
const NUMBER_BYTES: usize = 30;
/// The most bytes of JSON for one byte of text (an escaped control character).
const ESCAPED: usize = 6;

fn text(text: &str) -> usize {
    // A printable character takes one byte, or two if it is a quote or a backslash; any other byte takes up to six.
    let plain = text.bytes().filter(|byte| byte.is_ascii_graphic() || *byte == b' ').count();
    let other = text.len().saturating_sub(plain);
    plain.saturating_mul(2).saturating_add(other.saturating_mul(ESCAPED))
}

/// Returns an upper bound of the JSON size of a fact, in bytes.
pub(crate) fn fact_bytes(recorded: &Recorded) -> usize {
    let content = match &recorded.fact {
        Fact::MetricsLogged { stream, lines, .. } => {
            let lines = lines.iter().map(|line| text(&line.id).saturating_add(120));
            lines.fold(text(stream), usize::saturating_add)
        }
        Fact::JobStateChanged { message, .. } | Fact::JobDescribed { message, .. } => {
            message.as_deref().map_or(0, text)
        }
        Fact::FinalMetricsSeen { values, .. } => values.len().saturating_mul(METRIC_BYTES),
        Fact::LogProblemSeen { problem, .. } => {
            problem.texts().into_iter().map(text).fold(0, usize::saturating_add)
        }
        Fact::StartRefused { message, .. } => text(message),
        Fact::ActionDeferred { reason, .. } => text(reason),
        Fact::BudgetGranted { month, .. } => text(month),
        Fact::NoticeGiven { notice } => text(notice),
        Fact::BillsConfirmed { bills } => bills.len().saturating_mul(BILL_BYTES),
        Fact::TuningSubmitted
        | Fact::StopRequested
        | Fact::LimitsChanged { .. }
        | Fact::TimePassed
        | Fact::LogRead { .. }
        | Fact::RestRead { .. }
        | Fact::SilenceSeen { .. }
        | Fact::GrantReturned { .. }
        | Fact::JobStarted { .. }
        | Fact::JobSeen { .. }
        | Fact::JobNeverStarted { .. }
        | Fact::PoolSeen { .. }
        | Fact::PoolOver { .. }
        | Fact::StopAccepted { .. }
        | Fact::JobStopRequested { .. } => 0,
    };
    FRAME_BYTES.saturating_add(text(&recorded.key)).saturating_add(content)
}

/// Returns an upper bound of the JSON size of a ruling, in bytes.
pub(crate) fn ruling_bytes(ruling: &Ruling) -> usize {
    let content = match ruling {
        Ruling::Order(Order::Start { configuration, origin, limits, promoted, .. }) => {
            let kept = if limits.keep_alive_seconds > 0 { KEPT_BYTES } else { 0_usize };
            let drawn = if origin.is_some() { ORIGIN_BYTES } else { 0 };
            let other = kept.saturating_add(drawn).saturating_add(judged_bytes(promoted.as_ref()));
            other.saturating_add(configuration_bytes(configuration))
        }
        Ruling::Search(SearchRuling::TrialDrawn { configuration, .. }) => {
            ORIGIN_BYTES.saturating_add(configuration_bytes(configuration))
        }
        Ruling::Order(Order::Stop { because, .. }) => judged_bytes(because.as_ref()),
        Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Failed(message), .. })
        | Ruling::TuningEnding { why: EndReason::Failed(message) }
        | Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why: EndReason::Failed(message) })) => {
            text(message)
        }
        Ruling::Order(
            Order::Grant(GrantOrder::Return { month, .. })
            | Order::Notice(NoticeOrder::MonthCapReached { month, .. }),
        ) => text(month),
        Ruling::Search(
            SearchRuling::TrialJudged { .. }
            | SearchRuling::RungReached { .. }
            | SearchRuling::TrialPromoted { .. },
        )
        | Ruling::Attempt(_)
        | Ruling::Booking(_)
        | Ruling::TuningEnding { .. }
        | Ruling::Order(
            Order::Read(_)
            | Order::Pool(_)
            | Order::Grant(GrantOrder::Request { .. })
            | Order::Notice(
                NoticeOrder::CapReached { .. }
                | NoticeOrder::OverrunSeen
                | NoticeOrder::CapacityLacking { .. }
                | NoticeOrder::TuningEnded { .. },
            ),
        ) => 0,
    };
    FRAME_BYTES.saturating_add(content)
}

fn configuration_bytes(configuration: &Configuration) -> usize {
    configuration
        .0
        .iter()
        .fold(0, |sum: usize, (name, value)| sum.saturating_add(text(name)).saturating_add(text(value)))
}

fn judged_bytes(judged: Option<&Judged>) -> usize {
    if judged.is_some() { JUDGED_BYTES } else { 0 }
}

/// Returns an upper bound of the JSON size of the row that a ruling writes beside its step: an action, or the summary of
/// a job.
pub(crate) fn row_bytes(definition: &Definition, ruling: &Ruling) -> usize {
    match ruling {
        Ruling::Order(_) => ruling_bytes(ruling),
        Ruling::Search(SearchRuling::RungReached { .. })
        | Ruling::Booking(
            Booking::BillBooked { .. } | Booking::PoolClosed { .. } | Booking::SettledInFull { .. },
        )
        | Ruling::Attempt(AttemptRuling::AttemptAwaited { .. } | AttemptRuling::TrialFinished { .. }) => {
            summary_bytes(definition)
        }
        Ruling::Search(
            SearchRuling::TrialDrawn { .. }
            | SearchRuling::TrialJudged { .. }
            | SearchRuling::TrialPromoted { .. },
        )
        | Ruling::Attempt(AttemptRuling::ResourceRepeated { .. })
        | Ruling::Booking(Booking::ReservationExtended { .. })
        | Ruling::TuningEnding { .. } => 0,
    }
}

/// Returns an upper bound of the JSON size of a job's summary.
fn summary_bytes(definition: &Definition) -> usize {
    let value = |parameter: &Parameter| match &parameter.domain {
        Domain::Categorical { values } | Domain::Ordinal { values } => {
            values.iter().map(|value| text(value)).max().unwrap_or(0)
        }
        Domain::Integer { .. } | Domain::Continuous { .. } => NUMBER_BYTES,
    };
    let of_space = |space: &Space| -> usize {
        let parameters = space.parameters().iter();
        let sizes = parameters.map(|parameter| text(&parameter.name).saturating_add(value(parameter)));
        sizes.fold(0, usize::saturating_add)
    };
    let configuration = definition.definitions().map(|of| of_space(definition.space_of(of))).max();
    let curve = CURVE_POINTS_KEPT.saturating_add(1).saturating_mul(POINT_BYTES);
    let fixed = SUMMARY_BYTES.saturating_add(MAX_MESSAGE_CHARS.saturating_mul(ESCAPED)).saturating_add(curve);
    fixed.saturating_add(configuration.unwrap_or(0))
}

#[cfg(test)]
mod tests;
