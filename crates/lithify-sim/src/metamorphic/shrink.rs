//! Makes a failing script short: leaves out operations while it still fails.

use crate::operation::Operation;

/// Runs of a script that shrinking may take.
const RUNS_MAX: usize = 600;

/// A script that still fails, with nothing in it that can be left out by itself, or as short as
/// it got within a bounded number of runs. `fails` runs a script.
pub(super) fn shrink(
    script: &[Operation],
    fails: &mut dyn FnMut(&[Operation]) -> bool,
) -> Vec<Operation> {
    let mut script = script.to_vec();
    let mut runs = 0;
    let mut size = script.len().div_ceil(2).max(1);
    loop {
        let mut start = 0;
        let mut has_shrunk = false;
        while start < script.len() && runs < RUNS_MAX {
            let end = (start + size).min(script.len());
            let without = [&script[..start], &script[end..]].concat();
            runs += 1;
            if fails(&without) {
                script = without;
                has_shrunk = true;
            } else {
                start = end;
            }
        }
        if runs >= RUNS_MAX || (size == 1 && !has_shrunk) {
            return script;
        }
        if size > 1 {
            size = size.div_ceil(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_goes() {
        let script: Vec<Operation> = (0..100).map(Operation::Advance).collect();
        let needed = [Operation::Advance(3), Operation::Advance(50), Operation::Advance(97)];
        let short = shrink(&script, &mut |script| needed.iter().all(|one| script.contains(one)));
        assert_eq!(short, needed);
    }
}
