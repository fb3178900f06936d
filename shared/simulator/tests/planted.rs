//! Tests of the checkers: they find every planted mutation, and find nothing without one.
//!
//! `cargo test --release -p simulator --features planted --test planted -- --nocapture` prints a table with each
//! mutation, the seed that found it, and the violation. A mutation that is not found shows a gap in the checkers or in
//! the world.

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use simulator::Run;
use simulator::case::{Case, Choices, Epochs, Rungs};
use simulator::encode;
use simulator::exhaustive::{Rungs as SmallRungs, explore};
use simulator::fault::Kind;
use simulator::plan::{HOUR, MINUTE, Plan};
use simulator::planted::{Mutation, plant, struck};
use simulator::shrink::{history, kind, shrink};

/// Number of seeds tried for a mutation.
const SEEDS: u64 = 1_000;
/// Number of seeds tried for a mutation that is known to be out of reach.
const SEEDS_OUT_OF_REACH: u64 = 60;

/// Returns a plan with these faults only.
fn plan(faults: &[(Kind, f64)]) -> Plan {
    faults.iter().fold(Plan::calm(), |plan, (kind, rate)| plan.with(*kind, *rate))
}

/// Returns a history of one tuning.
fn made(seed: u64, plan: Plan, choices: &Choices) -> Run {
    Run { seed, plan, cases: vec![Case::of("sim0", choices)], trace: false }
}

/// Returns a history in which a mutation has an effect. Drawn histories seldom reach some situations, so those are
/// chosen.
fn situation(mutation: Mutation, seed: u64) -> Run {
    let capped = Choices { cap_jobs: Some(2.5), ..Choices::plain() };
    let made = |plan: Plan, choices: &Choices| made(seed, plan, choices);
    match mutation {
        Mutation::RefusalBelieved => {
            let faults =
                [(Kind::TrainingLostAnswer, 0.5), (Kind::CreateRefused, 0.5), (Kind::EventLost, 0.5)];
            made(plan(&faults), &capped)
        }
        Mutation::RefusalInTwoWrites => {
            let faults = [(Kind::CreateRefused, 0.5), (Kind::CrashAfter, 0.1), (Kind::StreamDuplicated, 1.0)];
            made(plan(&faults), &capped)
        }
        Mutation::CancelAtOnce | Mutation::ExpiredClaimGood => {
            let many = Choices { max_parallel: 8, max_jobs: 40, ..Choices::plain() };
            let mut run = made(plan(&[(Kind::Freeze, 0.2)]), &many);
            run.cases[0].stop_at = Some(i64::try_from(seed % 12).expect("a small number") * 20_000);
            run
        }
        // Bills are stored during a stream outage; then all records arrive at once.
        Mutation::BillHourByFacts => {
            let stream_outage = Some((10 * MINUTE, 4 * HOUR));
            let faults = [(Kind::TrainingThrottled, 0.75)];
            made(Plan { stream_outage, ..plan(&faults) }, &Choices::plain())
        }
        // Jobs wait longer than their running-time limit.
        Mutation::SignOfLifeUnreported => {
            let waits =
                Choices { max_runtime_seconds: 600, max_pending_seconds: Some(14_400), ..Choices::plain() };
            made(plan(&[(Kind::JobPends, 1.0)]), &waits)
        }
        // Long enough to book the whole reservation of a job with a long limit.
        Mutation::SilentJobIgnored => {
            let faults = [(Kind::EventLost, 0.5), (Kind::LogLost, 0.5)];
            let long = Choices { max_runtime_seconds: 21_600, ..Choices::plain() };
            made(Plan { safety_ms: HOUR, ..plan(&faults) }, &long)
        }
        Mutation::SweeperReadsNothing => {
            let faults = [(Kind::JobInterrupted, 0.9), (Kind::TrainingThrottled, 0.8)];
            let plan = Plan { safety_ms: HOUR, epoch_ms: 240_000, ..plan(&faults) };
            let ranked = Choices {
                hyperband: Some((1, 27, 3)),
                epochs: Epochs::Ranked,
                max_runtime_seconds: 21_600,
                max_wait_seconds: Some(28_800),
                ..Choices::plain()
            };
            made(plan, &ranked)
        }
        // Only the time shows that the tuning reached its MaxRuntimeInSeconds.
        Mutation::DeadlineUnreported => {
            let limited = Choices {
                max_parallel: 1,
                max_runtime_seconds: 21_600,
                // Long enough for a first value.
                extra: vec![("max_runtime", 10_800.into())],
                ..Choices::plain()
            };
            made(Plan { epoch_ms: HOUR, ..Plan::calm() }, &limited)
        }
        // The actuator reads a bill that shows at once.
        Mutation::SweeperBillsNothing => made(plan(&[(Kind::BillLate, 0.5)]), &Choices::plain()),
        _ => situation_of_money_or_silence(mutation, seed),
    }
}

