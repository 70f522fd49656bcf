//! What to expect of a level, from what was observed of it.
//!
//! Everything is a sum over observations that forgets with time: what happened, over the bytes and
//! hours in which it could have. So a level that grows, and observations that are seldom, need no care.

use super::cost::Conditions;

/// Reads count half after about a minute and a half: a change of the load is met within minutes.
const READ_MEMORY_S: f64 = 120.0;

/// A pause of reads that is no longer counts as reading: its rate is still known. So does one that is
/// shorter than the reading before it.
const READ_PAUSE_US: u64 = READ_MEMORY_S as u64 * 1_000_000;

const US_PER_HOUR: f64 = 3.6e9;

/// Lifetimes are those of the last hour: compactions come in bursts.
const LIFE_MEMORY_S: f64 = 3_600.0;

/// A level that has been left alone for some time is taken to be so for this many times as long: a load
/// that has ended says nothing of what comes.
const QUIET_FACTOR: f64 = 2.0;

/// Loads that are expected of a raw MiB until the horizon, a month, before anything was observed: half
/// of what rented disks are sold with, three reads a second and GB. A level that nobody has read yet is
/// hardly one that nobody will read.
const PRIOR_POINTS_PER_MIB: f64 = 4_000.0;

/// The part of the horizon after which half of that expectation is left: a week of a month, for days of
/// the week differ.
const PRIOR_PART: f64 = 0.25;

/// What happened to a level since the last observation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// Raw bytes that it has.
    pub raw_bytes: f64,
    /// In so many tables.
    pub tables: f64,
    /// Raw bytes that compactions read to write them elsewhere, or anew.
    pub consumed_bytes: f64,
    /// Those of them that were rewritten where they were, because others came from above.
    pub merged_bytes: f64,
    /// Blocks that lookups loaded because the cache did not have them.
    pub point_loads: f64,
    /// Raw bytes that scans loaded likewise.
    pub scanned_bytes: f64,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelWatch {
    observed_us: Option<u64>,
    table_raw_bytes: f64,
    point_loads: f64,
    scanned_bytes: f64,
    /// Raw bytes times hours in which they could be read.
    read_byte_hours: f64,
    /// How long it has been read for, without a pause that counts.
    reading_us: u64,
    /// Since something was read.
    unread_us: u64,
    consumed_bytes: f64,
    merged_bytes: f64,
    /// Since something was consumed.
    quiet_us: u64,
    /// Raw bytes times hours in which they could be consumed.
    life_byte_hours: f64,
    /// Hours in which it had bytes and was observed: they are not forgotten.
    watched_h: f64,
}

impl LevelWatch {
    /// Takes in what happened until now.
    pub fn observe(&mut self, now_us: u64, observed: &Observed) {
        let before_us = self.observed_us.replace(now_us).unwrap_or(now_us);
        let passed_us = now_us.saturating_sub(before_us);
        let seconds = passed_us as f64 / 1e6;
        let (of_reads, of_life) =
            ((-seconds / READ_MEMORY_S).exp(), (-seconds / LIFE_MEMORY_S).exp());
        if observed.tables > 0.0 {
            self.table_raw_bytes = observed.raw_bytes / observed.tables;
        }
        let byte_hours = observed.raw_bytes * seconds / 3_600.0;
        self.point_loads = self.point_loads * of_reads + observed.point_loads;
        self.scanned_bytes = self.scanned_bytes * of_reads + observed.scanned_bytes;
        self.read_byte_hours = self.read_byte_hours * of_reads + byte_hours;
        self.consumed_bytes = self.consumed_bytes * of_life + observed.consumed_bytes;
        self.merged_bytes = self.merged_bytes * of_life + observed.merged_bytes;
        self.life_byte_hours = self.life_byte_hours * of_life + byte_hours;
        if observed.raw_bytes > 0.0 {
            self.watched_h += seconds / 3_600.0;
        }
        self.note_reading(observed.point_loads + observed.scanned_bytes > 0.0, passed_us);
        self.quiet_us = match observed.consumed_bytes > 0.0 {
            true => 0,
            false => self.quiet_us.saturating_add(passed_us),
        };
    }

    fn note_reading(&mut self, is_read: bool, passed_us: u64) {
        if !is_read {
            self.unread_us = self.unread_us.saturating_add(passed_us);
            return;
        }
        let pause_us = std::mem::take(&mut self.unread_us);
        let before_us = match pause_us > self.reading_us.max(READ_PAUSE_US) {
            true => 0,
            false => self.reading_us.saturating_add(pause_us),
        };
        self.reading_us = before_us.saturating_add(passed_us);
    }

    /// So many numbers are all that it knows.
    pub const NUMBERS: usize = 10;

    /// All that it knows, to be kept; `None` before the first observation.
    pub fn numbers(&self) -> Option<[f64; LevelWatch::NUMBERS]> {
        self.observed_us?;
        Some([
            self.table_raw_bytes,
            self.point_loads,
            self.scanned_bytes,
            self.read_byte_hours,
            self.consumed_bytes,
            self.life_byte_hours,
            self.quiet_h(),
            self.watched_h,
            self.merged_bytes,
            self.reading_h(),
        ])
    }

