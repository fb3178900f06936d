//! Explanations of trials, from the steps alone.

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobPhase};
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use use_cases::explain::{ExplainError, explain};
use use_cases::record;
use wire::explain::{ArrivalView, Compared, Comparison, CostSoFar, Entry, Explanation, Kind};

use super::world::{World, now, request};

fn explained(world: &World, trial: &impl ToString) -> Explanation {
    let explanation = now(explain(&world.store, &world.id, &trial.to_string())).unwrap().unwrap();
    // A client can read the serialized explanation.
    let json: Value = serde_json::to_value(&explanation).unwrap();
    assert_eq!(serde_json::from_value::<Explanation>(json).unwrap(), explanation);
    let own = format!("{}-{}-", world.id, explanation.trial);
    let mut names = explanation.entries.iter().filter_map(|entry| entry.training_job_name.as_ref());
    assert!(names.all(|name| name.starts_with(&own)), "another trial's entry: {explanation:#?}");
    explanation
}

fn kinds(explanation: &Explanation) -> Vec<Kind> {
    explanation.entries.iter().map(|entry| entry.kind).collect()
}

fn of_kind(explanation: &Explanation, kind: Kind) -> Vec<&Entry> {
    explanation.entries.iter().filter(|entry| entry.kind == kind).collect()
}

fn comparisons(explanation: &Explanation) -> Vec<&Comparison> {
    explanation.entries.iter().filter_map(|entry| entry.rung.as_deref()).collect()
}

/// Checks the rule of a rung against a plain list of the arrived trials: (trial, value) in order of arrival.
fn check_among(compared: &Comparison, trial: u32, arrived: &[(u32, f64)]) {
    let ranked = |upto: usize| {
        let mut list = arrived[..upto].to_vec();
        list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        list
    };
    let went_on = |n: usize| {
        let place = ranked(n + 1).iter().position(|entry| *entry == arrived[n]).unwrap();
        place < ((n + 1) / 3).max(1)
    };
    let fates: Vec<u32> = (0..arrived.len()).filter(|n| went_on(*n)).map(|n| arrived[n].0).collect();
    let expected = (1..).zip(ranked(arrived.len())).map(|(rank, (trial, value))| ArrivalView {
        rank,
        trial: TrialId(trial),
        value: Some(value),
        went_on: fates.contains(&trial),
    });
    let expected: Vec<ArrivalView> = expected.collect();
    assert_eq!(compared.arrivals, expected);
    let own = expected.iter().find(|entry| entry.trial.0 == trial).unwrap();
    assert_eq!((compared.rank, compared.went_on), (own.rank, own.went_on));
    assert_eq!(usize::try_from(compared.arrived), Ok(arrived.len()));
}

#[test]
fn a_comparison_contains_only_the_trials_that_had_arrived() {
    let mut world = World::new(17);
    let trials = world.of_bracket(0);
    assert!(trials.len() >= 9);
    let values = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.55, 0.55, 0.8];
    let arrived: Vec<(u32, f64)> = trials.iter().copied().zip(values).collect();
    for (trial, value) in &arrived {
        world.phase(*trial, JobPhase::Training);
        world.logged(*trial, &[(1, *value)]);
    }
    for (n, (trial, value)) in arrived.iter().enumerate() {
        let explanation = explained(&world, trial);
        let [compared] = comparisons(&explanation)[..] else { panic!("{explanation:?}") };
        assert_eq!(
            (compared.level, compared.epoch, compared.compared),
            (Epochs(1), Epochs(1), Compared::AtLevel)
        );
        assert_eq!(compared.value, Some(*value));
        check_among(compared, *trial, &arrived[..=n]);
    }
    let last = explained(&world, &arrived[7].0);
    let [compared] = comparisons(&last)[..] else { panic!("{last:?}") };
    // 0.7, 0.6, 0.55 and this one, because of equal values the later trial ranks lower.
    assert_eq!(
        compared.rule,
        "rank 4 of 8 arrived trials; the best 2 of 8 continue, so this trial does not continue",
    );
    let [judged] = of_kind(&last, Kind::Judged)[..] else { panic!("{last:?}") };
    assert_eq!(judged.says, format!("rung 0 at epoch 1: {}", compared.rule));
    assert_eq!(
        (last.bracket.0, last.rungs.as_slice(), last.trial.0),
        (0, &[Epochs(1), Epochs(3), Epochs(9)][..], arrived[7].0)
    );
    assert_eq!(last.tuned_hyper_parameters.len(), 1);
    let execution = "Stop, because without ResourceHyperParameter a job cannot end at a rung";
    assert_eq!(last.rung_execution.as_deref(), Some(execution));
}

