//! What a database was told, in order, and which prefixes of it a crash may leave.
//!
//! Every event (a batch, a family made or dropped) is noted before the call that does it. Of the
//! state after each event a fingerprint is kept, so that what a crash left is found among all
//! prefixes without replaying them; the one that is found is then replayed and compared row by
//! row.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The column families of a history, by index.
pub const FAMILIES: [&str; 3] = ["a", "b", "c"];

pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
pub enum Change {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    RemoveRange(Vec<u8>, Vec<u8>),
}

#[derive(Clone, Debug)]
pub enum Event {
    /// One batch: the changes with their families, in order.
    Write(Vec<(usize, Change)>),
    Create(usize),
    Drop(usize),
}

impl Event {
    /// Whether it leaves something to flush in that family.
    fn writes_to(&self, family: usize) -> bool {
        let Event::Write(changes) = self else { return false };
        let is_empty = |change: &Change| matches!(change, Change::RemoveRange(a, b) if a == b);
        changes.iter().any(|(index, change)| *index == family && !is_empty(change))
    }

    fn is_of_families(&self) -> bool {
        !matches!(self, Event::Write(_))
    }
}

/// The content of one family, with a sum of its rows' hashes.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// Tells a family from an earlier one of the same name.
    incarnation: u32,
    pub rows: Rows,
    hash: u64,
}

/// The content of all families.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub families: [Option<Content>; FAMILIES.len()],
    incarnations: u32,
}

/// Incarnation and hash of each family.
type Fingerprint = [Option<(u32, u64)>; FAMILIES.len()];

/// The hash of one row; those of a family are added up.
pub fn row_hash(key: &[u8], value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value).hash(&mut hasher);
    hasher.finish()
}

impl Content {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.remove(key);
        self.hash = self.hash.wrapping_add(row_hash(key, value));
        self.rows.insert(key.to_vec(), value.to_vec());
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(value) = self.rows.remove(key) {
            self.hash = self.hash.wrapping_sub(row_hash(key, &value));
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Put(key, value) => self.put(key, value),
            Change::Remove(key) => self.remove(key),
            Change::RemoveRange(start, end) => {
                let doomed: Vec<_> =
                    self.rows.range(start.clone()..end.clone()).map(|(k, _)| k.clone()).collect();
                doomed.iter().for_each(|key| self.remove(key));
            }
        }
    }
}

impl State {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Write(changes) => {
                for (family, change) in changes {
                    if let Some(content) = &mut self.families[*family] {
                        content.apply(change);
                    }
                }
            }
            Event::Create(family) => {
                self.incarnations += 1;
                let incarnation = self.incarnations;
                self.families[*family] = Some(Content { incarnation, ..Content::default() });
            }
            Event::Drop(family) => self.families[*family] = None,
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        let print = |content: &Content| (content.incarnation, content.hash);
        std::array::from_fn(|family| self.families[family].as_ref().map(print))
    }
}

/// What a crash may take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    PowerCut,
    ProcessEnd,
}

/// What was found after a crash.
pub struct Found {
    /// The events that survived.
    pub survived: usize,
    pub state: State,
}

/// The events since the database was last known to be durable as a whole.
#[derive(Default)]
pub struct History {
    base: State,
    events: Vec<Event>,
    acknowledged_at_us: Vec<u64>,
    fingerprints: Vec<Fingerprint>,
    /// The state after all events.
    pub now: State,
    /// So many events were acknowledged.
    pub acknowledged: usize,
    /// So many events survive a power cut, by what was promised.
    pub power_floor: usize,
    /// So many events survive the end of the process, by what was promised.
    pub process_floor: usize,
    /// Without a log the families are as last acknowledged, whatever writes survive.
    pub is_logless: bool,
}

impl History {
    pub fn new() -> Self {
        let mut history = History::default();
        history.settle(State::default());
        history
    }

    /// Starts again from a state that is durable.
    pub fn settle(&mut self, state: State) {
        let is_logless = self.is_logless;
        let fingerprints = vec![state.fingerprint()];
        *self = History {
            now: state.clone(),
            base: state,
            fingerprints,
            is_logless,
            ..Self::default()
        };
    }

    pub fn begin(&mut self, event: Event) {
        self.now.apply(&event);
        self.fingerprints.push(self.now.fingerprint());
        self.events.push(event);
    }

