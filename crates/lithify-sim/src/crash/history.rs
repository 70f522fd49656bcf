//! What a database was told, in order, and which prefixes of it a crash may leave.
//!
//! Every event (a batch, a family made or dropped) is noted before the call that does it, and the
//! state after it is kept: states share their rows. A [`Moment`] says how far the history had come
//! when the machine stopped, and how much of it was promised to survive.
//!
//! One family may have a compaction filter, whose work is no event: what it makes of a row survives by
//! itself. In every mode a compaction shows nothing before its edit of the manifest is durable, and all that it
//! read was flushed behind a synced log (docs/durability.md). So a row that was seen filtered is filtered after
//! any crash, until it is written anew. Of every other row a crash leaves what was written or what the
//! filter makes of it: a job that was not installed leaves nothing, and one that was may not
//! have been seen yet.
//!
//! One family has a time to live. A moment has its time too, and what a crash leaves is judged at the time at which
//! it is opened: of every state, the rows are left out that are over by then.

use crate::filtered::{Outcome, outcomes};
use crate::model::{Content, Rows, State};
use crate::operation::{FAMILIES, FAMILY_COUNT, Write, lifetimes};
use lithify::Durability;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The sums of the row fingerprints of each family that is there, as a scan finds them.
pub type Digests = [Option<u64>; FAMILY_COUNT];

/// What a scan finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Of all families.
    pub digests: Digests,
    /// The rows of the family with a filter, with its slot: they are not known beforehand.
    pub filtered: Option<(usize, Arc<Rows>)>,
}

/// One thing that is there as a whole or not at all.
#[derive(Clone, Debug)]
pub enum Event {
    /// The writes of one commit or ingest.
    Write(Vec<Write>),
    /// A family is made in a slot.
    Create(usize),
    /// The family of a slot is dropped.
    Drop(usize),
}

impl Found {
    /// Whether the rows of a slot are those of a family, or what the filter may have made of them.
    fn fits(&self, slot: usize, content: Option<&Content>) -> bool {
        match (&self.filtered, content) {
            (Some((filtered, rows)), Some(content)) if *filtered == slot => {
                outcomes(slot, content.rows(), rows).is_ok()
            }
            _ => self.digests[slot] == Some(content.map_or(0, Content::digest)),
        }
    }
}

impl Event {
    fn is_of_families(&self) -> bool {
        !matches!(self, Event::Write(_))
    }
}

/// What a crash may take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrashKind {
    /// What was not synced.
    PowerCut,
    /// Nothing that was written.
    ProcessEnd,
}

/// How far a history had come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Events that the database was told.
    pub begun: usize,
    /// Events that were acknowledged.
    pub acknowledged: usize,
    /// Events that a reader could see.
    pub visible: usize,
    /// So many events survive a power cut, by what was promised.
    pub power_floor: usize,
    /// So many events survive the end of the process, by what was promised.
    pub process_floor: usize,
    /// Without a log the families are as last acknowledged, whatever writes survive.
    pub is_logless: bool,
    /// So many sightings of filtered rows came before.
    pub sightings: usize,
    /// The time by the virtual clock.
    pub now_us: u64,
}

impl Moment {
    /// The numbers of events that a crash may leave.
    pub fn may_survive(&self, kind: CrashKind) -> RangeInclusive<usize> {
        let floor = match kind {
            CrashKind::PowerCut => self.power_floor,
            CrashKind::ProcessEnd => self.process_floor,
        };
        floor..=self.begun
    }

    /// The same so much later, with nothing done meanwhile.
    #[must_use]
    pub fn later(self, by_us: u64) -> Moment {
        Moment { now_us: self.now_us + by_us, ..self }
    }
}

/// What was seen of the work of the filter at one time.
struct Sighting {
    /// After so many events.
    events: usize,
    slot: usize,
    incarnation: u32,
    outcomes: Vec<Outcome>,
}

impl Sighting {
    /// Shows it in a state of before, where the writes that it saw are the newest of their rows: a value that
    /// is shared was written once.
    fn show(&self, state: &mut State) {
        for outcome in &self.outcomes {
            let content = state.same_family(self.slot, self.incarnation);
            let value = content.and_then(|content| content.rows().get(&outcome.key));
            if value.is_some_and(|value| Arc::ptr_eq(value, &outcome.before)) {
                state.refilter(self.slot, &outcome.key, outcome.after.as_ref());
            }
        }
    }
}

/// The events since the database was last known to be durable as a whole.
pub struct History {
    /// The slot of the family with a filter.
    filter: Option<usize>,
    events: Vec<Event>,
    /// The state after each number of events, with what was seen of the filter before each.
    states: Vec<State>,
    sightings: Vec<Sighting>,
    acknowledged_at_us: Vec<u64>,
    moment: Moment,
    /// Whether what is visible has to be durable: the event under way is to be synced.
    is_synced: bool,
}

