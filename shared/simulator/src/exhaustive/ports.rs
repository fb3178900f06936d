//! The ports of a process in the small world. A process stands still before the call after those that it may make.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use serde_json::Value;
use tuning::unit::time::{Millis, Time};
use use_cases::ports::table::{Page, Query, Table, TableError, Write};
use use_cases::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};
use use_cases::ports::{Bus, BusError, Clock, HandOver, HandOverError, Prices, PricesError, Timer};
use wire::item::{Item, Key};
use wire::names::parse_training_job_name;

use super::small::{Job, Small, Stage};
#[cfg(feature = "planted")]
use crate::site::Function;
use crate::world::ports::now;

#[derive(Debug, Clone)]
pub(super) struct Port(pub(super) Arc<Mutex<Small>>);

impl Port {
    pub(super) fn world(&self) -> MutexGuard<'_, Small> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the process may make a call, and makes it.
    async fn call<R>(&self, effect: impl FnOnce(&mut Small) -> R) -> R {
        poll_fn(|_| match &mut self.world().calls_left {
            Some(0) => Poll::Pending,
            Some(left) => {
                *left -= 1;
                Poll::Ready(())
            }
            None => Poll::Ready(()),
        })
        .await;
        effect(&mut self.world())
    }
}

fn known<'a>(world: &'a mut Small, name: &str) -> Result<&'a mut Job, TrainingJobsError> {
    let now = world.now;
    world
        .jobs
        .get_mut(name)
        .filter(|job| job.is_visible(now))
        .ok_or_else(|| TrainingJobsError::NotFound(name.to_owned()))
}

#[cfg(feature = "planted")]
impl crate::mutants::Ports for Port {
    fn function(&self) -> Function {
        self.world().function
    }

    fn stored(&self, key: &Key) -> Option<Item> {
        now(self.world().table.get(key)).ok().flatten()
    }
}

impl Table for Port {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        self.call(|world| now(world.table.get(key))).await
    }

    async fn write(&self, write: Write) -> Result<(), TableError> {
        self.call(|world| now(world.table.write(write))).await
    }

    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        self.call(|world| now(world.table.transact(writes, token))).await
    }

    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        self.call(|world| now(world.table.query(query))).await
    }
}

impl TrainingJobs for Port {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        let effect = |world: &mut Small| {
            let name = request["TrainingJobName"].as_str().unwrap_or_default();
            if world.jobs.contains_key(name) {
                return Err(TrainingJobsError::NameTaken(name.to_owned()));
            }
            let invalid = || TrainingJobsError::Refused {
                code: "ValidationException".to_owned(),
                message: name.to_owned(),
            };
            let (_, key) = parse_training_job_name(name).ok_or_else(invalid)?;
            world.create(name, key, request);
            Ok(())
        };
        self.call(effect).await
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        let effect = |world: &mut Small| {
            let job = known(world, name)?;
            if !job.is_running() {
                return Err(TrainingJobsError::AlreadyEnded(name.to_owned()));
            }
            job.stop_asked = true;
            Ok(())
        };
        self.call(effect).await
    }

    async fn release(&self, _: &str) -> Result<(), TrainingJobsError> {
        self.call(|_| Ok(())).await
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        let effect = |world: &mut Small| {
            let now = world.now;
            let job = known(world, name)?;
            let (status, secondary_status) = job.status();
            Ok(Description {
                name: name.to_owned(),
                status: status.to_owned(),
                secondary_status: secondary_status.to_owned(),
                created: Time(job.created),
                started: job.started.map(Time),
                ended: job.ended.map(Time),
                modified: Time(job.changed_at()),
                billable_seconds: job.shown_bill(now),
                failure_reason: (job.stage == Stage::Ended("Failed"))
                    .then(|| "AlgorithmError: exit code 1".to_owned()),
                interruptions: 0,
                final_metrics: Vec::new(),
                warm_pool: None,
            })
        };
        self.call(effect).await
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        self.call(|world| known(world, name).map(|job| job.tags.clone())).await
    }
}

impl TrainingJobListing for Port {
    async fn in_progress(&self, from: Time, _: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        let effect = |world: &mut Small| {
            let running = world.jobs.iter().filter(|(_, job)| job.is_running() && job.created >= from.0);
            let listed = running.map(|(name, job)| Listed { name: name.clone(), created: Time(job.created) });
            Ok(Paged { items: listed.collect(), next: None })
        };
        self.call(effect).await
    }
}

impl JobLogs for Port {
    async fn read(
        &self,
        name: &str,
        _: &str,
        from: Time,
        _: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        let effect = |world: &mut Small| {
            let job = known(world, name)?;
            let stream = job.stream(name);
            let line = |((at, message), n): (&(i64, String), u32)| LogLine {
                stream: stream.clone(),
                id: format!("{n:020}"),
                timestamp: Time(*at),
                message: message.clone(),
            };
            let lines = job.lines.iter().zip(1..).filter(|((at, _), _)| *at >= from.0);
            Ok(Paged { items: lines.map(line).collect(), next: None })
        };
        self.call(effect).await
    }
}

impl Bus for Port {
    async fn publish(&self, _: &str, _: &Value) -> Result<(), BusError> {
        self.call(|_| Ok(())).await
    }
}

impl HandOver for Port {
    async fn hand_over(&self, _: &Value) -> Result<(), HandOverError> {
        Err(HandOverError("this world has no second invocation".to_owned()))
    }
}

impl Prices for Port {
    async fn instance_hour(&self, _: &str) -> Result<Option<u64>, PricesError> {
        Ok(None)
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        Ok(Some(0))
    }
}

impl Clock for Port {
    fn now(&self) -> Time {
        Time(self.world().now)
    }
}

impl Timer for Port {
    fn pause(&self, span: Millis) -> impl Future<Output = ()> + Send {
        self.world().now += span.0;
        std::future::ready(())
    }
}
