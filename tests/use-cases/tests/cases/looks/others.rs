//! Explanations of events that concern one trial of several.

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobPhase, MetricLine};
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use use_cases::explain::{ExplainError, explain};
use wire::explain::{Explanation, Kind};
use wire::sample;

use super::world::{BEGIN, World, now, request};

/// Returns the explanation of a trial, which has no other trial's training jobs.
fn explained(world: &World, trial: u32) -> Explanation {
    let explanation = now(explain(&world.store, &world.id, &trial.to_string())).unwrap().unwrap();
    let own = format!("{}-{trial}-", world.id);
    let mut names = explanation.entries.iter().filter_map(|entry| entry.training_job_name.as_ref());
    assert!(names.all(|name| name.starts_with(&own)), "{explanation:#?}");
    explanation
}

/// Returns what the explanation of trial 0 says about this kind of event, which trial 1 does not share.
fn said(world: &World, kind: Kind) -> Vec<String> {
    let of = |trial| {
        let entries = explained(world, trial).entries.into_iter().filter(|entry| entry.kind == kind);
        entries.map(|entry| entry.says).collect::<Vec<_>>()
    };
    assert_eq!(of(1), Vec::<String>::new());
    of(0)
}

#[test]
fn a_deferred_action_is_explained_once() {
    let mut world = World::new(2);
    let reason = " the service is busy\n".to_owned();
    let not_before = Time(BEGIN + 40_000);
    world.fact(Fact::ActionDeferred { job: world.job(0), not_before, reason, quota_exceeded: false });
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(1, 0.5)]);
    assert_eq!(said(&world, Kind::Deferred), ["deferred: the service is busy"]);
}

#[test]
fn a_reservation_that_a_job_outlasts_is_explained() {
    let mut world = World::new(2);
    world.phase(0, JobPhase::Training);
    world.now += 1_000_000;
    world.fact(Fact::JobSeen { job: world.job(0) });
    let bill = world.state().job(world.job(0)).unwrap().bill;
    let (seconds, amount) = (bill.extension.seconds, bill.extension.amount);
    assert!(seconds > 1_000 && amount == MicroUsd(10_000 * (seconds - 900)), "{bill:?}");
    let expected = format!(
        "it lasts longer than its reservation pays for, so {seconds} s are reserved now (${amount} more)"
    );
    assert_eq!(said(&world, Kind::ReservationExtended), [expected]);
}

#[test]
fn a_bill_that_never_arrives_is_explained() {
    let mut world = World::new(2);
    let job = world.job(0);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(9, 0.5)]);
    let phase = JobPhase::Ended(JobEnd::Completed);
    world.fact(Fact::JobStateChanged { job, phase, started: None, ended: None, message: None });
    world.fact(Fact::RestRead { job });
    assert_eq!(said(&world, Kind::BillOrdered).len(), 1);
    assert_eq!(said(&world, Kind::LogReadOrdered).len(), 1);
    world.fact(Fact::TimePassed);
    world.now += 3_600_000;
    world.fact(Fact::TimePassed);
    let expected = "its bill never arrived: the full reservation counts as spent ($9.0000)";
    assert_eq!(said(&world, Kind::SettledInFull), [expected]);
    let [ended] = &explained(&world, 0).training_jobs[..] else { panic!() };
    assert_eq!((ended.settled_in_full, ended.cost_usd), (true, Some(MicroUsd(9_000_000))));
}

#[test]
fn a_silent_job_is_checked_and_then_stopped_with_the_reason() {
    let body = sample::with(request("t", 2), json!({"Controller": {"NoObjectiveSeconds": 60}}));
    let mut world = World::of(MemoryTable::new(), &body);
    world.phase(0, JobPhase::Training);
    let since = Time(world.now);
    world.now += 61_000;
    world.fact(Fact::TimePassed);
    let expected = "no objective value since 2026-09-21T14:13:21Z: the controller reads the stored log before it stops the \
                    training job for that";
    assert_eq!(said(&world, Kind::LogReadOrdered), [expected]);
    world.fact(Fact::SilenceSeen { job: world.job(0), since });
    let expected = "stop ordered: no objective value for 60 s, and none in its stored log";
    assert_eq!(said(&world, Kind::StopOrdered), [expected]);
}

/// Without an epoch in the lines, a lost line would give a wrong epoch.
#[test]
fn the_log_of_a_restarted_job_is_read_before_a_comparison() {
    let mut body = request("t", 17);
    body["Controller"].as_object_mut().unwrap().remove("EpochPattern");
    let mut world = World::of(MemoryTable::new(), &body);
    let job = world.job(0);
    world.phase(0, JobPhase::Training);
    for (stream, lines) in [("algo-1-100", 1), ("algo-1-200", 3)] {
        let line = |n: u32| MetricLine {
            id: format!("{stream}-{n}"),
            at: Time(world.now + i64::from(n)),
            index: None,
            value: Some(0.5),
        };
        let lines = (0..lines).map(line).collect();
        let stream = format!("{}/{stream}", world.name(job));
        world.fact(Fact::MetricsLogged { job, stream, lines, began: None });
    }
    let expected = "the training program restarted: the controller reads the stored log before it compares the trial, because \
                    a lost line would give a wrong epoch";
    assert_eq!(said(&world, Kind::LogReadOrdered), [expected]);
}

