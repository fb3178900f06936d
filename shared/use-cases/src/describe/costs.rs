//! What a training costs: on each cluster size, and in the trials with the best values for their costs.

use tuning::definition::Definition;
use tuning::state::State;
use tuning::state::front::{FrontPoint, training};
use tuning::state::results::Results;
use tuning::trial::timing::Timings;
use tuning::unit::ids::SizeId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::{Millis, Time};
use wire::describe::{ClusterSize, Costs, FrontTrial, finite, seconds_of};
use wire::names::training_job_name;

use crate::store::Tuning;

pub(super) fn costs(tuning: &Tuning, state: &State) -> Costs {
    let Tuning { id, definition, .. } = tuning;
    let Results { front, timings, .. } = &state.results;
    let best_buy = definition.best_buy.and_then(|buy| front.best_buy(definition, timings, buy.tolerance));
    let shown = |point: &FrontPoint| shown(id, definition, timings, point);
    Costs {
        cluster_sizes: sizes(tuning, &state.results),
        front: front.across_sizes(definition, timings).into_iter().map(shown).collect(),
        best_buy: best_buy.map(shown).map(Box::new),
    }
}

/// Returns a row for each cluster size, ascending, or for each training job definition; none where all jobs have one size.
fn sizes(tuning: &Tuning, results: &Results) -> Vec<ClusterSize> {
    let definition = &tuning.definition;
    let Results { timings, front, trials_by_size, .. } = results;
    let alone = definition.job.sizes.first().filter(|count| **count == 1);
    let alone = alone.and_then(|_| timings.epoch(SizeId(0)));
    let name = |size: SizeId| tuning.request.definition_name(size.0).filter(|_| definition.has_definitions());
    let row = |size: SizeId| {
        let epoch = timings.epoch(size);
        let time = definition.max_resource().and(epoch);
        let time = time.map(|epoch| training(definition, timings, size, epoch));
        ClusterSize {
            training_job_definition_name: name(size).map(str::to_owned),
            instance_count: definition.job.instances_of(size).count,
            trials: trials_by_size.get(size.index()).copied().unwrap_or_default(),
            best_value: front.best_of(definition, size).and_then(finite),
            seconds_per_epoch: epoch.map(seconds),
            usd_per_epoch: epoch.and_then(|epoch| cost(definition, size, epoch)),
            seconds_per_training: time.map(seconds),
            usd_per_training: time.and_then(|time| cost(definition, size, time)),
            speed_up: alone.zip(epoch).map(|(alone, epoch)| seconds(alone) / seconds(epoch)).and_then(finite),
        }
    };
    definition.job.all_sizes().filter(|_| definition.job.has_sizes()).map(row).collect()
}

fn shown(id: &str, definition: &Definition, timings: &Timings, point: &FrontPoint) -> FrontTrial {
    let size = point.size(definition);
    let time = point.time.map(|time| training(definition, timings, size, time));
    FrontTrial {
        training_job_name: training_job_name(id, point.job),
        trial: point.job.trial.0,
        value: point.value,
        resource: point.resource.0,
        instance_count: definition.job.instances_of(size).count,
        seconds_per_training: time.map(seconds),
        usd_per_training: time.and_then(|time| cost(definition, size, time)),
        measured: point.is_measured,
        tuned_hyper_parameters: point.configuration.0.clone(),
    }
}

/// Returns the cost of a time on the first instance type. An hour has a price in whole micro-dollars, so a short time is
/// a share of it.
fn cost(definition: &Definition, size: SizeId, time: Millis) -> Option<MicroUsd> {
    let hour = definition.job.instances_of(size).cost(3_600)?;
    let share = u128::from(hour.0).saturating_mul(u128::from(time.0.unsigned_abs())) / 3_600_000;
    Some(MicroUsd(u64::try_from(share).unwrap_or(u64::MAX)))
}

fn seconds(time: Millis) -> f64 {
    seconds_of(Time::EPOCH + time)
}
