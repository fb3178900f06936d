//! Claims of actions: who may perform an action, and what remains of a claim after an error or a freeze.

use std::sync::{Arc, Mutex};

use port_tests::memory::MemoryTable;
use tuning::unit::time::Time;
use use_cases::perform::{Actuator, CLAIM, Effect, Performed};
use use_cases::ports::table::{Condition, Page, Query, Table, TableError, Write};
use wire::item::{Item, Key};
use wire::names::training_job_name;
use wire::stored::{self, ActionRow, ActionStatus};

use crate::performing::{NOW, Stack, is_deferred, job, stop_of};
use crate::support::{
    Service, TestBus, TestClock, action_row, actuator, not_found, now, order, put, start_of,
};

/// What happens while an actuator works.
enum Event {
    /// The request fails.
    Fails,
    /// The actuator is frozen for so many ms.
    Freezes(i64),
    /// Another function writes this row.
    Changes(Item),
}

/// The in-memory table. The event happens directly before the first request for a row whose sort key ends so.
struct Eventful {
    table: MemoryTable,
    clock: TestClock,
    before: &'static str,
    event: Mutex<Option<Event>>,
}

impl Eventful {
    async fn reach(&self, sk: &str) -> Result<(), TableError> {
        if !sk.ends_with(self.before) {
            return Ok(());
        }
        let event = self.event.lock().unwrap().take();
        match event {
            Some(Event::Fails) => return Err(TableError::Unavailable("no answer".to_owned())),
            Some(Event::Freezes(ms)) => self.clock.pass(ms),
            Some(Event::Changes(row)) => self.table.write(Write::Put(row, Condition::Always)).await?,
            None => {}
        }
        Ok(())
    }
}

impl Table for Eventful {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        self.reach(&key.sk).await?;
        self.table.get(key).await
    }
    async fn write(&self, write: Write) -> Result<(), TableError> {
        if let Write::Put(row, _) = &write {
            self.reach(&row.key.sk).await?;
        }
        self.table.write(write).await
    }
    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        self.table.transact(writes, token).await
    }
    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        self.table.query(query).await
    }
}

/// Returns another actuator of the stack, which meets an event.
fn meeting(
    stack: &Stack,
    before: &'static str,
    event: Event,
) -> Actuator<Eventful, Service, TestBus, TestClock> {
    let (table, clock) = (stack.table.clone(), stack.service.time.clone());
    let table = Arc::new(Eventful { table, clock, before, event: Mutex::new(Some(event)) });
    actuator(&table, &stack.service)
}

/// Changes the row of an action as another function may have left it.
fn change(stack: &Stack, action: &str, change: impl FnOnce(ActionRow) -> ActionRow) {
    put(&stack.table, change(stack.row(action)).row(&stack.id));
}

#[test]
fn an_action_belongs_to_its_claim_until_the_claim_expires() {
    for (left, is_performed) in [(1, false), (0, true)] {
        let stack = Stack::new();
        let stop = stack.order(stop_of(0));
        let claimed_until = Time(NOW + left);
        change(&stack, &stop, |row| ActionRow { status: ActionStatus::Performing, claimed_until, ..row });
        let before = stack.row(&stop);
        let performed = stack.perform(&stop);
        assert_eq!(performed.is_done(), is_performed, "{left} ms are left: {performed:?}");
        assert_eq!(stack.row(&stop) == before, !is_performed, "{left} ms are left");
        assert_eq!(stack.calls().is_empty(), !is_performed, "{left} ms are left");
    }
}

/// The answer of a create could arrive after another actuator has taken the start over.
#[test]
fn a_start_is_not_sent_in_the_last_second_of_its_claim() {
    for (frozen, is_sent) in [(CLAIM.0 - 1_001, true), (CLAIM.0 - 1_000, false), (CLAIM.0 - 1, false)] {
        let stack = Stack::new();
        let start = stack.order(start_of(job(0)));
        let actuator = meeting(&stack, stored::META, Event::Freezes(frozen));
        let performed = now(actuator.perform(&stack.id, &start)).unwrap();
        assert_eq!(performed.is_done(), is_sent, "frozen for {frozen} ms: {performed:?}");
        assert_eq!(stack.calls().is_empty(), !is_sent, "frozen for {frozen} ms");
    }
}

