//! From values to places: domains, ticks, and how numbers are written beside them.

use crate::model::Unit;

/// A logarithmic axis that spans less than this has ticks at even distances in value.
const FEW_TIMES: f64 = 4.0;

/// A mapping of values to pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_log: bool,
}

impl Scale {
    /// Values from `low` to `high` evenly over the pixels from `from` to `to`.
    pub(crate) fn linear([low, high]: [f64; 2], [from, to]: [f64; 2]) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, from, to, is_log: false }
    }

    /// Positive values by their logarithms, with a little room at both ends.
    pub(crate) fn log([low, high]: [f64; 2], [from, to]: [f64; 2]) -> Scale {
        let low = if low > 0.0 { low } else { 1e-9 };
        let high = if high > low * 1.1 { high } else { low * 1.1 };
        let room = (high / low).powf(0.04);
        Scale { low: low / room, high: high * room, from, to, is_log: true }
    }

    /// The place of a value; of one outside the place of the nearer end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.is_log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// True when the value has a place of its own.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values with places at least `apart` pixels from each other.
    pub(crate) fn ticks(&self, apart: f64) -> Vec<f64> {
        let length = (self.to - self.from).abs();
        if self.is_log { self.log_ticks(length / apart) } else { self.linear_ticks(length / apart) }
    }

    fn linear_ticks(&self, most: f64) -> Vec<f64> {
        let least_step = (self.high - self.low) / most.max(1.0);
        let decade = 10f64.powf(least_step.log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
        let step = steps.iter().map(|step| step * decade).find(|step| *step >= least_step * 0.999);
        let step = step.unwrap_or(decade * 10.0);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step * 1.000_001).floor() as i64;
        (first..=last).take(100).map(|n| n as f64 * step).collect()
    }

    /// Ticks at even distances in value, the closest that keep apart; `None` when fewer than two do.
    fn even_ticks(&self, most: f64) -> Option<Vec<f64>> {
        let apart = (self.to - self.from).abs() / most.max(1.0);
        let decade = 10f64.powf(self.low.log10().floor());
        let steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0];
        let ticks = steps.into_iter().map(|step| {
            let step = step * decade;
            let (first, last) =
                ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
            (first..=last).map(|n| n as f64 * step).collect::<Vec<f64>>()
        });
        let mut fitting = ticks.filter(|ticks| self.narrowest(ticks) >= apart && ticks.len() >= 2);
        fitting.next()
    }

    /// The least distance of two neighbours, pixels.
    fn narrowest(&self, ticks: &[f64]) -> f64 {
        let gaps = ticks.windows(2).map(|pair| self.place(pair[1]) - self.place(pair[0]));
        gaps.map(f64::abs).fold(f64::INFINITY, f64::min)
    }

    fn log_ticks(&self, most: f64) -> Vec<f64> {
        const MANTISSAS: [&[f64]; 6] = [
            &[1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            &[1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ];
        if self.high < self.low * FEW_TIMES
            && let Some(ticks) = self.even_ticks(most)
        {
            return ticks;
        }
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let of = |mantissas: &[f64]| -> Vec<f64> {
            let all = decades.clone().flat_map(|decade| {
                mantissas.iter().map(move |mantissa| mantissa * 10f64.powi(decade))
            });
            all.filter(|tick| self.holds(*tick)).collect()
        };
        let apart = (self.to - self.from).abs() / most.max(1.0);
        let fits = MANTISSAS.iter().map(|m| of(m)).find(|ticks| self.narrowest(ticks) >= apart);
        let ticks = fits.unwrap_or_else(|| {
            // Many decades: every second, third, ... of them.
            let ones = of(&[1.0]);
            let stride = (ones.len() as f64 / most.max(1.0)).ceil().max(1.0) as usize;
            ones.into_iter().step_by(stride).collect()
        });
        if ticks.len() >= 2 { ticks } else { self.linear_ticks(most.min(4.0)) }
    }
}

/// A number with no more digits than it needs: `0.25`, `3`, `150`.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.1 => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number as it stands beside an axis.
pub(crate) fn tick(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Number => match value.abs() {
            v if v >= 999_999.0 => format!("{} M", short(value / 1e6)),
            v if v >= 9_999.0 => format!("{} k", short(value / 1e3)),
            _ => short(value),
        },
        Unit::Microseconds => match value.abs() {
            v if v >= 999_999.0 => format!("{} s", short(value / 1e6)),
            v if v >= 999.0 => format!("{} ms", short(value / 1e3)),
            _ => format!("{} µs", short(value)),
        },
        Unit::Seconds => tick(Unit::Microseconds, value * 1e6),
        Unit::Times => format!("{}×", short(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_and_few() {
        let scale = Scale::linear([0.0, 142_101.0], [300.0, 0.0]);
        assert_eq!(scale.ticks(60.0), [0.0, 50_000.0, 100_000.0]);
        assert_eq!(scale.place(0.0), 300.0);
        assert_eq!(scale.place(1e9), 0.0, "outside is at the end");
        assert_eq!(Scale::linear([0.3, 0.45], [0.0, 300.0]).ticks(80.0).len(), 4);
        assert_eq!(Scale::linear([0.0, 0.0], [0.0, 100.0]).place(0.0), 0.0);
    }

    #[test]
    fn log_ticks_follow_the_span() {
        let wide = Scale::log([1.0, 1e5], [0.0, 600.0]).ticks(60.0);
        assert_eq!(wide, [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
        let narrow = Scale::log([0.4, 4.0], [0.0, 400.0]).ticks(40.0);
        assert!(narrow.contains(&0.5) && narrow.contains(&1.0) && narrow.contains(&2.0));
        let many = Scale::log([1e-3, 1e12], [0.0, 300.0]).ticks(60.0);
        assert!((2..=6).contains(&many.len()), "{many:?}");
        let few = Scale::log([0.6, 1.3], [0.0, 440.0]).ticks(60.0);
        assert_eq!(
            few.iter().map(|t| tick(Unit::Times, *t)).collect::<Vec<_>>().join(" "),
            "0.6× 0.8× 1× 1.2×"
        );
        assert!(Scale::log([0.98, 1.02], [0.0, 300.0]).ticks(50.0).len() >= 2);
        assert!(Scale::log([0.0, 0.0], [0.0, 300.0]).place(1.0).is_finite());
    }

    #[test]
    fn numbers_beside_axes() {
        let cases = [
            (Unit::Number, 0.0, "0"),
            (Unit::Number, 150_000.0, "150 k"),
            (Unit::Number, 2_500_000.0, "2.5 M"),
            (Unit::Number, 5_000.0, "5000"),
            (Unit::Microseconds, 0.5, "0.5 µs"),
            (Unit::Microseconds, 1_500.0, "1.5 ms"),
            (Unit::Microseconds, 2e6, "2 s"),
            (Unit::Seconds, 0.02, "20 ms"),
            (Unit::Times, 0.05, "0.05×"),
            (Unit::Times, 10.0, "10×"),
        ];
        for (unit, value, text) in cases {
            assert_eq!(tick(unit, value), text);
        }
    }
}
