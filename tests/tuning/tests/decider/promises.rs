//! The promises of the design that the decider keeps, each quoted and checked over whole histories. The service around
//! the decider keeps P4, P7 and P8.

use std::collections::{BTreeMap, BTreeSet};

use tuning::definition::{Definition, Silence};
use tuning::log::fact::{JobEnd, JobKey};
use tuning::log::reasons::{StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, Order, Ruling, SearchRuling};
use tuning::state::State;
use tuning::step::{Step, advance};
use tuning::unit::epochs::Epochs;
use tuning::unit::money::MicroUsd;

use crate::support::build::*;
use crate::support::render::render;
use crate::support::run::Run;
use crate::support::service::Faults;
use crate::support::world::World;

/// Returns a moderate chance of every fault.
fn faults(seed: u64) -> Faults {
    Faults {
        seed,
        lost: 0.05,
        duplicated: 0.1,
        delayed: 0.1,
        batched: 0.5,
        failed: 0.02,
        hung: 0.01,
        // Some seeds have almost no capacity.
        unserved: if seed % 11 == 5 { 0.97 } else { 0.1 },
        interrupted: 0.03,
        refused: 0.05,
        deferred: 0.1,
        unbilled: 0.1,
        risen: 0.0,
        diverged: 0.02,
        unsaved: 0.0,
    }
}

fn played(definition: &Definition, seed: u64) -> World {
    played_by(Run::sampled(definition, 5), seed)
}

fn played_by(run: Run, seed: u64) -> World {
    let mut world = World::new(run, faults(seed));
    // The month's cap is too small for some seeds.
    world.month_left = (1 + seed % 13) * WORST_CASE;
    if seed % 4 == 3 {
        world.stop_at(200);
    }
    world.play();
    world
}

/// "P1 spent + reserved <= cap at every step, provided AWS ends a job by `MaxRuntime` + 120 s + the upload allowance."
#[test]
fn p1_spent_and_reserved_never_exceed_the_cap() {
    for seed in 0..30 {
        let definition = capped(jobs(40, 5), 1 + seed % 6);
        // `Run::take` checks every step.
        let world = played(&definition, seed);
        let spent = world.run.state.money.ledger.spent;
        assert!(definition.cap.is_some_and(|cap| spent <= cap), "seed {seed}: {spent}");
        let billed: u64 = world.bills.values().sum();
        assert!(billed <= spent.0, "seed {seed}: billed {billed} micro-dollars, booked {spent}");
    }
}

/// "P2 no decision is performed twice with effect, none is lost." The decider's part: every action has a unique
/// natural ID (`Run::take` checks this), and performing every action twice under that ID changes nothing.
#[test]
fn p2_performing_every_action_twice_changes_nothing() {
    for seed in 0..10 {
        let definition = jobs(20, 4);
        let play = |twice| {
            let mut world =
                World::new(Run::sampled(&definition, 50), Faults { seed, failed: 0.02, ..Faults::default() });
            world.twice = twice;
            world.play();
            world.run.rulings
        };
        assert_eq!(play(false), play(true), "seed {seed}");
    }
}

/// "P3 any order, duplication or loss of events and of stream records ends in a finished tuning." Here, each
/// single fact is lost in turn until no other event is left. `histories` draws all faults at random.
#[test]
fn p3_the_loss_of_any_single_fact_ends_in_a_finished_tuning() {
    let mut definition = jobs(5, 2);
    definition.strategy = comparing(1, 4, 2);
    let mut lose = 1;
    loop {
        let mut world = World::new(Run::sampled(&definition, 20), Faults::default());
        world.lose = Some(lose);
        world.play();
        if world.happened < lose {
            break;
        }
        lose += 1;
    }
    assert!(lose > 40, "{lose} facts");
}

/// "P5 replay gives the same decisions, on any machine." The replay reads the stored log alone.
#[test]
fn p5_replaying_the_stored_log_gives_the_same_steps_byte_for_byte() {
    for seed in 0..10 {
        let definition = capped(jobs(30, 4), 9);
        let world = played(&definition, seed);
        let definition: Definition =
            serde_json::from_str(&serde_json::to_string(&definition).unwrap()).unwrap();
        let mut state = State::new(&definition);
        for step in &world.run.log {
            let stored = serde_json::to_string(step).unwrap();
            let read: Step = serde_json::from_str(&stored).unwrap();
            let again = advance(&definition, &mut state, read.n, &read.facts);
            assert_eq!(serde_json::to_string(&again.step).unwrap(), stored, "seed {seed}, step {}", read.n);
        }
        assert!(state == world.run.state, "seed {seed}");
    }
}

/// Returns the number of rulings of a history without faults, the FNV-1a hash of their text, and the text.
fn digest(definition: &Definition) -> (usize, u64, String) {
    let mut world = World::perfect(definition);
    world.play();
    let text: String = world.run.rulings.iter().map(|ruling| render(ruling) + "\n").collect();
    let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (world.run.rulings.len(), digest, text)
}

/// The rulings of histories are pinned for each version of the rules, on any machine and in any later build.
///
/// A change here means that stored tunings get other rulings; that needs a new rules version.
#[test]
fn p5_the_decisions_of_one_history_are_pinned() {
    let cap_binds = Definition { cap: Some(MicroUsd(WORST_CASE + 300 * SECOND)), ..jobs(400, 4) };
    let pinned = [
        (1, capped(jobs(60, 4), 30), 333, 16_601_804_762_581_449_092),
        (1, cap_binds, 462, 11_495_965_698_039_783_197),
    ];
    for (rules_version, definition, rulings, expect) in pinned {
        let (made, digest, text) = digest(&Definition { rules_version, ..definition });
        assert_eq!((made, digest), (rulings, expect), "rules {rules_version}\n{text}");
    }
}

