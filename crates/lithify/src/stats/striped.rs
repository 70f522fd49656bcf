//! Counters that every read or write adds to, one set for each thread.
//!
//! A counter that all threads share costs a read about 6 ns even when nobody else uses it, and
//! much more when somebody does. Here a thread claims a stripe when it first counts and gives it
//! back when it ends; while it has one nobody else writes to it, so that a load and a store make
//! an addition. Threads beyond the number of stripes share one, by atomic additions. Nothing is
//! lost either way: a sum over all stripes is exact once the threads that counted are done.

use super::names::Counter;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which counters are kept so.
pub(super) trait Striping {
    const COUNTERS: &'static [Counter];
    /// The places of all counters in a stripe. A table: a search would be done by every read.
    const PLACES: [u8; Counter::COUNT] = places(Self::COUNTERS);
}

/// Stands for no place.
const NOWHERE: u8 = u8::MAX;

const fn places(counters: &[Counter]) -> [u8; Counter::COUNT] {
    let mut places = [NOWHERE; Counter::COUNT];
    let mut place = 0;
    while place < counters.len() {
        places[counters[place] as usize] = place as u8;
        place += 1;
    }
    places
}

/// As many as fill a stripe: two cache lines, the least that processors fetch together.
const COUNTER_COUNT: usize = 16;

const _: () = assert!(OfDatabase::COUNTERS.len() <= COUNTER_COUNT);
const _: () = assert!(OfFamily::COUNTERS.len() <= COUNTER_COUNT);

/// What a database counts that no family can have for its own.
pub(super) struct OfDatabase;

impl Striping for OfDatabase {
    const COUNTERS: &'static [Counter] = &[
        Counter::Commits,
        Counter::CommitGroups,
        Counter::WalWrites,
        Counter::WalSyncs,
        Counter::LockRequests,
        Counter::LockWaits,
        Counter::TransactionCommits,
        Counter::TransactionRollbacks,
    ];
}

/// What every read or write of a family counts.
pub(super) struct OfFamily;

impl Striping for OfFamily {
    const COUNTERS: &'static [Counter] = &[
        Counter::Gets,
        Counter::GetHits,
        Counter::GetValueBytes,
        Counter::FilterChecks,
        Counter::FilterNegatives,
        Counter::FilterFalsePositives,
        Counter::MultiGets,
        Counter::MultiGetKeys,
        Counter::Cursors,
        Counter::Seeks,
        Counter::Nexts,
        Counter::SkippedEntries,
        Counter::Puts,
        Counter::Deletes,
        Counter::SingleDeletes,
        Counter::IngestedBytes,
    ];
}

/// Stripes that one thread has to itself; as many as a word has bits.
const OWNED_COUNT: usize = 64;

/// Which stripes are claimed, in all ledgers of the process alike.
static CLAIMED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CLAIM: Claim = Claim::new();
}

/// A stripe's number, until the thread ends.
struct Claim(usize);

impl Claim {
    /// The lowest free stripe, or the shared one.
    fn new() -> Self {
        let mut claimed = CLAIMED.load(Ordering::Relaxed);
        while claimed != u64::MAX {
            let number = claimed.trailing_ones();
            // What the thread before has stored in the stripe is seen from here on.
            match CLAIMED.compare_exchange_weak(
                claimed,
                claimed | 1 << number,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Claim(number as usize),
                Err(now) => claimed = now,
            }
        }
        Claim(OWNED_COUNT)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.0 < OWNED_COUNT {
            CLAIMED.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

/// Keeps neighbours out of each other's cache line.
#[repr(align(128))]
#[derive(Default)]
struct Stripe([AtomicU64; COUNTER_COUNT]);

/// The striped counters of one ledger.
pub(super) struct StripedCounters<S> {
    stripes: Box<[Stripe]>,
    striping: PhantomData<S>,
}

impl<S: Striping> StripedCounters<S> {
    pub(super) fn new() -> Self {
        let stripes = (0..=OWNED_COUNT).map(|_| Stripe::default()).collect();
        StripedCounters { stripes, striping: PhantomData }
    }

    /// The place of a counter in a stripe; `None` if it is not striped.
    #[inline]
    fn place(counter: Counter) -> Option<usize> {
        let place = S::PLACES[counter as usize];
        (place != NOWHERE).then_some(place.into())
    }

    /// The calling thread's stripe.
    #[inline]
    pub(super) fn of_thread(&self) -> ThreadStripe<'_, S> {
        // A thread that is ending has given its stripe back.
        let number = CLAIM.try_with(|claim| claim.0).unwrap_or(OWNED_COUNT);
        let (stripe, is_shared) = (&self.stripes[number], number == OWNED_COUNT);
        ThreadStripe { stripe, is_shared, striping: PhantomData }
    }

    /// The sum of a counter; 0 if it is not striped.
    pub(super) fn sum(&self, counter: Counter) -> u64 {
        Self::place(counter).map_or(0, |place| {
            self.stripes.iter().map(|stripe| stripe.0[place].load(Ordering::Relaxed)).sum()
        })
    }
}

/// The stripe that the calling thread adds to. It stays with the thread.
pub(super) struct ThreadStripe<'a, S> {
    stripe: &'a Stripe,
    is_shared: bool,
    striping: PhantomData<(S, *const ())>,
}

impl<S: Striping> ThreadStripe<'_, S> {
    /// Adds to a counter and returns what the thread's part was before; `None`, and nothing
    /// added, if it is not striped.
    #[inline(always)]
    pub(super) fn add(&self, counter: Counter, amount: u64) -> Option<u64> {
        let part = &self.stripe.0[StripedCounters::<S>::place(counter)?];
        if self.is_shared {
            return Some(part.fetch_add(amount, Ordering::Relaxed));
        }
        let before = part.load(Ordering::Relaxed);
        part.store(before.wrapping_add(amount), Ordering::Relaxed);
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_with_more_threads_than_stripes() {
        let counters = StripedCounters::<OfFamily>::new();
        let all_started = std::sync::Barrier::new(OWNED_COUNT + 16);
        std::thread::scope(|scope| {
            for _ in 0..OWNED_COUNT + 16 {
                scope.spawn(|| {
                    counters.of_thread().add(Counter::Gets, 1);
                    all_started.wait();
                    for _ in 0..999 {
                        counters.of_thread().add(Counter::Gets, 1);
                    }
                    counters.of_thread().add(Counter::GetValueBytes, 7);
                });
            }
        });
        assert_eq!(counters.sum(Counter::Gets), 1000 * (OWNED_COUNT as u64 + 16));
        assert_eq!(counters.sum(Counter::GetValueBytes), 7 * (OWNED_COUNT as u64 + 16));
        assert!(
            counters.stripes[OWNED_COUNT].0[0].load(Ordering::Relaxed) > 0,
            "some had to share"
        );
    }

    #[test]
    fn stripes_are_claimed_again_by_later_threads() {
        let counters = StripedCounters::<OfFamily>::new();
        for _ in 0..4 * OWNED_COUNT {
            let thread = std::thread::scope(|scope| {
                scope.spawn(|| counters.of_thread().add(Counter::Nexts, 2)).join()
            });
            assert!(thread.is_ok_and(|before| before.is_some()));
        }
        assert_eq!(counters.sum(Counter::Nexts), 8 * OWNED_COUNT as u64);
    }

    #[test]
    fn other_counters_are_not_striped() {
        assert_eq!(StripedCounters::<OfFamily>::new().of_thread().add(Counter::Steps, 1), None);
        assert_eq!(StripedCounters::<OfFamily>::new().sum(Counter::Steps), 0);
    }
}