#[test]
fn a_job_that_never_ran_is_explained_with_its_end() {
    let mut world = World::new(3);
    let (refused, cancelled) = (world.job(0), world.job(1));
    world.fact(Fact::StartRefused { job: refused, message: "no role".to_owned(), name_is_foreign: false });
    world.fact(Fact::JobNeverStarted { job: cancelled });
    let ends = |trial| {
        let explanation = explained(&world, trial);
        let jobs = explanation.training_jobs.into_iter();
        jobs.map(|job| (job.end, job.failure_reason)).collect::<Vec<_>>()
    };
    assert_eq!(ends(0), [(Some("Refused".to_owned()), Some("no role".to_owned()))]);
    assert_eq!(ends(1), [(Some("NeverStarted".to_owned()), None)]);
    assert_eq!(ends(2), [(None, None)]);
}

/// The order names all limits that it sends.
#[test]
fn the_order_of_a_job_is_explained_with_its_limits() {
    let spot = json!({"TrainingJobDefinition": {
        "EnableManagedSpotTraining": true,
        "StoppingCondition": {"MaxWaitTimeInSeconds": 1_200},
        "CheckpointConfig": {"S3Uri": "s3://example-bucket/c"},
    }});
    let kept = json!({"TrainingJobDefinition": {"ResourceConfig": {"KeepAlivePeriodInSeconds": 600}}});
    let cases = [
        (json!({}), None, "at most 600 s; $9.0000 reserved for the worst case"),
        (
            spot,
            Some(1_200),
            "at most 600 s (1200 s with the wait for spot capacity); $15.0000 reserved for the worst case",
        ),
    ];
    for (changes, max_wait, limits) in cases {
        let world = World::of(MemoryTable::new(), &sample::with(request("t", 2), changes));
        let explanation = explained(&world, 1);
        let first = &explanation.entries[0];
        assert_eq!(first.says, format!("training job ordered, first attempt: {limits}"));
        let job = &explanation.training_jobs[0];
        assert_eq!((job.attempt, job.rung.0, job.ordered_time), (1, 0, BEGIN));
        assert_eq!((job.max_wait_time_in_seconds, job.end.as_deref()), (max_wait, None));
    }
    let mut body = sample::with(request("t", 3), kept);
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = 1.into();
    let says = explained(&World::of(MemoryTable::new(), &body), 0).entries[0].says.clone();
    assert!(says.contains(": at most 600 s, its instances kept for at most 600 s; $"), "{says}");
}

fn median() -> World {
    let mut body = request("t", 9);
    let config = body["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
    config.remove("StrategyConfig");
    config.insert("Strategy".to_owned(), "Random".into());
    config.insert("TrainingJobEarlyStoppingType".to_owned(), "Auto".into());
    body["Controller"].as_object_mut().unwrap().remove("ReductionFactor");
    World::of(MemoryTable::new(), &body)
}

#[test]
fn the_median_rule_is_explained_with_its_numbers() {
    let mut world = median();
    for trial in 0..7 {
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(1, 0.5), (2, 0.5 - 0.01 * f64::from(trial))]);
    }
    let rule = |trial| {
        let entries = explained(&world, trial).entries;
        entries.into_iter().find_map(|entry| entry.rung).unwrap().rule
    };
    let averages = |rank: u32, others: u32| {
        format!("the running averages of {rank} of {others} earlier trials are better than its best value")
    };
    let few = "with fewer than 5 all continue, so it continued";
    assert_eq!(rule(0), format!("{}; {few}", averages(0, 0)));
    assert_eq!(rule(4), format!("{}; {few}", averages(0, 4)));
    assert_eq!(rule(5), format!("{}; at most 2 may be, so it continued", averages(0, 5)));
    assert_eq!(rule(6), format!("{}; at most 3 may be, so it continued", averages(0, 6)));
}

/// The trials at the lower level had the opposite order at the higher one.
#[test]
fn a_level_that_does_not_predict_later_values_is_explained() {
    let mut world = World::new(17);
    let trials = world.of_bracket(0);
    for (trial, value) in trials.iter().zip([0.1, 0.2, 0.3, 0.4]) {
        world.phase(*trial, JobPhase::Training);
        world.logged(*trial, &[(1, value), (3, 1.0 - value)]);
    }
    world.logged(trials[4], &[(1, 0.05)]);
    let entries = explained(&world, trials[4]).entries;
    let compared = entries.into_iter().find_map(|entry| entry.rung).unwrap();
    assert_eq!(
        compared.rule,
        "rank 5 of 5 arrived trials; values here do not predict later ones, so each arrival continues now, so it continued"
    );
}

#[test]
fn the_origin_of_each_configuration_is_explained() {
    let drawn = |changes: Value, trial| {
        let world = World::of(MemoryTable::new(), &sample::with(request("t", 2), changes));
        explained(&world, trial).drawn
    };
    let random = json!({"HyperParameterTuningJobConfig": {"Strategy": "Random", "StrategyConfig": null},
        "Controller": {"ReductionFactor": null}});
    let given = json!({"Controller": {"InitialConfigurations": [{"lr": "0.2"}]}});
    assert_eq!(drawn(given, 0), "by InitialConfigurations; a value that it lacks is drawn");
    assert_eq!(drawn(random, 1), "at random");
    assert_eq!(drawn(json!({}), 1), "from the Sobol sequence, which spreads points evenly");
}

#[test]
fn an_unknown_trial_is_refused_with_the_trials_that_exist() {
    let error = |trials, last, trial| {
        let (tuning, trial, last) = ("t".to_owned(), TrialId(trial), TrialId(last));
        ExplainError::UnknownTrial { tuning, trial, trials, last }.to_string()
    };
    assert_eq!(error(0, 0, 0), "t has no trial 0: no trial has started yet");
    assert_eq!(error(1, 0, 1), "t has no trial 1: the only trial is 0");
    assert_eq!(error(3, 2, 3), "t has no trial 3: its trials are 0 to 2");
    assert_eq!(error(3, 4, 3), "t has no trial 3: it has 3 trials, the last one is 4");
}
