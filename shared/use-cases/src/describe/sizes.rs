//! The cluster sizes of a tuning: what their trials have shown, and what a training costs on each.

use tuning::definition::Definition;
use tuning::state::State;
use tuning::unit::ids::{ChoiceId, SizeId};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::{Millis, Time};
use wire::describe::{ClusterSize, finite, seconds_of};

/// Returns a row for each cluster size, ascending; none where all jobs have one size.
pub(super) fn sizes(definition: &Definition, state: &State) -> Vec<ClusterSize> {
    let timings = &state.results.timings;
    let of_size = |times: &[Millis], of: &[SizeId], size: SizeId| {
        median(times.iter().zip(of).filter(|(_, of)| **of == size).map(|(time, _)| *time))
    };
    let epoch = |size: SizeId| of_size(&timings.epoch_ms, &timings.epoch_sizes, size);
    let startup = |size: SizeId| of_size(&timings.startup_ms, &timings.startup_sizes, size);
    let tail = median(timings.tail_ms.iter().copied()).unwrap_or(Millis::ZERO);
    let alone = definition.job.sizes.first().filter(|count| **count == 1).and_then(|_| epoch(SizeId(0)));
    let row = |(index, count): (usize, &u32)| {
        let size = SizeId::at(index);
        let result = state.results.sizes.get(index).copied().unwrap_or_default();
        let epoch = epoch(size);
        let training = epoch.zip(startup(size)).zip(definition.max_resource());
        // The first epoch is part of a start-up.
        let training =
            training.map(|((epoch, startup), all)| startup + epoch * all.0.saturating_sub(1) + tail);
        let cost = |time: Millis| cost(definition, size, time);
        ClusterSize {
            instance_count: *count,
            trials: result.trials,
            best_value: result.best.and_then(finite),
            seconds_per_epoch: epoch.map(seconds),
            usd_per_epoch: epoch.and_then(cost),
            seconds_per_training: training.map(seconds),
            usd_per_training: training.and_then(cost),
            speed_up: alone.zip(epoch).map(|(alone, epoch)| seconds(alone) / seconds(epoch)).and_then(finite),
        }
    };
    definition.job.sizes.iter().enumerate().map(row).collect()
}

/// Returns the cost of a time on the first instance type. An hour has a price in whole micro-dollars, so a short time is
/// a share of it.
fn cost(definition: &Definition, size: SizeId, time: Millis) -> Option<MicroUsd> {
    let hour = definition.job.instances(ChoiceId(size.0)).cost(3_600)?;
    let share = u128::from(hour.0).saturating_mul(u128::from(time.0.unsigned_abs())) / 3_600_000;
    Some(MicroUsd(u64::try_from(share).unwrap_or(u64::MAX)))
}

fn median(times: impl Iterator<Item = Millis>) -> Option<Millis> {
    let mut times: Vec<Millis> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

fn seconds(time: Millis) -> f64 {
    seconds_of(Time::EPOCH + time)
}
