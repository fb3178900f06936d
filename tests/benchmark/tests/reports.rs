//! The shipped tables, the recorded peers, and whole reports.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use benchmark::case::{Case, Source};
use benchmark::peers::Peers;
use benchmark::play::{Method, Seeds, play_all};
use benchmark::report::{CaseReport, Row, overall, report};
use benchmark::tables::cases;
use benchmark::text;
use benchmark::world::{Axis, World};
use clap::ValueEnum;
use serde_json::json;

const PUBLIC: [&str; 2] = ["digits-mlp", "direct-marketing"];

fn case(name: &str) -> Case {
    cases(&[name.to_owned()]).unwrap().pop().unwrap()
}

fn reported(name: &str, methods: &[Method], world: &World, seeds: u64, jobs: u16) -> CaseReport {
    let case = case(name);
    let runs = play_all(&case, methods, world, &Seeds { seeds: 0..seeds, jobs }).unwrap();
    report(&case, methods, &runs, world, &Peers::read().unwrap())
}

/// Every table has a valid request for each method, and curves over which trials differ.
#[test]
fn every_table_can_be_read_and_tuned() {
    let cases = cases(&[]).unwrap();
    assert!(cases.iter().filter(|case| case.source == Source::Recorded).count() >= 14);
    assert_eq!(cases.iter().filter(|case| case.source == Source::HeldOut).count(), 5);
    assert_eq!(cases.iter().filter(|case| case.source == Source::Analytic).count(), 4);
    for case in &cases {
        let table = &case.table;
        assert!(table.rows.len() >= 400 && (27..=81).contains(&table.max_resource), "{}", case.name);
        assert!(
            table.rows.iter().all(|row| row.values.iter().all(|value| value.is_finite())),
            "{}",
            case.name
        );
        let scale = case.observable();
        assert!(
            if table.maximize { scale.best > scale.median } else { scale.best < scale.median },
            "{}",
            case.name
        );
        assert_eq!((case.regret(scale.best), case.regret(scale.median)), (0.0, 1.0), "{}", case.name);
        let definition = case.definition(&json!({}), 30).unwrap();
        // The names of the request are those of the table.
        let drawn = definition.space.decode(&vec![0.5; definition.space.dimensions()]);
        assert_eq!(table.point(&drawn).unwrap().len(), definition.space.dimensions(), "{}", case.name);
    }
}

#[test]
fn an_unknown_table_is_refused_with_the_known_names() {
    let error = cases(&["digits".to_owned()]).unwrap_err().to_string();
    assert!(error.starts_with("unknown table digits: expected one of digits-mlp, "), "{error}");
}

/// The best and the median that the peers were measured with.
#[test]
fn the_public_tables_have_the_scale_of_the_recorded_peers() {
    for (name, best, median) in
        [("digits-mlp", 0.988_931, 0.932_061), ("direct-marketing", 0.780_46, 0.768_061)]
    {
        let scale = case(name).observable();
        assert!((scale.best - best).abs() < 1e-6 && (scale.median - median).abs() < 1e-6, "{name} {scale:?}");
    }
}

#[test]
fn recorded_peers_belong_to_public_tables_and_known_systems() {
    let peers = Peers::read().unwrap();
    assert!(peers.tables.keys().eq(PUBLIC.iter()) && peers.thirty_jobs.keys().eq(PUBLIC.iter()));
    let long = peers.tables.values().flatten().map(|peer| &peer.method);
    let methods: Vec<&String> =
        long.chain(peers.thirty_jobs.values().flatten().map(|peer| &peer.method)).collect();
    assert_eq!(methods.len(), 58);
    for method in methods {
        assert!(peers.versions.keys().any(|prefix| method.starts_with(prefix)), "{method}");
    }
    // The figures to beat: the least regret of any peer at each time.
    for (table, expected) in
        PUBLIC.into_iter().zip([[0.085, 0.028, 0.02, 0.011], [0.175, 0.123, 0.077, 0.036]])
    {
        let least = |at: usize| peers.tables[table].iter().filter_map(|peer| peer.obs[at]).reduce(f64::min);
        assert_eq!([0, 1, 2, 3].map(least), expected.map(Some), "{table}");
    }
}

/// The recorded `random` and `own-asha` are the same methods in the same world, so the means agree within their errors.
#[test]
fn the_rivals_reach_what_the_same_methods_were_recorded_with() {
    let world = World::new(10_000, Axis::Time, 0.0, false);
    let pairs =
        [(Method::Random, "random"), (Method::Asha, "own-asha"), (Method::AshaG9, "st13-asha-stop-g9")];
    for name in PUBLIC {
        let report = reported(name, &pairs.map(|(method, _)| method), &world, 20, 2);
        for (index, (method, peer)) in pairs.into_iter().enumerate() {
            let (own, peer) =
                (&report.rows[index], report.rows.iter().find(|row| row.recorded && row.method == peer));
            let (own_end, peer_end) = (own.obs[3].unwrap(), peer.unwrap().obs[3].unwrap());
            let error = own_end.se.unwrap() + peer_end.se.unwrap();
            let context = format!("{name} {method:?}: {own_end:?} {peer_end:?}");
            assert!((own_end.mean - peer_end.mean).abs() < 3.0 * error, "{context}");
            let billed = own.billed_minutes / peer.unwrap().billed_minutes;
            assert!((0.9..1.1).contains(&billed), "{context}, billed {billed}");
        }
    }
}

