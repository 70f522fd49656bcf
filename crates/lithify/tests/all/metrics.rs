//! The metrics of a live database, read by a parser that is not ours, against its statistics.

use crate::support::{PATH, Parts, Random, small_options};
use lithify::stats::{
    CODEC_NAMES, Cause, CodecFigure, Counter, CpuPart, DelayCause, JobFigure, StatisticsSnapshot,
    TrafficFigure,
};
use lithify::{CfOptions, Db};
use prometheus_parse::{Scrape, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A database of two families with something of everything that a workload in memory can have.
fn worked() -> Db {
    let parts = Parts::new(1);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let options = |compression: &str| CfOptions {
        block_size_bytes: 1024,
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        compression: compression.parse().unwrap(),
        ..CfOptions::default()
    };
    let rows = db.column_family("rows", options("none,lz4,zstd-1")).unwrap();
    let links = db.column_family("links \"of\" \\ rows", options("lz4")).unwrap();
    let mut random = Random(1);
    for number in 0..5_000_u64 {
        rows.put(random.below(2_000).to_be_bytes(), random.bytes(100)).unwrap();
        links.put(number.to_be_bytes(), [1; 20]).unwrap();
        links.delete((number / 2).to_be_bytes()).unwrap();
    }
    rows.compact_range(..).unwrap();
    (0..300_u64).for_each(|number| drop(rows.get(number.to_be_bytes()).unwrap()));
    let mut cursor = links.cursor(..).unwrap();
    while cursor.next().unwrap() {}
    drop(cursor);
    db.wait_for_compaction().unwrap();
    db
}

/// Every sample by its name and labels.
struct Parsed {
    scrape: Scrape,
    values: BTreeMap<(String, BTreeMap<String, String>), f64>,
}

impl Parsed {
    fn of(text: &str) -> Parsed {
        let scrape = Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap();
        let mut values = BTreeMap::new();
        for sample in &scrape.samples {
            let is_counter = sample.metric.ends_with("_total");
            let value = match &sample.value {
                Value::Counter(value) if is_counter => *value,
                Value::Gauge(value) if !is_counter => *value,
                other => panic!("{}: {other:?}", sample.metric),
            };
            let labels = sample.labels.iter().map(|(name, label)| (name.clone(), label.clone()));
            let before = values.insert((sample.metric.clone(), labels.collect()), value);
            assert!(before.is_none(), "{} is there twice", sample.metric);
        }
        Parsed { scrape, values }
    }

    fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels.iter().map(|(name, label)| ((*name).to_owned(), (*label).to_owned()));
        self.values.get(&(name.to_owned(), labels.collect())).copied()
    }

    /// The sum over all samples of a name, and how many there are.
    fn sum(&self, name: &str) -> (f64, usize) {
        let of_name = self.values.iter().filter(|((metric, _), _)| metric == name);
        let values: Vec<f64> = of_name.map(|(_, value)| *value).collect();
        (values.iter().sum(), values.len())
    }
}

fn metric(name: &str, unit: &str) -> (String, f64) {
    let name = name.replace('-', "_");
    match unit {
        "us" => (format!("lithify_{name}_seconds_total"), 1e6),
        "ns" => (format!("lithify_{name}_seconds_total"), 1e9),
        _ => (format!("lithify_{name}_total"), 1.0),
    }
}

#[track_caller]
fn assert_close(actual: f64, expected: f64, what: &str) {
    let tolerance = 1e-9 * expected.abs();
    assert!((actual - expected).abs() <= tolerance, "{what}: {actual}, expected {expected}");
}

