//! The slots of this machine: how many hosts run at once, over all jobs, and the devices of each.
//!
//! Jobs get their slots in the order of their requests, so smaller jobs cannot starve a larger job.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(crate) struct Slots {
    count: u32,
    free: Arc<Semaphore>,
    used: Arc<Mutex<BTreeSet<u32>>>,
    devices: Vec<String>,
}

/// The slots of a job, until they are dropped.
#[derive(Debug)]
pub(crate) struct Held {
    /// One for each host, from 0. A job with more hosts than slots has each slot several times.
    pub(crate) slots: Vec<Slot>,
    used: Arc<Mutex<BTreeSet<u32>>>,
    // Freed after the numbers.
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) number: u32,
    /// The devices of the host alone; empty = the machine has none to share.
    pub(crate) devices: Vec<String>,
}

impl Slots {
    /// Returns `count` slots, or any number for `None`. `devices` limit them: each slot has an equal number of devices.
    pub(crate) fn new(count: Option<NonZeroU32>, devices: Vec<String>) -> Self {
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let most = u32::try_from(devices.len()).ok().filter(|count| *count > 0).unwrap_or(most);
        let count = count.map_or(most, |count| count.get().min(most));
        let permits = usize::try_from(count).unwrap_or(Semaphore::MAX_PERMITS);
        Self { count, free: Arc::new(Semaphore::new(permits)), used: Arc::default(), devices }
    }

    /// Returns why a job with so many hosts can never run.
    pub(crate) fn refuses(&self, hosts: u32) -> Option<String> {
        (!self.devices.is_empty() && hosts > self.count).then(|| {
            format!(
                "ClientError: the job has {hosts} processes, and --devices are enough for {}: list more devices, or lower \
                 InstanceCount",
                self.count
            )
        })
    }

    /// Waits for one slot per host; all slots for a job with more hosts, which then runs alone.
    pub(crate) async fn acquire(&self, hosts: u32) -> Option<Held> {
        let count = hosts.min(self.count);
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_many_owned(count).await.ok()?;
        let mut used = lock(&self.used);
        let free = (0..self.count).filter(|number| !used.contains(number));
        let own: Vec<u32> = free.take(usize::try_from(count).unwrap_or(usize::MAX)).collect();
        used.extend(&own);
        drop(used);
        let slots = (0..hosts).zip(own.iter().cycle()).map(|(_, number)| self.slot(*number)).collect();
        Some(Held { slots, used: Arc::clone(&self.used), _permit: permit })
    }

    fn slot(&self, number: u32) -> Slot {
        let count = usize::try_from(self.count).unwrap_or(usize::MAX).max(1);
        let each = self.devices.len().checked_div(count).unwrap_or(0);
        let before = usize::try_from(number).unwrap_or(usize::MAX).saturating_mul(each);
        let devices = self.devices.iter().skip(before).take(each).cloned().collect();
        Slot { number, devices }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut used = lock(&self.used);
        for slot in &self.slots {
            used.remove(&slot.number);
        }
    }
}

fn lock(used: &Mutex<BTreeSet<u32>>) -> MutexGuard<'_, BTreeSet<u32>> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(count: u32, devices: &[&str]) -> Slots {
        Slots::new(NonZeroU32::new(count), devices.iter().map(|name| (*name).to_owned()).collect())
    }

    fn shown(held: &Held) -> Vec<String> {
        held.slots.iter().map(|slot| format!("{}:{}", slot.number, slot.devices.join(","))).collect()
    }

    #[tokio::test]
    async fn each_host_has_its_own_slot_and_devices() {
        let machine = slots(2, &["0", "1", "2", "3"]);
        let first = machine.acquire(1).await.unwrap();
        let second = machine.acquire(1).await.unwrap();
        assert_eq!((shown(&first), shown(&second)), (vec!["0:0,1".to_owned()], vec!["1:2,3".to_owned()]));
        drop(first);
        let third = machine.acquire(1).await.unwrap();
        assert_eq!(shown(&third), ["0:0,1"], "the freed slot");
        drop((second, third));
        let pair = machine.acquire(2).await.unwrap();
        assert_eq!(shown(&pair), ["0:0,1", "1:2,3"]);
        assert!(machine.refuses(2).is_none());
        assert!(machine.refuses(3).is_some_and(|why| why.contains("enough for 2")));
    }

    #[tokio::test]
    async fn devices_limit_the_slots_and_a_large_job_without_devices_runs_alone() {
        let machine = slots(8, &["a", "b"]);
        assert!(machine.refuses(3).is_some());
        let all = machine.acquire(2).await.unwrap();
        assert_eq!(shown(&all), ["0:a", "1:b"]);
        let plain = slots(2, &[]);
        assert_eq!(shown(&plain.acquire(3).await.unwrap()), ["0:", "1:", "0:"]);
        assert_eq!(shown(&slots(0, &[]).acquire(2).await.unwrap()), ["0:", "1:"]);
    }
}
