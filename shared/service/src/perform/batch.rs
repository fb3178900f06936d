//! A batch of new action rows from the stream: what is to be stopped first, then what is to be started, then the rest.
//!
//! Behind a batch wait the stops of the next one, so what may take long, reading logs, is bounded here; the sweeper reads what
//! is left. In whatever order a job's start and stop are performed, it ends stopped or never started.

use serde_json::Value;
use wire::events::stream::{self, BadRecord, RecordKind};
use wire::stored::{self, ACTION_PREFIX};

use super::{Actuator, News, Performed};
use crate::batch::{Batch, Part, Progress, Unreadable};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, Clock, Millis};

/// Pages of one log read at most.
const LOG_PAGES: usize = 10;
/// No log is begun to be read later than so long after a batch's beginning, ms.
const READS_MS: Millis = 15_000;

/// What became of an action in a batch.
#[derive(Debug, Default)]
pub struct Act {
    /// Its name.
    pub action: String,
    /// What became of it.
    pub performed: Option<Performed>,
    /// Why the event bus was not told of it, where it should have been.
    pub unpublished: Option<String>,
}

/// A batch of new action rows: each part is one.
pub type Acts = Batch<Act>;

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// Takes a batch of stream records of new action rows, one by one, as long as `goes_on` says so; `acts` tells what
    /// became of it and what is to be delivered again. What costs money while it waits comes first.
    pub async fn handle(&self, event: &Value, goes_on: impl Fn() -> bool + Send, acts: &mut Acts) {
        sort(event, acts);
        let reads_until = self.clock.now().saturating_add(READS_MS);
        for part in &mut acts.parts {
            if !goes_on() {
                return;
            }
            if reads(&part.done.action) && self.clock.now() >= reads_until {
                part.done.performed = Some(Performed::PutOff("the sweeper reads it".to_owned()));
                part.progress = Progress::Done;
                continue;
            }
            part.progress = match self.perform_reading(&part.tuning, &part.done.action, LOG_PAGES).await {
                Ok(performed) => {
                    part.done.performed = Some(performed);
                    Progress::Done
                }
                Err(error) => Progress::Failed(error),
            };
        }
        // Last, so that no bus that is slow keeps a job from being stopped.
        for Part { tuning, done, .. } in &mut acts.parts {
            let Some(performed) = &done.performed else { continue };
            let Some(news) = News::of(&done.action, performed) else { continue };
            let published =
                if goes_on() { self.publish(tuning, news).await } else { Err("no time was left".to_owned()) };
            done.unpublished = published.err();
        }
    }
}

/// The parts of a batch in the order in which they are performed; records of other rows than new actions concern nobody.
fn sort(event: &Value, acts: &mut Acts) {
    for record in stream::parse(event) {
        match record {
            Ok(record) if record.kind == RecordKind::Insert => {
                let Some(id) = stored::id_of(&record.key, ACTION_PREFIX) else { continue };
                let mut part = Part::<Act>::new(id);
                part.done.action.clone_from(&record.key.sk);
                part.sequences.push(record.sequence_number);
                acts.parts.push(part);
            }
            Ok(_) => {}
            Err(BadRecord { sequence_number: sequence, reason }) => {
                acts.unreadable.push(Unreadable { sequence, tuning: None, reason });
            }
        }
    }
    acts.parts.sort_by_key(|part| turn(&part.done.action));
}

/// When an action's turn comes, by its name. Those of one turn keep their order.
fn turn(action: &str) -> u32 {
    match action.split('-').next().unwrap_or_default() {
        "stop" => 0,
        "start" => 1,
        "grant" | "return" | "release" | "pool" => 2,
        _ if !reads(action) => 3,
        _ => 4,
    }
}

/// Whether an action may read a log.
fn reads(action: &str) -> bool {
    matches!(action.split('-').next().unwrap_or_default(), "bill" | "read" | "look")
}
