//! The statistics as metrics: which figure of the list becomes which metric, with which labels.
//!
//! Names are those of `docs/stats.md` behind `lithify_`, in base units. Numbers of series are bounded:
//! of causes, levels and codecs only what is not zero, of a level nothing where the family has nothing.
//! Ratios are left to the query; their dividends and divisors are there.

use super::exposition::{Exposition, Format, Kind, Sample};
use super::family::FamilyStatistics;
use super::gauges::Gauge;
use super::names::{
    CODEC_NAMES, Cause, CodecFigure, Counter, CpuPart, DelayCause, JobFigure, LEVEL_SLOTS,
    TrafficFigure,
};
use super::snapshot::{LevelShape, StatisticsSnapshot};

/// The levels by their labels.
const LEVELS: [&str; LEVEL_SLOTS] = ["0", "1", "2", "3", "4", "5", "6", "7"];

/// Gauges of the database that families have, with their names as labels.
const OF_FAMILIES: [&str; 2] = ["base_level", "pending_compaction_bytes"];

/// Gauges of a family that are its own; the others are sums over its levels.
const NOT_OF_LEVELS: [&str; 4] =
    ["memtable_bytes", "immutable_memtables", "base_level", "pending_compaction_bytes"];

/// Gauges of the cache; what else it shows only grows.
const OF_CACHE_NOW: [&str; 2] = ["capacity_bytes", "used_bytes"];

impl StatisticsSnapshot {
    /// The snapshot in Prometheus' text format 0.0.4, to be served as
    /// `text/plain; version=0.0.4; charset=utf-8`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put(b"basalt", b"igneous")?;
    /// let text = db.stats().to_prometheus();
    /// assert!(text.contains("lithify_puts_total{family=\"rocks\"} 1\n"));
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn to_prometheus(&self) -> String {
        self.to_prometheus_with(&[])
    }

    /// As [`StatisticsSnapshot::to_prometheus`], with labels for every sample: the name of the
    /// database, where a process has several.
    pub fn to_prometheus_with(&self, labels: &[(&str, &str)]) -> String {
        self.expose(Format::Prometheus, labels)
    }

