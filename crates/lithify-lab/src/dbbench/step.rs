//! A step as it is written: a benchmark, and settings of its own behind colons.
//!
//! `readwhilewriting:mb-write-per-sec=10`, `readrandom:use-direct-reads`. What a step does not
//! set for itself it has from the whole sequence.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::spec::DbSpec;
use crate::adapter::settings::DurabilityMode;
use crate::keyvalue::benchmark::Benchmark;

/// A benchmark with the settings that it has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepSpec {
    /// What its clients do.
    pub benchmark: Benchmark,
    /// Tables are read past the system's page cache.
    pub direct_reads: Option<bool>,
    /// Limit on what is written, keys and values, bytes per second; 0 for none.
    pub write_rate_bytes_per_s: Option<u64>,
    /// Rows visited from a seek on.
    pub seek_nexts: Option<u64>,
    /// Those rows are visited in descending order.
    pub reverse_iterator: Option<bool>,
    /// Keys read in one call.
    pub batch_size: Option<u64>,
    /// Operations of a writing client.
    pub writes: Option<u64>,
    /// Writes go to no log. The database is opened so for the step.
    pub disable_wal: Option<bool>,
    /// How long it runs, seconds; 0 for a number of operations instead.
    pub duration_seconds: Option<u64>,
}

/// Settings that a step can have for itself, as they are written.
const DIRECT_READS: &str = "use-direct-reads";
const RATE_BYTES: &str = "benchmark-write-rate-limit";
const RATE_MIB: &str = "mb-write-per-sec";
const SEEK_NEXTS: &str = "seek-nexts";
const REVERSE: &str = "reverse-iterator";
const BATCH_SIZE: &str = "batch-size";
const WRITES: &str = "writes";
const DISABLE_WAL: &str = "disable-wal";
const DURATION: &str = "duration";
const SETTINGS: [&str; 9] = [
    DIRECT_READS,
    RATE_BYTES,
    RATE_MIB,
    SEEK_NEXTS,
    REVERSE,
    BATCH_SIZE,
    WRITES,
    DISABLE_WAL,
    DURATION,
];

/// Why a text is no step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepError {
    /// There is no benchmark of that name.
    Benchmark(String),
    /// There is no setting of that name for a step.
    Setting {
        /// The step as it was written.
        step: String,
        /// The setting as it was written.
        setting: String,
    },
    /// The setting has no meaning in this benchmark.
    Meaningless {
        /// The benchmark.
        benchmark: Benchmark,
        /// The setting.
        setting: &'static str,
    },
    /// The setting was given before.
    Twice {
        /// The step as it was written.
        step: String,
        /// The setting.
        setting: &'static str,
    },
    /// The setting cannot have this value.
    Value {
        /// The step as it was written.
        step: String,
        /// The setting.
        setting: &'static str,
        /// What was found.
        found: String,
        /// What is allowed.
        allowed: String,
    },
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepError::Benchmark(name) => {
                let known = Benchmark::ALL.map(Benchmark::name).join(", ");
                write!(f, "there is no benchmark \"{name}\"; there are: {known}")
            }
            StepError::Setting { step, setting } => write!(
                f,
                "{step}: a step has no setting \"{setting}\" of its own; there are: {}",
                SETTINGS.join(", ")
            ),
            StepError::Meaningless { benchmark, setting } => {
                write!(f, "{setting} has no meaning in {benchmark}")
            }
            StepError::Twice { step, setting } => write!(f, "{step}: {setting} is set twice"),
            StepError::Value { step, setting, found, allowed } => {
                write!(f, "{step}: {setting} is \"{found}\"; allowed: {allowed}")
            }
        }
    }
}

impl std::error::Error for StepError {}

impl From<Benchmark> for StepSpec {
    /// The benchmark with the settings of the sequence.
    fn from(benchmark: Benchmark) -> StepSpec {
        StepSpec {
            benchmark,
            direct_reads: None,
            write_rate_bytes_per_s: None,
            seek_nexts: None,
            reverse_iterator: None,
            batch_size: None,
            writes: None,
            disable_wal: None,
            duration_seconds: None,
        }
    }
}

