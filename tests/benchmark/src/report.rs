//! The measures of a case: a row for each method and recorded peer, and the controller's ratio to the best of them.
//!
//! Regret is (best - value) / (best - median). "Obs" takes the best value reported so far at any epoch, "full" the best
//! one at the last epoch.

use curves::Checkpoint;
use serde::Serialize;

use crate::case::{Case, Source};
use crate::peers::{Peer, Peers, THIRTY_JOBS};
use crate::play::Method;
use crate::world::{Axis, Run, World};

/// In ratios, smaller regrets count as this: the tables do not resolve them.
pub const REGRET_MIN: f64 = 0.001;

/// A mean over seeds, with its standard error; `None` = unknown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard error of the mean.
    pub se: Option<f64>,
}

impl Estimate {
    /// Returns the mean of values; `None` without values, or if one is missing.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect::<Option<_>>()?;
        let count = f64::from(u32::try_from(values.len()).ok().filter(|count| *count > 0)?);
        let mean = sum(values.iter().copied()) / count;
        let squares = sum(values.iter().map(|value| (value - mean) * (value - mean)));
        let se = (count > 1.0).then(|| libm::sqrt(squares / (count - 1.0) / count));
        Some(Self { mean, se })
    }
}

/// The measures of a method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The name of the method.
    pub method: String,
    /// Whether the figures were recorded earlier, without noise and with rows that answer any number of times.
    pub recorded: bool,
    /// The number of seeds.
    pub seeds: u32,
    /// The obs regret at each checkpoint, or at the end.
    pub obs: Vec<Option<Estimate>>,
    /// The full regret at the last checkpoint. `None` if a tuning has no trial with all epochs.
    pub full: Option<Estimate>,
    /// The mean number of configurations up to the end; `None` if the last point is earlier.
    pub trials: Option<f64>,
    /// Mean billed training time up to the last checkpoint, without start-ups, in minutes.
    pub billed_minutes: f64,
    /// Its share of as many jobs with all epochs; `None` if tunings end after a time.
    pub billed_share: Option<f64>,
}

/// The regret of a controller's method, divided by the smallest one of others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// The controller's method.
    pub method: String,
    /// The others: a group of methods played here ([`Method::group`]), or `recorded peers`.
    pub others: &'static str,
    /// The ratio at each checkpoint.
    pub at: Vec<Option<f64>>,
}

/// The measures of all methods on a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseReport {
    /// The name of the table.
    pub table: String,
    /// Where the table comes from.
    pub source: Source,
    /// The best and the median of the best value of each row at any epoch.
    pub best_and_median: (f64, f64),
    /// A row for each method.
    pub rows: Vec<Row>,
    /// The ratios of the controller's methods.
    pub ratios: Vec<Ratio>,
}

/// A geometric mean of ratios over tables and checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overall {
    /// The controller's method.
    pub method: String,
    /// See [`Ratio::others`].
    pub others: &'static str,
    /// `recorded tables`, `held-out tables` or `analytic functions`.
    pub tables: &'static str,
    /// The mean; `None` without a ratio.
    pub mean: Option<f64>,
}

/// Returns the report of a case. `runs` has the runs of each method.
pub fn report(
    case: &Case,
    methods: &[Method],
    runs: &[Vec<Run>],
    world: &World,
    peers: &Peers,
) -> CaseReport {
    let mut rows: Vec<Row> =
        methods.iter().zip(runs).map(|(method, runs)| row(case, *method, runs, world)).collect();
    let played = rows.len();
    rows.extend(recorded(&case.name, world, peers));
    let mut others: Vec<(&'static str, Vec<&Row>)> = Vec::new();
    let grouped = rows.iter().zip(methods).filter_map(|(row, method)| Some((method.group()?, row)));
    for (name, row) in grouped.chain(rows.iter().skip(played).map(|row| ("recorded peers", row))) {
        match others.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(row),
            None => others.push((name, vec![row])),
        }
    }
    let ours = rows.iter().zip(methods).filter(|(_, method)| method.is_controller());
    let ratios = ours.flat_map(|(row, _)| {
        let to = |(name, others): &(&'static str, Vec<&Row>)| Ratio {
            method: row.method.clone(),
            others: name,
            at: ratio(row, others),
        };
        others.iter().map(to)
    });
    let scale = case.observable();
    CaseReport {
        table: case.name.clone(),
        source: case.source,
        best_and_median: (scale.best, scale.median),
        ratios: ratios.collect(),
        rows,
    }
}

