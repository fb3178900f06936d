//! The moves of the small world, and the deployed use cases that perform them.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use use_cases::decide::{Decided, Decider};
use use_cases::job_events::{About, JobEvents};
use use_cases::job_logs::JobLogs;
use use_cases::lookup;
use use_cases::perform::ActionBatch;
use use_cases::ports::Clock;
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use use_cases::sweep::{Limits, Sweeper};

use super::ports::Port;
use super::small::{Message, Small};
use super::{Kind, NAME};
#[cfg(feature = "planted")]
use crate::mutants::Mutant;
use crate::runner::actuator;
use crate::site::Function;
use crate::world::watch::STACK;

/// An invocation: whether it handled its message.
type Running = Pin<Box<dyn Future<Output = bool>>>;

/// What a function is invoked for.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Submit(String),
    Message(Message),
    Sweep,
    Stop,
}

/// A move of the world.
#[derive(Debug, Clone)]
pub(super) enum Move {
    /// What comes next if nothing goes wrong: the first message, or else a move of a job, or else a sweep.
    Next,
    /// The first message is handled and arrives once more later.
    Duplicate,
    /// The first message is lost.
    Lose,
    /// A later message is handled first.
    Overtake(usize),
    /// A job moves on, although messages wait.
    JobFirst,
    /// The next job to move fails.
    Fail,
    /// A job ends, and its bill comes late, or is too low at first.
    LateBill,
    LowBill,
    /// The first message is handled, and the service does not show its new job at once.
    Unseen,
    /// The process of the next task crashes after so many calls.
    Crash(u32),
    /// The process of the next task stands still after so many calls, until another one has run.
    Overlap(u32, Second),
    /// The sweeper runs, although jobs move on or messages wait.
    SweepNow,
    /// The user stops the tuning.
    Stop,
    /// A backup of the table is made, which [`Move::Restore`] restores.
    Backup,
    Restore,
}

/// The process that runs while the first one stands still.
#[derive(Debug, Clone, Copy)]
pub(super) enum Second {
    /// It handles the same message.
    Same,
    /// It handles a message that waits.
    Waiting(usize),
    Sweep,
    Stop,
}

impl Move {
    /// Returns what the move spends of the budget; `None` = nothing goes wrong.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Next => None,
            Self::Duplicate => Some(Kind::Duplicate),
            Self::Lose => Some(Kind::Loss),
            Self::Overtake(_) | Self::JobFirst => Some(Kind::Reorder),
            Self::Fail => Some(Kind::Failure),
            Self::LateBill | Self::LowBill => Some(Kind::Bill),
            Self::Unseen => Some(Kind::Unseen),
            Self::Crash(_) => Some(Kind::Crash),
            Self::Overlap(..) => Some(Kind::Overlap),
            Self::SweepNow => Some(Kind::Sweep),
            Self::Stop => Some(Kind::Stop),
            Self::Backup | Self::Restore => Some(Kind::Restore),
        }
    }
}