impl StepSpec {
    /// The spec of the sequence with the step's own settings in it.
    pub fn of(&self, sequence: &DbSpec) -> DbSpec {
        let mut spec = sequence.clone();
        let settings = &mut spec.settings;
        settings.direct_reads = self.direct_reads.unwrap_or(settings.direct_reads);
        spec.write_rate_bytes_per_s =
            self.write_rate_bytes_per_s.unwrap_or(spec.write_rate_bytes_per_s);
        if let Some(disable_wal) = self.disable_wal {
            spec.settings.durability = match disable_wal {
                true => DurabilityMode::None,
                // A sequence without a log has no other mode to go back to.
                false => DurabilityMode::Buffered,
            };
        }
        spec.seek_nexts = self.seek_nexts.unwrap_or(spec.seek_nexts);
        spec.reverse_iterator = self.reverse_iterator.unwrap_or(spec.reverse_iterator);
        spec.batch_size = self.batch_size.unwrap_or(spec.batch_size);
        if self.writes.is_some() {
            // A number of operations ends the step, whatever ends the others.
            spec.writes = self.writes;
            spec.duration_seconds = 0;
        }
        spec.duration_seconds = self.duration_seconds.unwrap_or(spec.duration_seconds);
        spec
    }

    /// Takes one setting, `NAME` or `NAME=VALUE`, of the step that is written `step`.
    fn set(&mut self, step: &str, text: &str) -> Result<(), StepError> {
        let (name, value) = text.split_once('=').unwrap_or((text, "1"));
        let name = name.replace('_', "-");
        let Some(setting) = SETTINGS.into_iter().find(|setting| *setting == name) else {
            return Err(StepError::Setting { step: step.to_owned(), setting: name });
        };
        if !has_meaning(setting, self.benchmark) {
            return Err(StepError::Meaningless { benchmark: self.benchmark, setting });
        }
        if !SWITCHES.contains(&setting) && !text.contains('=') {
            return Err(wrong_value(step, setting, "", "a number".to_owned()));
        }
        let switch = || {
            switch(value)
                .ok_or_else(|| wrong_value(step, setting, value, "1, true, 0, false".to_owned()))
        };
        let between = |min: u64, max: u64| {
            let number = value.parse().ok().filter(|number| (min..=max).contains(number));
            number.ok_or_else(|| wrong_value(step, setting, value, format!("{min} to {max}")))
        };
        let before = match setting {
            DIRECT_READS => self.direct_reads.replace(switch()?).is_some(),
            REVERSE => self.reverse_iterator.replace(switch()?).is_some(),
            DISABLE_WAL => self.disable_wal.replace(switch()?).is_some(),
            RATE_BYTES => {
                let rate = between(0, 1_000_000_000_000)?;
                self.write_rate_bytes_per_s.replace(rate).is_some()
            }
            RATE_MIB => {
                let rate = between(0, 1_000_000)? << 20;
                self.write_rate_bytes_per_s.replace(rate).is_some()
            }
            SEEK_NEXTS => self.seek_nexts.replace(between(0, 1_000_000)?).is_some(),
            BATCH_SIZE => self.batch_size.replace(between(1, BATCH_SIZE_MAX)?).is_some(),
            WRITES => self.writes.replace(between(1, 1_000_000_000_000)?).is_some(),
            _ => self.duration_seconds.replace(between(0, 86_400)?).is_some(),
        };
        if before { Err(StepError::Twice { step: step.to_owned(), setting }) } else { Ok(()) }
    }
}

/// Settings that are on or off; without a value they are on.
const SWITCHES: [&str; 3] = [DIRECT_READS, REVERSE, DISABLE_WAL];

/// Most keys of one call.
pub const BATCH_SIZE_MAX: u64 = 100_000;

/// A value that is on or off, as it is written.
pub fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

fn wrong_value(step: &str, setting: &'static str, found: &str, allowed: String) -> StepError {
    StepError::Value { step: step.to_owned(), setting, found: found.to_owned(), allowed }
}

fn has_meaning(setting: &str, benchmark: Benchmark) -> bool {
    match setting {
        RATE_BYTES | RATE_MIB => benchmark.changes_database(),
        SEEK_NEXTS | REVERSE => benchmark.is_seek(),
        BATCH_SIZE => benchmark == Benchmark::MultiReadRandom,
        WRITES | DISABLE_WAL => benchmark.is_write(),
        // The time does not end a sequential fill.
        DURATION => benchmark.is_loop() && benchmark != Benchmark::FillSeq,
        _ => benchmark.is_loop(),
    }
}