    /// The snapshot as OpenMetrics 1.0.0, to be served as
    /// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    pub fn to_open_metrics(&self) -> String {
        self.to_open_metrics_with(&[])
    }

    /// As [`StatisticsSnapshot::to_open_metrics`], with labels for every sample.
    pub fn to_open_metrics_with(&self, labels: &[(&str, &str)]) -> String {
        self.expose(Format::OpenMetrics, labels)
    }

    fn expose(&self, format: Format, labels: &[(&str, &str)]) -> String {
        let mut text = Exposition::new(format, labels);
        let codecs = CODEC_NAMES.join(",");
        let build = vec![("version", env!("CARGO_PKG_VERSION")), ("codecs", &*codecs)];
        text.metric(
            Kind::Info,
            ("build", "", "Version and codecs of the library."),
            [(build, 1.0)],
        );
        self.expose_gauges(&mut text);
        self.expose_counters(&mut text);
        self.expose_cells(&mut text);
        self.expose_cpu(&mut text);
        self.expose_jobs(&mut text);
        self.expose_levels(&mut text);
        self.expose_stalls(&mut text);
        text.finish()
    }

    fn expose_gauges(&self, text: &mut Exposition) {
        for (gauge, value) in self.gauges().filter(|(gauge, _)| !OF_FAMILIES.contains(&gauge.0)) {
            text.metric(Kind::Gauge, gauge, [(vec![], value as f64)]);
        }
        let limit = ("memory_limit_bytes", "bytes", "The memory budget.");
        text.metric(Kind::Gauge, limit, [(vec![], self.memory_limit_bytes as f64)]);
        let used = ("memory_used_bytes", "bytes", "Bytes of the memory budget in use, by use.");
        let samples = self.memory.iter();
        let samples = samples.map(|m| (vec![("use", m.memory_use.name())], m.used_bytes as f64));
        text.metric(Kind::Gauge, used, samples);
        for ((name, unit, help), value) in self.cache.gauges() {
            let kind = match OF_CACHE_NOW.contains(&name) {
                true => Kind::Gauge,
                false => Kind::Counter,
            };
            let name = format!("cache_{name}");
            let help = format!("Block cache: {}{}", help[..1].to_lowercase(), &help[1..]);
            text.metric(kind, (&name, unit, &help), [(vec![], value as f64)]);
        }
        for (index, gauge) in FamilyStatistics::GAUGES.iter().enumerate() {
            if NOT_OF_LEVELS.contains(&gauge.0) {
                let value =
                    |family: &FamilyStatistics| family.gauges().nth(index).map_or(0, |g| g.1);
                let samples = self.families.iter();
                let samples = samples.map(|f| (vec![("family", &*f.name)], value(f) as f64));
                text.metric(Kind::Gauge, *gauge, samples);
            }
        }
        let info = ("family", "", "A column family and its policy of compression.");
        let samples = self.families.iter();
        let samples =
            samples.map(|f| (vec![("family", &*f.name), ("compression", &*f.compression)], 1.0));
        text.metric(Kind::Info, info, samples);
    }

    fn expose_counters(&self, text: &mut Exposition) {
        for counter in Counter::ALL {
            let described = (counter.name(), counter.unit(), counter.description());
            if counter.is_of_family() {
                let samples = self.families.iter().map(|family| {
                    let value = family.figures.counter(*counter) as f64;
                    (vec![("family", &*family.name)], value)
                });
                text.metric(Kind::Counter, described, samples);
            } else {
                let value = self.figures.counter(*counter) as f64;
                text.metric(Kind::Counter, described, [(vec![], value)]);
            }
        }
    }

    /// What is booked by cause, level and codec.
    fn expose_cells(&self, text: &mut Exposition) {
        for figure in TrafficFigure::ALL {
            let described = (figure.name(), figure.unit(), figure.description());
            let cells =
                cells(|cause, level, codec| self.figures.traffic(cause, level, codec, *figure));
            text.metric(Kind::Counter, described, cells);
        }
        for figure in CodecFigure::ALL {
            let described = (figure.name(), figure.unit(), figure.description());
            let cells =
                cells(|cause, level, codec| self.figures.codec(cause, level, codec, *figure));
            text.metric(Kind::Counter, described, cells);
        }
    }

    fn expose_cpu(&self, text: &mut Exposition) {
        let mut samples = Vec::new();
        for cause in Cause::ALL {
            for (level, label) in LEVELS.iter().enumerate() {
                for part in CpuPart::ALL {
                    let cpu_ns = self.figures.cpu_ns(*cause, level, *part);
                    let labels =
                        vec![("cause", cause.name()), ("level", *label), ("part", part.name())];
                    samples.extend((cpu_ns > 0).then_some((labels, cpu_ns as f64)));
                }
            }
        }
        let help = "CPU time of threads by what it was spent for; that of users' calls is sampled.";
        text.metric(Kind::Counter, ("cpu", "ns", help), samples);
    }

    fn expose_jobs(&self, text: &mut Exposition) {
        for figure in JobFigure::ALL {
            let mut samples = Vec::new();
            for family in &self.families {
                for (level, label) in LEVELS.iter().enumerate() {
                    let value = family.figures.job(level, *figure);
                    let labels = vec![("family", &*family.name), ("level", *label)];
                    samples.extend((value > 0).then_some((labels, value as f64)));
                }
            }
            let name = format!("level_{}", figure.name());
            let help = format!("Jobs that wrote into the level: {}", figure.description());
            text.metric(Kind::Counter, (&name, figure.unit(), &help), samples);
        }
    }

    fn expose_levels(&self, text: &mut Exposition) {
        for (index, (name, unit, help)) in LevelShape::GAUGES.iter().enumerate() {
            let value = |shape: &LevelShape| shape.gauges().nth(index).map_or(0, |g| g.1) as f64;
            let help = format!("Of a level: {help}");
            let name = format!("level_{name}");
            text.metric(Kind::Gauge, (&name, unit, &help), self.level_samples(value));
        }
        let score = "Of a level: the need for compaction, 1 and more is due.";
        let samples = self.level_samples(|shape| shape.score);
        text.metric(Kind::Gauge, ("level_score", "ratio", score), samples);
        let help = "Of a level: tables by the codec that they were written in.";
        let mut samples = Vec::new();
        for family in &self.families {
            for (shape, label) in family.levels.iter().zip(LEVELS) {
                for (codec, files) in &shape.files_by_codec {
                    let labels =
                        vec![("family", &*family.name), ("level", label), ("codec", &**codec)];
                    samples.push((labels, *files as f64));
                }
            }
        }
        text.metric(Kind::Gauge, ("level_codec_files", "count", help), samples);
    }

    /// A figure of every level that has anything, by family.
    fn level_samples(&self, value: impl Fn(&LevelShape) -> f64) -> Vec<Sample<'_>> {
        let mut samples = Vec::new();
        for family in &self.families {
            for (shape, label) in family.levels.iter().zip(LEVELS) {
                if shape.gauges().any(|(_, value)| value > 0) {
                    let labels = vec![("family", &*family.name), ("level", label)];
                    samples.push((labels, value(shape)));
                }
            }
        }
        samples
    }

    fn expose_stalls(&self, text: &mut Exposition) {
        fn each<'a>(value: impl Fn(DelayCause) -> u64) -> Vec<Sample<'a>> {
            let sample = |cause: &DelayCause| (vec![("cause", cause.name())], value(*cause) as f64);
            DelayCause::ALL.iter().map(sample).collect()
        }
        let figures = &self.figures;
        for (gauge, samples) in [
            (DELAYS[0], each(|cause| figures.delays(cause).count)),
            (DELAYS[1], each(|cause| figures.delays(cause).sum_us)),
            (DELAYS[2], each(|cause| figures.stops(cause).count)),
            (DELAYS[3], each(|cause| figures.stops(cause).sum_us)),
            (DELAYS[4], vec![(vec![], self.stalls.slowed_us as f64)]),
            (DELAYS[5], vec![(vec![], self.stalls.gap_windows as f64)]),
        ] {
            text.metric(Kind::Counter, gauge, samples);
        }
        let longest = ("longest_gap", "us", super::Derived::LongestGap.description());
        text.metric(Kind::Gauge, longest, [(vec![], self.stalls.longest_gap_us as f64)]);
        let units = |value: &dyn Fn(Cause) -> u64| -> Vec<Sample<'static>> {
            let with_units = Cause::ALL.iter().filter(|cause| figures.units(**cause).count > 0);
            let sample = |cause: &Cause| (vec![("cause", cause.name())], value(*cause) as f64);
            with_units.map(sample).collect()
        };
        let help = "Units of work that held a thread for 1 ms and more.";
        let samples = units(&|cause| figures.units(cause).count);
        text.metric(Kind::Counter, ("long_units", "count", help), samples);
        let help = "Wall time of units of work that held a thread for 1 ms and more.";
        let samples = units(&|cause| figures.units(cause).sum_us);
        text.metric(Kind::Counter, ("long_units_wall", "us", help), samples);
        let help = "The longest unit of work.";
        let samples = units(&|cause| self.stalls.longest_unit_us[cause as usize]);
        text.metric(Kind::Gauge, ("longest_unit", "us", help), samples);
    }
}

const DELAYS: [Gauge; 6] = [
    ("writer_delays", "count", "Times that a writer was slowed, by cause."),
    ("writer_delay", "us", "Time for which writers were slowed, by cause; each writer counts."),
    ("writer_stops", "count", "Times that a writer was stopped, by cause."),
    ("writer_stop", "us", "Time for which writers were stopped, by cause; each writer counts."),
    ("writers_slowed", "us", "Time in which at least one writer was held back."),
    (
        "gap_windows",
        "count",
        "Windows of 100 ms all through which a writer wanted to complete a write and none was completed.",
    ),
];

/// All cells of causes, levels and codecs that are not zero.
fn cells<'a>(value: impl Fn(Cause, usize, u8) -> u64) -> Vec<Sample<'a>> {
    let mut cells = Vec::new();
    for cause in Cause::ALL {
        for (level, label) in LEVELS.iter().enumerate() {
            for (codec, name) in CODEC_NAMES.iter().enumerate() {
                let value = value(*cause, level, codec as u8);
                let labels = vec![("cause", cause.name()), ("level", *label), ("codec", *name)];
                cells.extend((value > 0).then_some((labels, value as f64)));
            }
        }
    }
    cells
}
