//! The ports of the use cases, implemented on the world. Every call goes through [`call`], where faults strike.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use tuning::unit::time::{Millis, Time};
use use_cases::ports::table::{Page, Query, Table, TableError, Write};
use use_cases::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};
use use_cases::ports::{Bus, BusError, Clock, HandOver, HandOverError, Prices, PricesError, Timer};
use wire::item::{Item, Key};

use super::call::{Call, Mishap, call, pause, time_out};
use super::{Shared, lock};
use crate::access::{Right, kind_of, partition_kind};
use crate::case::{LISTED_KILO_GIB_HOUR, listed};
use crate::site::Op;

/// All ports of one process.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    pub(crate) world: Shared,
    /// How far the clock of this process is ahead, in ms.
    pub(crate) skew_ms: i64,
}

impl Port {
    pub(crate) fn new(world: Shared, skew_ms: i64) -> Self {
        Self { world, skew_ms }
    }
}

/// Returns the value of a future that is ready at once.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the in-memory table is always ready"),
    }
}

fn key_text(key: &Key) -> String {
    format!("{}/{}", key.pk, key.sk)
}

fn table_error(mishap: Mishap) -> TableError {
    match mishap {
        Mishap::Throttled => TableError::Throttled,
        Mishap::Unavailable | Mishap::LimitExceeded | Mishap::Refused => {
            TableError::Unavailable("no answer".to_owned())
        }
    }
}

fn training_error(mishap: Mishap) -> TrainingJobsError {
    match mishap {
        Mishap::Throttled => TrainingJobsError::Throttled,
        Mishap::Unavailable => TrainingJobsError::Unavailable("no answer".to_owned()),
        Mishap::LimitExceeded => TrainingJobsError::LimitExceeded("ResourceLimitExceeded".to_owned()),
        Mishap::Refused => TrainingJobsError::Refused {
            code: "ValidationException".to_owned(),
            message: "no such image".to_owned(),
        },
    }
}

impl Table for Port {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        let made = Call { op: Op::Get, on: key_text(key) };
        let effect = |world: &mut super::World| {
            world.accessed(Right::GetItem, kind_of(key));
            world.on_table(|table| now(table.get(key)))
        };
        call(&self.world, made, effect).await.map_err(table_error)?
    }

    async fn write(&self, write: Write) -> Result<(), TableError> {
        let made = Call { op: Op::Write, on: key_text(write.key()) };
        let effect = |world: &mut super::World| {
            world.accessed(Right::of(&write), kind_of(write.key()));
            let result = world.on_table(|table| now(table.write(write)));
            world.table_written(&result);
            result
        };
        call(&self.world, made, effect).await.map_err(table_error)?
    }

    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        let made =
            Call { op: Op::Transact, on: writes.first().map(|w| key_text(w.key())).unwrap_or_default() };
        let effect = |world: &mut super::World| {
            for write in &writes {
                world.accessed(Right::of(write), kind_of(write.key()));
            }
            let result = world.on_table(|table| now(table.transact(writes, token)));
            world.table_written(&result);
            result
        };
        call(&self.world, made, effect).await.map_err(table_error)?
    }

    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        let on = format!("{}/{} after {:?}", query.pk, query.prefix, query.after);
        let made = Call { op: Op::Query, on };
        let effect = |world: &mut super::World| {
            world.accessed(Right::Query, partition_kind(&query.pk));
            world.on_table(|table| now(table.query(query)))
        };
        call(&self.world, made, effect).await.map_err(table_error)?
    }
}

impl TrainingJobs for Port {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        let on = request["TrainingJobName"].as_str().unwrap_or_default().to_owned();
        let late = lock(&self.world).create_late(request);
        if let Some((ms, crashes)) = late {
            return Err(training_error(time_out(&self.world, ms, crashes).await));
        }
        let made = Call { op: Op::Create, on };
        call(&self.world, made, |world| world.create_job(request)).await.map_err(training_error)?
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        let made = Call { op: Op::Stop, on: name.to_owned() };
        call(&self.world, made, |world| world.stop_job(name)).await.map_err(training_error)?
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        let made = Call { op: Op::Release, on: name.to_owned() };
        call(&self.world, made, |world| world.release_job(name)).await.map_err(training_error)?
    }
    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        let made = Call { op: Op::Describe, on: name.to_owned() };
        let described = call(&self.world, made, |world| (world.task, world.describe_job(name))).await;
        let (task, described) = described.map_err(training_error)?;
        // A lost answer shows no bill.
        if let Ok(description) = &described {
            lock(&self.world).begin_reading(task, description);
        }
        described
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        let made = Call { op: Op::Tags, on: name.to_owned() };
        call(&self.world, made, |world| world.tags_of_job(name)).await.map_err(training_error)?
    }
}

impl TrainingJobListing for Port {
    async fn in_progress(&self, from: Time, page: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        let made = Call { op: Op::List, on: page.unwrap_or_default().to_owned() };
        call(&self.world, made, |world| world.list_jobs(from.0, page)).await.map_err(training_error)
    }
}

impl JobLogs for Port {
    async fn read(
        &self,
        name: &str,
        host: &str,
        from: Time,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        let made = Call { op: Op::ReadLog, on: name.to_owned() };
        let effect = |world: &mut super::World| world.read_log(name, host, from.0, page);
        call(&self.world, made, effect).await.map_err(training_error)?
    }
}

impl Bus for Port {
    async fn publish(&self, detail_type: &str, detail: &Value) -> Result<(), BusError> {
        let made = Call { op: Op::Publish, on: detail_type.to_owned() };
        let effect = |world: &mut super::World| world.check_published(detail_type, detail);
        let published = call(&self.world, made, effect).await;
        published.map_err(|_| BusError::Unavailable("no answer".to_owned()))
    }
}

impl HandOver for Port {
    async fn hand_over(&self, payload: &Value) -> Result<(), HandOverError> {
        let made = Call { op: Op::HandOver, on: payload.to_string() };
        let effect = |world: &mut super::World| world.invoke_later(payload.clone());
        let handed = call(&self.world, made, effect).await;
        handed.map_err(|_| HandOverError("no answer".to_owned()))
    }
}

impl Prices for Port {
    async fn instance_hour(&self, instance_type: &str) -> Result<Option<u64>, PricesError> {
        let made = Call { op: Op::Price, on: instance_type.to_owned() };
        let known = listed(instance_type);
        let answer = call(&self.world, made, |_| known).await;
        answer.map_err(|_| PricesError::Unavailable("no answer".to_owned()))
    }

    /// Never fails: without this price, a price in the request would count for the volume too, and the cost of a case
    /// would not be fixed.
    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        Ok(Some(LISTED_KILO_GIB_HOUR))
    }
}

impl Clock for Port {
    fn now(&self) -> Time {
        Time(lock(&self.world).now + self.skew_ms)
    }
}

impl Timer for Port {
    async fn pause(&self, span: Millis) {
        pause(&self.world, span.0).await;
    }
}