#[test]
fn entries_are_in_order_and_have_their_step() {
    let mut world = World::new(17);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(1, 0.5)]);
    world.phase(0, JobPhase::Interrupted);
    world.logged(0, &[(10, 0.9)]);
    world.fact(Fact::JobStateChanged {
        job: world.job(0),
        phase: JobPhase::Ended(JobEnd::Stopped),
        started: None,
        ended: None,
        message: None,
    });
    world.billed(0, JobEnd::Stopped, 7);
    let explanation = explained(&world, &0);
    assert_eq!(
        kinds(&explanation),
        [
            Kind::JobOrdered,
            Kind::JobStarted,
            Kind::Judged,
            Kind::JobInterrupted,
            Kind::Judged,
            Kind::StopOrdered,
            Kind::BillOrdered,
            Kind::LogReadOrdered,
            Kind::TrialFinished,
        ]
    );
    assert_eq!(
        explanation.entries[3].says,
        "the training service interrupted its instances (interruption 1)"
    );
    let order: Vec<(Option<u64>, i64)> =
        explanation.entries.iter().map(|entry| (entry.step, entry.time)).collect();
    assert!(order.is_sorted() && order.iter().all(|(step, _)| step.is_some()), "{order:?}");
    let last = explanation.entries.last().unwrap();
    assert_eq!(
        last.says,
        "the trial is over: stopped after its last epoch: the model may be missing; 7 s billed, $0.0700"
    );
    assert_eq!(explanation.now, None);
    let [job] = explanation.training_jobs.as_slice() else { panic!("{explanation:?}") };
    assert_eq!((job.interruptions, job.billable_seconds, job.cost_usd), (1, Some(7), Some(MicroUsd(70_000))));
    assert_eq!((job.end.as_deref(), job.why.as_str()), (Some("Stopped"), "first attempt"));
    // 600 s, and 300 s for stop and upload, at one cent a second.
    assert_eq!((job.max_runtime_in_seconds, job.reserved_usd), (600, Some(MicroUsd(9_000_000))));
}

#[test]
fn a_value_that_arrives_after_its_comparison_is_an_entry() {
    let mut world = World::new(17);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(1, 0.5)]);
    let standing = explained(&world, &0).now;
    assert_eq!(standing.as_deref(), Some("it is at epoch 1; the next comparison is at epoch 3"));
    world.logged(0, &[(4, 0.6)]);
    let explanation = explained(&world, &0);
    let compared: Vec<_> =
        comparisons(&explanation).iter().map(|c| (c.level, c.epoch, c.compared, c.value)).collect();
    let expect = [
        (Epochs(1), Epochs(1), Compared::AtLevel, Some(0.5)),
        (Epochs(3), Epochs(4), Compared::Late, Some(0.6)),
    ];
    assert_eq!(compared, expect);
    assert_eq!(explanation.now.as_deref(), Some("it is at epoch 4 of 9, after its last comparison"));
    world.logged(0, &[(3, 0.1)]);
    let explanation = explained(&world, &0);
    let [late] = of_kind(&explanation, Kind::LateResults)[..] else { panic!("{explanation:?}") };
    assert_eq!(
        late.says,
        "the value of epoch 3 arrived after rung 1 had compared that of epoch 4: the comparison stands"
    );
    assert_eq!(late.late_values[0].value, Some(0.1));
}

#[test]
fn a_program_that_ended_before_a_rung_is_compared_by_its_last_value() {
    let mut world = World::new(17);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(1, 0.5), (2, 0.6)]);
    world.billed(0, JobEnd::Completed, 5);
    let explanation = explained(&world, &0);
    let second = comparisons(&explanation)[1];
    assert_eq!((second.level, second.epoch, second.compared), (Epochs(3), Epochs(2), Compared::Earlier));
    // The job was billed by then.
    let billed = CostSoFar { billed_seconds: 5, billed_usd: Some(MicroUsd(50_000)), ..CostSoFar::default() };
    assert_eq!(second.cost, billed);
    let says = &explanation.entries.last().unwrap().says;
    assert_eq!(says, "the trial is over: its program completed; 5 s billed, $0.0500");
}

