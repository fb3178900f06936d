//! Results that arrived after a decision and did not change it.
//!
//! A result is late in three cases:
//!
//! - It arrived after the trial was stopped or completed. It still counts towards the best value seen.
//! - It belongs to an epoch below the epoch that a rung had already compared.
//! - It arrived after the trial was over. No step contains it, but its fact is stored.

use std::collections::{BTreeMap, BTreeSet};

use tuning::log::fact::MetricLine;
use tuning::log::ruling::{Ruling, SearchRuling};
use tuning::trial::Trial;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::RungId;
use wire::explain::{EpochValue, Kind};

use super::entry::NewEntry;
use super::words;

/// The trial's values and the rungs that read them early.
#[derive(Default)]
pub(super) struct Late {
    /// The trial's values when the decision to end it was made.
    decided: Option<BTreeMap<Epochs, Option<f64>>>,
    /// Rungs that compared a value of a later epoch: rung, level, that epoch.
    early: Vec<(RungId, Epochs, Epochs)>,
    /// Log lines that steps contain: stream and ID.
    lines: BTreeSet<(String, String)>,
}

impl Late {
    /// Takes the ruling that compared the trial at a rung.
    pub(super) fn judged(&mut self, ruling: &Ruling) {
        if let Ruling::Search(SearchRuling::TrialJudged { rung, level, resource, .. }) = ruling
            && resource > level
        {
            self.early.push((*rung, *level, *resource));
        }
    }

    /// Called after each ruling, which may have decided to end the trial.
    pub(super) fn after_ruling(&mut self, trial: &Trial) {
        if trial.stop_why.is_some() && self.decided.is_none() {
            self.decided = Some(trial.curve.clone());
        }
    }

    /// Takes `lines` of a step. `trial` has the values after it. Returns entries for the late values.
    pub(super) fn logged(&mut self, stream: &str, lines: &[MetricLine], trial: &Trial) -> Vec<NewEntry> {
        self.lines.extend(lines.iter().map(|line| (stream.to_owned(), line.id.clone())));
        let (mut said, mut noted) = (Vec::new(), BTreeSet::new());
        self.early.retain(|(rung, level, taken)| {
            let Some((epoch, value)) = trial.curve.range(*level..*taken).next() else { return true };
            noted.insert(*epoch);
            let late = vec![EpochValue { epoch: Some(*epoch), value: *value }];
            let says = words::late_at_rung(*rung, *epoch, *taken);
            said.push(NewEntry { late, ..NewEntry::new(Kind::LateResults, None, says) });
            false
        });
        let Some(decided) = &mut self.decided else { return said };
        let is_new = |epoch: &Epochs, value: &Option<f64>| {
            decided.get(epoch).map(|known| known.map(f64::to_bits)) != Some(value.map(f64::to_bits))
        };
        let new = trial.curve.iter().filter(|(epoch, value)| is_new(epoch, value) && !noted.contains(epoch));
        let late: Vec<EpochValue> =
            new.map(|(epoch, value)| EpochValue { epoch: Some(*epoch), value: *value }).collect();
        decided.clone_from(&trial.curve);
        if !late.is_empty() {
            let says = words::late(&late);
            said.push(NewEntry { late, ..NewEntry::new(Kind::LateResults, None, says) });
        }
        said
    }

    pub(super) fn is_known(&self, stream: &str, line: &MetricLine) -> bool {
        self.lines.contains(&(stream.to_owned(), line.id.clone()))
    }
}
