//! An explanation as a page of text, or as a JSON object.

use super::explain::{CandidateCost, Explanation, LevelExplanation};
use crate::base::size;
use crate::stats::JsonWriter;
use std::fmt;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stored: u64 = self.levels.iter().map(|level| level.stored_bytes).sum();
        let raw: u64 = self.levels.iter().map(|level| level.raw_bytes).sum();
        writeln!(f, "{}: {} of {} raw, {}", self.family, size(stored), size(raw), self.setting)?;
        if let Some(prices) = &self.prices {
            writeln!(
                f,
                "  prices in millionths: {} a second of CPU, {} a GB written, {} a GB-month, {} a \
                 million reads",
                prices.cpu_second, prices.gb_written, prices.gb_month, prices.million_reads
            )?;
        }
        if self.levels.is_empty() {
            return writeln!(f, "  no tables yet");
        }
        let decides = self.prices.is_some();
        write!(f, "  level    stored  ratio  chosen                ")?;
        writeln!(f, "{}", if decides { "a byte lives  loads/MiB·h  next best" } else { "" })?;
        self.levels.iter().try_for_each(|level| level.line(f))?;
        for level in self.levels.iter().filter(|level| level.stored_as.len() > 1) {
            level.mixture(f)?;
        }
        for level in &self.levels {
            if let Some(last) = level.changes.last() {
                let from = match &last.from {
                    Some(from) => format!("instead of {from}"),
                    None => "as the first choice by cost,".to_owned(),
                };
                let written = size(last.written_bytes);
                writeln!(
                    f,
                    "  L{}: {} {from} since {}, after {written} of tables",
                    level.level,
                    last.to,
                    ago(last.ago_s)
                )?;
            }
        }
        if decides {
            write!(f, "  measured: {} specimens", self.specimens)?;
            match self.sampling_cpu_us {
                0 => writeln!(f)?,
                us => writeln!(f, " in {:.1} ms of CPU", us as f64 / 1e3)?,
            }
        }
        if f.alternate() {
            self.levels.iter().try_for_each(|level| level.details(f))?;
        }
        Ok(())
    }
}

impl LevelExplanation {
    fn line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = self.raw_bytes as f64 / self.stored_bytes.max(1) as f64;
        write!(f, "  L{:<4} {:>9}  {ratio:>5.2}  ", self.level, size(self.stored_bytes))?;
        let Some(expected) = &self.expected else { return writeln!(f, "{}", self.chosen) };
        write!(f, "{:<21} ", self.chosen)?;
        let loads = match expected.point_loads_per_mib_h {
            Some(loads) => format!("{loads:.1}"),
            None => "unknown".to_owned(),
        };
        write!(f, "{:>12}  {loads:>11}  ", life(expected.lifetime_h))?;
        match (self.chosen_cost(), self.runner_up()) {
            (Some(chosen), Some(other)) => {
                let percent = (other.cost / chosen.cost - 1.0) * 100.0;
                writeln!(f, "{} {percent:+.0} %{}", other.name, differing(chosen, other))
            }
            _ => writeln!(f, "too few samples"),
        }
    }

    fn mixture(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> =
            self.stored_as.iter().map(|(name, bytes)| format!("{} {name}", size(*bytes))).collect();
        write!(f, "  L{} has {}", self.level, shown.join(", "))?;
        match self.debt_bytes {
            0 => writeln!(f, "; none is worth a rewrite"),
            bytes => writeln!(f, "; {} is rewritten when idle", size(bytes)),
        }
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n  L{}: {}; {} specimens", self.level, self.why, self.specimens)?;
        for candidate in &self.candidates {
            let mark = if candidate.is_chosen { '>' } else { ' ' };
            write!(
                f,
                "  {mark} {:<22} {:>10.1} ±{:<7.1}",
                candidate.name, candidate.cost, candidate.error
            )?;
            let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
            write!(
                f,
                " ratio {:.2}, MB/s {} {}; ",
                1.0 / candidate.stored_per_raw,
                rate(candidate.compress_mbps),
                rate(candidate.decompress_mbps)
            )?;
            let shown = candidate.terms.iter().filter(|(_, cost)| *cost >= 0.005 * candidate.cost);
            let shown: Vec<String> =
                shown.map(|(name, cost)| format!("{name} {cost:.1}")).collect();
            writeln!(f, "{}", shown.join(", "))?;
        }
        Ok(())
    }
}

/// Where two costs differ most.
fn differing(chosen: &CandidateCost, other: &CandidateCost) -> String {
    let of = |one: &CandidateCost, name: &str| {
        one.terms.iter().find(|(term, _)| *term == name).map_or(0.0, |(_, cost)| *cost)
    };
    let mut differences: Vec<(&str, f64)> =
        chosen.terms.iter().map(|(name, cost)| (*name, of(other, name) - cost)).collect();
    differences.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let shown = differences.iter().take(2).filter(|(_, by)| by.abs() > 0.01 * chosen.cost);
    let shown: Vec<String> =
        shown.map(|(name, by)| format!("{name} {:+.0} %", by / chosen.cost * 100.0)).collect();
    if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
}