    /// Goes on from what was kept, at `now_us`: the time between counts as none. `None` for numbers that
    /// cannot be.
    pub fn from_numbers(numbers: [f64; LevelWatch::NUMBERS], now_us: u64) -> Option<Self> {
        let can_be = |number: &f64| number.is_finite() && *number >= 0.0;
        if !numbers.iter().all(can_be) {
            return None;
        }
        let [
            table_raw_bytes,
            point_loads,
            scanned_bytes,
            read_byte_hours,
            consumed_bytes,
            life_byte_hours,
            quiet_h,
            watched_h,
            merged_bytes,
            reading_h,
        ] = numbers;
        Some(LevelWatch {
            observed_us: Some(now_us),
            table_raw_bytes,
            point_loads,
            scanned_bytes,
            read_byte_hours,
            consumed_bytes,
            merged_bytes,
            reading_us: (reading_h * US_PER_HOUR) as u64,
            unread_us: 0,
            quiet_us: (quiet_h * US_PER_HOUR) as u64,
            life_byte_hours,
            watched_h,
        })
    }

    /// Raw bytes of a table, in the mean; 0 where none was seen.
    pub fn table_raw_bytes(&self) -> f64 {
        self.table_raw_bytes
    }

    /// Raw bytes that were rewritten in the level because others came from above, and those that went
    /// down, of the last hour.
    pub fn merged_and_pushed_bytes(&self) -> (f64, f64) {
        (self.merged_bytes, (self.consumed_bytes - self.merged_bytes).max(0.0))
    }

    /// Hours since a compaction consumed something.
    fn quiet_h(&self) -> f64 {
        self.quiet_us as f64 / US_PER_HOUR
    }

    /// Hours for which it has been read, without a pause that counts.
    fn reading_h(&self) -> f64 {
        self.reading_us as f64 / US_PER_HOUR
    }

    /// What to expect. Bytes of which none was consumed yet live until the horizon.
    pub fn conditions(&self, horizon_h: f64) -> Conditions {
        let mut usual = Conditions { lifetime_h: horizon_h, ..Conditions::default() };
        if self.table_raw_bytes > 0.0 {
            usual.table_raw_bytes = self.table_raw_bytes;
        }
        let lifetime_h = self.lifetime_h(horizon_h);
        if self.read_byte_hours <= 0.0 {
            let points_per_mib_h = self.unseen_per_mib_h(horizon_h);
            return Conditions { lifetime_h, points_per_mib_h, ..usual };
        }
        let scans_per_h = self.scanned_bytes / self.read_byte_hours;
        Conditions {
            lifetime_h,
            points_per_mib_h: self.seen_per_mib_h(lifetime_h) + self.unseen_per_mib_h(horizon_h),
            scans_per_h: scans_per_h * self.lasting_share(lifetime_h),
            reads_known: true,
            ..usual
        }
    }

    /// Whether fewer loads are expected by what was seen than unseen: what is decided by reads is a
    /// guess.
    pub fn reads_are_a_guess(&self, horizon_h: f64) -> bool {
        self.seen_per_mib_h(self.lifetime_h(horizon_h)) < self.unseen_per_mib_h(horizon_h)
    }

    /// Loads that are expected by what was seen, per hour of the lifetime and MiB.
    fn seen_per_mib_h(&self, lifetime_h: f64) -> f64 {
        let mib_hours = self.read_byte_hours / f64::from(1 << 20);
        let seen = if mib_hours > 0.0 { self.point_loads / mib_hours } else { 0.0 };
        seen * self.lasting_share(lifetime_h)
    }

    /// The share of a lifetime in which reads are expected to continue as they were seen. What has lasted for
    /// t is in x more hours still there with a chance of t / (t + x), as for durations of all sizes: a
    /// benchmark of ten seconds says little of a month, a day of reading much.
    fn lasting_share(&self, lifetime_h: f64) -> f64 {
        if lifetime_h <= 0.0 {
            return 1.0;
        }
        if self.reading_us == 0 {
            return 0.0;
        }
        let lifetimes = lifetime_h / self.reading_h();
        lifetimes.ln_1p() / lifetimes
    }

    /// How long a byte is expected to live. Compactions consume it as they did so far, unless the load
    /// ends before: then it stays. A load is taken to last as long again as it has lasted.
    fn lifetime_h(&self, horizon_h: f64) -> f64 {
        if self.consumed_bytes <= 0.0 || self.life_byte_hours <= 0.0 {
            return horizon_h;
        }
        let so_far_h = self.life_byte_hours / self.consumed_bytes;
        let load_ends = so_far_h / (so_far_h + self.watched_h);
        let expected_h = so_far_h + load_ends * horizon_h;
        expected_h.max(QUIET_FACTOR * self.quiet_h()).min(horizon_h)
    }

