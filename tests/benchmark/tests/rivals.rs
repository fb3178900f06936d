//! The rival methods on tiny tables, against schedules worked out by hand.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use benchmark::rival::{Rival, play};
use benchmark::world::Run;
use curves::{Setting, Table, noise};
use hyperband::plan::Plan;
use search::sampler::point;
use search::{Domain, Parameter, SamplerKind, Scaling, Space};

/// Returns a table whose rows divide the unit interval of `rate` evenly, an epoch a second.
fn table(curves: &[[f64; 9]], direction: &str) -> Table {
    let count = f64::from(u32::try_from(curves.len()).unwrap());
    let line = |(index, values): (u32, &[f64; 9])| {
        let rate = (f64::from(index) + 0.5) / count;
        format!(r#"{{"hyperparameters":{{"rate":{rate}}},"seconds_per_epoch":1,"values":{values:?}}}"#)
    };
    let lines = (0..).zip(curves).map(line).collect::<Vec<_>>().join("\n");
    let parameters = r#"[{"name":"rate","min":0,"max":1}]"#;
    let space = format!(r#"{{"type":"{direction}","max_resource":9,"parameters":{parameters}}}"#);
    Table::read(lines.as_bytes(), space.as_bytes()).unwrap()
}

fn space() -> Space {
    let domain = Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    Space::new(vec![Parameter { name: "rate".to_owned(), domain }]).unwrap()
}

/// Returns a setting in which a job waits 60 s and trains for 20 s an epoch.
fn setting(workers: u32) -> Setting {
    Setting { workers, ..Setting::default() }
}

/// Returns the first seed whose first trials have these rows of three, at random.
fn seed_with(rows: &[u32]) -> u64 {
    seed_of(SamplerKind::Random, rows)
}

fn seed_of(sampler: SamplerKind, rows: &[u32]) -> u64 {
    let row = |seed, trial| (0..3).find(|row| point(1, sampler, seed, trial)[0] < f64::from(row + 1) / 3.0);
    (0..10_000)
        .find(|seed| (0..).zip(rows).all(|(trial, wanted)| row(*seed, trial) == Some(*wanted)))
        .unwrap()
}

/// Three rows that rise at the same rate to 0.9, 1.9 and 2.9.
fn rising() -> [[f64; 9]; 3] {
    let mut rows = [[0.0; 9]; 3];
    for (row, height) in rows.iter_mut().zip([0.0, 1.0, 2.0]) {
        for (value, epoch) in row.iter_mut().zip(1..) {
            *value = height + f64::from(epoch) / 10.0;
        }
    }
    rows
}

fn at_end(run: &Run) -> (u32, f64, f64, f64) {
    let end = run.checkpoints.last().unwrap();
    (run.trials, end.seconds, end.billed_seconds, end.billed_training_seconds)
}

/// One worker, rungs at 1 and 3. The first trial has no rival and trains to its end in 240 s. The worse second one stops
/// at epoch 1 after 80 s. The better third one is the best of its rungs and trains to its end.
#[test]
fn asha_stops_a_trial_that_is_not_among_the_best_third_of_its_rung() {
    let table = table(&rising(), "Maximize");
    let run =
        play(&Rival::Asha { grace: 1 }, &table, &space(), &setting(1), 3, seed_with(&[1, 0, 2])).unwrap();
    assert_eq!(at_end(&run), (3, 560.0, 560.0, 380.0));
    assert_eq!((run.checkpoints[0].best_observed, run.checkpoints[0].best_full), (Some(2.9), Some(2.9)));
}

/// Rungs at 1, 2 and 4, and half of the trials go on: the first and the third one again.
#[test]
fn the_rival_with_the_rungs_of_the_controller_keeps_the_better_half() {
    let rival = Rival::Late(Plan::hyperband(1, 9, 2).unwrap().highest(100, 0));
    let seed = seed_of(SamplerKind::Sobol, &[1, 0, 2]);
    let run = play(&rival, &table(&rising(), "Maximize"), &space(), &setting(1), 3, seed).unwrap();
    assert_eq!(at_end(&run), (3, 560.0, 560.0, 380.0));
    assert_eq!((run.checkpoints[0].best_observed, run.checkpoints[0].best_full), (Some(2.9), Some(2.9)));
}

/// Like above with smaller values as better ones: the second trial is now the better one, and the third stops.
#[test]
fn asha_minimizes() {
    let table = table(&rising(), "Minimize");
    let run =
        play(&Rival::Asha { grace: 1 }, &table, &space(), &setting(1), 3, seed_with(&[1, 0, 2])).unwrap();
    assert_eq!(at_end(&run), (3, 560.0, 560.0, 380.0));
    assert_eq!((run.checkpoints[0].best_observed, run.checkpoints[0].best_full), (Some(0.1), Some(0.9)));
}

/// The first rung is at epoch 3, so the worse second trial trains 3 epochs: 120 s instead of 80 s.
#[test]
fn asha_compares_no_trial_before_its_grace_period() {
    let table = table(&rising(), "Maximize");
    let run = play(&Rival::Asha { grace: 3 }, &table, &space(), &setting(1), 2, seed_with(&[1, 0])).unwrap();
    assert_eq!(at_end(&run), (2, 360.0, 360.0, 240.0));
}

/// A good trial, four bad ones, and one between them: as the second of six it passes the first rung, and stops as the
/// second of two at epoch 3.
#[test]
fn asha_continues_a_third_of_six_trials() {
    let (table, seed) = (table(&rising(), "Maximize"), seed_with(&[2, 0, 0, 0, 0, 1]));
    let run = play(&Rival::Asha { grace: 1 }, &table, &space(), &setting(1), 6, seed).unwrap();
    assert_eq!(at_end(&run), (6, 680.0, 680.0, 320.0));
}

/// Six trials of equal value: a tie is no reason to stop.
#[test]
fn asha_continues_trials_of_equal_value() {
    let table = table(&[[0.5; 9]; 3], "Maximize");
    let run = play(&Rival::Asha { grace: 1 }, &table, &space(), &setting(2), 6, 0).unwrap();
    assert_eq!(at_end(&run), (6, 720.0, 1_440.0, 1_080.0));
}

/// Four jobs of 240 s on two workers. At 350 s two have ended, and two have trained for 50 s. The
/// last checkpoint is after the end.
#[test]
fn random_trains_every_job_to_its_end() {
    let setting = Setting { checkpoints: vec![100.0, 350.0, 480.0, 600.0], ..setting(2) };
    let run = play(&Rival::Random, &table(&rising(), "Maximize"), &space(), &setting, 4, 0).unwrap();
    let billed: Vec<f64> = run.checkpoints.iter().map(|point| point.billed_training_seconds).collect();
    assert_eq!((run.trials, billed.as_slice()), (4, [80.0, 460.0, 720.0, 720.0].as_slice()));
    assert_eq!(at_end(&run), (4, 600.0, 960.0, 720.0));
    assert!(run.checkpoints[0].best_observed.is_some() && run.checkpoints[0].best_full.is_none());
}

#[test]
fn a_tuning_ends_at_its_time() {
    let setting = Setting { checkpoints: vec![250.0], until_seconds: Some(250.0), ..setting(1) };
    let run = play(&Rival::Random, &table(&rising(), "Maximize"), &space(), &setting, 100, 0).unwrap();
    assert_eq!(run.trials, 2);
}

/// With unique rows the three rows answer three trials; then no row is left.
#[test]
fn each_unique_row_answers_one_trial() {
    let table = table(&rising(), "Maximize");
    let setting = Setting { unique_rows: true, ..setting(1) };
    let run = play(&Rival::Random, &table, &space(), &setting, 10, 0).unwrap();
    assert_eq!((run.trials, run.checkpoints[0].best_full), (3, Some(2.9)));
}

/// The recorded value of the epoch that looks best counts, with the noise of the controller's simulation.
#[test]
fn noise_changes_which_value_looks_best() {
    let table = table(&rising(), "Maximize");
    let setting = Setting { noise: 2.0, ..setting(1) };
    let mut others = 0;
    for seed in (0..60).filter(|seed| point(1, SamplerKind::Random, *seed, 0)[0] >= 2.0 / 3.0) {
        let run = play(&Rival::Random, &table, &space(), &setting, 1, seed).unwrap();
        // (best - median) of the rows is 1.
        let looks =
            (1..=9).zip(rising()[2]).map(|(epoch, value)| (value + 2.0 * noise(seed, 0, epoch), value));
        let best = looks.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1;
        assert_eq!((run.checkpoints[0].best_observed, run.checkpoints[0].best_full), (Some(best), Some(2.9)));
        others += u32::from(best < 2.9);
    }
    assert!(others > 0, "the noise changes nothing");
}