fn life(hours: f64) -> String {
    match hours {
        _ if hours >= 48.0 => format!("{:.0} days", hours / 24.0),
        _ if hours >= 2.0 => format!("{hours:.0} h"),
        _ if hours >= 2.0 / 60.0 => format!("{:.0} min", hours * 60.0),
        _ => format!("{:.1} s", hours * 3_600.0),
    }
}

fn ago(seconds: f64) -> String {
    format!("{} ago", life(seconds / 3_600.0))
}

impl Explanation {
    /// One JSON object, with the names of the fields.
    pub fn to_json(&self) -> String {
        let mut json = JsonWriter::new();
        json.object(|json| self.write_json(json));
        json.finish()
    }

    pub(crate) fn write_json(&self, json: &mut JsonWriter) {
        json.key("family").string(&self.family);
        json.key("setting").string(&self.setting);
        if let Some(prices) = &self.prices {
            json.key("prices").string(&prices.to_string());
        }
        json.key("specimens").number(self.specimens);
        json.key("sampling_cpu_us").number(self.sampling_cpu_us);
        json.key("levels").array(|json| {
            self.levels.iter().for_each(|level| json.object(|json| level.write_json(json)));
        });
        json.key("record").string(&self.record);
    }
}

impl LevelExplanation {
    fn write_json(&self, json: &mut JsonWriter) {
        json.key("level").number(self.level as u64);
        json.key("files").number(self.files);
        json.key("stored_bytes").number(self.stored_bytes);
        json.key("raw_bytes").number(self.raw_bytes);
        json.key("debt_bytes").number(self.debt_bytes);
        json.key("chosen").string(&self.chosen);
        json.key("why").string(&self.why);
        json.key("specimens").number(self.specimens);
        json.key("stored_as").object(|json| {
            for (name, bytes) in &self.stored_as {
                json.key(name).number(*bytes);
            }
        });
        if let Some(expected) = &self.expected {
            json.key("expected").object(|json| {
                json.key("lifetime_h").real(expected.lifetime_h);
                if let (Some(points), Some(scans)) =
                    (expected.point_loads_per_mib_h, expected.scans_per_h)
                {
                    json.key("point_loads_per_mib_h").real(points);
                    json.key("scans_per_h").real(scans);
                }
                json.key("device_share").real(expected.device_share);
                json.key("cpu_factor").real(expected.cpu_factor);
            });
        }
        json.key("candidates").array(|json| {
            self.candidates.iter().for_each(|one| json.object(|json| one.write_json(json)));
        });
        json.key("changes").array(|json| {
            for change in &self.changes {
                json.object(|json| {
                    json.key("ago_s").real(change.ago_s);
                    if let Some(from) = &change.from {
                        json.key("from").string(from);
                    }
                    json.key("to").string(&change.to);
                    json.key("written_bytes").number(change.written_bytes);
                });
            }
        });
    }
}

impl CandidateCost {
    fn write_json(&self, json: &mut JsonWriter) {
        json.key("name").string(&self.name);
        json.key("is_chosen").boolean(self.is_chosen);
        json.key("cost").real(self.cost);
        json.key("error").real(self.error);
        json.key("stored_per_raw").real(self.stored_per_raw);
        for (name, rate) in
            [("compress_mbps", self.compress_mbps), ("decompress_mbps", self.decompress_mbps)]
        {
            if let Some(rate) = rate {
                json.key(name).real(rate);
            }
        }
        json.key("terms").object(|json| {
            for (name, cost) in &self.terms {
                json.key(name).real(*cost);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `stats` and `levels` print them, and as the glossary defines the word.
    #[test]
    fn ratios_are_raw_bytes_per_stored_byte_and_sizes_binary() {
        let candidate = CandidateCost {
            name: "lz4 4k".to_owned(),
            is_chosen: true,
            cost: 1.0,
            error: 0.1,
            terms: Vec::new(),
            stored_per_raw: 0.25,
            compress_mbps: None,
            decompress_mbps: None,
        };
        let level = LevelExplanation {
            level: 6,
            files: 1,
            stored_bytes: 10 << 20,
            raw_bytes: 50 << 20,
            chosen: "lz4 4k".to_owned(),
            stored_as: Vec::new(),
            debt_bytes: 0,
            expected: None,
            why: "set".to_owned(),
            candidates: vec![candidate],
            specimens: 0,
            changes: Vec::new(),
        };
        let explanation = Explanation {
            family: "links".to_owned(),
            setting: "lz4".to_owned(),
            prices: None,
            levels: vec![level],
            sampling_cpu_us: 0,
            specimens: 0,
            record: String::new(),
        };
        let text = format!("{explanation:#}");
        assert!(text.starts_with("links: 10.0 MiB of 50.0 MiB raw, lz4\n"), "{text}");
        assert!(text.contains("  L6     10.0 MiB   5.00  lz4 4k\n"), "{text}");
        assert!(text.contains(" ratio 4.00, "), "{text}");
        let sizes = [999, 1024, 102_400, 1 << 30].map(size);
        assert_eq!(sizes, ["999 B", "1.00 KiB", "100 KiB", "1.00 GiB"]);
        let json = explanation.to_json();
        assert!(json.contains("\"stored_per_raw\":0.25") && !json.contains("\"ratio\""), "{json}");
    }
}