/// "P6 a rung never promotes more than it may, and never a failure."
#[test]
fn p6_a_rung_never_continues_more_trials_than_it_may_and_never_a_failure() {
    for seed in 0..30 {
        let definition = jobs(60, 6);
        let world = played(&definition, seed);
        let mut arrived: BTreeMap<Epochs, u32> = BTreeMap::new();
        let mut out = BTreeSet::new();
        let mut failed: BTreeSet<TrialId> = BTreeSet::new();
        for ruling in &world.run.rulings {
            match ruling {
                Ruling::Search(SearchRuling::TrialJudged { trial, level, value, verdict, .. }) => {
                    let seen = arrived.entry(*level).or_default();
                    *seen += 1;
                    assert_eq!(verdict.seen, *seen, "seed {seed}: every arrival counts once");
                    assert!(!out.contains(trial) && !failed.contains(trial), "seed {seed}: {ruling:?}");
                    if verdict.continues {
                        assert!(
                            verdict.rank < (*seen / 3).max(1) && value.is_some(),
                            "seed {seed}: {ruling:?}"
                        );
                    } else {
                        out.insert(*trial);
                    }
                }
                Ruling::Order(Order::Stop { job, why: StopWhy::Rung { .. }, .. }) => {
                    assert!(out.contains(&job.trial), "seed {seed}: stopped without a verdict");
                }
                Ruling::Order(Order::Start { job: JobKey { trial, .. }, .. }) => {
                    assert!(!out.contains(trial) && !failed.contains(trial), "seed {seed}: {ruling:?}");
                }
                Ruling::Attempt(AttemptRuling::TrialFinished { trial, how: TrialEnd::Failed(_), .. }) => {
                    failed.insert(*trial);
                }
                Ruling::Search(
                    SearchRuling::TrialDrawn { .. }
                    | SearchRuling::RungReached { .. }
                    | SearchRuling::TrialPromoted { .. },
                )
                | Ruling::Attempt(_)
                | Ruling::Booking(_)
                | Ruling::TuningEnding { .. }
                | Ruling::Order(
                    Order::Stop { .. } | Order::Read(_) | Order::Pool(_) | Order::Grant(_) | Order::Notice(_),
                ) => {}
            }
        }
        let failures = world.run.concluded.iter().filter(|job| job.end == Some(JobEnd::AlgorithmError));
        assert!(failures.count() <= failed.len() + out.len(), "seed {seed}");
    }
}

/// Checks that such histories cover every kind of ruling, so that the tests above meet all of them.
#[test]
fn histories_reach_every_kind_of_ruling() {
    let mut kinds = BTreeSet::new();
    for seed in 0..50 {
        let mut definition = capped(jobs(40, 5), 2 + seed % 40);
        definition.job.spot = seed % 5 == 1;
        definition.job.max_wait_seconds = definition.job.spot.then_some(4_000);
        definition.limits.target = (seed % 7 == 2).then_some(0.6);
        definition.limits.not_improving = (seed % 7 == 4).then_some(6);
        definition.limits.max_runtime_seconds = (seed % 7 == 6).then_some(400);
        definition.settings.max_interruptions = u32::try_from(seed % 3).unwrap();
        definition.grants = seed % 4 == 1;
        definition.silence = if seed % 3 == 1 { Silence::After(300) } else { Silence::Never };
        for ruling in &played_by(Run::sampled(&definition, 100), seed).run.rulings {
            let words = render(ruling).replace(|c: char| c.is_ascii_digit() || c == '-' || c == '.', "");
            let words: Vec<&str> = words.split(", ").next().unwrap_or_default().split_whitespace().collect();
            kinds.insert(words.join(" "));
        }
    }
    let expect = [
        "ask : to",
        "bill",
        "capacity notice",
        "ended: CostCap",
        "ended: Failed",
        "ended: MaxJobs",
        "ended: MaxRuntime",
        "ended: NoCapacity",
        "ended: NotImproving",
        "ended: Stopped",
        "ended: Target",
        "ending: CostCap",
        "ending: Failed",
        "ending: MaxRuntime",
        "ending: NoCapacity",
        "ending: NotImproving",
        "ending: Target",
        "look at",
        "move : from to",
        "notice: % of",
        "notice: % of the cap",
        "read rest",
        "retry after : Capacity",
        "retry after : MaxWait",
        "retry after : RuntimeCutTooShort",
        "retry after : ServiceError",
        "return : to",
        "settle in full",
        "start",
        "stop : max resource",
        "stop : no objective for s",
        "stop : reservation used at s",
        "stop : rung",
        "stop : trial reached the target",
        "stop : tuning ending",
        "trial completed",
        "trial continues at rung",
        "trial failed: exit code",
        "trial failed: no such role",
        "trial failed: the training job failed without a reason",
        "trial is out at rung",
        "trial never started",
        "trial ran out of time",
        "trial stopped outside",
        "trial stopped: max resource",
        "trial stopped: no objective for s",
        "trial stopped: rung",
        "trial stopped: trial reached the target",
        "trial stopped: tuning ending",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), expect);
}