#[test]
fn a_rival_at_equal_cost_bills_as_much_as_the_controller() {
    let world = World::new(30, Axis::Time, 0.0, false);
    let methods = [Method::Hyperband, Method::RandomBilled];
    let runs = play_all(&case("digits-mlp"), &methods, &world, &Seeds { seeds: 0..3, jobs: 1 }).unwrap();
    for (ours, rival) in runs[0].iter().zip(&runs[1]) {
        let billed = [ours, rival].map(|run| run.checkpoints.last().unwrap().billed_seconds);
        assert!((billed[0] - billed[1]).abs() < 0.01 && ours.trials == 30 && rival.trials < 30, "{billed:?}");
    }
}

/// A method that bills little in an hour is measured later, not earlier in its search.
#[test]
fn a_tuning_is_measured_where_it_has_billed_so_much() {
    let world = World::new(10_000, Axis::Billed, 0.0, false);
    let methods = [Method::Hyperband, Method::Random, Method::Asha];
    let runs = play_all(&case("digits-mlp"), &methods, &world, &Seeds { seeds: 0..1, jobs: 1 }).unwrap();
    for run in runs.iter().flatten() {
        let billed = run.checkpoints.iter().map(|state| state.billed_training_seconds);
        // Four jobs train at most 30 s each between two states.
        let expected = world
            .points()
            .iter()
            .zip(billed)
            .map(|(point, billed)| (0.0..=120.0).contains(&(billed - point)));
        assert_eq!(expected.collect::<Vec<_>>(), [true; 4]);
    }
    let end = |method: usize| runs[method][0].checkpoints[3].seconds;
    assert!(end(2) > 2.0 * end(1), "{} {}", end(2), end(1));
    let report = reported("digits-mlp", &methods, &world, 1, 1);
    let known = |row: &Row| row.recorded || row.trials.is_some();
    assert!(!report.rows.iter().any(known), "a peer, or the trials of a later time");
    assert!(text::of_case(&report, &world).contains("obs 0.25 h billed (se) | obs 0.5 h billed (se)"));
}

#[test]
fn the_same_options_give_the_same_bytes_with_any_number_of_threads() {
    let world = World::new(30, Axis::Time, 0.03, true);
    let lines = |threads| {
        let report = reported("digits-mlp", Method::value_variants(), &world, 3, threads);
        (json!(report).to_string(), text::of_case(&report, &world))
    };
    let (json, text) = lines(1);
    assert_eq!((&json, &text), (&lines(3).0, &lines(3).1));
    // 30 jobs: eight methods, thirteen recorded peers, and four ratios for each of the controller's methods.
    assert_eq!(text.lines().filter(|line| line.starts_with("| ")).count(), 2 + 8 + 13);
    assert_eq!(text.lines().filter(|line| line.starts_with("- ")).count(), 12);
    assert_eq!(text.matches("neither noise nor unique rows").count(), 3);
}

/// Where the rows are used up, the controller's tuning ends after a job for each row.
#[test]
fn a_tuning_may_use_up_the_rows() {
    let world = World::new(600, Axis::Time, 0.0, true);
    let report = reported("digits-mlp", &[Method::RandomHyperband, Method::Asha], &world, 1, 1);
    assert_eq!([report.rows[0].trials, report.rows[1].trials], [Some(531.0); 2]);
}

/// Random search trains 30 jobs whole, about 30 x 180 s. ASHA trains far less. The ratio follows from the rows.
#[test]
fn thirty_jobs_are_measured_at_their_end() {
    let world = World::new(30, Axis::Time, 0.0, false);
    let methods = [Method::RandomHyperband, Method::Random, Method::Asha];
    let report = reported("direct-marketing", &methods, &world, 20, 2);
    let share = |index: usize| report.rows[index].billed_share.unwrap();
    assert!((0.9..1.1).contains(&share(1)) && share(2) < 0.3, "{} {}", share(1), share(2));
    let obs = |index: usize| report.rows[index].obs[0].unwrap().mean;
    let expected = obs(0) / obs(1).min(obs(2));
    assert_eq!(report.ratios[0].at, [Some(expected)]);
    let means = overall(&[report]);
    assert!((means[0].mean.unwrap() - expected).abs() < 1e-12 && means[0].others == "rivals");
}
