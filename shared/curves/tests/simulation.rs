//! Simulated tunings against small tables with known answers.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use curves::{Setting, Table, simulate};
use search::{Configuration, Domain, Parameter, Scaling, Space};
use tuning::definition::{Definition, Instances, JobShape, Limits, RungExecution, Scheduling, Strategy};
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::ChoiceId;
use tuning::unit::money::{MicroUsd, Rate};
use tuning::unit::time::Time;

/// Two configurations of nine epochs: rate 0.1 rises to 0.9, rate 0.9 stays at 0.1.
fn table() -> Table {
    let values = |height: f64| {
        (1..=9).map(|epoch| format!("{}", height * f64::from(epoch) / 9.0)).collect::<Vec<_>>().join(",")
    };
    let line = |rate: f64, height: f64| {
        let values = values(height);
        format!("{{\"hyperparameters\":{{\"rate\":{rate}}},\"seconds_per_epoch\":1,\"values\":[{values}]}}")
    };
    let lines = [line(0.1, 0.9), line(0.9, 0.1)].join("\n");
    let space = r#"{"type":"Maximize","max_resource":9,
        "parameters":[{"name":"rate","kind":"Continuous","min":0,"max":1,"scaling":"Linear"}]}"#;
    Table::read(lines.as_bytes(), space.as_bytes()).unwrap()
}

fn definition(rungs: RungExecution, max_jobs: u32) -> Definition {
    let domain = Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    let space = Space::new(vec![Parameter { name: "rate".to_owned(), domain }]).unwrap();
    let rate = Rate { instance_hour: 3_600_000, volume_kilo_gib_hour: 0 };
    let (limits, job) = (Limits::new(max_jobs, 4), JobShape::new(Some(rate), 3_600));
    Definition {
        strategy: Strategy::hyperband(Epochs(1), Epochs(9), 3, rungs).unwrap(),
        ..Definition::new(("simulated", "000000"), Time(0), space, limits, job)
    }
}

