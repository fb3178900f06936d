//! Results that came after a decision and changed nothing of it.
//!
//! Three ways to be late: after the trial was let go (such values still count as the best seen), below an epoch that a
//! rung had taken in their place, and after the trial was over (then no step took them; their facts are still stored).

use std::collections::{BTreeMap, BTreeSet};

use tuning::fact::{Fact, MetricLine, Recorded};
use tuning::ruling::Ruling;
use tuning::state::Trial;
use wire::explain::{EpochValue, Kind};
use wire::stored::{self, StoredError};

use super::trail::{Said, Trail};
use super::words;
use crate::ports::table::{Query, Table};
use crate::store::{Store, StoreError};

/// Stored facts read at once.
const FACTS_PER_PAGE: usize = 200;

/// What is known of the trial's values.
#[derive(Default)]
pub(super) struct Late {
    /// Its values when it was let go.
    decided: Option<BTreeMap<u32, Option<f64>>>,
    /// Rungs that took the value of a later epoch: rung, level, that epoch.
    early: Vec<(u32, u32, u32)>,
    /// Log lines that steps took: stream and id.
    lines: BTreeSet<(String, String)>,
}

impl Late {
    /// The trial was compared at a rung.
    pub(super) fn judged(&mut self, ruling: &Ruling) {
        if let Ruling::TrialJudged { rung, level, resource, .. } = ruling
            && resource > level
        {
            self.early.push((*rung, *level, *resource));
        }
    }

    /// A ruling was applied: it may have let the trial go.
    pub(super) fn decided(&mut self, trial: &Trial) {
        if trial.out.is_some() && self.decided.is_none() {
            self.decided = Some(trial.curve.clone());
        }
    }

    /// A step took `lines` of the trial, whose values are now `trial`'s.
    pub(super) fn logged(&mut self, stream: &str, lines: &[MetricLine], trial: &Trial) -> Vec<Said> {
        self.lines.extend(lines.iter().map(|line| (stream.to_owned(), line.id.clone())));
        let (mut said, mut noted) = (Vec::new(), BTreeSet::new());
        self.early.retain(|(rung, level, taken)| {
            let Some((epoch, value)) = trial.curve.range(level..taken).next() else { return true };
            noted.insert(*epoch);
            let late = vec![EpochValue { epoch: Some(*epoch), value: *value }];
            let says = words::late_at_rung(*rung, *epoch, *taken);
            said.push(Said { late, ..Said::new(Kind::LateResults, None, says) });
            false
        });
        let Some(decided) = &mut self.decided else { return said };
        let is_new = |epoch: &u32, value: &Option<f64>| {
            decided.get(epoch).map(|known| known.map(f64::to_bits)) != Some(value.map(f64::to_bits))
        };
        let new = trial.curve.iter().filter(|(epoch, value)| is_new(epoch, value) && !noted.contains(epoch));
        let late: Vec<EpochValue> =
            new.map(|(epoch, value)| EpochValue { epoch: Some(*epoch), value: *value }).collect();
        decided.clone_from(&trial.curve);
        if !late.is_empty() {
            let says = words::late(&late);
            said.push(Said { late, ..Said::new(Kind::LateResults, None, says) });
        }
        said
    }

    fn is_known(&self, stream: &str, line: &MetricLine) -> bool {
        self.lines.contains(&(stream.to_owned(), line.id.clone()))
    }
}

/// Notes the stored log lines of a trial that is over which no step took: they came when nothing could change any more.
pub(super) async fn unfolded<T: Table>(
    store: &Store<T>,
    id: &str,
    trail: &mut Trail<'_>,
) -> Result<(), StoreError> {
    let mut query = Query::prefix(stored::fact_partition(id), format!("{}-", trail.trial), FACTS_PER_PAGE);
    loop {
        let page = store.table.query(&query).await?;
        for row in &page.items {
            match stored::fact(row) {
                Ok(recorded) => unfolded_fact(trail, &recorded),
                Err(error @ StoredError::Newer { .. }) => return Err(error.into()),
                // The decider passes over a damaged row as well.
                Err(StoredError::Unreadable { .. }) => {}
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(()),
        }
    }
}

fn unfolded_fact(trail: &mut Trail<'_>, recorded: &Recorded) {
    let Fact::MetricsLogged { job, stream, lines } = &recorded.fact else { return };
    let unknown = lines.iter().filter(|line| !trail.late.is_known(stream, line));
    let late: Vec<EpochValue> = unknown.map(|line| EpochValue { epoch: None, value: line.value }).collect();
    if !late.is_empty() {
        let says = words::after_the_end(late.len());
        trail.push(None, recorded.at, Said { late, ..Said::new(Kind::LateResults, Some(*job), says) });
    }
}
