//! A limit on bytes per second: a bucket that is refilled every 100 ms and never saves up more
//! than one refill.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const REFILL: Duration = Duration::from_millis(100);
const REFILLS_PER_SECOND: u64 = 10;

/// A limit that threads share.
#[derive(Debug)]
pub(super) struct RateLimit {
    refill_bytes: i64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    /// Negative while a request that was larger than a refill is being paid for.
    bytes: i64,
    refilled: Instant,
}

impl RateLimit {
    /// A limit of `bytes_per_second`, which is not 0; the first refill is there.
    pub(super) fn new(bytes_per_second: u64, now: Instant) -> RateLimit {
        let refill_bytes = (bytes_per_second / REFILLS_PER_SECOND).clamp(1, i64::MAX as u64) as i64;
        RateLimit {
            refill_bytes,
            bucket: Mutex::new(Bucket { bytes: refill_bytes, refilled: now }),
        }
    }

    /// Waits until `bytes` may pass, or until `stop`. Returns whether it waited.
    pub(super) fn request(&self, bytes: u64, stop: &AtomicBool) -> bool {
        let mut waited = false;
        while let Some(wait) = self.take(bytes, Instant::now()) {
            if stop.load(Ordering::Relaxed) {
                return true;
            }
            thread::sleep(wait);
            waited = true;
        }
        waited
    }

    /// Takes `bytes`, or tells how long to wait before the next try.
    fn take(&self, bytes: u64, now: Instant) -> Option<Duration> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(bucket.refilled);
        let refills = (since.as_nanos() / REFILL.as_nanos()) as u32;
        if refills > 0 {
            let new_bytes = self.refill_bytes.saturating_mul(i64::from(refills));
            bucket.bytes = bucket.bytes.saturating_add(new_bytes).min(self.refill_bytes);
            bucket.refilled += REFILL * refills;
        }
        if bucket.bytes > 0 {
            bucket.bytes -= bytes as i64;
            return None;
        }
        Some(REFILL.saturating_sub(now.saturating_duration_since(bucket.refilled)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that pass in so many milliseconds when somebody always wants `request` more.
    fn passed(limit: &RateLimit, start: Instant, request: u64, from_ms: u64, to_ms: u64) -> u64 {
        let mut bytes = 0;
        for ms in from_ms..to_ms {
            while limit.take(request, start + Duration::from_millis(ms)).is_none() {
                bytes += request;
            }
        }
        bytes
    }

    #[test]
    fn the_rate_holds_and_nothing_is_saved_up() {
        let start = Instant::now();
        let limit = RateLimit::new(10_000, start);
        assert_eq!(passed(&limit, start, 100, 0, 1_000), 10_000);
        // After ten idle seconds there is one refill, not a hundred.
        assert_eq!(passed(&limit, start, 100, 11_000, 11_100), 1_000);
        // Requests that are larger than a refill are paid for afterwards.
        let limit = RateLimit::new(10_000, start);
        assert_eq!(passed(&limit, start, 2_500, 0, 10_000), 100_000);
        let wait = limit.take(1, start + Duration::from_millis(9_940));
        assert_eq!(wait, Some(Duration::from_millis(60)));
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let limit = RateLimit::new(10, Instant::now());
        let stop = AtomicBool::new(true);
        assert!(!limit.request(1_000_000, &stop));
        assert!(limit.request(1, &stop), "a hundred thousand seconds are not waited for");
    }
}
