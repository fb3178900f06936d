//! The cache of tunings, bounded by number and by size: a function has little memory, and a state may be large.
//!
//! Which entry is evicted first affects only the speed.

use std::collections::BTreeMap;

use tuning::state::State;
use tuning::trial::Trial;

#[derive(Debug)]
pub(super) struct Cache<V> {
    entries: BTreeMap<String, (V, usize)>,
    /// Most entries.
    most: usize,
    /// Most bytes of all entries together, estimated.
    bytes_max: usize,
}

impl<V: Clone> Cache<V> {
    /// Creates an empty cache.
    pub(super) fn new(most: usize, bytes_max: usize) -> Self {
        Self { entries: BTreeMap::new(), most, bytes_max }
    }

    pub(super) fn get(&self, id: &str) -> Option<V> {
        self.entries.get(id).map(|(value, _)| value.clone())
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.entries.remove(id);
    }

    /// Inserts `value` of `bytes` and evicts other entries to make room. The last entry is kept however large it is,
    /// because it is about to be read again.
    pub(super) fn insert(&mut self, id: &str, value: V, bytes: usize) {
        self.entries.remove(id);
        let mut sum: usize = bytes + self.entries.values().map(|(_, bytes)| bytes).sum::<usize>();
        while self.entries.len() >= self.most || sum > self.bytes_max {
            let Some((_, (_, freed))) = self.entries.pop_first() else { break };
            sum -= freed;
        }
        self.entries.insert(id.to_owned(), (value, bytes));
    }
}

/// Estimates the memory of a state in bytes. Lines and curves are nearly all of a large state.
pub(super) fn bytes_of(state: &State) -> usize {
    /// Of one line or epoch, with the overhead of maps and strings.
    const LINE: usize = 120;
    const EPOCH: usize = 32;
    /// Of a trial, with its job and configuration.
    const TRIAL: usize = 4_096;
    /// Of the place of a waiting trial, and of its configuration.
    const WAITING: usize = 64;
    const PARKED: usize = 1_024;
    /// Of what the sampler knows of a trial.
    const OBSERVATION: usize = 256;
    let of = |trial: &Trial| {
        let streams = trial.streams.iter();
        let lines: usize = streams.map(|s| s.lines.len() * LINE + s.unplaced_lines.len() * EPOCH).sum();
        TRIAL + lines + trial.curve.len() * EPOCH
    };
    let trials: usize = state.trials.values().map(of).sum();
    let parked: usize = state.search.parked.values().map(|parked| PARKED + parked.curve.len() * EPOCH).sum();
    let open = state.search.cohorts.iter().flat_map(|cohort| &cohort.rungs);
    let rungs = open.chain(state.search.past.iter().flatten());
    let arrivals: usize = rungs.map(|rung| rung.arrivals.len() + rung.waiting.len()).sum();
    let waiting = state.search.waiting.len() * WAITING;
    let billing = state.money.billing.len() * TRIAL;
    let observations: usize = state.search.histories().map(|history| history.iter().count()).sum();
    TRIAL + trials + parked + waiting + billing + arrivals * EPOCH + observations * OBSERVATION
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(cache: &Cache<u8>, ids: &[&str]) -> Vec<Option<u8>> {
        ids.iter().map(|id| cache.get(id)).collect()
    }

    /// Sixteen states of any size were cached, which could exceed the function's memory.
    #[test]
    fn regression_the_cache_is_bounded_by_size_too() {
        let mut cache = Cache::new(3, 100);
        for (id, value) in [("a", 1), ("b", 2), ("c", 3)] {
            cache.insert(id, value, 30);
        }
        assert_eq!(kept(&cache, &["a", "b", "c"]), [Some(1), Some(2), Some(3)]);
        cache.insert("b", 4, 60);
        assert_eq!(kept(&cache, &["a", "b", "c"]), [None, Some(4), Some(3)]);
        cache.insert("d", 5, 1_000);
        assert_eq!(kept(&cache, &["b", "c", "d"]), [None, None, Some(5)], "the last entry is kept");
        for id in ["e", "f", "g"] {
            cache.insert(id, 6, 1);
        }
        assert_eq!(kept(&cache, &["d", "e", "f", "g"]), [None, Some(6), Some(6), Some(6)]);
    }
}
