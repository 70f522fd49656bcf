//! Names of things that outlive a process: they say which process made them, so that a later run
//! can tell what was left behind from what is in use.
//!
//! A name is `lithify-bench-PID-START-NUMBER`: id and start time together name a process for good.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// What such names begin with.
const PREFIX: &str = "lithify-bench-";

/// A name that nobody has had yet.
pub fn new_name() -> String {
    static GIVEN_OUT: AtomicU64 = AtomicU64::new(0);
    let own = std::process::id();
    let born = start_ticks(own).unwrap_or(0);
    let number = GIVEN_OUT.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{own}-{born}-{number}")
}

/// True for the name of a thing whose process is gone.
pub fn is_stale(name: &str) -> bool {
    is_stale_by(name, start_ticks)
}

/// When a process began, in the kernel's ticks.
fn start_ticks(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the start is field 22, the 20th behind it.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

fn is_stale_by(name: &str, born: impl Fn(u32) -> Option<u64>) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else { return false };
    let numbers: Vec<Option<u64>> = rest.split('-').map(|part| part.parse().ok()).collect();
    match numbers[..] {
        [Some(pid), Some(ticks), Some(_)] => {
            u32::try_from(pid).is_ok_and(|pid| born(pid) != Some(ticks))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_processes_that_are_gone_are_stale() {
        let born = |pid| (pid == 7).then_some(123);
        for (name, stale) in [
            ("lithify-bench-7-123-0", false),
            ("lithify-bench-7-124-0", true),
            ("lithify-bench-8-123-5", true),
            ("lithify-bench-8-123", false),
            ("lithify-bench-x-1-1", false),
            ("other-8-123-5", false),
            ("somebody-8-123-0", false),
        ] {
            assert_eq!(is_stale_by(name, born), stale, "{name}");
        }
        let own = new_name();
        assert!(!is_stale(&own) && own != new_name(), "{own}");
        assert!(start_ticks(std::process::id()).is_some_and(|ticks| ticks > 0));
        assert_eq!(start_ticks(u32::MAX), None);
    }
}
