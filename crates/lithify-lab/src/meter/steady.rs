//! Whether throughput was steady: the last third of the seconds within 10 % of the middle third.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
