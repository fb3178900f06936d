//! Target `decider`: passes facts in any order and with duplicates to the decider, and checks the promises that hold
//! for all of them.

mod facts;
mod run;

use search::{Domain, Parameter, SamplerKind, Scaling, Space};
use tuning::definition::{
    Definition, EpochRule, Instances, JobShape, Limits, Objective, RungExecution, Scheduling, Silence,
    Strategy,
};
use tuning::unit::epochs::Epochs;
use tuning::unit::money::{MicroUsd, Rate};
use tuning::unit::time::Time;

use crate::bytes::Bytes;
use run::Run;

/// Submission time of the tuning, in ms since the epoch.
const CREATED: i64 = 1_789_000_000_000;
/// A dollar, in micro-dollars.
const DOLLAR: u64 = 1_000_000;

/// Two bytes choose the definition, or three if the first byte selects extensions. The other bytes are commands.
pub(crate) fn run(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let (shape, bounds) = (bytes.byte(), bytes.byte());
    let mut definition = definition(shape, bounds);
    if shape >> 2 & 3 == 3 {
        extend(&mut definition, bytes.byte());
    }
    let mut run = Run::new(definition);
    run.take(&[facts::submitted()]);
    let mut maker = facts::Maker::default();
    let mut delivery = Vec::new();
    while !bytes.is_empty() {
        let (fact, last) = maker.next(&mut bytes, &run.state);
        delivery.extend(fact);
        if last {
            run.take(&delivery);
            delivery.clear();
        }
    }
    run.take(&delivery);
    run.finish(&mut maker);
}

/// Returns a definition that a request can have.
pub(crate) fn definition(shape: u8, bounds: u8) -> Definition {
    let hyperband =
        |min, max, eta| Strategy::hyperband(Epochs(min), Epochs(max), eta, RungExecution::Stop).ok();
    let strategy = match shape & 3 {
        0 => hyperband(1, 9, 3),
        1 => hyperband(1, 81, 2),
        2 => hyperband(3, 20_000, 20_000),
        _ => Some(Strategy::Independent),
    };
    let (captured, per_attempt) =
        [(true, false), (true, true), (false, true), (false, true)][usize::from(shape >> 2 & 3)];
    let (spot, dear) = (shape & 0x20 != 0, shape & 0x80 != 0);
    let user_limit = 3_600;
    let bit = |bit: u8| bounds & bit != 0;
    let limits = Limits {
        max_runtime_seconds: bit(4).then_some(86_400),
        max_instances: bit(8).then_some(6),
        target: bit(16).then_some(0.95),
        not_improving: bit(32).then_some(5),
        // A hundred parallel jobs fill steps to their bounds and are slow. Three are enough with the largest
        // configurations.
        ..Limits::new(
            if bit(1) { 100 } else { 12 },
            match (bit(2), bit(4)) {
                (true, true) if !dear => 100,
                (true, false) if !dear => 12,
                _ => 3,
            },
        )
    };
    let rate = Rate { instance_hour: DOLLAR, volume_kilo_gib_hour: 191_781 };
    let job = JobShape {
        instance_count: 2,
        volume_gib: 30,
        spot,
        max_wait_seconds: spot.then_some(2 * user_limit),
        ..JobShape::new(Some(rate), user_limit)
    };
    let space = if dear { dear_space() } else { small_space() };
    Definition {
        seed: 7,
        strategy: strategy.unwrap_or(Strategy::Independent),
        objective: if shape & 0x10 == 0 { Objective::Maximize } else { Objective::Minimize },
        sampler: if shape & 0x40 == 0 { SamplerKind::Sobol } else { SamplerKind::Random },
        cap: bit(64).then_some(MicroUsd(14 * DOLLAR)),
        epochs: EpochRule { captured, base: u32::from(bit(128)), per_attempt, is_base_assumed: false },
        silence: if bit(16) { Silence::After(300) } else { Silence::Never },
        ..Definition::new(("hb1", "3fa1c2"), Time(CREATED), space, limits, job)
    }
}

/// Adds the extensions: promotion, refit, spot fallback, alternative instances.
fn extend(definition: &mut Definition, more: u8) {
    let bit = |bit: u8| more & bit != 0;
    if let Strategy::Hyperband { rungs, .. } = &mut definition.strategy {
        *rungs = match more & 3 {
            1 => RungExecution::Promote(Scheduling::Asynchronous),
            2 => RungExecution::Promote(Scheduling::Synchronous),
            _ => RungExecution::Stop,
        };
    }
    definition.refit = bit(4);
    definition.spot_fallback = bit(8) && definition.job.spot;
    if bit(16) {
        let dearer = Rate { instance_hour: 2 * DOLLAR, volume_kilo_gib_hour: 191_781 };
        let other = |count, rate| Instances { count, volume_gib: 30, rate: Some(rate) };
        definition.job.fallbacks.extend(definition.job.rate.map(|rate| other(1, rate)));
        definition.job.fallbacks.push(other(2, dearer));
    }
    definition.epochs.captured = !bit(32);
    definition.epochs.per_attempt = bit(32) || bit(64);
    if bit(128) {
        definition.silence = Silence::Adaptive;
    }
}

fn small_space() -> Space {
    let domain = Domain::Continuous { min: 0.001, max: 1.0, scaling: Scaling::Logarithmic };
    space(vec![Parameter { name: "rate".to_owned(), domain }])
}

/// Returns the space with the largest configurations of a request, in characters that are longest in JSON.
fn dear_space() -> Space {
    let text = |number: usize| format!("{number:02}{}", "\u{1}".repeat(254));
    let parameters = (0..search::space::PARAMETERS_MAX).map(|number| {
        let domain = Domain::Categorical { values: vec![text(number)] };
        Parameter { name: text(number), domain }
    });
    space(parameters.collect())
}

fn space(parameters: Vec<Parameter>) -> Space {
    Space::new(parameters).unwrap_or_else(|error| panic!("{error}"))
}