/// The job of a start that may have been sent must not be cancelled as never started. All other actions can be repeated.
#[test]
fn an_error_after_a_call_releases_the_claim_of_every_action_but_a_start() {
    let stack = Stack::new();
    let (start, stop) = (stack.order(start_of(job(0))), stack.order(stop_of(1)));
    for (action, fact) in [(&start, "#started#0-0-1"), (&stop, "#stop-accepted#1-0-1")] {
        let actuator = meeting(&stack, fact, Event::Fails);
        now(actuator.perform(&stack.id, action)).unwrap_err();
    }
    let claim = |action| (stack.row(action).status, stack.row(action).claimed_until);
    assert_eq!(claim(&start), (ActionStatus::Performing, Time(NOW) + CLAIM));
    assert_eq!(claim(&stop), (ActionStatus::Pending, Time::EPOCH));
}

/// The job would run until a sweep finds it as an orphan.
#[test]
fn a_job_whose_start_was_cancelled_while_it_was_sent_is_stopped_at_once() {
    for (status, is_stopped) in [(ActionStatus::Cancelled, true), (ActionStatus::Performing, false)] {
        let stack = Stack::new();
        let start = stack.order(start_of(job(0)));
        let row = stack.row(&start);
        let taken_over = ActionRow { status, revision: row.revision + 10, ..row }.row(&stack.id);
        let actuator = meeting(&stack, "#started#0-0-1", Event::Changes(taken_over));
        assert!(now(actuator.perform(&stack.id, &start)).unwrap().is_done());
        let calls: &[&str] = if is_stopped { &["create", "stop"] } else { &["create"] };
        let made = stack.service.calls();
        assert_eq!(made.iter().map(|(call, _)| *call).collect::<Vec<_>>(), calls, "{status:?}");
        assert!(made.iter().all(|(_, name)| *name == training_job_name(&stack.id, job(0))), "{made:?}");
        assert_eq!(stack.row(&start).status, status, "the row belongs to the other function");
    }
}

#[test]
fn a_start_is_cancelled_only_after_its_claim_has_expired_for_a_minute() {
    for (since, is_cancelled) in [(0, false), (59_999, false), (60_000, true)] {
        let stack = Stack::new();
        stack.service.lock().stop = Some(Err(not_found("job")));
        let (start, stop) = (stack.order(start_of(job(0))), stack.order(stop_of(0)));
        let claimed_until = Time(NOW - since);
        change(&stack, &start, |row| ActionRow {
            status: ActionStatus::Performing,
            claimed_until,
            revision: 1,
            tries: 1,
            ..row
        });
        let performed = stack.perform(&stop);
        assert_eq!(is_deferred(&performed), !is_cancelled, "after {since} ms: {performed:?}");
        assert_eq!(stack.knows("never-started#0-0-1"), is_cancelled, "after {since} ms");
        let row = stack.row(&start);
        assert_eq!(row.status == ActionStatus::Cancelled, is_cancelled, "after {since} ms");
        // A revision never comes again: a frozen actuator must not take the row for the one that it knows.
        assert_eq!(row.revision > 1, is_cancelled, "after {since} ms");
    }
}

#[test]
fn a_start_of_a_deleted_tuning_starts_no_job_and_is_not_reported_as_a_start() {
    let stack = Stack::new();
    let start = order(&stack.table, "gone-3fa1c2", start_of(job(0)));
    let performed = now(stack.actuator.perform("gone-3fa1c2", &start)).unwrap();
    assert_eq!(performed, Performed::Done(Effect::Other));
    assert!(stack.calls().is_empty());
    assert_eq!(action_row(&stack.table, "gone-3fa1c2", &start).status, ActionStatus::Done);
}