#[test]
fn another_parser_reads_every_figure_as_it_is_in_the_snapshot() {
    let db = worked();
    let stats = db.stats();
    let parsed = Parsed::of(&stats.to_prometheus());
    for counter in Counter::ALL {
        let (name, scale) = metric(counter.name(), counter.unit());
        let (sum, samples) = parsed.sum(&name);
        assert_close(sum, stats.figures.counter(*counter) as f64 / scale, &name);
        let expected = if counter.is_of_family() { stats.families.len() } else { 1 };
        assert_eq!(samples, expected, "{name}");
    }
    cells_are_those_of_the_snapshot(&parsed, &stats);
    for figure in JobFigure::ALL {
        let (name, scale) = metric(&format!("level-{}", figure.name()), figure.unit());
        assert_close(parsed.sum(&name).0, stats.figures.job_total(*figure) as f64 / scale, &name);
    }
    for cause in DelayCause::ALL {
        let labels = [("cause", cause.name())];
        let delays = stats.figures.delays(*cause);
        let seconds = parsed.value("lithify_writer_delay_seconds_total", &labels);
        assert_close(seconds.unwrap(), delays.sum_us as f64 / 1e6, cause.name());
        assert!(parsed.value("lithify_writer_stop_seconds_total", &labels).is_some());
    }
    let gap = parsed.value("lithify_longest_gap_seconds", &[]).unwrap();
    assert_close(gap, stats.stalls.longest_gap_us as f64 / 1e6, "longest gap");
    let uptime = parsed.value("lithify_uptime_seconds", &[]).unwrap();
    assert_close(uptime, stats.uptime_us as f64 / 1e6, "uptime");
    assert_eq!(parsed.value("lithify_cache_hits_total", &[]), Some(stats.cache.hits as f64));
    let rows = stats.families.iter().find(|family| family.name == "rows").unwrap();
    let of_rows = |name: &str| parsed.value(name, &[("family", "rows")]);
    assert_eq!(of_rows("lithify_gets_total"), Some(300.0));
    assert_eq!(of_rows("lithify_memtable_bytes"), Some(rows.memtable_bytes as f64));
    let (stored, _) = parsed.sum("lithify_level_size_bytes");
    assert_eq!(stored, stats.table_bytes() as f64);
    let build = parsed.scrape.samples.iter().find(|s| s.metric == "lithify_build_info").unwrap();
    assert_eq!(build.labels.get("version"), Some(env!("CARGO_PKG_VERSION")));
}

fn cells_are_those_of_the_snapshot(parsed: &Parsed, stats: &StatisticsSnapshot) {
    let (mut expected, mut cells) = (BTreeMap::new(), 0);
    for cause in Cause::ALL {
        for level in 0..stats.levels.len() {
            let number = level.to_string();
            for (codec, codec_name) in CODEC_NAMES.iter().enumerate() {
                let labels = [("cause", cause.name()), ("level", &number), ("codec", codec_name)];
                let traffic = TrafficFigure::ALL.iter().map(|figure| {
                    let value = stats.figures.traffic(*cause, level, codec as u8, *figure);
                    (metric(figure.name(), figure.unit()), value)
                });
                let codecs = CodecFigure::ALL.iter().map(|figure| {
                    let value = stats.figures.codec(*cause, level, codec as u8, *figure);
                    (metric(figure.name(), figure.unit()), value)
                });
                for ((name, scale), value) in traffic.chain(codecs) {
                    let shown = parsed.value(&name, &labels);
                    match value {
                        0 => assert_eq!(shown, None, "{name} {labels:?}"),
                        value => assert_close(shown.unwrap(), value as f64 / scale, &name),
                    }
                    cells += usize::from(value > 0);
                    *expected.entry(name).or_insert(0) += usize::from(value > 0);
                }
            }
        }
    }
    assert!(cells > 10, "{cells}");
    for (name, cells) in expected {
        assert_eq!(parsed.sum(&name).1, cells, "{name}");
    }
    let (cpu, _) = parsed.sum("lithify_cpu_seconds_total");
    assert_close(cpu, stats.figures.cpu_ns_total() as f64 / 1e9, "CPU");
    assert_eq!(CpuPart::COUNT, 7);
}

#[test]
fn every_metric_says_once_what_it_is_before_its_samples() {
    let stats = worked().stats();
    let labels = [("db", "one\n\"two\"")];
    for (text, is_open) in
        [(stats.to_prometheus_with(&labels), false), (stats.to_open_metrics_with(&labels), true)]
    {
        let mut described = BTreeSet::new();
        let mut current = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                current = rest.split(' ').next().unwrap().to_owned();
                assert!(described.insert(current.clone()), "{current} is described twice");
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(name == current && !help.is_empty() && !help.contains("same"), "{line}");
            } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                let (name, unit) = rest.split_once(' ').unwrap();
                assert!(is_open && name == current && name.ends_with(unit), "{line}");
            } else if line != "# EOF" {
                let (name, rest) = line.split_once('{').unwrap();
                let family = name.strip_suffix("_total").filter(|_| is_open).unwrap_or(name);
                let family = family.strip_suffix("_info").filter(|_| is_open).unwrap_or(family);
                assert_eq!(family, current, "{line}");
                assert!(rest.starts_with(r#"db="one\n\"two\"""#), "{line}");
            }
        }
        assert_eq!(text.ends_with("# EOF\n"), is_open);
        assert!(text.contains(r#"family="links \"of\" \\ rows""#), "labels are escaped");
    }
}
