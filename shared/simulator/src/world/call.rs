//! A port call: it takes time, and the process can crash, freeze or lose the response.
//!
//! Other processes run between any two effects. A crashed process is never polled again.

use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::queue::Event;
use super::{Shared, World, lock};
use crate::fault::Kind;
use crate::plan::{CrashOnce, MINUTE};
use crate::site::{Op, Site, calls};

/// A call, as the fault plan and the trace see it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) op: Op,
    /// The row or job that the call concerns.
    pub(crate) on: String,
}

/// The reason why a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    Throttled,
    Unavailable,
    LimitExceeded,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Succeeds,
    CrashesBefore,
    CrashesAfter,
    FailsBefore(Mishap),
    FailsAfter(Mishap),
}

/// Performs a call with its effect on the world.
pub(crate) async fn call<R: Send>(
    world: &Shared,
    call: Call,
    effect: impl FnOnce(&mut World) -> R + Send,
) -> Result<R, Mishap> {
    let (fate, before, after) = lock(world).draw(&call);
    Sleep::new(world, before).await;
    match fate {
        Fate::CrashesBefore => crash(world).await,
        Fate::FailsBefore(mishap) => {
            Sleep::new(world, after).await;
            return Err(mishap);
        }
        Fate::Succeeds | Fate::CrashesAfter | Fate::FailsAfter(_) => {}
    }
    let result = {
        let mut world = lock(world);
        let (now, task) = (world.now, world.task);
        world.trace.line(now, || format!("{task} {:?} {}: {fate:?}", call.op, call.on));
        effect(&mut world)
    };
    if fate == Fate::CrashesAfter {
        crash(world).await;
    }
    Sleep::new(world, after).await;
    match fate {
        Fate::FailsAfter(mishap) => Err(mishap),
        Fate::Succeeds | Fate::CrashesBefore | Fate::CrashesAfter | Fate::FailsBefore(_) => Ok(result),
    }
}

/// Waits `ms` for a call whose request is still under way; then the caller times out, or crashes.
pub(crate) async fn time_out(world: &Shared, ms: i64, crashes: bool) -> Mishap {
    Sleep::new(world, ms).await;
    if crashes {
        crash(world).await;
    }
    Mishap::Unavailable
}

async fn crash(world: &Shared) {
    lock(world).dead = true;
    pending::<()>().await;
}

impl World {
    /// Draws the fate of a call and its duration before and after its effect, in ms.
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
        // Shorter or longer than a claim.
        let longest = self.dice.pick(&[MINUTE, 4 * MINUTE, 20 * MINUTE]);
        let after = if frozen { self.dice.between(10_000, longest) } else { self.dice.between(0, 3) };
        if frozen {
            // The time limit does not run while the process is frozen.
            *self.frozen_ms.entry(self.task).or_default() += after;
        }
        (self.fate(call, site), before, after)
    }

    /// Returns the site of a call of the running process.
    pub(crate) fn site_of(&mut self, op: Op) -> Site {
        if !calls(self.function).contains(&op) {
            let message =
                format!("{:?} calls {op:?}, which is missing in simulator::site::calls", self.function);
            self.check.violation(self.now, &message);
        }
        Site::Call(self.function, op)
    }

    fn fate(&mut self, call: &Call, site: Site) -> Fate {
        if self.crashes_once(call) {
            self.faults.count(Kind::CrashAfter, site);
            return Fate::CrashesAfter;
        }
        let mut strikes = |kind: Kind| self.faults.strikes_at(kind, site);
        if strikes(Kind::CrashBefore) {
            return Fate::CrashesBefore;
        }
        if strikes(Kind::CrashAfter) {
            return Fate::CrashesAfter;
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
            || (call.op == Op::HandOver && strikes(Kind::HandOverFails))
        {
            return Fate::FailsBefore(Mishap::Unavailable);
        }
        if call.op == Op::HandOver && strikes(Kind::HandOverLostAnswer) {
            return Fate::FailsAfter(Mishap::Unavailable);
        }
        Fate::Succeeds
    }

    fn crashes_once(&mut self, call: &Call) -> bool {
        let can_crash = match self.plan.crash_once {
            CrashOnce::Never => false,
            CrashOnce::Outside => {
                matches!(call.op, Op::Create | Op::Stop | Op::Describe | Op::ReadLog | Op::Publish)
            }
            CrashOnce::Every => true,
        };
        // Each call kills once, so that the next attempt succeeds. A retried change of limits has a later time and
        // thus another key, but counts as the same call.
        let on = call.on.split_once("change#").map_or(call.on.as_str(), |(before, _)| before);
        can_crash && self.faults_on && self.crashed.insert(format!("{:?} {:?} {on}", self.function, call.op))
    }
}

/// Waits for `ms` of virtual time.
pub(crate) async fn pause(world: &Shared, ms: i64) {
    Sleep::new(world, ms).await;
}

/// A future that is ready after `ms` of virtual time.
#[derive(Debug)]
struct Sleep<'a> {
    world: &'a Shared,
    ms: i64,
    /// The end of the wait, once it has begun.
    until: Option<i64>,
}

impl<'a> Sleep<'a> {
    fn new(world: &'a Shared, ms: i64) -> Self {
        Self { world, ms, until: None }
    }
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.ms <= 0 {
            return Poll::Ready(());
        }
        let mut world = lock(self.world);
        let (now, task) = (world.now, world.task);
        // A task can wait for several calls at once: another one may have woken it.
        if let Some(until) = self.until {
            return if now >= until { Poll::Ready(()) } else { Poll::Pending };
        }
        let until = now + self.ms;
        world.queue.push(until, Event::Wake(task));
        drop(world);
        self.until = Some(until);
        Poll::Pending
    }
}