    /// The event that was begun is acknowledged.
    pub fn acknowledge(&mut self, now_us: u64) {
        self.acknowledged = self.events.len();
        self.acknowledged_at_us.push(now_us);
        if !self.is_logless {
            self.process_floor = self.acknowledged;
        }
    }

    /// Everything acknowledged was promised to be durable.
    pub fn all_durable(&mut self) {
        self.power_floor = self.acknowledged;
        self.process_floor = self.acknowledged;
    }

    /// Everything acknowledged up to that time was promised to be durable.
    pub fn durable_through_us(&mut self, time_us: u64) {
        let count = self.acknowledged_at_us.partition_point(|at_us| *at_us <= time_us);
        self.power_floor = self.power_floor.max(count);
    }

    /// What was written to that family was promised to be durable, and with it what came before.
    pub fn family_durable(&mut self, family: usize) {
        let last = self.events.iter().rposition(|event| event.writes_to(family));
        let count = last.map_or(0, |index| index + 1);
        self.power_floor = self.power_floor.max(count);
        self.process_floor = self.process_floor.max(count);
    }

    /// Finds the last prefix whose hashes are those found, and says whether it is long enough.
    pub fn find(
        &self,
        kind: CrashKind,
        hashes: &[Option<u64>; FAMILIES.len()],
    ) -> Result<Found, String> {
        let floor = match kind {
            CrashKind::PowerCut => self.power_floor,
            CrashKind::ProcessEnd => self.process_floor,
        };
        for survived in (0..=self.events.len()).rev() {
            let Some(families_from) = self.matches(survived, hashes) else { continue };
            if survived < floor {
                return Err(format!(
                    "LOST: {survived} events survived {kind:?}, {floor} were promised, \
                     {} acknowledged; the first lost one is {:?}",
                    self.acknowledged, self.events[survived]
                ));
            }
            return Ok(Found { survived, state: self.replay(survived, families_from) });
        }
        Err(format!(
            "NO PREFIX of {} events ({floor} promised, {} acknowledged) is what {kind:?} left: {}",
            self.events.len(),
            self.acknowledged,
            self.each_family(hashes)
        ))
    }

    /// Whether a prefix is what was found; gives the prefix that the set of families is from.
    fn matches(&self, survived: usize, hashes: &[Option<u64>; FAMILIES.len()]) -> Option<usize> {
        let candidates = if self.is_logless {
            let in_flight = self.events.get(self.acknowledged);
            let unsure = in_flight.is_some_and(Event::is_of_families);
            vec![self.events.len(), if unsure { self.acknowledged } else { self.events.len() }]
        } else {
            vec![survived]
        };
        let print = &self.fingerprints[survived];
        candidates.into_iter().find(|families_from| {
            let families = &self.fingerprints[*families_from];
            (0..FAMILIES.len()).all(|family| {
                let expected = families[family].map(|(incarnation, _)| match print[family] {
                    Some((same, hash)) if same == incarnation => hash,
                    _ => 0,
                });
                expected == hashes[family]
            })
        })
    }

    fn replay(&self, survived: usize, families_from: usize) -> State {
        let mut state = self.base.clone();
        self.events[..survived].iter().for_each(|event| state.apply(event));
        for (family, print) in self.fingerprints[families_from].iter().enumerate() {
            let is_same = |content: &Content| Some(content.incarnation) == print.map(|p| p.0);
            if !state.families[family].as_ref().is_some_and(is_same) {
                state.families[family] =
                    print.map(|(incarnation, _)| Content { incarnation, ..Content::default() });
            }
        }
        state.incarnations = self.now.incarnations;
        state
    }

    /// For a failure: which prefixes each family by itself is at.
    fn each_family(&self, hashes: &[Option<u64>; FAMILIES.len()]) -> String {
        let mut text = String::new();
        for (family, name) in FAMILIES.iter().enumerate() {
            let at: Vec<usize> = (0..self.fingerprints.len())
                .filter(|at| self.fingerprints[*at][family].map(|p| p.1) == hashes[family])
                .collect();
            text += &format!("family {name} is there: {}", hashes[family].is_some());
            text += &format!(", at prefixes {:?}..={:?}; ", at.first(), at.last());
        }
        text
    }
}
