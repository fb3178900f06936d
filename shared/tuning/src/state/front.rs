//! The front of value against cost: the trials of which no other has a value as good and a training as cheap.

use std::cmp::Ordering;

use hyperband::ranking::{Direction, improves, is_within};
use search::Configuration;
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::{JobEnd, JobKey};
use crate::trial::Trial;
use crate::trial::timing::{Timing, Timings};
use crate::unit::epochs::Epochs;
use crate::unit::ids::SizeId;
use crate::unit::limits::FRONT_POINTS_MAX;
use crate::unit::time::Millis;

/// The trials of which no other trial of the same cluster size has a value as good and an epoch as short; the best value
/// first, at most [`FRONT_POINTS_MAX`]. Only jobs that count show values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Front(Vec<FrontPoint>);

/// A trial of the front.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrontPoint {
    /// Its latest job that counts.
    pub job: JobKey,
    /// Its best value at any epoch.
    pub value: f64,
    /// The epoch of that value.
    pub resource: Epochs,
    /// See [`Trial::time`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Millis>,
    /// Whether it trained all epochs, so that its pace is measured over all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_measured: bool,
    /// Its hyperparameters.
    pub configuration: Configuration,
}

/// Returns the billed time of one training of all epochs on this cluster size, in a trial with this [`Trial::time`]. The
/// first epoch is part of a start-up, and counts alone until a job has shown one.
pub fn training(definition: &Definition, timings: &Timings, size: SizeId, time: Millis) -> Millis {
    match definition.max_resource() {
        Some(all) if all > Epochs::ONE => {
            timings.startup(size).unwrap_or(time) + time * all.0.saturating_sub(1) + timings.tail(size)
        }
        Some(_) | None => time,
    }
}

/// Like [`training`], summed over the instances, in milliseconds. The cost is proportional to it. Instances of several
/// training job definitions count with their price, if all have one.
pub(crate) fn instance_ms(definition: &Definition, timings: &Timings, size: SizeId, time: Millis) -> u64 {
    let instances = |size| definition.job.instances_of(size);
    let hour = |size| instances(size).cost(3_600).map(|cost| cost.0);
    let are_priced =
        definition.has_definitions() && definition.job.all_sizes().all(|size| hour(size).is_some());
    let weight = hour(size).filter(|_| are_priced).unwrap_or(u64::from(instances(size).count));
    training(definition, timings, size, time).0.unsigned_abs().saturating_mul(weight)
}

impl Trial {
    /// Returns the time of an epoch of the trial as far as its log shows it. Without `MaxResource`, or if that is 1, returns
    /// the time of the whole training, once a job has completed it without an interruption.
    pub fn time(&self, definition: &Definition) -> Option<Millis> {
        match definition.max_resource() {
            Some(all) if all > Epochs::ONE => {
                self.job().and_then(|job| Timing::of(definition, self, job).epoch).max(self.epoch_ms)
            }
            Some(_) | None => self.whole_ms,
        }
    }

    /// Keeps the time of a job that trained from the beginning to its end. A job that continues from a checkpoint shows
    /// only a part of it.
    pub(crate) fn note_whole(&mut self, definition: &Definition, job: &Job) {
        let is_whole =
            job.end() == Some(JobEnd::Completed) && job.order.attempt == 1 && job.interruptions() == 0;
        if is_whole && definition.max_resource().is_none_or(|all| all == Epochs::ONE) {
            self.whole_ms =
                job.ended().zip(job.started()).map(|(ended, started)| (ended - started).or_zero());
        }
    }
}

impl FrontPoint {
    /// See [`instance_ms`]; the greatest number while the trial shows no time.
    fn instance_ms(&self, definition: &Definition, timings: &Timings) -> u64 {
        let size = self.size(definition);
        self.time.map_or(u64::MAX, |time| instance_ms(definition, timings, size, time))
    }

    /// Returns its cluster size.
    pub fn size(&self, definition: &Definition) -> SizeId {
        definition.size_of(self.job.trial, &self.configuration)
    }

    fn compare(&self, other: &Self, direction: Direction) -> Ordering {
        if improves(direction, self.value, other.value) {
            Ordering::Less
        } else if improves(direction, other.value, self.value) {
            Ordering::Greater
        } else {
            self.job.trial.cmp(&other.job.trial)
        }
    }

    /// Returns whether it is at least as good and as fast as `other`, which has the same size.
    fn covers(&self, other: &Self, direction: Direction) -> bool {
        let is_as_fast = match (self.time, other.time) {
            (Some(own), Some(others)) => own <= others,
            (_, None) => true,
            (None, Some(_)) => false,
        };
        is_as_fast && !improves(direction, other.value, self.value)
    }
}

impl Front {
    /// Returns the points, the best value first.
    pub fn iter(&self) -> impl Iterator<Item = &FrontPoint> {
        self.0.iter()
    }

