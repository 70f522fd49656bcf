//! Throughput per second, and whether it was steady.
//!
//! A thread reads a counter of operations once per second and keeps the differences. A phase is
//! steady when the last third of its seconds is within 10 % of the middle third.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Largest difference between the last and the middle third of a steady phase.
const TOLERANCE: f64 = 0.10;

/// Fewest seconds that can be judged: below it the thirds are too short.
const SECONDS_MIN: usize = 6;

/// Whether the throughput was steady; `None` when the phase was too short to say.
pub fn is_steady(operations_per_second: &[u64]) -> Option<bool> {
    let count = operations_per_second.len();
    if count < SECONDS_MIN {
        return None;
    }
    let third = count / 3;
    let mean = |seconds: &[u64]| seconds.iter().sum::<u64>() as f64 / seconds.len() as f64;
    let middle = mean(&operations_per_second[third..2 * third]);
    let last = mean(&operations_per_second[count - third..]);
    Some(middle > 0.0 && (last / middle - 1.0).abs() <= TOLERANCE)
}

/// A thread that reads a counter once per second.
pub struct Sampler {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Vec<u64>>,
}

impl Sampler {
    /// Starts reading `count`, which only grows; `tick` is called after each second with the
    /// counter, for progress reports.
    pub fn start(
        count: Arc<dyn Fn() -> u64 + Send + Sync>,
        mut tick: impl FnMut(u64) + Send + 'static,
    ) -> Sampler {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut seconds = Vec::new();
            let mut last = count();
            let mut due = Instant::now() + Duration::from_secs(1);
            loop {
                let wait = due.saturating_duration_since(Instant::now());
                match stopped.recv_timeout(wait) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return seconds,
                }
                due += Duration::from_secs(1);
                let now = count();
                seconds.push(now.saturating_sub(last));
                last = now;
                tick(now);
            }
        });
        Sampler { stop, thread }
    }

    /// Stops and returns the operations of every full second.
    pub fn finish(self) -> Vec<u64> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn thirds_decide() {
        assert_eq!(is_steady(&[10, 10, 10, 10, 10]), None);
        assert_eq!(is_steady(&[1, 1, 100, 100, 109, 109]), Some(true));
        assert_eq!(is_steady(&[1, 1, 100, 100, 111, 111]), Some(false));
        assert_eq!(is_steady(&[1, 1, 100, 100, 89, 89]), Some(false));
        assert_eq!(is_steady(&[0; 9]), Some(false));
        // Seven seconds: thirds of two; the odd second between middle and last counts in neither.
        assert_eq!(is_steady(&[1, 1, 100, 100, 5, 100, 100]), Some(true));
    }

    #[test]
    fn sampler_counts_whole_seconds() {
        let counter = Arc::new(AtomicU64::new(5));
        let reading = Arc::clone(&counter);
        let sampler = Sampler::start(Arc::new(move || reading.load(Ordering::Relaxed)), {
            let counter = Arc::clone(&counter);
            move |seen| counter.store(seen + 2, Ordering::Relaxed)
        });
        while counter.load(Ordering::Relaxed) < 9 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let seconds = sampler.finish();
        assert_eq!(&seconds[..2], &[0, 2]);
    }
}