fn situation_of_money_or_silence(mutation: Mutation, seed: u64) -> Run {
    match mutation {
        // The user stops the tuning while its new jobs are invisible.
        Mutation::CancelStarted => {
            let mut case = Case::of("sim0", &Choices { max_parallel: 6, ..Choices::plain() });
            case.stop_at = Some(i64::try_from(seed % 40).expect("a small number") * 500);
            let plan = plan(&[(Kind::NotVisibleYet, 1.0)]);
            Run { seed, plan, cases: vec![case], trace: false }
        }
        // Trials are promoted after their checkpoints were lost.
        Mutation::RepeatUnreported => {
            let promoting = Choices { rungs: Rungs::Asynchronous, ..Choices::plain() };
            let plan = plan(&[(Kind::CheckpointLost, 0.5)]);
            Run { seed, plan, cases: vec![Case::of("sim0", &promoting)], trace: false }
        }
        // Several tunings need more than the monthly cap.
        Mutation::GrantAnsweredTwice
        | Mutation::GrantAboveCap
        | Mutation::ReturnForgotten
        | Mutation::ReturnNotBooked => {
            let faults = [(Kind::TableLostAnswer, 0.05), (Kind::CrashAfter, 0.05)];
            let plan = Plan { monthly_cap: Some(4_000_000), safety_ms: HOUR, ..plan(&faults) };
            let cases = ["sim0", "sim1", "sim2"].map(|name| Case::of(name, &Choices::plain()));
            Run { seed, plan, cases: cases.into(), trace: false }
        }
        // Log lines are lost, and logs can hardly be read.
        Mutation::SilenceNotLooked | Mutation::SilenceNeverEnds => {
            let faults = [(Kind::LogLost, 0.8), (Kind::TrainingThrottled, 0.9), (Kind::ProgramSilent, 0.3)];
            let watched = Choices {
                extra: vec![("no_objective", 600.into())],
                max_runtime_seconds: 14_400,
                ..Choices::plain()
            };
            let plan = Plan { safety_ms: HOUR, epoch_ms: 200_000, ..plan(&faults) };
            Run { seed, plan, cases: vec![Case::of("sim0", &watched)], trace: false }
        }
        _ => situation_of_launches(mutation, seed),
    }
}