impl History {
    /// Nothing has happened since `state`, which is durable. The family in a slot may have a filter.
    pub fn new(state: State, filter: Option<usize>) -> Self {
        History {
            filter,
            events: Vec::new(),
            states: vec![state],
            sightings: Vec::new(),
            acknowledged_at_us: Vec::new(),
            moment: Moment::default(),
            is_synced: false,
        }
    }

    /// The same at a time.
    #[must_use]
    pub fn at(mut self, now_us: u64) -> Self {
        self.set_now_us(now_us);
        self
    }

    /// The time from now on: rows may be over by then.
    pub fn set_now_us(&mut self, now_us: u64) {
        self.moment.now_us = now_us;
    }

    /// Starts again from a state that is durable.
    pub fn settle(&mut self, state: State) {
        let is_logless = self.moment.is_logless;
        *self = History::new(state, self.filter).at(self.moment.now_us);
        self.moment.is_logless = is_logless;
    }

    /// The mode of durability from now on.
    pub fn set_durability(&mut self, durability: Durability) {
        self.moment.is_logless = durability == Durability::None;
    }

    /// How far it has come.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    /// The slot of the family with a filter.
    pub fn filter(&self) -> Option<usize> {
        self.filter
    }

    /// The state after all events.
    pub fn now(&self) -> State {
        self.after(self.moment.begun, &self.moment)
    }

    /// The state after all events that were acknowledged: what a reader sees between calls.
    pub fn acknowledged(&self) -> State {
        self.after(self.moment.acknowledged, &self.moment)
    }

    /// The state after so many events as it is at a moment, with what the sightings until then say of it.
    fn after(&self, events: usize, moment: &Moment) -> State {
        let mut state = self.states[events].clone();
        let sightings = &self.sightings[..moment.sightings];
        let later = sightings.iter().filter(|seen| seen.events >= events);
        later.for_each(|seen| seen.show(&mut state));
        state.after_half_lives(lifetimes::half_lives(moment.now_us))
    }

    /// Takes over what a reader finds in the family with a filter between calls.
    ///
    /// # Errors
    /// It is not what the filter may have made of what was acknowledged.
    pub fn sight(&mut self, slot: usize, found: &Rows) -> Result<(), String> {
        let state = self.acknowledged();
        let Some(content) = state.family(slot) else { return Ok(()) };
        let (incarnation, events) = (content.incarnation(), self.moment.acknowledged);
        let outcomes = outcomes(slot, content.rows(), found)?;
        if !outcomes.is_empty() {
            self.sightings.push(Sighting { events, slot, incarnation, outcomes });
            self.moment.sightings = self.sightings.len();
        }
        Ok(())
    }

    /// Rows that were seen to be filtered.
    pub fn filtered_rows(&self) -> u64 {
        self.sightings.iter().map(|seen| seen.outcomes.len() as u64).sum()
    }

    /// An event is about to be told; `is_synced` if it is durable before anybody sees it.
    pub fn begin(&mut self, event: Event, is_synced: bool) {
        let mut state = self.now();
        match &event {
            Event::Write(writes) => writes.iter().for_each(|write| state.apply(write)),
            Event::Create(slot) => state.create(*slot),
            Event::Drop(slot) => state.drop_family(*slot),
        }
        self.states.push(state);
        self.events.push(event);
        self.moment.begun = self.events.len();
        self.is_synced = is_synced;
    }

    /// The moment, if a reader sees the event that is under way.
    pub fn moment_if_visible(&self) -> Moment {
        let mut moment = self.moment;
        moment.visible = moment.begun;
        if !moment.is_logless {
            moment.process_floor = moment.begun;
        }
        if self.is_synced {
            moment.power_floor = moment.begun;
        }
        moment
    }

    /// The event that was begun is acknowledged.
    pub fn acknowledge(&mut self, now_us: u64) {
        self.moment.acknowledged = self.events.len();
        self.moment.visible = self.events.len();
        self.acknowledged_at_us.push(now_us);
        if !self.moment.is_logless {
            self.moment.process_floor = self.moment.acknowledged;
        }
    }

    /// The event that was begun has failed and left nothing behind.
    pub fn retract(&mut self) {
        if self.moment.begun > self.moment.acknowledged {
            self.events.pop();
            self.states.pop();
            self.moment.begun = self.events.len();
        }
    }

    /// Everything acknowledged was promised to be durable.
    pub fn all_durable(&mut self) {
        self.moment.power_floor = self.moment.acknowledged;
        self.moment.process_floor = self.moment.acknowledged;
    }

    /// Everything acknowledged up to that time was promised to be durable.
    pub fn durable_through_us(&mut self, time_us: u64) {
        let count = self.acknowledged_at_us.partition_point(|at_us| *at_us <= time_us);
        self.moment.power_floor = self.moment.power_floor.max(count);
    }

