//! Runs the contract tests of every training service on the model. No tuning is involved: calls take effect at once,
//! and time advances from one event of a job to the next.
//!
//! All programs of this test succeed; the tests with real processes cover failures. Violations for jobs that no step
//! ordered are ignored.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::Mutex;

use port_tests::training::{self as contract, Program, Stage};
use serde_json::{Value, json};
use tuning::unit::ids::ChoiceId;
use tuning::unit::time::Time;
use use_cases::ports::training::{
    Description, Listed, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};

use super::ports::now;
use super::queue::Event;
use super::{Shared, World, lock};
use crate::case::{Case, Choices};
use crate::plan::Plan;

/// Time that passes when no event is due, in ms.
const IDLE_MS: i64 = 1_000;

/// The training service without call durations and faults.
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
    async fn in_progress(&self, from: Time, page: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        Ok(lock(&self.0).list_jobs(from.0, page))
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
                    // Events for functions; this test has no functions.
                    _ => {}
                }
            }
        }
        ready(())
    }
}

#[test]
fn the_model_fulfills_the_contract_of_training_services() {
    let choices = Choices { hyperband: Some((1, 81, 3)), ..Choices::plain() };
    let case = Case::of("suite", &choices);
    let kind = case.cluster(ChoiceId(0)).kind;
    let world = World::new(7, Plan::calm(), vec![case], false);
    let model = Model { jobs: Jobs(Mutex::new(world).into()), kind };
    now(contract::all(&model));
}
