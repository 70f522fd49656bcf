//! The queue in front of the commit leader: who leads, who is in whose group, who is woken.
//!
//! 1. Who finds no leader leads at once. The others queue, each with a slot to wait at.
//! 2. The leader takes the longest prefix of the queue that it wants as its group.
//! 3. When the group is done, the first of those that came meanwhile is made the leader and woken,
//!    as all behind it wait for it; then the group is woken, nobody else.
//!
//! Promises: one leader at a time; everything that joined is in exactly one group or leads one,
//! in the order of joining; every slot is notified after it was told. What waiting is, the caller
//! says. Owns no data of the database. Checked by `db/shuttle.rs` in many orders of its steps.

use crate::base::sync::{AtomicBool, AtomicU8, Mutex, lock};
use crate::fs::Event;
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const WAITING: u8 = 0;
const LEAD: u8 = 1;
const DONE: u8 = 2;

/// Where one waits for its outcome; passes from one to the next.
pub(crate) struct Slot {
    state: AtomicU8,
    result: Mutex<Result<()>>,
    moved: Arc<dyn Event>,
}

impl Slot {
    /// A slot that is notified by this event.
    pub(crate) fn new(moved: Arc<dyn Event>) -> Self {
        Slot { state: AtomicU8::new(WAITING), result: Mutex::new(Ok(())), moved }
    }

    /// Whether the wait is over.
    pub(crate) fn has_moved(&self) -> bool {
        self.state.load(Ordering::Acquire) != WAITING
    }

    /// What is notified then.
    pub(crate) fn moved(&self) -> &Arc<dyn Event> {
        &self.moved
    }

    fn tell(&self, state: u8) {
        if planted!(WokenBeforeTold) {
            self.moved.notify_all();
            self.state.store(state, Ordering::Release);
            return;
        }
        self.state.store(state, Ordering::Release);
        self.moved.notify_all();
    }
}

/// Something queued, with the slot of who waits for it; the leader's own has none.
struct Queued<T> {
    item: T,
    slot: Option<Arc<Slot>>,
    /// Why the leader leaves it out.
    refusal: Option<Error>,
}

struct Queue<T> {
    waiting: Vec<Queued<T>>,
    has_leader: bool,
    /// Slots that nobody waits at.
    idle: Vec<Arc<Slot>>,
}

/// What became of something that joined.
pub(crate) enum Turn<T> {
    /// It leads.
    Lead(T),
    /// It was in a group that came to this.
    Done(Result<()>),
}

/// What a leader commits together, its own first.
pub(crate) struct Group<T>(Vec<Queued<T>>);

impl<T> Group<T> {
    /// The items in order, but for those refused.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> + Clone {
        self.0.iter().filter(|queued| queued.refusal.is_none()).map(|queued| &queued.item)
    }

    /// Leaves out what `check` refuses, in order; its error is the outcome.
    pub(crate) fn refuse(&mut self, mut check: impl FnMut(&T) -> Result<()>) {
        for queued in &mut self.0 {
            queued.refusal = check(&queued.item).err();
        }
    }

    /// How many there are, at least one.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// See the module.
pub(crate) struct GroupQueue<T> {
    queue: Mutex<Queue<T>>,
    leader_rests: AtomicBool,
}

impl<T> Default for GroupQueue<T> {
    fn default() -> Self {
        let queue = Queue { waiting: Vec::new(), has_leader: false, idle: Vec::new() };
        GroupQueue { queue: Mutex::new(queue), leader_rests: AtomicBool::new(false) }
    }
}

impl<T> GroupQueue<T> {
    /// Leads, or queues and waits: `wait` returns when [`Slot::has_moved`].
    pub(crate) fn join(
        &self,
        item: T,
        new_slot: impl FnOnce() -> Slot,
        wait: impl FnOnce(&Slot),
    ) -> Turn<T> {
        let slot = {
            let mut queue = lock(&self.queue);
            if !queue.has_leader {
                queue.has_leader = true;
                return Turn::Lead(item);
            }
            let slot = queue.idle.pop().unwrap_or_else(|| Arc::new(new_slot()));
            slot.state.store(WAITING, Ordering::Relaxed);
            queue.waiting.push(Queued { item, slot: Some(Arc::clone(&slot)), refusal: None });
            slot
        };
        wait(&slot);
        let leads = slot.state.load(Ordering::Acquire) == LEAD;
        let mut queue = lock(&self.queue);
        // Who is to lead is the first in the queue, and nobody but the leader takes from it.
        let own = match leads && !queue.waiting.is_empty() {
            true => Some(queue.waiting.remove(0)),
            false => None,
        };
        let turn = match own {
            Some(own) => Turn::Lead(own.item),
            None => Turn::Done(std::mem::replace(&mut *lock(&slot.result), Ok(()))),
        };
        queue.idle.push(slot);
        turn
    }

    /// The leader's group: its own item and, in order, those queued that `takes` wants.
    pub(crate) fn group(&self, own: T, mut takes: impl FnMut(&T) -> bool) -> Group<T> {
        let mut queue = lock(&self.queue);
        let taken = queue.waiting.iter().take_while(|queued| takes(&queued.item)).count();
        let mut group = Vec::with_capacity(1 + taken);
        group.push(Queued { item: own, slot: None, refusal: None });
        group.extend(queue.waiting.drain(..taken));
        Group(group)
    }

    /// Gives the queue its next leader and a group its outcome; returns that of the leader's own.
    pub(crate) fn finish(&self, group: Group<T>, result: Result<()>) -> Result<()> {
        let next = {
            let mut queue = lock(&self.queue);
            let next = queue.waiting.first().and_then(|queued| queued.slot.clone());
            queue.has_leader = next.is_some();
            if planted!(LeaderUnmarked) {
                queue.has_leader = false;
            }
            next
        };
        if let Some(slot) = next {
            slot.tell(LEAD);
        }
        let mut own = Ok(());
        for Queued { slot, refusal, .. } in group.0 {
            let outcome = refusal.map_or_else(|| result.clone(), Err);
            match slot {
                Some(slot) => {
                    *lock(&slot.result) = outcome;
                    slot.tell(DONE);
                }
                None => own = outcome,
            }
        }
        own
    }

    /// Whether the leader is held back or waits for the disk, so that the next groups take longer
    /// than it is worth looking for them.
    pub(crate) fn leader_rests(&self) -> bool {
        self.leader_rests.load(Ordering::Relaxed)
    }

    /// What the leader does meanwhile.
    pub(crate) fn rest<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.leader_rests.store(true, Ordering::Relaxed);
        let outcome = wait();
        self.leader_rests.store(false, Ordering::Relaxed);
        outcome
    }
}
