//! What is remembered of tunings, bounded by number and by size: a function has little memory, and a state may be large.
//!
//! Which entry goes first does not matter but to speed.

use std::collections::BTreeMap;

use tuning::state::{State, Trial};

/// Entries by tuning.
#[derive(Debug)]
pub(super) struct Cache<V> {
    entries: BTreeMap<String, (V, usize)>,
    /// Most entries.
    most: usize,
    /// Most bytes of all of them, as estimated.
    bytes_max: usize,
}

impl<V: Clone> Cache<V> {
    /// An empty one.
    pub(super) fn new(most: usize, bytes_max: usize) -> Self {
        Self { entries: BTreeMap::new(), most, bytes_max }
    }

    pub(super) fn get(&self, id: &str) -> Option<V> {
        self.entries.get(id).map(|(value, _)| value.clone())
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.entries.remove(id);
    }

    /// Remembers `value`, of `bytes`, and forgets others for it. The last one is kept however large it is: it is about to be
    /// asked for again.
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

/// About how many bytes of memory a state takes: nearly all of a large one are lines and curves.
pub(super) fn bytes_of(state: &State) -> usize {
    /// Of one line or epoch, with what maps and texts need around it.
    const LINE: usize = 120;
    const EPOCH: usize = 32;
    /// Of a trial, with its job and configuration.
    const TRIAL: usize = 4_096;
    let of = |trial: &Trial| {
        let streams = trial.streams.iter();
        let lines: usize = streams.map(|s| s.lines.len() * LINE + s.held.len() * EPOCH).sum();
        TRIAL + lines + trial.curve.len() * EPOCH
    };
    let trials: usize = state.trials.values().chain(state.waiting.values()).map(of).sum();
    let arrivals: usize = state.rungs.iter().flatten().count();
    TRIAL + trials + arrivals * EPOCH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(cache: &Cache<u8>, ids: &[&str]) -> Vec<Option<u8>> {
        ids.iter().map(|id| cache.get(id)).collect()
    }

    /// Sixteen states of any size were remembered: more than the function has memory.
    #[test]
    fn regression_what_is_remembered_is_bounded_by_its_size_too() {
        let mut cache = Cache::new(3, 100);
        for (id, value) in [("a", 1), ("b", 2), ("c", 3)] {
            cache.insert(id, value, 30);
        }
        assert_eq!(kept(&cache, &["a", "b", "c"]), [Some(1), Some(2), Some(3)]);
        cache.insert("b", 4, 60);
        assert_eq!(kept(&cache, &["a", "b", "c"]), [None, Some(4), Some(3)]);
        cache.insert("d", 5, 1_000);
        assert_eq!(kept(&cache, &["b", "c", "d"]), [None, None, Some(5)], "the last one is kept");
        for id in ["e", "f", "g"] {
            cache.insert(id, 6, 1);
        }
        assert_eq!(kept(&cache, &["d", "e", "f", "g"]), [None, Some(6), Some(6), Some(6)]);
    }
}
