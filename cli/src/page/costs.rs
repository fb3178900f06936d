//! Tables of what a training costs: in the trials with the best values for their costs, and on each cluster size.

use tuning::unit::money::MicroUsd;
use wire::describe::{ClusterSize, Costs, FrontTrial};

use crate::text::{clean, exact, maybe, or_dash, table, value};

/// Returns the table of the front of value against cost. `None` before a trial has a value, or with one trial.
pub(super) fn front_table(costs: &Costs) -> Option<String> {
    let of = |trial: &FrontTrial| Some(trial.seconds_per_training? * f64::from(trial.instance_count));
    let best = costs.front.first().and_then(of);
    let buy = costs.best_buy.as_ref().map(|buy| buy.trial);
    let row = |trial: &FrontTrial| {
        let share = of(trial).zip(best).map(|(cost, best)| 100.0 * cost / best);
        let kind = trial.seconds_per_training.map(|_| if trial.measured { "measured" } else { "predicted" });
        let mark = (buy == Some(trial.trial)).then_some("best buy");
        let note: Vec<&str> = mark.into_iter().chain(kind).collect();
        vec![
            trial.trial.to_string(),
            value(trial.value),
            trial.instance_count.to_string(),
            seconds(trial.seconds_per_training),
            dollars(trial.usd_per_training),
            or_dash(share, |share| format!("{share:.0} %")),
            note.join(", "),
        ]
    };
    let rows: Vec<Vec<String>> = costs.front.iter().map(row).collect();
    let head = ["TRIAL", "BEST", "INSTANCES", "TRAINING", "TRAINING USD", "OF BEST", "NOTE"];
    (rows.len() > 1 || buy.is_some()).then(|| table(&head, &rows, &[0, 1, 2, 3, 4, 5]))
}

const SIZE_HEAD: [&str; 8] =
    ["INSTANCES", "TRIALS", "BEST", "EPOCH", "EPOCH USD", "TRAINING", "TRAINING USD", "SPEED-UP"];

/// Returns the table of cluster sizes, or of training job definitions. `None` where all jobs have one size.
pub(super) fn size_table(costs: &Costs) -> Option<String> {
    let names: Vec<String> =
        costs.cluster_sizes.iter().filter_map(|size| size.training_job_definition_name.clone()).collect();
    let row = |size: &ClusterSize| {
        vec![
            size.instance_count.to_string(),
            size.trials.to_string(),
            maybe(size.best_value),
            seconds(size.seconds_per_epoch),
            dollars(size.usd_per_epoch),
            seconds(size.seconds_per_training),
            dollars(size.usd_per_training),
            or_dash(size.speed_up, |factor| format!("{factor:.2} x")),
        ]
    };
    let mut rows: Vec<Vec<String>> = costs.cluster_sizes.iter().map(row).collect();
    if !names.is_empty() {
        rows.iter_mut().zip(&names).for_each(|(row, name)| row.push(clean(name)));
        let head = [&SIZE_HEAD[..], &["DEFINITION"]].concat();
        return Some(table(&head, &rows, &[0, 1, 2, 3, 4, 5, 6, 7]));
    }
    (!rows.is_empty()).then(|| table(&SIZE_HEAD, &rows, &[0, 1, 2, 3, 4, 5, 6, 7]))
}

fn seconds(seconds: Option<f64>) -> String {
    or_dash(seconds, |seconds| format!("{seconds:.2} s"))
}

fn dollars(amount: Option<MicroUsd>) -> String {
    or_dash(amount, exact)
}
