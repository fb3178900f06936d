//! The slots of this machine: how many hosts run at once, over all jobs.
//!
//! Jobs get their slots in the order in which they ask, so no job starves behind smaller ones.

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots.
#[derive(Debug)]
pub(crate) struct Slots {
    count: u32,
    free: Arc<Semaphore>,
}

impl Slots {
    pub(crate) fn new(count: NonZeroU32) -> Self {
        let permits = usize::try_from(count.get()).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { count: count.get(), free: Arc::new(Semaphore::new(permits)) }
    }

    /// Waits for one slot per host; all slots for a job with more hosts, which then runs alone.
    pub(crate) async fn acquire(&self, hosts: u32) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.free).acquire_many_owned(hosts.min(self.count)).await.ok()
    }
}