#[test]
fn late_results_after_a_decision_and_after_the_end_are_entries() {
    let mut world = World::new(17);
    let trials = world.of_bracket(0);
    let (better, worse) = (trials[0], trials[1]);
    world.logged(better, &[(1, 0.5)]);
    world.phase(worse, JobPhase::Training);
    world.logged(worse, &[(1, 0.4)]);
    world.logged(worse, &[(2, 0.8)]);
    assert_eq!(
        explained(&world, &worse).entries.last().unwrap().says,
        "the value of epoch 2 arrived after that decision: it counts as seen, but does not change it"
    );
    world.logged(worse, &[(3, 0.9)]);
    let job = world.job(worse);
    world.billed(worse, JobEnd::Stopped, 5);
    let explanation = explained(&world, &worse);
    let [late] = of_kind(&explanation, Kind::LateResults)[..] else { panic!("{explanation:?}") };
    assert_eq!(
        late.says,
        "the values of epochs 2 to 3 arrived after that decision: they count as seen, but do not change it"
    );
    assert_eq!(late.late_values.len(), 2);
    assert_eq!(world.state().search.incumbent.unwrap().value.to_bits(), 0.9_f64.to_bits());

    // A line that no step contains.
    let fact = world.lines_of(job, &[(4, 0.95)]);
    let late = world.recorded(fact);
    now(record::deliver(&world.table, &world.id, std::slice::from_ref(&late), Time(world.now))).unwrap();
    world.fact(Fact::TimePassed);
    let explanation = explained(&world, &worse);
    let last = explanation.entries.last().unwrap();
    assert_eq!((last.kind, last.step, last.time), (Kind::LateResults, None, late.at.0));
    assert_eq!(last.says, "a value arrived after the trial was over and changed nothing");
    assert_eq!(of_kind(&explanation, Kind::LateResults).len(), 2);
}

#[test]
fn results_late_for_a_rung_and_results_after_the_stop_are_separate_entries() {
    let mut world = World::new(17);
    let trials = world.of_bracket(1);
    let (better, worse) = (trials[0], trials[1]);
    world.logged(better, &[(3, 0.9)]);
    world.logged(worse, &[(4, 0.4)]);
    world.logged(worse, &[(3, 0.3)]);
    world.logged(worse, &[(5, 0.5)]);
    world.logged(worse, &[(6, 0.6)]);
    let explanation = explained(&world, &worse);
    let late = of_kind(&explanation, Kind::LateResults);
    let epochs = |entry: &Entry| {
        entry.late_values.iter().filter_map(|late| late.epoch.map(|epoch| epoch.0)).collect::<Vec<u32>>()
    };
    let found: Vec<(Vec<u32>, bool)> =
        late.iter().map(|entry| (epochs(entry), entry.says.contains("rung 0 had compared"))).collect();
    assert_eq!(found, [(vec![3], true), (vec![5, 6], false)]);
}

#[test]
fn a_second_read_of_a_log_adds_no_entry() {
    let mut world = World::new(1);
    world.phase(0, JobPhase::Training);
    let job = world.job(0);
    let fact = world.lines_of(job, &[(1, 0.5), (2, 0.6)]);
    world.fact(fact.clone());
    world.billed(0, JobEnd::Completed, 5);
    let again = world.recorded(fact);
    now(record::deliver(&world.table, &world.id, &[again], Time(world.now))).unwrap();
    let explanation = explained(&world, &0);
    assert_eq!(of_kind(&explanation, Kind::LateResults), Vec::<&Entry>::new());
}

