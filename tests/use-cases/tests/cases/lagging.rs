//! A training service with stale answers: a job that is not visible yet is neither refused nor free of charge.

use std::sync::Arc;

use port_tests::memory::MemoryTable;
use tuning::log::fact::{Fact, JobKey};
use tuning::log::ruling::{Order, ReadOrder};
use tuning::unit::time::{Millis, Time};
use use_cases::perform::{Actuator, CLAIM, Effect, Performed};
use use_cases::ports::table::Table;
use use_cases::ports::training::{Description, TrainingJobsError};
use wire::item::Key;
use wire::names::decision;
use wire::stored::{self, ActionRow, ActionStatus};

use crate::support::{
    Script, Service, TestClock, action_row, actuator, description, not_found, now, order, put, start_of,
    table_with_tuning,
};

const NOW: i64 = 1_789_000_000_000;
const ABANDONED: i64 = 60_000;
const JOB: JobKey = JobKey::new(0, 0, 1);

/// Returns a table with a tuning and an order. A previous try, if any, had a claim until `earlier`.
fn ordered(ordered: Order, earlier: Option<i64>) -> (MemoryTable, String, String) {
    let (table, id) = table_with_tuning(NOW - 10_000_000);
    let action = order(&table, &id, ordered);
    if let Some(claimed_until) = earlier {
        let row = action_row(&table, &id, &action);
        let row = ActionRow {
            status: ActionStatus::Performing,
            claimed_until: Time(claimed_until),
            tries: 1,
            ..row
        };
        put(&table, row.row(&id));
    }
    (table, id, action)
}

fn perform((table, id, action): &(MemoryTable, String, String), service: &Service) -> Performed {
    let actuator =
        Actuator { abandoned_ms: Millis(ABANDONED), ..actuator(&Arc::new(table.clone()), service) };
    now(actuator.perform(id, action)).unwrap()
}

/// Returns a service at `now` with a job under our name and these tags. `None` while the job is invisible.
fn at(now: i64, tags: Option<&[(&str, &str)]>) -> Service {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let tags = tags.map(|tags| tags.iter().map(owned).collect());
    let script = Script {
        create: Some(Err(TrainingJobsError::NameTaken("it exists".to_owned()))),
        describe: Some(Err(not_found("job"))),
        tags: Some(tags.ok_or_else(|| not_found("job"))),
        read: Some(Ok(1)),
        ..Script::default()
    };
    Service::new(&TestClock::at(now), script)
}

fn start(tags: &[(&str, &str)], earlier: Option<i64>) -> Performed {
    perform(&ordered(start_of(JOB), earlier), &at(NOW, Some(tags)))
}

fn is_refused(performed: &Performed) -> bool {
    matches!(performed, Performed::Done(Effect::Refused(_)))
}

#[test]
fn a_possibly_own_job_is_not_refused_until_its_tags_must_be_visible() {
    let (recent, long_ago) = (Some(NOW - 1), Some(NOW - ABANDONED));
    let stack = [("hyperband:stack", "prod")];
    for tags in [&[][..], &stack[..], &[("team", "example")][..]] {
        let waits = start(tags, recent);
        assert!(matches!(waits, Performed::Deferred(_)), "{tags:?}: {waits:?}");
        assert!(is_refused(&start(tags, long_ago)), "{tags:?}: tags are visible after this time");
        assert!(is_refused(&start(tags, None)), "{tags:?}: we sent no create before");
    }
    // Another stack's tag proves that it is not ours.
    assert!(is_refused(&start(&[("hyperband:stack", "dev")], recent)));
}