    /// Loads that are expected beside those that were seen, per hour and MiB.
    fn unseen_per_mib_h(&self, horizon_h: f64) -> f64 {
        let trusted_h = PRIOR_PART * horizon_h;
        PRIOR_POINTS_PER_MIB / horizon_h * trusted_h / (trusted_h + self.watched_h)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    #[test]
    fn rates_are_what_happened_over_the_bytes_and_hours_in_which_it_could() {
        let mut watch = LevelWatch::default();
        let unseen = watch.conditions(700.0);
        assert!(!unseen.reads_known);
        assert_eq!(unseen.points_per_mib_h * 700.0, PRIOR_POINTS_PER_MIB);
        assert_eq!(watch.conditions(700.0).lifetime_h, 700.0);
        let second = Observed {
            raw_bytes: 100.0 * MIB,
            tables: 10.0,
            consumed_bytes: MIB,
            merged_bytes: MIB / 4.0,
            point_loads: 50.0,
            scanned_bytes: 10.0 * MIB,
        };
        for time_s in 0..=1_000_u64 {
            watch.observe(time_s * 1_000_000, &second);
        }
        let found = watch.conditions(700.0);
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.02;
        // A hundredth of the level is consumed in a second: a byte lives 100 s, or stays if the load ends
        // before. It has lasted 1,000 s.
        assert!(near(found.lifetime_h, 100.0 / 3_600.0 + 700.0 / 11.0), "{found:?}");
        // It was read for 1,000 s, of a life of 64 h.
        let lives = found.lifetime_h * 3.6;
        let lasting = (1.0 + lives).ln() / lives;
        let unseen = watch.unseen_per_mib_h(700.0);
        assert!(near(found.points_per_mib_h, 0.5 * 3_600.0 * lasting + unseen), "{found:?}");
        assert!(near(found.scans_per_h, 360.0 * lasting), "{found:?}");
        assert_eq!(found.table_raw_bytes, 10.0 * MIB);
        let (merged, pushed) = watch.merged_and_pushed_bytes();
        assert!(near(pushed / merged, 3.0), "{merged} {pushed}");
        assert!(!watch.reads_are_a_guess(700.0) && watch.reads_are_a_guess(1.0));
        assert!(near(watch.lasting_share(found.lifetime_h), lasting));
        // Reads end: after ten minutes hardly a trace of reads is left.
        let quiet = Observed { raw_bytes: 100.0 * MIB, ..Observed::default() };
        watch.observe(1_600_000_000, &quiet);
        assert!(watch.conditions(700.0).points_per_mib_h < 20.0);
        assert!(watch.reads_are_a_guess(700.0));
        // A level that has been quiet for long is taken to stay so.
        watch.observe(1_000_000_000 + 40 * 3_600_000_000, &quiet);
        assert_eq!(watch.conditions(700.0).lifetime_h, 700.0);
        assert_eq!(watch.conditions(0.01).lifetime_h, 0.01);
        // After a restart it goes on where it was.
        let numbers = watch.numbers().unwrap();
        let again = LevelWatch::from_numbers(numbers, 5).unwrap();
        assert_eq!(again.conditions(700.0), watch.conditions(700.0));
        assert_eq!(LevelWatch::from_numbers([f64::NAN; LevelWatch::NUMBERS], 5), None);
        assert_eq!(LevelWatch::from_numbers([-1.0; LevelWatch::NUMBERS], 5), None);
    }

    #[test]
    fn reads_are_expected_to_continue_by_how_long_they_have_lasted() {
        let of_reads = |point_loads: f64| Observed {
            raw_bytes: 100.0 * MIB,
            point_loads,
            ..Observed::default()
        };
        let observe = |watch: &mut LevelWatch, seconds: std::ops::Range<u64>, loads: f64| {
            seconds.for_each(|second| watch.observe(second * 1_000_000, &of_reads(loads)));
        };
        let hours = |watch: &LevelWatch| watch.lasting_share(700.0) * 700.0;
        let mut watch = LevelWatch::default();
        observe(&mut watch, 0..1, 0.0);
        assert_eq!(watch.lasting_share(700.0), 0.0);
        // Ten seconds: two minutes more. A day: three and a half.
        observe(&mut watch, 1..11, 5.0);
        assert!((hours(&watch) * 3_600.0 - 124.4).abs() < 1.0, "{}", hours(&watch));
        observe(&mut watch, 11..86_401, 5.0);
        assert!((hours(&watch) / 24.0 - 3.4).abs() < 0.1, "{}", hours(&watch));
        // A pause of an hour is part of it. One that is longer than the day is not.
        observe(&mut watch, 86_401..90_001, 0.0);
        observe(&mut watch, 90_001..90_002, 5.0);
        assert!(hours(&watch) > 24.0 * 3.4);
        observe(&mut watch, 90_002..181_000, 0.0);
        observe(&mut watch, 181_000..181_001, 5.0);
        assert!(hours(&watch) * 3_600.0 < 20.0, "{}", hours(&watch));
        assert_eq!(watch.lasting_share(0.0), 1.0);
        // A restart forgets nothing of it.
        observe(&mut watch, 181_001..190_000, 5.0);
        let again = LevelWatch::from_numbers(watch.numbers().unwrap(), 5).unwrap();
        assert_eq!(hours(&again), hours(&watch));
    }
}