fn row(case: &Case, method: Method, runs: &[Run], world: &World) -> Row {
    let points = world.points().len();
    let over = |at: usize, of: &dyn Fn(&Checkpoint) -> Option<f64>| {
        Estimate::of(runs.iter().map(|run| run.checkpoints.get(at).and_then(of)))
    };
    let regret = |at| over(at, &|point| point.best_observed.map(|value| case.regret(value)));
    let last = points - 1;
    let billed = over(last, &|point| Some(point.billed_training_seconds / 60.0));
    let billed_minutes = billed.map_or(0.0, |billed| billed.mean);
    let trials = Estimate::of(runs.iter().map(|run| Some(f64::from(run.trials))));
    Row {
        method: method.name().to_owned(),
        recorded: false,
        seeds: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        obs: (0..points).map(regret).collect(),
        full: over(last, &|point| point.best_full.map(|value| case.full_regret(value))),
        trials: trials.filter(|_| world.axis != Axis::Billed).map(|trials| trials.mean),
        billed_minutes,
        billed_share: world.billed_share(billed_minutes),
    }
}

/// Returns the rows of the recorded peers for such a world.
fn recorded(table: &str, world: &World, peers: &Peers) -> Vec<Row> {
    let tables = match (world.axis, world.max_jobs) {
        (Axis::Time, _) => &peers.tables,
        (Axis::End, THIRTY_JOBS) => &peers.thirty_jobs,
        (Axis::Billed | Axis::End, _) => return Vec::new(),
    };
    let estimate = |mean: Option<f64>, se| mean.map(|mean| Estimate { mean, se });
    let row = |peer: &Peer| Row {
        method: peer.method.clone(),
        recorded: true,
        seeds: peer.seeds,
        obs: peer.obs.iter().zip(&peer.obs_se).map(|(mean, se)| estimate(*mean, *se)).collect(),
        full: estimate(peer.full, peer.full_se),
        trials: Some(f64::from(peer.trials)),
        billed_minutes: peer.billed_minutes,
        billed_share: world.billed_share(peer.billed_minutes),
    };
    tables.get(table).into_iter().flatten().map(row).collect()
}

/// Returns the ratio of a row to the best of others at each checkpoint.
fn ratio(ours: &Row, others: &[&Row]) -> Vec<Option<f64>> {
    let at = |(index, own): (usize, &Option<Estimate>)| {
        let others = others.iter().filter_map(|row| Some((*row.obs.get(index)?)?.mean));
        let best = others.reduce(f64::min)?;
        Some((*own)?.mean.max(REGRET_MIN) / best.max(REGRET_MIN))
    };
    ours.obs.iter().enumerate().map(at).collect()
}

/// Returns the geometric means of the ratios.
pub fn overall(reports: &[CaseReport]) -> Vec<Overall> {
    let mut means: Vec<(Overall, Vec<f64>)> = Vec::new();
    for report in reports {
        let tables = match report.source {
            Source::Recorded => "recorded tables",
            Source::HeldOut => "held-out tables",
            Source::Analytic => "analytic functions",
        };
        for Ratio { method, others, at } in &report.ratios {
            let logs = at.iter().flatten().map(|ratio| libm::log(*ratio));
            let is_same = |(mean, _): &&mut (Overall, Vec<f64>)| {
                mean.method == *method && mean.others == *others && mean.tables == tables
            };
            match means.iter_mut().find(is_same) {
                Some((_, all)) => all.extend(logs),
                None => means
                    .push((Overall { method: method.clone(), others, tables, mean: None }, logs.collect())),
            }
        }
    }
    let finish = |(mean, logs): (Overall, Vec<f64>)| {
        let log = Estimate::of(logs.into_iter().map(Some));
        Overall { mean: log.map(|log| libm::exp(log.mean)), ..mean }
    };
    means.into_iter().map(finish).collect()
}

/// Returns the sum in the order of the values.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, value| sum + value)
}
