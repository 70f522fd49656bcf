//! The days on which a run was measured. Ratios of different days differ by more than the ranges
//! inside one day, so reports name the days.

use std::collections::{BTreeMap, BTreeSet};

/// Sides of one repeat that began farther apart were not measured in turn.
const APART_S: u64 = 12 * 3600;

/// The day of a moment, by the calendar: `2026-11-22`.
pub fn day(unix_s: u64) -> String {
    // Days since 0000-03-01, in eras of 400 years; years begin in March.
    let days = unix_s / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Whether two sides were measured on different days: in a repeat of both they began more than
/// half a day apart. Moments come with their repeats.
pub fn apart(first: &[(u64, u64)], other: &[(u64, u64)]) -> bool {
    first.iter().any(|(repeat, at)| {
        let of_repeat = other.iter().filter(|(round, _)| round == repeat);
        of_repeat.clone().any(|(_, other)| at.abs_diff(*other) > APART_S)
    })
}

/// Whether two runs were measured on different days: no moment of one lies within half a day of
/// one of the other.
pub fn far(one: &[u64], other: &[u64]) -> bool {
    let near = |at: &u64| other.iter().any(|other| at.abs_diff(*other) <= APART_S);
    !one.is_empty() && !other.is_empty() && !one.iter().any(near)
}

/// The day, or the days with what was measured on each:
/// `2026-11-20: lz4 (1 cell of r0); 2026-11-22: lz4 (3 cells of r0, r1)`.
/// Parts come with their repeats and the moments at which they began, in the order of the report.
pub fn line<'a>(parts: impl IntoIterator<Item = (&'a str, u64, u64)>) -> Option<String> {
    let mut days: BTreeMap<String, Vec<(&str, u64)>> = BTreeMap::new();
    for (name, repeat, at) in parts {
        days.entry(day(at)).or_default().push((name, repeat));
    }
    if days.len() <= 1 {
        return days.into_keys().next().map(|day| format!("{day}. {OF_ONE_DAY}"));
    }
    let of_day = |(day, parts): (String, Vec<(&str, u64)>)| {
        let mut distinct: Vec<&str> = Vec::new();
        parts.iter().for_each(|(name, _)| {
            if !distinct.contains(name) {
                distinct.push(name);
            }
        });
        let repeats: BTreeSet<u64> = parts.iter().map(|(_, repeat)| *repeat).collect();
        let repeats: Vec<String> = repeats.iter().map(|repeat| format!("r{repeat}")).collect();
        let cells = parts.len();
        let cells = if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") };
        format!("{day}: {} ({cells} of {})", distinct.join(", "), repeats.join(", "))
    };
    let days: Vec<String> = days.into_iter().map(of_day).collect();
    Some(format!("{}. {ACROSS_DAYS}", days.join("; ")))
}

/// What a reader of figures of one day has to know.
pub const OF_ONE_DAY: &str = "Intervals are of this day";

/// What a reader of figures of several days has to know.
pub const ACROSS_DAYS: &str =
    "Ratios of different days differ by more than the ranges inside one day";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_by_the_calendar() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_767_225_599), "2025-12-31");
        assert_eq!(day(1_795_324_662), "2026-11-22");
    }

    #[test]
    fn parts_of_other_days_are_named() {
        const DAY: u64 = 86_400;
        assert_eq!(line([]), None);
        let one = line([("a", 0, 5), ("b", 0, 7)]);
        assert_eq!(one.as_deref(), Some("1970-01-01. Intervals are of this day"));
        let parts = [("a", 0, 5), ("b", 0, DAY), ("b", 1, DAY + 9), ("c", 1, DAY)];
        let two = line(parts).expect("has days");
        let said = "1970-01-01: a (1 cell of r0); 1970-01-02: b, c (3 cells of r0, r1). Ratios of \
                    different days";
        assert!(two.starts_with(said), "{two}");
    }

    #[test]
    fn sides_of_one_repeat_belong_together() {
        let hour = 3600;
        let first = [(0, 0), (1, 10 * hour)];
        assert!(!apart(&first, &[(0, hour), (1, 30 * hour - 20 * hour)]));
        assert!(apart(&first, &[(0, hour), (1, 30 * hour)]));
        assert!(!apart(&first, &[(7, 90 * hour)]), "no repeat in common");
        assert!(far(&[0, hour], &[14 * hour, 15 * hour]) && !far(&[0, hour], &[13 * hour]));
        assert!(!far(&[], &[1]) && !far(&[1], &[]));
    }
}