/// Like [`situation`], for capacity shortages, fallbacks and refits.
fn situation_of_launches(mutation: Mutation, seed: u64) -> Run {
    let made = |plan: Plan, choices: &Choices| made(seed, plan, choices);
    let spot = Choices { max_wait_seconds: Some(5_400), spot_fallback: true, ..Choices::plain() };
    let several = Choices { others: vec![2, 1], cap_jobs: Some(6.0), ..Choices::plain() };
    // The search ends early and leaves jobs.
    let refit =
        Choices { refit: true, extra: vec![("not_improving", 3.into())], max_jobs: 20, ..Choices::plain() };
    match mutation {
        Mutation::RefitTwice => made(Plan::calm(), &refit),
        // A cap that pays the search, or the search and the refit.
        Mutation::RefitMoneySpent | Mutation::SearchAfterRefit => {
            let tenths = u32::try_from(seed % 30).expect("a small number");
            let cap_jobs = Some(1.0 + f64::from(tenths) / 10.0);
            let capped = Choices { cap_jobs, extra: Vec::new(), max_jobs: 100, ..refit };
            made(Plan { epoch_ms: 120_000, ..Plan::calm() }, &capped)
        }
        Mutation::OnDemandTooSoon | Mutation::OnDemandForgotten | Mutation::OnDemandAtSpotLimits => made(
            Plan { epoch_ms: 60_000, ..Plan::calm() }.with(Kind::JobInterrupted, 0.9),
            &Choices { max_interruptions: 1, ..spot },
        ),
        Mutation::OthersPricedAsFirst | Mutation::OthersBilledAsFirst | Mutation::CapacityForgotten => {
            made(Plan::calm().with(Kind::CapacityShort, 0.3), &several)
        }
        _ => situation_of_judgement(mutation, seed),
    }
}

/// Returns a history in which a mutation of the decider's judgement has an effect.
fn situation_of_judgement(mutation: Mutation, seed: u64) -> Run {
    let made = |plan: Plan, choices: &Choices| made(seed, plan, choices);
    match mutation {
        Mutation::CapacityHoldIgnored | Mutation::CapacityFailsTrial | Mutation::NoCapacityTooSoon => {
            let capacity_outage = Some((10 * MINUTE, 6 * HOUR));
            made(Plan { capacity_outage, epoch_ms: 120_000, ..plan(&[]) }, &Choices::plain())
        }
        Mutation::ExcessNotRaised | Mutation::ExcessForgotten => made(
            plan(&[(Kind::BillAboveReservation, 0.3)]),
            &Choices { cap_jobs: Some(8.0), ..Choices::plain() },
        ),
        // Jobs train and upload for hours after the faults, and the cap pays for few at a time.
        Mutation::ReservationClockIgnored | Mutation::OverrunNotReserved | Mutation::OverrunStopsNothing => {
            let plan = plan(&[(Kind::UploadLong, 0.5), (Kind::LimitLate, 0.8), (Kind::JobHangs, 0.5)]);
            let capped = Choices { cap_jobs: Some(4.0), max_jobs: 30, max_parallel: 4, ..Choices::plain() };
            made(Plan { safety_ms: 10 * MINUTE, ..plan }, &capped)
        }
        Mutation::RiseForgotten | Mutation::BillNotReadAgain => {
            made(plan(&[(Kind::BillRises, 0.5)]), &Choices::plain())
        }
        // The bills of promoted trials come late, and the cap pays few jobs at a time.
        Mutation::ArrivalFreesMoney => {
            let promoting = Choices { cap_jobs: Some(3.0), rungs: Rungs::Asynchronous, ..Choices::plain() };
            made(plan(&[(Kind::BillLate, 0.8)]), &promoting)
        }
        // Long jobs without rungs, which run on after the faults.
        Mutation::DivergedTrains | Mutation::DivergedAtOnce => {
            let plan = plan(&[(Kind::ProgramDiverges, 1.0)]);
            let long =
                Choices { hyperband: Some((30, 60, 3)), max_runtime_seconds: 21_600, ..Choices::plain() };
            made(Plan { safety_ms: 10 * MINUTE, epoch_ms: 120_000, ..plan }, &long)
        }
        // The stream loses the stop of a job that runs on after the faults, in a tuning that is never silent.
        Mutation::JobStopUnlisted => {
            let plan = plan(&[(Kind::StreamLost, 0.5)]);
            let long = Choices {
                hyperband: Some((30, 60, 3)),
                max_parallel: 8,
                max_runtime_seconds: 21_600,
                ..Choices::plain()
            };
            let mut run = made(Plan { safety_ms: 15 * MINUTE, epoch_ms: 120_000, ..plan }, &long);
            run.cases[0].stop_jobs_at = (6..12).map(|minute| minute * MINUTE).collect();
            run
        }
        // Programs diverge in an epoch of a rung.
        Mutation::PromoteDiverged => {
            let never_stopped = Choices {
                hyperband: Some((1, 27, 3)),
                extra: vec![("max_diverged", 0.into())],
                ..Choices::plain()
            };
            made(plan(&[(Kind::ProgramDiverges, 0.8)]), &never_stopped)
        }
        // Enough jobs complete, and others hang after their last epoch.
        Mutation::GraceNeverEnds | Mutation::LastEpochStopped => {
            let long = Choices {
                hyperband: Some((1, 3, 3)),
                max_jobs: 60,
                max_runtime_seconds: 21_600,
                ..Choices::plain()
            };
            made(plan(&[(Kind::JobHangs, 0.4)]), &long)
        }
        // Programs hang until the limit that usual jobs need.
        Mutation::CutTrialWaits => {
            let capped =
                Choices { cap_jobs: Some(8.0), max_jobs: 30, max_runtime_seconds: 7_200, ..Choices::plain() };
            made(plan(&[(Kind::JobHangs, 0.3)]), &capped)
        }
        // Few attempts are allowed, and the jobs suffice for more.
        Mutation::AttemptsWithoutLimit => {
            let impatient = Choices { max_interruptions: 1, max_jobs: 30, ..Choices::plain() };
            made(plan(&[(Kind::JobServiceError, 0.9)]), &impatient)
        }
        _ => situation_of_restarts(mutation, seed),
    }
}

