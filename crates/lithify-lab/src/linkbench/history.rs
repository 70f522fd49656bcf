//! Long lists that a requester read in part, and may go on reading.

use std::collections::HashMap;

use crate::random::Random;

/// Most lists remembered.
const ENTRIES_MAX: usize = 2048;

/// A list and the time of the last row that was read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Source.
    pub id1: u64,
    /// Type.
    pub link_type: u64,
    /// Time of the last row read, milliseconds.
    pub last_time_ms: u64,
}

/// At most 2048 lists, one entry each; a random one gives way.
#[derive(Clone, Debug)]
pub struct ListHistory {
    entries: Vec<Remembered>,
    places: HashMap<(u64, u64), usize>,
}

impl Default for ListHistory {
    fn default() -> Self {
        ListHistory {
            entries: Vec::with_capacity(ENTRIES_MAX),
            places: HashMap::with_capacity(ENTRIES_MAX),
        }
    }
}

impl ListHistory {
    /// Remembers a list, or replaces what is known of it.
    pub fn remember(&mut self, entry: Remembered, random: &mut Random) {
        let key = (entry.id1, entry.link_type);
        if let Some(place) = self.places.get(&key) {
            self.entries[*place] = entry;
            return;
        }
        if self.entries.len() >= ENTRIES_MAX {
            let victim = random.below(self.entries.len() as u64) as usize;
            let Remembered { id1, link_type, .. } = self.entries[victim];
            self.forget(id1, link_type);
        }
        self.places.insert(key, self.entries.len());
        self.entries.push(entry);
    }

    /// Forgets a list.
    pub fn forget(&mut self, id1: u64, link_type: u64) {
        let Some(place) = self.places.remove(&(id1, link_type)) else { return };
        self.entries.swap_remove(place);
        if let Some(moved) = self.entries.get(place) {
            self.places.insert((moved.id1, moved.link_type), place);
        }
    }

    /// A random one of the lists.
    pub fn pick(&self, random: &mut Random) -> Option<Remembered> {
        self.entries.get(random.below(self.entries.len() as u64) as usize).copied()
    }

    /// True when nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_per_list_and_a_bound() {
        let mut random = Random::new(1, 1);
        let mut history = ListHistory::default();
        assert_eq!(history.pick(&mut random), None);
        let entry = |id1, last_time_ms| Remembered { id1, link_type: 7, last_time_ms };
        history.remember(entry(1, 10), &mut random);
        history.remember(entry(1, 9), &mut random);
        assert_eq!(history.pick(&mut random), Some(entry(1, 9)));
        for id1 in 0..5000 {
            history.remember(entry(id1, id1), &mut random);
        }
        assert_eq!((history.entries.len(), history.places.len()), (ENTRIES_MAX, ENTRIES_MAX));
        for (place, entry) in history.entries.iter().enumerate() {
            assert_eq!(history.places[&(entry.id1, entry.link_type)], place);
        }
        for id1 in 0..5000 {
            history.forget(id1, 7);
        }
        assert!(history.is_empty() && history.places.is_empty());
    }
}
