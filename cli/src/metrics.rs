//! The curves of all metrics of a trial on this machine, read from the logs of its jobs.
//!
//! The table has each value of the objective, but only the last value of every other metric.

use std::collections::BTreeMap;
use std::io;

use local::training::{JobRecords, emissions};
use tuning::definition::EpochRule;
use tuning::unit::ids::TrialId;
use use_cases::store::Loaded;
use wire::events::logs::MetricPattern;
use wire::names::parse_training_job_name;

/// The curve of each metric: epochs and values.
pub(crate) type Curves = BTreeMap<String, BTreeMap<u64, f64>>;

/// Returns the curves of the metrics other than the objective in the logs of a trial's jobs. The first value of an epoch
/// counts. Blocks.
///
/// Where the epochs count from the start of the program, a trial whose program started several times has no curves: its
/// log does not show from which epoch a program continued.
pub(crate) fn curves(records: &JobRecords, loaded: &Loaded, jobs: &[String]) -> io::Result<Curves> {
    let known = jobs.first().and_then(|name| parse_training_job_name(name));
    let trial = known.map_or(TrialId(0), |(_, job)| job.trial);
    let request = loaded.tuning.request_of(trial);
    let others = request.metric_patterns().filter(|(metric, _)| *metric != request.objective_metric());
    let compiled = others.filter_map(|(metric, regex)| Some((metric, MetricPattern::new(regex, None).ok()?)));
    let (metrics, patterns): (Vec<&str>, Vec<MetricPattern>) = compiled.unzip();
    let (host, mut curves) = (request.metric_host(), Curves::new());
    let rule = loaded.tuning.definition.epochs;
    let starts = jobs.iter().map(|job| records.starts(job, host)).sum::<io::Result<usize>>()?;
    let restarts = (!rule.captured || rule.per_attempt) && starts > 1;
    let objective = loaded.tuning.pattern(trial).filter(|_| !patterns.is_empty() && !restarts);
    let Some(objective) = objective else {
        return Ok(curves);
    };
    let base = loaded.state.epoch_base.unwrap_or(rule.base);
    for job in jobs {
        let found = emissions(records.log(job, Some(host)), objective, &patterns)?;
        for (rank, emission) in (1..).zip(found) {
            let Some(epoch) = epoch(rule, base, rank, emission.index) else { continue };
            for (metric, value) in metrics.iter().zip(emission.others) {
                if let Some(value) = value {
                    curves.entry((*metric).to_owned()).or_default().entry(epoch).or_insert(value);
                }
            }
        }
    }
    Ok(curves)
}

/// Returns the epoch of the objective's line, from 1.
fn epoch(rule: EpochRule, base: u32, rank: u64, index: Option<u64>) -> Option<u64> {
    if rule.captured { index?.checked_sub(u64::from(base))?.checked_add(1) } else { Some(rank) }
}
