//! The decider's batch: the steps and their rulings.

use crate::telemetry::metrics::{
    BUDGET_OVERRUNS, CAP_NOTICES, CAPACITY_WAITS, DECIDE_FAILED, FACT_AGE_MS, MONTH_CAP_NOTICES,
    STEPS_WRITTEN, TRIALS_PROMOTED, TRIALS_STOPPED, TUNINGS_ENDED, TUNINGS_FAILED, TUNINGS_STARTED,
};
use crate::telemetry::{Entry, Report};
use serde_json::Value;
use tuning::log::fact::Fact;
use tuning::log::reasons::{EndReason, StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, NoticeOrder, Order, Ruling, SearchRuling};
use tuning::step::Step;
use tuning::unit::time::Time;
use use_cases::decide::Decided;
use use_cases::words;

use super::{bad_records, not_done};

/// Reports a batch, and returns the response to Lambda.
pub fn decided(batch: &Decided, now: Time, report: &mut Report) -> Value {
    bad_records(batch, report);
    for part in &batch.parts {
        for step in &part.done {
            report_step(step, &part.tuning, now, report);
        }
        if let Some(entry) = not_done(part, "a tuning could not be decided") {
            report.add(DECIDE_FAILED, 1_u64);
            report.log(entry);
        }
    }
    batch.answer()
}

fn report_step(step: &Step, id: &str, now: Time, report: &mut Report) {
    report.add(STEPS_WRITTEN, 1_u64);
    if let Some(oldest) = step.facts.iter().map(|fact| fact.at).min() {
        report.add(FACT_AGE_MS, (now - oldest).or_zero().0);
    }
    let entry = |entry: Entry| entry.tuning(id).step(step.n);
    if step.facts.iter().any(|recorded| matches!(recorded.fact, Fact::TuningSubmitted)) {
        report.add(TUNINGS_STARTED, 1_u64);
        report.log(entry(Entry::info("a tuning started")));
    }
    for ruling in &step.rulings {
        match ruling {
            Ruling::Search(SearchRuling::TrialJudged { verdict, .. }) => {
                report.add(TRIALS_PROMOTED, u64::from(verdict.continues));
            }
            Ruling::Search(SearchRuling::TrialPromoted { .. }) => report.add(TRIALS_PROMOTED, 1_u64),
            Ruling::Attempt(AttemptRuling::TrialFinished {
                how: TrialEnd::Stopped(StopWhy::Rung { .. }),
                ..
            }) => {
                report.add(TRIALS_STOPPED, 1_u64);
            }
            Ruling::Order(Order::Notice(NoticeOrder::CapReached { percent })) => {
                report.add(CAP_NOTICES, 1_u64);
                report.log(entry(Entry::warn(&words::cap_reached(*percent))));
            }
            Ruling::Order(Order::Notice(NoticeOrder::MonthCapReached { month, percent })) => {
                report.add(CAP_NOTICES, 1_u64);
                // Half of a month's money is granted in every ordinary month.
                report.add(MONTH_CAP_NOTICES, u64::from(*percent > 50));
                report.log(entry(Entry::warn(&words::month_cap_reached(month, *percent))));
            }
            Ruling::Order(Order::Notice(NoticeOrder::OverrunSeen)) => {
                report.add(BUDGET_OVERRUNS, 1_u64);
                report.log(entry(Entry::error(words::OVERRUN)));
            }
            Ruling::Order(Order::Notice(NoticeOrder::CapacityLacking { .. })) => {
                report.add(CAPACITY_WAITS, 1_u64);
                report.log(entry(Entry::warn(words::CAPACITY_LACKING)));
            }
            Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why })) => {
                let failed = matches!(why, EndReason::Failed(_));
                report.add(TUNINGS_ENDED, 1_u64);
                report.add(TUNINGS_FAILED, u64::from(failed));
                // The reason alone: a failure message contains the training program's own text.
                let message = format!("a tuning ended: {}", why.word());
                report.log(entry(if failed { Entry::error(&message) } else { Entry::info(&message) }));
            }
            Ruling::Attempt(_)
            | Ruling::Search(SearchRuling::TrialDrawn { .. } | SearchRuling::RungReached { .. })
            | Ruling::Booking(_)
            | Ruling::TuningEnding { .. }
            | Ruling::Order(
                Order::Start { .. } | Order::Stop { .. } | Order::Read(_) | Order::Pool(_) | Order::Grant(_),
            ) => {}
        }
    }
}