/// Returns the moves of a world: the usual one first.
pub(super) fn moves(world: &Small) -> Vec<Move> {
    let mut moves = vec![Move::Next];
    let has = |kind: Kind| world.budget.has(kind);
    let (waiting, can_move) = (world.queue.len(), world.next_job().is_some());
    if waiting > 0 {
        moves.extend(has(Kind::Duplicate).then_some(Move::Duplicate));
        moves.extend(has(Kind::Loss).then_some(Move::Lose));
        if has(Kind::Reorder) {
            moves.extend((1..waiting).map(Move::Overtake));
            moves.extend(can_move.then_some(Move::JobFirst));
        }
    }
    moves.extend((has(Kind::Failure) && can_move && waiting == 0).then_some(Move::Fail));
    if has(Kind::Bill) && waiting == 0 && world.next_job().is_some_and(|name| world.ends_next(&name)) {
        moves.extend([Move::LateBill, Move::LowBill]);
    }
    let is_start = world.queue.front().is_some_and(Message::is_start);
    moves.extend((has(Kind::Unseen) && is_start).then_some(Move::Unseen));
    moves.extend((has(Kind::Sweep) && (waiting > 0 || can_move)).then_some(Move::SweepNow));
    moves.extend((has(Kind::Stop) && !world.has_ended()).then_some(Move::Stop));
    match &world.backup {
        None => moves.extend((has(Kind::Restore) && waiting == 0).then_some(Move::Backup)),
        Some(_) => moves.extend(has(Kind::Restore).then_some(Move::Restore)),
    }
    let is_invocation = waiting > 0 || !can_move;
    if is_invocation && has(Kind::Crash) {
        moves.push(Move::Crash(1));
    }
    if is_invocation && has(Kind::Overlap) {
        let seconds = (0..waiting).map(|n| if n == 0 { Second::Same } else { Second::Waiting(n) });
        let others = [Second::Sweep, Second::Stop].into_iter();
        let others = others.filter(|second| {
            !matches!(second, Second::Stop) || world.budget.has_both(Kind::Overlap, Kind::Stop)
        });
        moves.extend(seconds.chain(others).map(|second| Move::Overlap(1, second)));
    }
    moves
}

/// Returns the same move one call later, if there is one.
pub(super) fn one_call_later(made: &Move) -> Option<Move> {
    match made {
        Move::Crash(calls) => Some(Move::Crash(calls + 1)),
        Move::Overlap(calls, second) => Some(Move::Overlap(calls + 1, *second)),
        _ => None,
    }
}

/// Returns the world after a move; `None` if the process makes fewer calls than the move says.
pub(super) fn after(world: &Small, made: &Move) -> Option<Small> {
    let mut world = world.copy();
    // A backup alone changes nothing.
    if let Some(kind) = made.kind().filter(|_| !matches!(made, Move::Backup)) {
        world.budget.spend(kind);
    }
    if !world.budget.has(Kind::Restore) && !matches!(made, Move::Restore) {
        world.backup = None;
    }
    match made {
        Move::Next | Move::Duplicate => {
            let first = world.queue.front().cloned();
            world = next(world, None, None)?;
            if matches!(made, Move::Duplicate) {
                world.queue.extend(first);
            }
        }
        Move::Lose => _ = world.queue.pop_front(),
        Move::Overtake(n) => {
            let message = world.queue.remove(*n)?;
            world = run(world, &Task::Message(message), None, None)?;
        }
        Move::JobFirst => {
            let name = world.next_job()?;
            world.progress(&name, false);
        }
        Move::Fail => {
            let name = world.next_job()?;
            world.progress(&name, true);
        }
        Move::LateBill | Move::LowBill => {
            let name = world.next_job()?;
            world.progress(&name, false);
            world.bill_late(&name, matches!(made, Move::LowBill));
        }
        Move::Unseen => {
            world.is_next_unseen = true;
            world = next(world, None, None)?;
            world.is_next_unseen = false;
        }
        Move::Crash(calls) => world = next(world, Some(*calls), None)?,
        Move::Overlap(calls, second) => {
            let second = match second {
                Second::Same => world.queue.front().cloned().map(Task::Message)?,
                Second::Waiting(n) => Task::Message(world.queue.remove(*n)?),
                Second::Sweep => Task::Sweep,
                Second::Stop => {
                    world.budget.spend(Kind::Stop);
                    Task::Stop
                }
            };
            world = next(world, Some(*calls), Some(&second))?;
        }
        Move::SweepNow => {
            world.wait();
            world = run(world, &Task::Sweep, None, None)?;
        }
        Move::Stop => world = run(world, &Task::Stop, None, None)?,
        Move::Backup => world.backup = Some(world.table.copy()),
        Move::Restore => restore(&mut world),
    }
    Some(world)
}

/// Restores the backup. What the stream of the lost table still had is lost too.
fn restore(world: &mut Small) {
    if let Some(backup) = world.backup.take() {
        world.table.restore(&backup);
    }
    world.queue.retain(|message| !matches!(message, Message::Row { .. }));
    world.is_restored = true;
}

