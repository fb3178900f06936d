//! Reads the data of a report from the table: the page of the tuning, and from its steps the costs over time and the
//! decisions by trial.

use std::collections::BTreeMap;
use std::path::Path;

use search::Origin;
use tuning::conclude::full_summary;
use tuning::epochs::Epochs;
use tuning::ids::TrialId;
use tuning::ruling::{Order, Ruling};
use tuning::summary::JobSummary;
use use_cases::describe;
use use_cases::ports::table::Table;
use use_cases::store::{Loaded, Store};

use crate::event_text;
use crate::failure::Failure;
use crate::follow::{Event, Follower, What};
use crate::page::{self, Page};

/// The data of a report.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) page: Page,
    pub(super) loaded: Loaded,
    /// All training jobs, ordered by trial and attempt.
    pub(super) jobs: Vec<JobSummary>,
    /// Spent and reserved amounts after each step that changed them.
    pub(super) money: Vec<Money>,
    /// Decisions by trial, with their times. The key is `None` for decisions about the tuning itself.
    pub(super) decisions: BTreeMap<Option<TrialId>, Vec<(i64, String)>>,
    /// Values of the running trials by epoch.
    pub(super) live_curves: BTreeMap<TrialId, Vec<(Epochs, Option<f64>)>>,
    /// How the configurations of trials were chosen, where the steps record it.
    pub(super) origins: BTreeMap<TrialId, Origin>,
}

/// The ledger at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Money {
    /// Time, in milliseconds since 1970.
    pub(super) at: i64,
    /// Spent amount, in micro-dollars.
    pub(super) spent: u64,
    /// Reserved amount, in micro-dollars.
    pub(super) reserved: u64,
}

impl Facts {
    /// Reads the tuning `id`.
    pub(super) async fn read<T: Table>(store: &Store<T>, folder: &Path, id: &str) -> Result<Self, Failure> {
        let page = Page::of(store, folder, id).await?;
        let (loaded, jobs) = describe::summaries(store, id).await?.ok_or_else(|| page::gone(id))?;
        let mut follower = Follower::from_start(loaded.tuning.clone());
        let definition = &loaded.tuning.definition;
        let mut money: Vec<Money> = vec![Money { at: definition.created.0, spent: 0, reserved: 0 }];
        let mut decisions: BTreeMap<Option<TrialId>, Vec<(i64, String)>> = BTreeMap::new();
        let mut origins = BTreeMap::new();
        follower
            .read(store, |state, events| {
                let now =
                    Money { at: state.now.0, spent: state.ledger.spent.0, reserved: state.ledger.reserved.0 };
                if money.last().is_none_or(|last| (last.spent, last.reserved) != (now.spent, now.reserved)) {
                    money.push(now);
                }
                for Event { at, what } in events {
                    if let What::Ruled(Ruling::Order(Order::Start { job, origin: Some(origin), .. }), _) =
                        &what
                    {
                        origins.insert(job.trial, *origin);
                    }
                    if let Some(line) = event_text::event_line(definition, &what) {
                        decisions.entry(trial(&what)).or_default().push((at, line));
                    }
                }
            })
            .await?;
        let live = follower
            .state
            .jobs()
            .map(|(key, trial, job)| (key.trial, full_summary(definition, key, trial, job).curve));
        let live_curves = live.collect();
        Ok(Self { page, loaded, jobs, money, decisions, live_curves, origins })
    }
}

/// Returns the trial that an event is about.
fn trial(what: &What) -> Option<TrialId> {
    match what {
        What::Ruled(ruling, _) => match ruling {
            Ruling::TrialJudged { trial, .. }
            | Ruling::RungReached { trial, .. }
            | Ruling::TrialPromoted { trial, .. }
            | Ruling::TrialFinished { trial, .. } => Some(*trial),
            Ruling::ResourceRepeated { job, .. }
            | Ruling::SettledInFull { job, .. }
            | Ruling::BillBooked { job, .. }
            | Ruling::PoolClosed { job, .. }
            | Ruling::AttemptAwaited { job, .. }
            | Ruling::Order(
                Order::Start { job, .. }
                | Order::Stop { job, .. }
                | Order::ReadBill { job }
                | Order::ReadLog { job, .. }
                | Order::ReadRest { job, .. }
                | Order::Look { job, .. }
                | Order::ReadPool { job, .. }
                | Order::ReleasePool { job },
            ) => Some(job.trial),
            Ruling::TuningEnding { .. }
            | Ruling::Order(
                Order::OverrunSeen
                | Order::CapacityLacking { .. }
                | Order::RequestGrant { .. }
                | Order::ReturnGrant { .. }
                | Order::CapReached { .. }
                | Order::MonthCapReached { .. }
                | Order::TuningEnded { .. },
            ) => None,
        },
        What::Improved(best) => Some(best.trial),
        What::Interrupted(job) | What::Deferred(job, _) => Some(job.trial),
        What::StopRequested | What::LimitsChanged { .. } => None,
    }
}
