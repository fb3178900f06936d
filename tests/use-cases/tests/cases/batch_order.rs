//! Which records of a batch are performed, in which order, and how many at a time.

use std::pin::pin;

use tuning::log::ruling::{GrantOrder, NoticeOrder, Order, PoolOrder, ReadOrder};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use use_cases::perform::ActionBatch;
use wire::events::stream::{RecordKind, encode_payload, encode_record};

use crate::performing::{NOW, Stack, job, rest_of, stop_of};
use crate::support::{now, poll, start_of};

fn bill_of(trial: u32) -> Order {
    Order::Read(ReadOrder::Bill { job: job(trial) })
}

/// What costs money while it waits comes first, and what may read many pages of a log comes last.
#[test]
fn a_batch_is_performed_in_the_order_of_its_urgency() {
    let month = "2026-09".to_owned();
    let (least, wanted, amount) = (MicroUsd(1), MicroUsd(2), MicroUsd(1));
    let urgency = [
        vec![stop_of(0), stop_of(1)],
        vec![start_of(job(2)), start_of(job(3))],
        vec![
            Order::Grant(GrantOrder::Request { n: 1, least, wanted }),
            Order::Grant(GrantOrder::Return { n: 1, month, amount, moved_to: None }),
            Order::Pool(PoolOrder::Release { job: job(4) }),
            Order::Pool(PoolOrder::Read { job: job(5), n: 1, last: false }),
        ],
        vec![bill_of(6), bill_of(7)],
        vec![Order::Notice(NoticeOrder::OverrunSeen), Order::Notice(NoticeOrder::CapReached { percent: 50 })],
        vec![
            rest_of(8),
            Order::Read(ReadOrder::Log { job: job(9), streams: 1 }),
            Order::Read(ReadOrder::Silence { job: job(10), since: Time(NOW) }),
        ],
    ];
    let stack = Stack::new();
    let groups = urgency.map(|group| group.into_iter().map(|ordered| stack.order(ordered)).collect());
    let groups: Vec<Vec<String>> = groups.into();
    // The least urgent group arrives first.
    let arriving: Vec<&str> = groups.iter().rev().flatten().map(String::as_str).collect();
    let mut acts = ActionBatch::default();
    now(stack.actuator.handle(&stack.event(&arriving), || false, &mut acts));
    let performed: Vec<_> = acts.parts.iter().map(|part| part.done.action.clone()).collect();
    assert_eq!(performed, groups.concat());
}

#[test]
fn only_a_new_row_of_an_action_is_performed() {
    let stack = Stack::new();
    let stop = stack.order(stop_of(0));
    let row = stack.row(&stop).row(&stack.id);
    for (kind, is_performed) in [(RecordKind::Modify, false), (RecordKind::Insert, true)] {
        let mut acts = ActionBatch::default();
        let event = encode_payload([encode_record(1, kind, &row.key, Some(&row))]);
        now(stack.actuator.handle(&event, || true, &mut acts));
        assert_eq!(acts.parts.len(), usize::from(is_performed), "{kind:?}: {acts:?}");
        assert_eq!(stack.calls().is_empty(), !is_performed, "{kind:?}");
    }
}

#[test]
fn a_slow_description_does_not_delay_the_bill_beside_it() {
    let stack = Stack::new();
    stack.service.lock().describe_hangs = true;
    let bills = [0, 1, 2].map(|trial| stack.order(bill_of(trial)));
    let event = stack.event(&[&bills[0], &bills[1], &bills[2]]);
    let mut acts = ActionBatch::default();
    assert!(poll(pin!(stack.actuator.handle(&event, || true, &mut acts))).is_none());
    assert_eq!(stack.service.calls().len(), 2, "two bills are read at a time");
}