/// Like [`situation`], for programs and functions that start again.
fn situation_of_restarts(mutation: Mutation, seed: u64) -> Run {
    let made = |plan: Plan, choices: &Choices| made(seed, plan, choices);
    match mutation {
        // Programs that count from their start are interrupted between their epochs.
        Mutation::OffsetUnproven => {
            let counting = Choices {
                epochs: Epochs::PerAttempt,
                hyperband: Some((1, 9, 3)),
                max_jobs: 30,
                max_wait_seconds: Some(14_400),
                ..Choices::plain()
            };
            made(Plan { epoch_ms: 120_000, ..plan(&[(Kind::JobInterrupted, 0.6)]) }, &counting)
        }
        _ => Run::drawn(seed),
    }
}

/// Returns the reason why a mutation cannot be found: the simulated world lacks the situation that it needs.
fn out_of_reach(mutation: Mutation) -> Option<&'static str> {
    match mutation {
        Mutation::ZeroBillBelieved => Some("an ended job always shows its times and its bill"),
        Mutation::ForeignJobAdopted => Some("no foreign job has the name of the next job of a tuning"),
        _ => None,
    }
}

/// Returns the first run that finds the mutation, and its violation.
fn found(mutation: Mutation, seeds: u64) -> Option<(Run, String)> {
    plant(Some(mutation));
    (0..seeds).find_map(|seed| {
        let run = situation(mutation, seed);
        let violation = history(&run).violations.into_iter().next()?;
        Some((run, violation))
    })
}

/// Returns the results of `check` for all mutations, played on all cores. A mutation is planted in one thread only.
fn of_each_mutation<T: Send>(check: impl Fn(Mutation) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || Mutation::ALL.get(next.fetch_add(1, Ordering::Relaxed)).copied();
    let work = || iter::from_fn(take).map(&check).collect::<Vec<_>>();
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the check printed its panic")).collect()
    })
}