impl fmt::Display for StepSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.benchmark.name())?;
        let switches = [
            (DIRECT_READS, self.direct_reads),
            (REVERSE, self.reverse_iterator),
            (DISABLE_WAL, self.disable_wal),
        ];
        for (name, value) in switches {
            match value {
                Some(true) => write!(f, ":{name}")?,
                Some(false) => write!(f, ":{name}=0")?,
                None => {}
            }
        }
        match self.write_rate_bytes_per_s {
            Some(rate) if rate % (1 << 20) == 0 => write!(f, ":{RATE_MIB}={}", rate >> 20)?,
            Some(rate) => write!(f, ":{RATE_BYTES}={rate}")?,
            None => {}
        }
        let numbers = [
            (SEEK_NEXTS, self.seek_nexts),
            (BATCH_SIZE, self.batch_size),
            (WRITES, self.writes),
            (DURATION, self.duration_seconds),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                write!(f, ":{name}={value}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for StepSpec {
    type Err = StepError;

    fn from_str(text: &str) -> Result<StepSpec, StepError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let benchmark = Benchmark::ALL.into_iter().find(|benchmark| benchmark.name() == name);
        let mut step =
            StepSpec::from(benchmark.ok_or_else(|| StepError::Benchmark(name.to_owned()))?);
        parts.try_for_each(|setting| step.set(text, setting))?;
        Ok(step)
    }
}

impl From<StepSpec> for String {
    fn from(step: StepSpec) -> String {
        step.to_string()
    }
}

impl TryFrom<String> for StepSpec {
    type Error = StepError;

    fn try_from(text: String) -> Result<StepSpec, StepError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_as_they_are_written() {
        for text in [
            "readrandom",
            "readrandom:use-direct-reads",
            "readrandom:use-direct-reads=0",
            "readwhilewriting:mb-write-per-sec=10",
            "overwrite:benchmark-write-rate-limit=1:duration=30",
            "overwrite:mb-write-per-sec=0",
            "seekrandom:use-direct-reads:seek-nexts=100:duration=60",
            "seekrandomwhilewriting:mb-write-per-sec=2:seek-nexts=10",
            "seekrandom:reverse-iterator:seek-nexts=10",
            "multireadrandom:batch-size=20",
            "overwrite:disable-wal=0:writes=1000",
            "flush",
        ] {
            let step: StepSpec = text.parse().expect(text);
            assert_eq!(step.to_string(), text);
            let json = serde_json::to_string(&step).expect("to JSON");
            assert_eq!(serde_json::from_str::<StepSpec>(&json).ok(), Some(step));
        }
        let step: StepSpec =
            "overwrite:benchmark_write_rate_limit=2097152".parse().expect("underscores too");
        assert_eq!(step.to_string(), "overwrite:mb-write-per-sec=2");
    }

    #[test]
    fn what_is_no_step_is_told() {
        let error = |text: &str| text.parse::<StepSpec>().expect_err(text);
        assert_eq!(error("fly"), StepError::Benchmark("fly".to_owned()));
        assert_eq!(error(""), StepError::Benchmark(String::new()));
        let step = "readrandom:threads=2".to_owned();
        let setting = "threads".to_owned();
        assert_eq!(error(&step), StepError::Setting { step: step.clone(), setting });
        for (text, setting) in [
            ("readrandom:mb-write-per-sec=1", RATE_MIB),
            ("overwrite:seek-nexts=1", SEEK_NEXTS),
            ("fillseq:duration=1", DURATION),
            ("flush:use-direct-reads", DIRECT_READS),
            ("readrandom:reverse-iterator", REVERSE),
            ("readrandom:batch-size=2", BATCH_SIZE),
            ("seekrandomwhilewriting:writes=2", WRITES),
            ("readwhilewriting:disable-wal", DISABLE_WAL),
        ] {
            let StepError::Meaningless { benchmark, setting: told } = error(text) else {
                panic!("{text}: {}", error(text));
            };
            assert_eq!((benchmark.name(), told), (text.split(':').next().unwrap_or(""), setting));
        }
        for (text, part) in [
            ("overwrite:duration", "duration is \"\"; allowed: a number"),
            ("overwrite:duration=-1", "duration is \"-1\"; allowed: 0 to 86400"),
            ("overwrite:mb-write-per-sec=9999999", "allowed: 0 to 1000000"),
            ("multireadrandom:batch-size=0", "allowed: 1 to 100000"),
            ("overwrite:writes=0", "allowed: 1 to"),
            ("readrandom:use-direct-reads=2", "is \"2\"; allowed: 1, true, 0, false"),
            ("readrandom:duration=1:duration=1", "duration is set twice"),
            ("overwrite:mb-write-per-sec=1:benchmark-write-rate-limit=1", "is set twice"),
            ("fillseq:", "a step has no setting \"\""),
        ] {
            assert!(error(text).to_string().contains(part), "{}", error(text));
        }
    }
}
