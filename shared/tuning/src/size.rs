//! How large facts and rulings are when stored: estimates on the safe side, so that a step always fits a row.

use crate::fact::{Fact, Recorded};
use crate::ruling::{EndReason, Ruling, TrialEnd};

/// Room for names, numbers and punctuation of one fact or ruling.
const FRAME_BYTES: usize = 400;
/// Most bytes of JSON that one byte of text becomes (a control character, escaped).
const ESCAPED: usize = 6;

fn text(text: &str) -> usize {
    // Most text is plain; what is not takes up to six bytes.
    let plain = text.bytes().filter(|byte| byte.is_ascii_graphic() || *byte == b' ').count();
    let other = text.len().saturating_sub(plain);
    // A quote or a backslash is graphic and takes two.
    plain.saturating_mul(2).saturating_add(other.saturating_mul(ESCAPED))
}

/// At most so many bytes of JSON.
pub(crate) fn fact_bytes(recorded: &Recorded) -> usize {
    let content = match &recorded.fact {
        Fact::MetricsLogged { stream, lines, .. } => {
            let lines = lines.iter().map(|line| text(&line.id).saturating_add(120));
            lines.fold(text(stream), usize::saturating_add)
        }
        Fact::JobStateChanged { message, .. } | Fact::JobDescribed { message, .. } => {
            message.as_deref().map_or(0, text)
        }
        Fact::StartRefused { message, .. } => text(message),
        Fact::ActionDeferred { reason, .. } => text(reason),
        Fact::BudgetGranted { month, .. } => text(month),
        Fact::NoticeGiven { notice } => text(notice),
        Fact::TuningSubmitted
        | Fact::StopRequested
        | Fact::TimePassed
        | Fact::LogRead { .. }
        | Fact::SilenceSeen { .. }
        | Fact::GrantReturned { .. }
        | Fact::JobStarted { .. }
        | Fact::JobNeverStarted { .. }
        | Fact::StopAccepted { .. } => 0,
    };
    FRAME_BYTES.saturating_add(text(&recorded.key)).saturating_add(content)
}

/// At most so many bytes of JSON.
pub(crate) fn ruling_bytes(ruling: &Ruling) -> usize {
    let content = match ruling {
        Ruling::StartOrdered { configuration, .. } => configuration
            .0
            .iter()
            .fold(0, |sum: usize, (name, value)| sum.saturating_add(text(name)).saturating_add(text(value))),
        Ruling::TrialFinished { how: TrialEnd::Failed(message), .. }
        | Ruling::TuningEnding { why: EndReason::Failed(message) }
        | Ruling::TuningEnded { why: EndReason::Failed(message) } => text(message),
        Ruling::ReturnOrdered { month, .. } | Ruling::MonthCapReached { month, .. } => text(month),
        Ruling::TrialJudged { .. }
        | Ruling::StopOrdered { .. }
        | Ruling::BillOrdered { .. }
        | Ruling::LogReadOrdered { .. }
        | Ruling::LookOrdered { .. }
        | Ruling::GrantOrdered { .. }
        | Ruling::CapReached { .. }
        | Ruling::SettledInFull { .. }
        | Ruling::AttemptAwaited { .. }
        | Ruling::TrialFinished { .. }
        | Ruling::OverrunSeen
        | Ruling::TuningEnding { .. }
        | Ruling::TuningEnded { .. } => 0,
    };
    FRAME_BYTES.saturating_add(content)
}