#[test]
fn a_further_attempt_has_a_reason_and_adds_its_estimated_cost() {
    let mut one_at_a_time = request("t", 1);
    one_at_a_time["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(9);
    let mut world = World::of(MemoryTable::new(), &one_at_a_time);
    world.phase(0, JobPhase::Training);
    world.billed(0, JobEnd::ServiceError, 3);
    assert_eq!(
        explained(&world, &0).now.unwrap(),
        "it waits for its next attempt, not before 2026-09-21T14:13:53Z"
    );
    world.now += 120_000;
    world.billed(1, JobEnd::Completed, 3);
    let second = world.job(0);
    assert_eq!(second.attempt, 2);
    world.phase(0, JobPhase::Training);
    world.now += 9_000;
    world.logged(0, &[(1, 0.5)]);
    let explanation = explained(&world, &world.name(second));
    let attempts: Vec<u32> = explanation.training_jobs.iter().map(|job| job.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    let why: Vec<&str> = explanation.training_jobs.iter().map(|job| job.why.as_str()).collect();
    assert_eq!(why, ["first attempt", "attempt 2: the training service failed during the previous attempt"]);
    let [awaited] = of_kind(&explanation, Kind::AttemptAwaited)[..] else { panic!("{explanation:?}") };
    assert!(
        awaited.says.starts_with("the training service failed (ServiceError): retried not before "),
        "{awaited:?}"
    );
    assert_eq!(awaited.training_job_name, Some(explanation.training_jobs[0].training_job_name.clone()));
    assert_eq!(of_kind(&explained(&world, &1), Kind::AttemptAwaited), Vec::<&Entry>::new());
    let [compared] = comparisons(&explanation)[..] else { panic!("{explanation:?}") };
    let expected = CostSoFar {
        billed_seconds: 3,
        billed_usd: Some(MicroUsd(30_000)),
        estimated_seconds: Some(10),
        estimated_usd: Some(MicroUsd(100_000)),
    };
    assert_eq!(compared.cost, expected);
}

#[test]
fn a_trial_without_a_numeric_value_never_continues() {
    let mut request = request("t", 17);
    request["Controller"]["MaxDivergedEpochs"] = json!(0);
    let mut world = World::of(MemoryTable::new(), &request);
    world.logged(0, &[(1, f64::NAN), (2, f64::NAN), (3, f64::NAN)]);
    let explanation = explained(&world, &0);
    let [compared] = comparisons(&explanation)[..] else { panic!("{explanation:?}") };
    assert_eq!((compared.value, compared.went_on), (None, false));
    assert_eq!(
        compared.rule,
        "rank 1 of 1 arrived trials; the best 1 of 1 continues, but a trial without a numeric value never does, so this \
         trial does not continue"
    );
    let json = serde_json::to_value(&explanation).unwrap();
    let stop = explanation.entries.iter().position(|entry| entry.kind == Kind::StopOrdered).unwrap();
    assert_eq!(json["Entries"][stop]["Says"], "stop ordered: the trial is not among the best at rung 0");
    assert_eq!(json["Entries"][stop - 1]["Rung"]["Value"], Value::Null);
}

#[test]
fn a_stop_request_is_the_reason_of_a_trial_s_stop() {
    let mut world = World::new(1);
    world.phase(0, JobPhase::Training);
    world.fact(Fact::StopRequested);
    let explanation = explained(&world, &0);
    let last = explanation.entries.last().unwrap();
    assert_eq!(last.says, "stop ordered: the tuning is ending (Stopped)");
    assert_eq!(explanation.now.as_deref(), Some("it is at epoch 0 and is being stopped"));
}

#[test]
fn an_unknown_trial_is_an_error_that_lists_the_existing_ones() {
    let mut world = World::new(3);
    world.phase(2, JobPhase::Training);
    let ask = |asked: &str| now(explain(&world.store, &world.id, asked)).unwrap_err().to_string();
    assert_eq!(ask("3"), "t has no trial 3: its trials are 0 to 2");
    let expected =
        "invalid trial 'x': expected the number of a trial, for example 0, or the name of a training job";
    assert_eq!(ask("x"), expected);
    let id = &world.id;
    assert_eq!(
        ask(&format!("{id}-2-0-9")),
        format!("no training job is named {id}-2-0-9; trial 2 has {id}-2-0-1")
    );
    assert_eq!(ask(&format!("{id}-7-0-1")), "t has no trial 7: its trials are 0 to 2");
    let other = ask("other-abc123-0-0-1");
    assert_eq!(
        other,
        format!(
            "the training job other-abc123-0-0-1 does not belong to t, whose jobs have names of the form {id}-…"
        )
    );
    assert_eq!(now(explain(&world.store, "gone-abc123", "0")), Ok::<_, ExplainError>(None));
}

#[test]
fn without_hyperband_and_a_price_an_explanation_has_no_rungs_and_costs() {
    let mut plain = request("t", 1);
    plain["Controller"] = json!({"EpochPattern": "epoch (\\d+)"});
    plain["HyperParameterTuningJobConfig"]["Strategy"] = json!("Random");
    plain["HyperParameterTuningJobConfig"]["StrategyConfig"].take();
    let config = plain["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
    config.remove("StrategyConfig");
    let mut world = World::of(MemoryTable::new(), &plain);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(1, 0.5)]);
    assert_eq!(explained(&world, &0).now.as_deref(), Some("it is at epoch 1"));
    world.billed(0, JobEnd::Completed, 5);
    let explanation = explained(&world, &0);
    assert_eq!((explanation.rungs.as_slice(), comparisons(&explanation).len()), (&[][..], 0));
    assert_eq!(explanation.rung_execution, None);
    assert!(!serde_json::to_string(&explanation).unwrap().contains("Usd"));
    assert_eq!(
        explanation.entries.last().unwrap().says,
        "the trial is over: its program completed; 5 s billed"
    );
}
