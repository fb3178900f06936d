//! A port call: it takes time, and the process may die, freeze, or get no answer around it.
//!
//! Between any two effects other processes run. A dead process is never polled again.

use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::queue::Event;
use super::{Shared, World, lock};
use crate::fault::Kind;
use crate::plan::{CrashOnce, MINUTE};
use crate::site::{Op, Site, calls};

/// A call, for the fault plan and the trace.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) op: Op,
    /// The row or job it is about.
    pub(crate) on: String,
}

/// Why a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    Throttled,
    Unavailable,
    LimitExceeded,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Well,
    DiesBefore,
    DiesAfter,
    FailsBefore(Mishap),
    FailsAfter(Mishap),
}

/// Makes a call whose effect on the world is `effect`.
pub(crate) async fn call<R: Send>(
    world: &Shared,
    call: Call,
    effect: impl FnOnce(&mut World) -> R + Send,
) -> Result<R, Mishap> {
    let (fate, before, after) = lock(world).draw(&call);
    Sleep::new(world, before).await;
    match fate {
        Fate::DiesBefore => die(world).await,
        Fate::FailsBefore(mishap) => {
            Sleep::new(world, after).await;
            return Err(mishap);
        }
        Fate::Well | Fate::DiesAfter | Fate::FailsAfter(_) => {}
    }
    let result = {
        let mut world = lock(world);
        let (now, task) = (world.now, world.task);
        world.trace.line(now, || format!("{task} {:?} {}: {fate:?}", call.op, call.on));
        effect(&mut world)
    };
    if fate == Fate::DiesAfter {
        die(world).await;
    }
    Sleep::new(world, after).await;
    match fate {
        Fate::FailsAfter(mishap) => Err(mishap),
        Fate::Well | Fate::DiesBefore | Fate::DiesAfter | Fate::FailsBefore(_) => Ok(result),
    }
}

/// A call whose request is still on the wire when its caller gives up after `ms`, or dies then.
pub(crate) async fn given_up(world: &Shared, ms: i64, dies: bool) -> Mishap {
    Sleep::new(world, ms).await;
    if dies {
        die(world).await;
    }
    Mishap::Unavailable
}

async fn die(world: &Shared) {
    lock(world).dead = true;
    pending::<()>().await;
}

impl World {
    /// The fate of a call, and how long it takes before and after its effect, ms.
    fn draw(&mut self, call: &Call) -> (Fate, i64, i64) {
        let usual = if call.op.is_table() { self.dice.between(1, 20) } else { self.dice.between(20, 300) };
        let site = self.site_of(call.op);
        self.watch_call(call.op);
        let work = self.tally.of(self.function);
        work.published += u64::from(call.op == Op::Publish);
        work.calls += u64::from(!call.op.is_table() && call.op != Op::Publish);
        let slow = self.faults.strikes_at(Kind::SlowCall, site);
        let before = if slow { self.dice.between(500, 20_000) } else { usual };
        let frozen = self.faults.strikes_at(Kind::Freeze, site);
        // Short enough to thaw within a claim, or longer than it.
        let longest = self.dice.pick(&[MINUTE, 4 * MINUTE, 20 * MINUTE]);
        let after = if frozen { self.dice.between(10_000, longest) } else { self.dice.between(0, 3) };
        if frozen {
            // While it is frozen its time does not run.
            *self.frozen_ms.entry(self.task).or_default() += after;
        }
        (self.fate(call, site), before, after)
    }

    /// Where a call of the present process is made.
    pub(crate) fn site_of(&mut self, op: Op) -> Site {
        if !calls(self.function).contains(&op) {
            let message = format!("{:?} calls {op:?}, which is not in the list of calls", self.function);
            self.check.violation(self.now, &message);
        }
        Site::Call(self.function, op)
    }

    fn fate(&mut self, call: &Call, site: Site) -> Fate {
        if self.dies_once(call) {
            self.faults.count(Kind::CrashAfter, site);
            return Fate::DiesAfter;
        }
        let mut strikes = |kind: Kind| self.faults.strikes_at(kind, site);
        if strikes(Kind::CrashBefore) {
            return Fate::DiesBefore;
        }
        if strikes(Kind::CrashAfter) {
            return Fate::DiesAfter;
        }
        if call.op.is_table() {
            if strikes(Kind::TableThrottled)
                || (call.op == Op::Transact && strikes(Kind::TransactionConflict))
            {
                return Fate::FailsBefore(Mishap::Throttled);
            }
            if strikes(Kind::TableLostRequest) {
                return Fate::FailsBefore(Mishap::Unavailable);
            }
            if strikes(Kind::TableLostAnswer) {
                return Fate::FailsAfter(Mishap::Unavailable);
            }
        }
        if call.op.is_training() {
            if call.op == Op::Create && strikes(Kind::CreateLimit) {
                return Fate::FailsBefore(Mishap::LimitExceeded);
            }
            if call.op == Op::Create && strikes(Kind::CreateRefused) {
                return Fate::FailsBefore(Mishap::Refused);
            }
            if strikes(Kind::TrainingThrottled) {
                return Fate::FailsBefore(Mishap::Throttled);
            }
            if strikes(Kind::TrainingLostRequest) {
                return Fate::FailsBefore(Mishap::Unavailable);
            }
            if strikes(Kind::TrainingLostAnswer) {
                return Fate::FailsAfter(Mishap::Unavailable);
            }
        }
        if (call.op == Op::Publish && strikes(Kind::BusUnavailable))
            || (call.op == Op::Price && strikes(Kind::PricesUnavailable))
        {
            return Fate::FailsBefore(Mishap::Unavailable);
        }
        Fate::Well
    }

    fn dies_once(&mut self, call: &Call) -> bool {
        let may = match self.plan.crash_once {
            CrashOnce::Never => false,
            CrashOnce::Outside => matches!(call.op, Op::Create | Op::Stop | Op::Describe | Op::Publish),
            CrashOnce::Every => true,
        };
        // Each once: the same call lives the next time, so that the work gets done at last.
        // A user who changes a limit again does so at a later time, and under another key: that is the same call.
        let on = call.on.split_once("change#").map_or(call.on.as_str(), |(before, _)| before);
        may && self.faults_on && self.crashed.insert(format!("{:?} {:?} {on}", self.function, call.op))
    }
}

/// Waits for `ms` of virtual time, and does nothing else.
pub(crate) async fn pause(world: &Shared, ms: i64) {
    Sleep::new(world, ms).await;
}

/// Waits for so many ms of virtual time.
#[derive(Debug)]
struct Sleep<'a> {
    world: &'a Shared,
    ms: i64,
    begun: bool,
}

impl<'a> Sleep<'a> {
    fn new(world: &'a Shared, ms: i64) -> Self {
        Self { world, ms, begun: false }
    }
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.begun || self.ms <= 0 {
            return Poll::Ready(());
        }
        self.begun = true;
        let mut world = lock(self.world);
        let (at, task) = (world.now + self.ms, world.task);
        world.queue.push(at, Event::Wake(task));
        Poll::Pending
    }
}
