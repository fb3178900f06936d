//! The local training service fulfills the contract of every training service.

use std::time::Duration;

use local::training::TrainingService;
use port_tests::training::{self as contract, Program, Stage};
use serde_json::Value;

use crate::world::{World, request};

/// Ends, fails or sleeps, as the hyperparameter `program` says.
const SCRIPT: &str =
    "case $SM_HP_PROGRAM in Ends) echo one; echo two;; Fails) exit 3;; *) exec sleep 600;; esac";

impl Stage for World {
    type Jobs = TrainingService;

    fn jobs(&self) -> &TrainingService {
        &self.service
    }

    fn name(&self, number: u32) -> String {
        format!("job-{number}")
    }

    fn request(&self, name: &str, program: Program) -> Option<Value> {
        let mut request = request(name);
        request["HyperParameters"]["program"] = format!("{program:?}").into();
        Some(request)
    }

    async fn pause(&self) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_fulfills_the_contract() {
    let world = World::new(SCRIPT).await;
    contract::all(&world).await;
    contract::logs(&world, &world.service).await;
}