#[test]
fn every_mutation_is_found() {
    let results = of_each_mutation(|mutation| {
        let name = mutation.name();
        let beyond = out_of_reach(mutation);
        let found = found(mutation, if beyond.is_some() { SEEDS_OUT_OF_REACH } else { SEEDS });
        let strikes = struck();
        plant(None);
        let line = match (&found, beyond) {
            (Some((run, violation)), _) => {
                let drawn = if *run == Run::drawn(run.seed) { "drawn" } else { "chosen" };
                format!("{drawn} {:>4}  {}", run.seed, violation.chars().take(140).collect::<String>())
            }
            (None, Some(why)) => format!("out of reach: {why} (struck {strikes} times)"),
            (None, None) => format!("NOT FOUND, struck {strikes} times"),
        };
        println!("{name:<22} {line}");
        (name, found.is_some(), beyond.is_some())
    });
    let names = |found, beyond| {
        let of_kind = results.iter().filter(move |result| (result.1, result.2) == (found, beyond));
        of_kind.map(|result| result.0).collect::<Vec<_>>()
    };
    assert_eq!(results.len(), Mutation::ALL.len());
    assert!(names(false, false).is_empty(), "not found: {:?}", names(false, false));
    assert!(names(true, true).is_empty(), "now found, no longer out of reach: {:?}", names(true, true));
}

/// The chosen situations cause no violations by themselves. `histories` has the drawn ones.
#[test]
fn without_a_planted_mutation_no_situation_breaks_a_promise() {
    plant(None);
    of_each_mutation(|mutation| {
        for seed in 0..6 {
            let run = situation(mutation, seed);
            if run == Run::drawn(seed) {
                break;
            }
            let broken = history(&run).violations;
            assert!(broken.is_empty(), "{}, seed {seed}: {broken:#?}", mutation.name());
        }
    });
}

/// A shrunk history fails in the same way, and its text reproduces it byte for byte.
#[test]
fn a_planted_failure_is_shrunk() {
    for mutation in [Mutation::RingIgnored, Mutation::CapWithoutReservations, Mutation::CountEpochTwice] {
        let (run, violation) = found(mutation, SEEDS).expect("the mutation is found");
        let failed = history(&run);
        let shrunk = shrink(&run, &failed, 60).expect("the history failed");
        let (from, to) = (shrunk.from, shrunk.to);
        assert!(shrunk.runs <= 60);
        assert_eq!(kind(&shrunk.violation), kind(&violation), "{}", mutation.name());
        assert!(to.faults < from.faults && to.cases <= from.cases, "{}: {from:?} {to:?}", mutation.name());
        let again = encode::parse(&encode::text(&shrunk.run)).expect("the text of a run");
        let again = history(&Run { trace: true, ..again });
        assert!(again.violations.contains(&shrunk.violation), "{}", mutation.name());
        assert_eq!(again.trace, history(&Run { trace: true, ..shrunk.run }).trace, "{}", mutation.name());
        assert_eq!(again.events, to.events);
        plant(None);
    }
}

/// The first three bugs are found by histories only in a chosen situation. The small world tries every place.
#[test]
fn the_small_world_finds_planted_bugs() {
    for (mutation, rungs, promise) in [
        (Mutation::ArrivalFreesMoney, SmallRungs::Promote, "P1"),
        (Mutation::RiseForgotten, SmallRungs::Promote, "P3"),
        (Mutation::BillNotReadAgain, SmallRungs::Promote, "P1"),
        (Mutation::CapWithoutReservations, SmallRungs::Stop, "P1"),
        (Mutation::CountEpochTwice, SmallRungs::Promote, "P2"),
        (Mutation::RingIgnored, SmallRungs::Promote, "P3"),
        (Mutation::OneMorePromoted, SmallRungs::Promote, "P6"),
    ] {
        plant(Some(mutation));
        let explored = explore(rungs, 1, None);
        plant(None);
        let violation = explored.violation.clone().unwrap_or_default();
        println!("{:<24} {explored}", mutation.name());
        assert!(violation.starts_with(promise), "{}: {violation}", mutation.name());
    }
}