    /// The most events of which what was found is the state, if that many may have survived.
    ///
    /// # Errors
    /// What was found instead: the state after fewer events, or after no number of them.
    pub fn find(
        &self,
        moment: &Moment,
        allowed: RangeInclusive<usize>,
        found: &Found,
    ) -> Result<usize, Violation> {
        let is_found = |survived: &usize| self.matches(moment, *survived, found).is_some();
        if let Some(survived) = allowed.clone().rev().find(is_found) {
            return Ok(survived);
        }
        Err(match (0..=moment.begun).rev().find(is_found) {
            Some(survived) => Violation::WrongPrefix {
                survived,
                allowed,
                acknowledged: moment.acknowledged,
                next: self.events.get(survived).map(|event| format!("{event:?}")),
            },
            None => Violation::NoPrefix {
                begun: moment.begun,
                families: self.each_family(moment, &found.digests),
            },
        })
    }

    /// Whether what was found is what so many events leave; gives the number of events that the
    /// set of families is from.
    fn matches(&self, moment: &Moment, survived: usize, found: &Found) -> Option<usize> {
        let candidates = if moment.is_logless {
            let in_flight = self.events[..moment.begun].get(moment.acknowledged);
            let unsure = in_flight.is_some_and(Event::is_of_families);
            [moment.begun, if unsure { moment.acknowledged } else { moment.begun }]
        } else {
            [survived, survived]
        };
        let state = self.after(survived, moment);
        candidates.into_iter().find(|families_from| {
            let families = &self.states[*families_from];
            (0..FAMILY_COUNT).all(|slot| {
                let incarnation = families.family(slot).map(|family| family.incarnation());
                match (incarnation, found.digests[slot]) {
                    (Some(incarnation), Some(_)) => {
                        found.fits(slot, state.same_family(slot, incarnation))
                    }
                    (expected, found) => expected.is_none() && found.is_none(),
                }
            })
        })
    }

    /// Whether what was found is what was acknowledged, or what the filter may have made of that.
    pub fn is_acknowledged(&self, found: &Found) -> bool {
        let state = self.acknowledged();
        (0..FAMILY_COUNT).all(|slot| match state.family(slot) {
            Some(content) => found.fits(slot, Some(content)),
            None => found.digests[slot].is_none(),
        })
    }

    /// The state that so many surviving events leave, which was found.
    pub fn survivor(&self, moment: &Moment, survived: usize, found: &Found) -> State {
        let families_from = self.matches(moment, survived, found).unwrap_or(survived);
        let mut state = self.after(families_from, moment);
        let survivors = self.after(survived, moment);
        for slot in 0..FAMILY_COUNT {
            let Some(incarnation) = state.family(slot).map(|family| family.incarnation()) else {
                continue;
            };
            match survivors.same_family(slot, incarnation).cloned() {
                Some(content) => state.replace(slot, Some(content)),
                None => state.create(slot),
            }
        }
        if let Some((slot, rows)) = &found.filtered
            && let Some(content) = state.family(*slot)
        {
            // What was found fits: see above.
            for outcome in outcomes(*slot, content.rows(), rows).unwrap_or_default() {
                state.refilter(*slot, &outcome.key, outcome.after.as_ref());
            }
        }
        state
    }

    /// For a failure: which prefixes each family by itself is at.
    fn each_family(&self, moment: &Moment, found: &Digests) -> String {
        let mut text = String::new();
        for (slot, name) in FAMILIES.iter().enumerate() {
            let digest = |state: &State| state.family(slot).map(|family| family.digest());
            let is_at = |at: &usize| digest(&self.after(*at, moment)) == found[slot];
            let at: Vec<usize> = (0..self.states.len()).filter(is_at).collect();
            text += &format!("family {name} is there: {}", found[slot].is_some());
            text += &format!(", as after {:?}..={:?} events; ", at.first(), at.last());
        }
        text
    }
}

/// What a crash left that it must not leave.
#[derive(Clone, Debug)]
pub enum Violation {
    /// The state after a number of events that may not be what survives.
    WrongPrefix {
        /// How many survived.
        survived: usize,
        /// How many may have.
        allowed: RangeInclusive<usize>,
        /// How many were acknowledged.
        acknowledged: usize,
        /// The first event that is lost.
        next: Option<String>,
    },
    /// A state that never was.
    NoPrefix {
        /// How many events the database was told.
        begun: usize,
        /// What each family looks like.
        families: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::WrongPrefix { survived, allowed, acknowledged, next } => write!(
                f,
                "{survived} events survived, {} to {} may, {acknowledged} were acknowledged; the \
                 first lost one is {}",
                allowed.start(),
                allowed.end(),
                next.as_deref().unwrap_or("none")
            ),
            Violation::NoPrefix { begun, families } => {
                write!(f, "no prefix of {begun} events is what was found: {families}")
            }
        }
    }
}