#[test]
fn all_jobs_run_and_the_best_configuration_is_the_best_row() {
    for rungs in [RungExecution::Stop, RungExecution::Promote(Scheduling::Asynchronous)] {
        let outcome = simulate(&table(), &definition(rungs, 20), &Setting::default(), 1).unwrap();
        assert_eq!((outcome.training_jobs, outcome.end_reason.as_str()), (20, "MaxJobs"));
        assert!((outcome.best.unwrap().value - 0.9).abs() < 1e-9);
        assert!(outcome.trials_at_max > 0 && outcome.epochs < 20 * 9, "{rungs:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let setting = Setting { noise: 0.1, time_jitter: 0.2, interruptions_per_hour: 5.0, ..Setting::default() };
    let line = |seed| {
        let outcome = simulate(&table(), &definition(RungExecution::Stop, 20), &setting, seed).unwrap();
        serde_json::to_string(&outcome).unwrap()
    };
    assert_eq!(line(3), line(3));
    assert_ne!(line(3), line(4));
}

/// One job of nine epochs of 20 s, after a start-up of 60 s.
#[test]
fn a_job_is_billed_for_its_start_up_and_its_epochs() {
    let outcome = simulate(&table(), &definition(RungExecution::Stop, 1), &Setting::default(), 0).unwrap();
    let checkpoint = &outcome.checkpoints[0];
    assert_eq!((checkpoint.billed_seconds, checkpoint.billed_training_seconds), (240.0, 180.0));
    assert_eq!((outcome.epochs, outcome.trials_at_max), (9, 1));
}

/// Curves of one and two instances: the rows of two are twice as fast and end higher.
#[test]
fn a_trial_has_a_curve_of_its_own_number_of_instances() {
    let line = |count: u32, seconds: f64, value: f64| {
        format!(
            "{{\"hyperparameters\":{{\"rate\":0.5}},\"instance_count\":{count},\"seconds_per_epoch\":{seconds},\
             \"values\":[{value},{value}]}}"
        )
    };
    let space = r#"{"type":"Maximize","max_resource":2,"parameters":[{"name":"rate","min":0,"max":1}]}"#;
    let table =
        Table::read([line(1, 2.0, 0.5), line(2, 1.0, 0.7)].join("\n").as_bytes(), space.as_bytes()).unwrap();
    let mut sized = definition(RungExecution::Stop, 1);
    let values = vec!["1".to_owned(), "2".to_owned()];
    let count = Parameter { name: "InstanceCount".to_owned(), domain: Domain::Ordinal { values } };
    sized.space = Space::new([sized.space.parameters(), &[count]].concat()).unwrap();
    sized.job.sizes = vec![1, 2];
    sized.job.fallbacks = vec![Instances { count: 2, ..sized.job.instances(ChoiceId(0)) }];
    let setting = Setting { startup_seconds: 0.0, mean_job_seconds: 3.0, ..Setting::default() };
    // Four seconds of one instance, or two seconds of two.
    for (count, value) in [("1", 0.5), ("2", 0.7)] {
        sized.initial = vec![Configuration([("InstanceCount".to_owned(), count.to_owned())].into())];
        let outcome = simulate(&table, &sized, &setting, 0).unwrap();
        assert!((outcome.best.unwrap().value - value).abs() < 1e-9, "{count}");
        assert!((outcome.instance_seconds - 4.0).abs() < 1e-9, "{}", outcome.instance_seconds);
        let first = &outcome.improvements[0];
        assert!((first.value - value).abs() < 1e-9 && first.instance_seconds <= 4.0, "{first:?}");
    }

    let mut other = definition(RungExecution::Stop, 1);
    other.job.instance_count = 3;
    let error = simulate(&table, &other, &setting, 0).unwrap_err();
    assert!(error.to_string().contains("no curve of 3 instances"), "{error}");
}

#[test]
fn the_cap_is_kept_and_its_spent_share_shown() {
    // 3 jobs of the longest time, at 1 USD an hour and second.
    let mut capped = definition(RungExecution::Stop, 1_000);
    capped.cap = Some(MicroUsd(3 * 3_900 * 1_000));
    let outcome = simulate(&table(), &capped, &Setting::default(), 0).unwrap();
    assert_eq!(outcome.end_reason, "CostCap");
    assert!(outcome.cap_spent.is_some_and(|share| (0.5..=1.0).contains(&share)), "{outcome:?}");
}

/// Without verdicts every epoch is unopposed.
#[test]
fn a_tuning_without_rungs_trains_without_rivals() {
    let random = Definition { strategy: Strategy::Independent, ..definition(RungExecution::Stop, 5) };
    let outcome = simulate(&table(), &random, &Setting::default(), 0).unwrap();
    assert_eq!((outcome.epochs_unopposed, outcome.trials_at_max), (1.0, 5));
}

#[test]
fn no_job_runs_during_an_outage_of_capacity() {
    let setting = Setting { capacity_outage: Some(0.0..7_200.0), ..Setting::default() };
    let outcome = simulate(&table(), &definition(RungExecution::Stop, 4), &setting, 0).unwrap();
    assert_eq!((outcome.training_jobs, outcome.end_reason.as_str()), (4, "MaxJobs"));
    assert!(outcome.end_seconds > 7_200.0);
}

#[test]
fn interrupted_jobs_continue_from_their_last_epoch() {
    let setting = Setting { interruptions_per_hour: 20.0, ..Setting::default() };
    let outcome = simulate(&table(), &definition(RungExecution::Stop, 12), &setting, 0).unwrap();
    let calm = simulate(&table(), &definition(RungExecution::Stop, 12), &Setting::default(), 0).unwrap();
    assert_eq!(outcome.training_jobs, 12);
    assert!(outcome.checkpoints[0].billed_seconds > calm.checkpoints[0].billed_seconds);
}

#[test]
fn unique_rows_end_with_the_table() {
    let setting = Setting { unique_rows: true, ..Setting::default() };
    let error = simulate(&table(), &definition(RungExecution::Stop, 3), &setting, 0).unwrap_err();
    let said =
        "each of the 2 rows of the table has answered a trial: set MaxNumberOfTrainingJobs to at most 2";
    assert!(error.to_string().starts_with(said), "{error}");
}

#[test]
fn unknown_hyperparameters_are_refused() {
    let mut other = definition(RungExecution::Stop, 3);
    let domain = Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    other.space = Space::new(vec![Parameter { name: "depth".to_owned(), domain }]).unwrap();
    let error = simulate(&table(), &other, &Setting::default(), 0).unwrap_err();
    assert!(error.to_string().contains("no hyperparameter depth"), "{error}");
}
