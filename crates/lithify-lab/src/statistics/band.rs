//! The noise band: what one side measured twice differs by, hence what no verdict may rest on.

/// A range of ratios that the same side twice showed, widened to hold 1 and its own inverse: what
/// a control differs by one way it may differ by the other way next time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Smallest ratio that is noise; at most 1.
    pub low: f64,
    /// Largest ratio that is noise; at least 1.
    pub high: f64,
}

impl Band {
    /// Of the smallest and the largest ratio of second to first runs.
    pub fn of_control(min: f64, max: f64) -> Band {
        let (low, high) = (min.min(1.0), max.max(1.0));
        Band { low: low.min(1.0 / high), high: high.max(1.0 / low) }
    }

    /// The band that holds both.
    #[must_use]
    pub fn with(self, other: Band) -> Band {
        Band { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// True when a range of ratios has a value in common with the band.
    pub fn touches(&self, low: f64, high: f64) -> bool {
        high >= self.low && low <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_holds_one_and_its_inverse() {
        let band = Band::of_control(0.8, 1.1);
        assert_eq!((band.low, band.high), (0.8, 1.25));
        let band = Band::of_control(1.05, 1.1);
        assert_eq!((band.low, band.high), (1.0 / 1.1, 1.1));
        assert!(band.touches(0.5, 0.95) && band.touches(1.1, 2.0) && band.touches(0.1, 9.0));
        assert!(!band.touches(0.5, 0.9) && !band.touches(1.11, 2.0));
        // A control that was zero once says that everything is noise.
        assert_eq!(Band::of_control(0.0, 1.0), Band { low: 0.0, high: f64::INFINITY });
    }

    #[test]
    fn two_bands_together() {
        let both = Band::of_control(0.9, 1.0).with(Band::of_control(1.0, 1.5));
        assert_eq!((both.low, both.high), (1.0 / 1.5, 1.5));
    }
}