/// Each check renewed the claim. The previous try was therefore always recent, and the checks never ended.
#[test]
fn regression_repeated_checks_do_not_extend_the_wait() {
    let first = NOW - 1;
    for tags in [Some(&[][..]), None] {
        let job = ordered(start_of(JOB), Some(first));
        for seconds in (0..60).step_by(20) {
            let look = perform(&job, &at(NOW + seconds * 1_000, tags));
            assert!(matches!(look, Performed::Deferred(_)), "{tags:?} after {seconds} s: {look:?}");
        }
        let end = perform(&job, &at(first + ABANDONED, tags));
        // With foreign tags, it is not ours. Without a visible job but with a taken name, it was ours and was deleted.
        assert_eq!(is_refused(&end), tags.is_some(), "{end:?}");
        assert!(matches!(end, Performed::Done(_)), "{tags:?}: {end:?}");
    }
}

#[test]
fn a_job_is_adopted_as_soon_as_its_tags_are_visible() {
    let job = ordered(start_of(JOB), Some(NOW - 1));
    assert!(matches!(perform(&job, &at(NOW, Some(&[]))), Performed::Deferred(_)));
    let decision = decision_of(&start_of(JOB));
    let ours = [
        ("hyperband:stack", "prod"),
        ("hyperband:tuning", &job.1),
        ("hyperband:decision", decision.as_str()),
    ];
    assert_eq!(
        perform(&job, &at(NOW + 20_000, Some(&ours))),
        Performed::Done(Effect::Started { promoted: None })
    );
}

/// Neither the name of a job nor a missing job is a proof while a create of an earlier try may still take effect.
#[test]
fn a_start_of_an_invisible_job_ends_only_with_a_certain_answer() {
    let refusal = |code: &str| TrainingJobsError::Refused { code: code.to_owned(), message: "no".to_owned() };
    let (taken, invalid) = (TrainingJobsError::NameTaken("job".to_owned()), refusal("ValidationException"));
    let (missing, unreadable) = (not_found("job"), refusal("AccessDeniedException"));
    let (recent, long_ago) = (Some(NOW - 1), Some(NOW - ABANDONED));
    let (own, over) = (NOW + CLAIM.0, NOW - 1 + ABANDONED);
    // Each case: the previous try's claim and the answers; then the end of the claim that remains, and the earliest next
    // try.
    let waits = [
        ("a first try", None, &taken, &missing, own, NOW + 1_000),
        ("a taken name", recent, &taken, &missing, NOW - 1, NOW + 2_000),
        ("a refusal", recent, &invalid, &missing, NOW - 1, over),
        ("unreadable tags", recent, &invalid, &unreadable, NOW - 1, NOW + 2_000),
        ("unreadable tags later", long_ago, &invalid, &unreadable, own, NOW + 2_000),
    ];
    for (case, earlier, created, tags, claimed_until, not_before) in waits {
        let job = ordered(start_of(JOB), earlier);
        let performed = perform(&job, &answering(created, tags));
        assert!(matches!(performed, Performed::Deferred(_)), "{case}: {performed:?}");
        let row = action_row(&job.0, &job.1, &job.2);
        assert_eq!((row.claimed_until, row.not_before), (Time(claimed_until), Time(not_before)), "{case}");
        assert_eq!(row.name_taken, *created == taken, "{case}");
    }
    let job = ordered(start_of(JOB), long_ago);
    let deleted = perform(&job, &answering(&taken, &missing));
    assert_eq!(deleted, Performed::Done(Effect::Started { promoted: None }), "a deleted job has run");
    assert!(is_refused(&perform(&ordered(start_of(JOB), long_ago), &answering(&invalid, &missing))));
}

/// Returns a service with these answers to a create and to a read of tags.
fn answering(created: &TrainingJobsError, tags: &TrainingJobsError) -> Service {
    let service = at(NOW, None);
    (service.lock().create, service.lock().tags) = (Some(Err(created.clone())), Some(Err(tags.clone())));
    service
}

fn decision_of(order: &Order) -> String {
    let Order::Start { job, configuration, limits, launch, .. } = order else { unreachable!("a start") };
    decision(*job, configuration, *limits, *launch)
}

