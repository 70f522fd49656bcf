//! What RocksDB says about itself, read from its texts.
//!
//! The numbers of its counters change from version to version, their names do not; so counters
//! are read from the text of all of them.

use std::collections::BTreeMap;

/// Counters and histograms by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    values: BTreeMap<String, u64>,
    /// Number and sum of what was recorded.
    histograms: BTreeMap<String, (u64, u64)>,
}

impl Counters {
    /// Reads lines of `NAME COUNT : N` and of `NAME P50 : ... COUNT : N SUM : S`. Others are
    /// passed over.
    pub fn parse(text: &str) -> Counters {
        let mut counters = Counters::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [name, "COUNT", ":", count] => {
                    if let Ok(count) = count.parse() {
                        counters.values.insert(name.to_owned(), count);
                    }
                }
                [name, .., "COUNT", ":", count, "SUM", ":", sum] => {
                    if let (Ok(count), Ok(sum)) = (count.parse(), sum.parse()) {
                        counters.histograms.insert(name.to_owned(), (count, sum));
                    }
                }
                _ => {}
            }
        }
        counters
    }

    /// A counter; 0 when there is none of that name.
    pub fn value(&self, name: &str) -> u64 {
        self.values.get(name).copied().unwrap_or(0)
    }

    /// The sum of a histogram.
    pub fn sum(&self, name: &str) -> u64 {
        self.histograms.get(name).map_or(0, |(_, sum)| *sum)
    }

    /// All that are not zero, for the raw results.
    pub fn to_json(&self) -> serde_json::Value {
        let values: serde_json::Map<_, _> = self
            .values
            .iter()
            .filter(|(_, value)| **value > 0)
            .map(|(name, value)| (name.clone(), (*value).into()))
            .collect();
        let histograms: serde_json::Map<_, _> = self
            .histograms
            .iter()
            .filter(|(_, (count, _))| *count > 0)
            .map(|(name, (count, sum))| {
                (name.clone(), serde_json::json!({"count": count, "sum": sum}))
            })
            .collect();
        serde_json::json!({"counters": values, "histograms": histograms})
    }
}

/// The work of one level, from the table of compactions of one column family.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelWork {
    /// Wall time of flushes and compactions into the level, microseconds, in steps of 10 ms;
    /// parallel ones add up.
    pub wall_us: u64,
    /// CPU of them, microseconds, in steps of 10 ms.
    pub cpu_us: u64,
    /// Bytes that they read. The text has gigabytes in steps of 0.1, so this is the rate times the
    /// wall time: off by at most 1/20 MB per second of it, and by the step of the wall time.
    pub read_bytes: u64,
    /// Bytes that they wrote, as exact.
    pub written_bytes: u64,
    /// Their number.
    pub jobs: u64,
}

/// Reads the first table of a `cfstats` text: the work of each level. Columns are found by their
/// heads, because versions add some.
pub fn parse_levels(text: &str) -> BTreeMap<u32, LevelWork> {
    const HEADS: [&str; 5] =
        ["Comp(sec)", "CompMergeCPU(sec)", "Rd(MB/s)", "Wr(MB/s)", "Comp(cnt)"];
    const MIB: f64 = (1 << 20) as f64;
    let mut levels = BTreeMap::new();
    let mut columns = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"Priority") {
            break;
        }
        if words.first() == Some(&"Level") {
            // A size is two words under one head.
            let place = |head| Some(words.iter().position(|word| *word == head)? + 1);
            columns = words.contains(&"Comp(cnt)").then(|| HEADS.map(place));
            continue;
        }
        let level = words.first().and_then(|word| word.strip_prefix('L')?.parse::<u32>().ok());
        if let (Some(level), Some(columns)) = (level, columns) {
            let number = |place: Option<usize>| words.get(place?)?.parse::<f64>().ok();
            let [wall_s, cpu_s, read_mb_s, written_mb_s, jobs] =
                columns.map(|place| number(place).unwrap_or(0.0));
            let work = LevelWork {
                wall_us: (wall_s * 1e6).round() as u64,
                cpu_us: (cpu_s * 1e6).round() as u64,
                read_bytes: (read_mb_s * MIB * wall_s) as u64,
                written_bytes: (written_mb_s * MIB * wall_s) as u64,
                jobs: jobs as u64,
            };
            levels.insert(level, work);
        }
    }
    levels
}

/// Stalls by cause from a text of `cause: count` pairs; totals are left out.
pub fn parse_stalls(text: &str) -> BTreeMap<String, u64> {
    let pairs = text.split_once("(count):").map_or("", |(_, pairs)| pairs);
    pairs
        .split(',')
        .filter_map(|pair| {
            let (cause, count) = pair.trim().split_once(": ")?;
            Some((cause.to_owned(), count.trim().parse::<u64>().ok()?))
        })
        .filter(|(cause, count)| *count > 0 && !cause.starts_with("total-"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_histograms() {
        let counters = Counters::parse(
            "rocksdb.wal.bytes COUNT : 3630000\nrocksdb.stall.micros COUNT : 0\n\
             rocksdb.compaction.times.cpu_micros P50 : 22000.0 P95 : 36956.0 P99 : 36956.0 \
             P100 : 36956.0 COUNT : 4 SUM : 99823\nsomething else\n",
        );
        assert_eq!(counters.value("rocksdb.wal.bytes"), 3_630_000);
        assert_eq!(counters.sum("rocksdb.compaction.times.cpu_micros"), 99_823);
        assert_eq!((counters.value("no such"), counters.sum("no such")), (0, 0));
        let json = counters.to_json();
        assert_eq!(json["counters"].as_object().map(serde_json::Map::len), Some(1));
    }

    #[test]
    fn levels_by_the_heads_of_columns() {
        let levels = parse_levels(
            "\n** Compaction Stats [default] **\n\
             Level Files Size Score Read(GB) Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) \
             Comp(cnt) Avg\n\
             -----\n  L0 2/0 0.50 KB 0.0 0.0 0.0 3.5 0.92 0.04 16 0.057\n\
             L6 1/0 1.24 MB 0.0 0.0 4.0 2.0 1.50 0.10 4 0.296\n\
             Sum 1/0 1.24 MB 0 0 0 0 0 0.14 20 0\n\
             Priority Files Size\n L1 9/9 1 MB 0 0 0 0 9.9 9.99 99 9\n",
        );
        let expected = [
            (
                0,
                LevelWork {
                    wall_us: 920_000,
                    cpu_us: 40_000,
                    read_bytes: 0,
                    written_bytes: 3_376_414,
                    jobs: 16,
                },
            ),
            (
                6,
                LevelWork {
                    wall_us: 1_500_000,
                    cpu_us: 100_000,
                    read_bytes: 6 << 20,
                    written_bytes: 3 << 20,
                    jobs: 4,
                },
            ),
        ];
        assert_eq!(levels, expected.into());
        assert!(parse_levels("Level of another table\n L0 1 2 3").is_empty());
        // A table without a column has zeros there.
        let levels = parse_levels("Level Files Size Comp(cnt)\n L1 1/0 1.0 KB 3");
        assert_eq!(levels[&1], LevelWork { jobs: 3, ..LevelWork::default() });
    }

    #[test]
    fn stalls_by_cause() {
        let stalls = parse_stalls(
            "Write Stall (count): l0-file-count-limit-delays: 0, memtable-limit-stops: 3, \
             total-delays: 0, total-stops: 3\n",
        );
        assert_eq!(stalls, [("memtable-limit-stops".to_owned(), 3)].into());
        assert!(parse_stalls("").is_empty());
    }
}
