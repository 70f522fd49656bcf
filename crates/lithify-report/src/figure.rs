//! How numbers are written for people, and a figure over its repeats.

use serde::{Deserialize, Serialize};

/// What stands where there is nothing.
pub const MISSING: &str = "-";

/// A figure for people: whole from 100 on, three significant digits below, five decimals at most.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        s if !s.is_finite() => return MISSING.to_owned(),
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        s if s >= 0.09995 => 3,
        s if s >= 0.009995 => 4,
        _ => 5,
    };
    let text = format!("{value:.digits$}");
    match text.trim_start_matches('-').trim_matches(['0', '.']) {
        "" => "0".to_owned(),
        _ => text,
    }
}

/// [`figure`], or a dash for what is not there.
pub fn figure_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.to_owned(), figure)
}

/// A difference: its sign tells it from a ratio.
pub fn signed(value: f64) -> String {
    match figure(value) {
        text if value > 0.0 => format!("+{text}"),
        text if text == "0" => "+0".to_owned(),
        text => text,
    }
}

/// Bytes in the unit of 1024 that fits: `512 B`, `4.00 KiB`, `1.50 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", figure(value), UNITS[unit])
}

/// Seconds in the unit that fits: `12.0 µs`, `3.40 ms`, `75.0 s`.
pub fn duration(seconds: f64) -> String {
    match seconds.abs() {
        0.0 => "0 s".to_owned(),
        size if size < 0.9995e-3 => format!("{} µs", figure(seconds * 1e6)),
        size if size < 0.9995 => format!("{} ms", figure(seconds * 1e3)),
        _ => format!("{} s", figure(seconds)),
    }
}

/// The middle one of ascending values; the mean of the middle two when their number is even.
/// `None` without any.
pub fn median(ascending: &[f64]) -> Option<f64> {
    let middle = ascending.len() / 2;
    match ascending.len() % 2 {
        1 => Some(ascending[middle]),
        _ => Some((ascending.get(middle.checked_sub(1)?)? + ascending[middle]) / 2.0),
    }
}

/// A figure over repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle one; the mean of the middle two when their number is even.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many.
    pub count: usize,
}

impl Spread {
    /// The spread of finite values; `None` without any.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (first, last) = (*values.first()?, *values.last()?);
        let median = median(&values)?;
        Some(Spread { median, min: first, max: last, count: values.len() })
    }

    /// The median for people, with the range where there are several.
    pub fn with_range(&self) -> String {
        if self.count == 1 {
            return figure(self.median);
        }
        format!("{} [{}, {}]", figure(self.median), figure(self.min), figure(self.max))
    }

    /// True when the two ranges have a value in common.
    pub fn overlaps(&self, other: &Spread) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[4.0]), Some(4.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
    }

    #[test]
    fn units_fit_their_figures() {
        assert_eq!([bytes(12), bytes(4096), bytes(3 << 29)], ["12 B", "4.00 KiB", "1.50 GiB"]);
        let seconds = [0.0, 12e-6, 3.4e-3, 0.9999, 75.0].map(duration);
        assert_eq!(seconds, ["0 s", "12.0 µs", "3.40 ms", "1.00 s", "75.0 s"]);
        assert_eq!([signed(1.5), signed(-0.0), signed(-2.0)], ["+1.50", "+0", "-2.00"]);
    }
}
