//! The model of the training service keeps the contract of every training service, as far as it can be driven without a
//! tuning: calls take effect at once, and time passes from one event of its jobs to the next.
//!
//! Its programs all end well, and none fails by itself: the case of failures is left to those with real processes. What
//! the checkers say of jobs that nobody ordered is not looked at.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::Mutex;

use serde_json::{Value, json};
use service::contract::training::{self as contract, Program, Stage};
use service::ports::Millis;
use service::ports::training::{
    Description, Listed, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};

use super::ports::now;
use super::queue::Event;
use super::{Shared, World, lock};
use crate::case::{Case, Choices};
use crate::plan::Plan;

/// Time that passes where nothing is due, ms.
const IDLE_MS: i64 = 1_000;

/// The training service, without the calls' time and faults.
struct Jobs(Shared);

impl TrainingJobs for Jobs {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        lock(&self.0).create_job(request)
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        lock(&self.0).stop_job(name)
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        lock(&self.0).release_job(name)
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        lock(&self.0).describe_job(name)
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        lock(&self.0).tags_of_job(name)
    }
}

impl TrainingJobListing for Jobs {
    async fn in_progress(
        &self,
        from: Millis,
        page: Option<&str>,
    ) -> Result<Paged<Listed>, TrainingJobsError> {
        Ok(lock(&self.0).list_jobs(from, page))
    }
}

struct Model {
    jobs: Jobs,
    kind: &'static str,
}

impl Stage for Model {
    type Jobs = Jobs;

    fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    fn name(&self, number: u32) -> String {
        format!("suite-abc123-{number}-0-1")
    }

    fn request(&self, name: &str, program: Program) -> Option<Value> {
        (program != Program::Fails).then(|| {
            json!({
                "TrainingJobName": name,
                "HyperParameters": {},
                "ResourceConfig": {"InstanceType": self.kind, "InstanceCount": 1, "VolumeSizeInGB": 30},
                "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
            })
        })
    }

    fn pause(&self) -> impl Future<Output = ()> + Send {
        let mut world = lock(&self.jobs.0);
        match world.queue.pop() {
            None => world.now += IDLE_MS,
            Some((at, event)) => {
                world.now = at;
                match event {
                    Event::Tick { job, generation, tick } => world.tick(job, generation, tick),
                    Event::Flush { job, stream } => world.flush(job, stream),
                    // For functions, of which there is none.
                    _ => {}
                }
            }
        }
        ready(())
    }
}

#[test]
fn the_model_keeps_the_contract() {
    let choices = Choices { hyperband: Some((1, 81, 3)), ..Choices::plain() };
    let case = Case::of("suite", &choices);
    let kind = case.cluster(0).kind;
    let world = World::new(7, Plan::calm(), vec![case], false);
    let model = Model { jobs: Jobs(Mutex::new(world).into()), kind };
    now(contract::all(&model));
}