/// Returns the world after the next message, or else a move of a job, or else a sweep.
fn next(mut world: Small, calls: Option<u32>, second: Option<&Task>) -> Option<Small> {
    if let Some(message) = world.queue.pop_front() {
        return run(world, &Task::Message(message), calls, second);
    }
    if let Some(name) = world.next_job() {
        world.progress(&name, false);
        return Some(world);
    }
    world.wait();
    run(world, &Task::Sweep, calls, second)
}

/// Runs a task to its end, or for some calls: then its process crashes, or waits until a second task has run.
pub(super) fn run(world: Small, task: &Task, calls: Option<u32>, second: Option<&Task>) -> Option<Small> {
    let shared = Arc::new(Mutex::new(world));
    let port = Port(Arc::clone(&shared));
    port.world().function = function(task);
    port.world().calls_left = calls;
    let mut running = invoke(&port, task, 1);
    let context = &mut Context::from_waker(Waker::noop());
    let mut outcome = running.as_mut().poll(context);
    if calls.is_some() {
        // A process that made all its calls did not crash, and nothing ran while it stood still.
        if outcome.is_ready() {
            return None;
        }
        port.world().calls_left = None;
        if let Some(second) = second {
            port.world().function = function(second);
            let handled = invoke(&port, second, 2).as_mut().poll(context);
            if let (Poll::Ready(false), Task::Message(message)) = (handled, second) {
                port.world().queue.push_back(message.clone());
            }
            port.world().function = function(task);
            outcome = running.as_mut().poll(context);
        }
    }
    drop(running);
    let is_handled = outcome == Poll::Ready(true);
    drop(port);
    let mut world = Arc::into_inner(shared)?.into_inner().ok()?;
    world.publish();
    if let Task::Message(message) = task
        && !is_handled
    {
        world.failed(message.clone());
    }
    Some(world)
}

fn function(task: &Task) -> Function {
    match task {
        Task::Submit(_) | Task::Stop => Function::Api,
        Task::Message(message) => message.function(),
        Task::Sweep => Function::Sweeper,
    }
}

/// Returns the invocation of a task, in a new process with this number.
fn invoke(port: &Port, task: &Task, process: u32) -> Running {
    #[cfg(feature = "planted")]
    let port = Mutant::new(port.clone());
    #[cfg(not(feature = "planted"))]
    let port = port.clone();
    let store = Arc::new(Store::new(Arc::new(port.clone())));
    let (function, task) = (function(task), task.clone());
    Box::pin(async move {
        match task {
            Task::Submit(body) => {
                let guardrails = Guardrails::default();
                let submit = Submit {
                    other_tunings: None,
                    store,
                    prices: port.clone(),
                    clock: port,
                    monthly_cap: None,
                    guardrails,
                };
                submit.submit(body.as_bytes()).await.is_ok()
            }
            Task::Stop => lookup::stop(&store, NAME, port.now()).await.is_ok(),
            Task::Sweep => {
                let owner = format!("{}-{process}", port.now().0);
                Sweeper::new(actuator(&store, &port, None), Limits::CLOUD, owner).sweep().await.is_ok()
            }
            Task::Message(message) => {
                let event = message.encode();
                let answer = match function {
                    Function::Decider => {
                        let mut done = Decided::default();
                        Decider { store }.handle(&event, || true, &mut done).await;
                        done.answer()
                    }
                    Function::Actuator => {
                        let mut done = ActionBatch::default();
                        actuator(&store, &port, None).handle(&event, || true, &mut done).await;
                        done.answer()
                    }
                    Function::JobEvents => {
                        let events = JobEvents { store, clock: port, stack: STACK.to_owned() };
                        return events.handle(&event, &mut About::default()).await.is_ok();
                    }
                    Function::JobLogs | Function::Api | Function::Sweeper => {
                        let logs = JobLogs::new(store, port);
                        return logs.handle(&event, &mut About::default()).await.is_ok();
                    }
                };
                answer["batchItemFailures"].as_array().is_none_or(Vec::is_empty)
            }
        }
    })
}