/// After a restore of the table to an earlier time, the decider ordered another job under the key of a running one. The
/// start adopted it.
#[test]
fn regression_a_job_of_another_decision_is_not_adopted() {
    let mut other = start_of(JOB);
    if let Order::Start { limits, .. } = &mut other {
        limits.max_runtime_seconds += 1;
    }
    let other = decision_of(&other);
    assert!(other.starts_with("0-0-1."), "{other}");
    for earlier in [None, Some(NOW - 1), Some(NOW - ABANDONED)] {
        let job = ordered(start_of(JOB), earlier);
        let tags = [
            ("hyperband:stack", "prod"),
            ("hyperband:tuning", &job.1),
            ("hyperband:decision", other.as_str()),
        ];
        let refused = perform(&job, &at(NOW, Some(&tags)));
        let Performed::Done(Effect::Refused(message)) = refused else { panic!("{earlier:?}: {refused:?}") };
        assert!(message.contains("another decision") && message.contains(&other), "{message}");
        let fact = fact_of(&job, "refused#0-0-1");
        assert!(matches!(fact, Fact::StartRefused { name_is_foreign: true, .. }), "{fact:?}");
    }
    // No restore is the cause if another stack has the name.
    let job = ordered(start_of(JOB), None);
    let tags = [("hyperband:stack", "dev"), ("hyperband:tuning", &job.1), ("hyperband:decision", &other)];
    let Performed::Done(Effect::Refused(message)) = perform(&job, &at(NOW, Some(&tags))) else {
        panic!("it is refused")
    };
    assert!(message.ends_with("exists and does not belong to this tuning"), "{message}");
}

fn fact_of((table, id, _): &(MemoryTable, String, String), key: &str) -> Fact {
    let sk = format!("{}{key}", stored::fact_prefix(Some(JOB)));
    let row = now(table.get(&Key::new(stored::fact_partition(id), sk))).unwrap().expect("the fact is stored");
    stored::fact(&row).unwrap().fact
}

/// The answer of a create was lost, and the tags of its job could never be read. The start was tried for ever, and its
/// money stayed reserved.
#[test]
fn regression_a_start_whose_tags_are_unreadable_for_a_day_counts_as_started() {
    let denied = || TrainingJobsError::Refused {
        code: "AccessDeniedException".to_owned(),
        message: "sagemaker:ListTags".to_owned(),
    };
    let tried = |tries| {
        let job = ordered(start_of(JOB), Some(NOW - ABANDONED));
        let row = action_row(&job.0, &job.1, &job.2);
        put(&job.0, ActionRow { tries, ..row }.row(&job.1));
        let service = at(NOW, None);
        service.lock().tags = Some(Err(denied()));
        (perform(&job, &service), job)
    };
    let (waits, _) = tried(298);
    assert!(matches!(waits, Performed::Deferred(_)), "{waits:?}");
    let (assumed, job) = tried(299);
    assert_eq!(assumed, Performed::Done(Effect::AssumedStarted(denied().to_string())));
    assert_eq!(fact_of(&job, "started#0-0-1"), Fact::JobStarted { job: JOB });
}

#[test]
fn a_job_that_has_run_is_not_free_while_its_bill_is_invisible() {
    let bill = |status: &str, reason: Option<&str>| {
        let described = Description {
            ended: Some(Time(NOW - 100_000)),
            modified: Time(NOW - 100_000),
            failure_reason: reason.map(str::to_owned),
            ..description("job", status, NOW - 900_000)
        };
        let service = at(NOW, None);
        service.lock().describe = Some(Ok(described));
        perform(&ordered(Order::Read(ReadOrder::Bill { job: JOB }), None), &service)
    };
    assert!(matches!(bill("Completed", None), Performed::Deferred(_)));
    assert!(matches!(bill("Failed", Some("AlgorithmError: exit code 1")), Performed::Deferred(_)));
    // A job that was stopped while it waited for instances, or never got any, costs nothing.
    assert_eq!(bill("Stopped", None), Performed::Done(Effect::Other));
    assert_eq!(bill("Failed", Some("CapacityError: no capacity")), Performed::Done(Effect::Other));
}