    /// Returns the point with the best value.
    pub fn best(&self) -> Option<&FrontPoint> {
        self.0.first()
    }

    /// Returns the best value of a cluster size.
    pub fn best_of(&self, definition: &Definition, size: SizeId) -> Option<f64> {
        let best = self.0.iter().find(|point| point.size(definition) == size);
        best.map(|point| point.value)
    }

    /// Returns the points of which no other one, also of another size, has a value as good and a training as cheap; the
    /// best value first.
    pub fn across_sizes(&self, definition: &Definition, timings: &Timings) -> Vec<&FrontPoint> {
        let cost = |point: &FrontPoint| point.instance_ms(definition, timings);
        let mut points: Vec<(u64, &FrontPoint)> = self.0.iter().map(|point| (cost(point), point)).collect();
        // Of equal values the cheapest comes first.
        points.sort_by(|(cost, a), (other, b)| {
            let is_equal = a.value.to_bits() == b.value.to_bits();
            if is_equal { cost.cmp(other) } else { a.compare(b, definition.direction()) }
        });
        let mut cheapest = u64::MAX;
        let mut front = Vec::new();
        for (cost, point) in points {
            if front.is_empty() || cost < cheapest {
                front.push(point);
                cheapest = cost;
            }
        }
        front
    }

    /// Returns the cheapest point whose value is worse than the best one by at most `tolerance`. Of equally cheap
    /// ones, returns that with the best value; of unknown costs, the best.
    pub fn best_buy(
        &self,
        definition: &Definition,
        timings: &Timings,
        tolerance: f64,
    ) -> Option<&FrontPoint> {
        let best = self.best()?;
        let within = self.0.iter().take_while(|point| is_within(point.value, best.value, tolerance));
        within.min_by_key(|point| point.instance_ms(definition, timings))
    }

    /// Adds what a job that counts has shown of its trial.
    pub(crate) fn add(&mut self, definition: &Definition, job: JobKey, trial: &Trial) {
        let direction = definition.direction();
        let values = trial.curve.iter().filter_map(|(epoch, value)| Some((*epoch, (*value)?)));
        let best = values.reduce(|best, new| if improves(direction, new.1, best.1) { new } else { best });
        let Some((resource, value)) = best.filter(|_| trial.refit().is_none()) else { return };
        let size = |point: &FrontPoint| point.size(definition);
        let mut new = FrontPoint {
            job,
            value,
            resource,
            time: trial.time(definition),
            is_measured: false,
            configuration: trial.configuration.clone(),
        };
        if let Some(index) = self.0.iter().position(|point| point.job.trial == job.trial) {
            // The curve of a trial that waited may lack points.
            let known = self.0.remove(index);
            if !improves(direction, new.value, known.value) {
                (new.value, new.resource) = (known.value, known.resource);
            }
            new.time = new.time.or(known.time);
        }
        let has_all = definition.max_resource().is_none_or(|all| trial.resource() >= all);
        new.is_measured = has_all && new.time.is_some();
        let own = size(&new);
        if self.0.iter().any(|point| size(point) == own && point.covers(&new, direction)) {
            return;
        }
        self.0.retain(|point| size(point) != own || !new.covers(point, direction));
        self.0.push(new);
        self.0.sort_by(|a, b| a.compare(b, direction));
        if self.0.len() > FRONT_POINTS_MAX {
            self.thin_out(definition);
        }
    }

    /// Removes a point that is no best buy: the worst one outside the tolerance; without one, a point of the size with most
    /// points, where it leaves the smallest gap. The best of a size stays, and its fastest as long as it can.
    fn thin_out(&mut self, definition: &Definition) {
        let size = |point: &FrontPoint| point.size(definition);
        let is_best = |point: &FrontPoint| {
            self.0.iter().find(|best| size(best) == size(point)).is_some_and(|best| best.job == point.job)
        };
        let outside = definition.best_buy.zip(self.best()).and_then(|(buy, best)| {
            let is_outside = |point: &FrontPoint| !is_within(point.value, best.value, buy.tolerance);
            self.0.iter().rposition(|point| is_outside(point) && !is_best(point))
        });
        if let Some(index) = outside {
            self.0.remove(index);
            return;
        }
        let of_size = |own: SizeId| -> Vec<usize> {
            let points = self.0.iter().enumerate().filter(|(_, point)| size(point) == own);
            points.map(|(index, _)| index).collect()
        };
        let most = definition.job.all_sizes().map(of_size).max_by_key(Vec::len).unwrap_or_default();
        let time = |index: &usize| self.0.get(*index).and_then(|point| point.time).unwrap_or(Millis::MAX);
        let gaps = most.windows(3).filter_map(|around| match around {
            [slower, own, faster] => Some((time(slower) - time(faster), *own)),
            _ => None,
        });
        if let Some(index) = gaps.min().map(|(_, own)| own).or(most.last().copied()) {
            self.0.remove(index);
        }
    }
}
