//! An explanation as a page of text, or as a JSON object.

use super::explain::{CandidateCost, Explanation, LevelExplanation};
use crate::base::{size, wrapped};
use crate::stats::JsonWriter;
use std::fmt;

/// Columns of a page where nobody says how many there are.
const COLUMNS: usize = 80;
/// Columns in front of what continues a line.
const INDENT: usize = 4;
/// Less room than this in the last column is none: what it says begins a line.
const LAST_COLUMN_MIN: usize = 16;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(f.alternate(), COLUMNS))
    }
}

impl Explanation {
    /// The page of text in lines of so many columns, as far as figures fit into it; 80 are enough. With
    /// `candidates` it has the terms of every candidate.
    pub fn to_text(&self, candidates: bool, columns: usize) -> String {
        let page = Page { columns, chosen: self.chosen_width() };
        let mut text = page.prose(&self.title());
        if let Some(prices) = &self.prices {
            text.push_str(&page.prose(&format!(
                "  prices in millionths: {} a second of CPU, {} a GB written, {} a GB-month, {} a \
                 million reads",
                prices.cpu_second, prices.gb_written, prices.gb_month, prices.million_reads
            )));
        }
        if self.levels.is_empty() {
            text.push_str("  no tables yet\n");
            return text;
        }
        let decides = self.prices.is_some();
        text.push_str(&page.header(decides));
        self.levels.iter().for_each(|level| text.push_str(&page.level(level)));
        let mixtures = self.levels.iter().filter_map(LevelExplanation::mixture);
        for line in mixtures.chain(self.levels.iter().filter_map(LevelExplanation::last_change)) {
            text.push_str(&page.prose(&format!("  {line}")));
        }
        if decides {
            let cpu = match self.sampling_cpu_us {
                0 => String::new(),
                us => format!(" in {:.1} ms of CPU", us as f64 / 1e3),
            };
            text.push_str(&format!("  measured: {} specimens{cpu}\n", self.specimens));
        }
        if candidates {
            self.levels.iter().for_each(|level| text.push_str(&page.candidates(level)));
        }
        text
    }

    fn title(&self) -> String {
        let stored: u64 = self.levels.iter().map(|level| level.stored_bytes).sum();
        let raw: u64 = self.levels.iter().map(|level| level.raw_bytes).sum();
        format!("{}: {} of {} raw, {}", self.family, size(stored), size(raw), self.setting)
    }

    fn chosen_width(&self) -> usize {
        let widths = self.levels.iter().map(|level| level.chosen.chars().count());
        widths.max().unwrap_or(0).max("chosen".len())
    }
}

/// How wide a page is, and its column of choices.
struct Page {
    columns: usize,
    chosen: usize,
}

impl Page {
    fn prose(&self, line: &str) -> String {
        let indented = line.trim_start();
        let first = " ".repeat(line.len() - indented.len());
        wrapped(&first, indented.split(' '), INDENT, self.columns) + "\n"
    }

    /// A line of the table; what its last column says continues below it.
    fn line(&self, cells: &str, last: &[String]) -> String {
        let used = cells.chars().count();
        let indent = if used + LAST_COLUMN_MIN > self.columns { INDENT } else { used };
        wrapped(cells, last.iter().map(String::as_str), indent, self.columns).trim_end().to_owned()
            + "\n"
    }

    fn header(&self, decides: bool) -> String {
        let cells = format!("  level    stored  ratio  {:<1$}", "chosen", self.chosen);
        match decides {
            true => self
                .line(&format!("{cells}  a byte lives  loads/MiB·h  "), &["next best".to_owned()]),
            false => self.line(&cells, &[]),
        }
    }

    fn level(&self, level: &LevelExplanation) -> String {
        let ratio = level.raw_bytes as f64 / level.stored_bytes.max(1) as f64;
        let (number, stored) = (level.level, size(level.stored_bytes));
        let cells = format!("  L{number:<4} {stored:>9}  {ratio:>5.2}  ");
        let cells = format!("{cells}{:<1$}", level.chosen, self.chosen);
        let Some(expected) = &level.expected else { return self.line(&cells, &[]) };
        let loads = match expected.point_loads_per_mib_h {
            Some(loads) => format!("{loads:.1}"),
            None => "unknown".to_owned(),
        };
        let cells = format!("{cells}  {:>12}  {loads:>11}  ", life(expected.lifetime_h));
        let next_best = match (level.chosen_cost(), level.runner_up()) {
            (Some(chosen), Some(other)) => {
                let percent = (other.cost / chosen.cost - 1.0) * 100.0;
                let mut words = vec![other.name.clone(), format!("{percent:+.0} %")];
                words.extend(differing(chosen, other));
                words
            }
            _ => vec!["too few samples".to_owned()],
        };
        self.line(&cells, &next_best)
    }

    fn candidates(&self, level: &LevelExplanation) -> String {
        let title = format!("  L{}: {}; {} specimens", level.level, level.why, level.specimens);
        let mut text = format!("\n{}", self.prose(&title));
        for candidate in &level.candidates {
            let mark = if candidate.is_chosen { '>' } else { ' ' };
            let (name, cost, error) = (&candidate.name, candidate.cost, candidate.error);
            let first = format!("  {mark} {name:<22} {cost:>10.1} ±{error:<7.1} ");
            let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
            let [encode, decode] = [candidate.compress_mbps, candidate.decompress_mbps].map(rate);
            let shown = candidate.terms.iter().filter(|(_, cost)| *cost >= 0.005 * candidate.cost);
            let mut words = vec![
                format!("ratio {:.2},", 1.0 / candidate.stored_per_raw),
                format!("MB/s {encode} {decode};"),
            ];
            words.extend(listed(shown.map(|(name, cost)| format!("{name} {cost:.1}"))));
            let words = words.iter().map(String::as_str);
            text.push_str(&wrapped(&first, words, 2 * INDENT, self.columns));
            text.push('\n');
        }
        text
    }
}

/// Parts of a sentence with commas between them.
fn listed(parts: impl Iterator<Item = String>) -> Vec<String> {
    let mut parts: Vec<String> = parts.map(|part| part + ",").collect();
    if let Some(last) = parts.last_mut() {
        last.pop();
    }
    parts
}

impl LevelExplanation {
    /// What its tables have, and what becomes of that; `None` where all have the same.
    pub fn mixture(&self) -> Option<String> {
        if self.stored_as.len() < 2 {
            return None;
        }
        let shown: Vec<String> =
            self.stored_as.iter().map(|(name, bytes)| format!("{} {name}", size(*bytes))).collect();
        let debt = match self.debt_bytes {
            0 => "none is worth a rewrite".to_owned(),
            bytes => format!("{} is rewritten when idle", size(bytes)),
        };
        Some(format!("L{} has {}; {debt}", self.level, shown.join(", ")))
    }

    fn last_change(&self) -> Option<String> {
        let last = self.changes.last()?;
        let from = match &last.from {
            Some(from) => format!("instead of {from}"),
            None => "as the first choice by cost,".to_owned(),
        };
        let (to, written) = (&last.to, size(last.written_bytes));
        let ago = ago(last.ago_s);
        Some(format!("L{}: {to} {from} since {ago}, after {written} of tables", self.level))
    }
}

/// Where two costs differ most, in brackets.
fn differing(chosen: &CandidateCost, other: &CandidateCost) -> Vec<String> {
    let of = |one: &CandidateCost, name: &str| {
        one.terms.iter().find(|(term, _)| *term == name).map_or(0.0, |(_, cost)| *cost)
    };
    let mut differences: Vec<(&str, f64)> =
        chosen.terms.iter().map(|(name, cost)| (*name, of(other, name) - cost)).collect();
    differences.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let shown = differences.iter().take(2).filter(|(_, by)| by.abs() > 0.01 * chosen.cost);
    let share = |by: f64| by / chosen.cost * 100.0;
    let mut shown = listed(shown.map(|(name, by)| format!("{name} {:+.0} %", share(*by))));
    if let Some(first) = shown.first_mut() {
        first.insert(0, '(');
    }
    if let Some(last) = shown.last_mut() {
        last.push(')');
    }
    shown
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
    use super::super::explain::Expected;
    use super::*;
    use crate::chooser::Prices;

    fn candidate(name: &str, cost: f64, points: f64) -> CandidateCost {
        CandidateCost {
            name: name.to_owned(),
            is_chosen: cost == 1.0,
            cost,
            error: 0.1,
            terms: vec![("points", points), ("store", cost - points)],
            stored_per_raw: 0.25,
            compress_mbps: Some(400.0),
            decompress_mbps: None,
        }
    }

    fn explanation(chosen: &str, expected: Option<Expected>) -> Explanation {
        let level = LevelExplanation {
            level: 6,
            files: 1,
            stored_bytes: 10 << 20,
            raw_bytes: 50 << 20,
            chosen: chosen.to_owned(),
            stored_as: Vec::new(),
            debt_bytes: 0,
            expected,
            why: "set".to_owned(),
            candidates: vec![candidate(chosen, 1.0, 0.25), candidate("snappy 8k", 1.25, 0.75)],
            specimens: 0,
            changes: Vec::new(),
        };
        Explanation {
            family: "links".to_owned(),
            setting: "lz4".to_owned(),
            prices: expected.map(|_| Prices::BALANCED),
            levels: vec![level],
            sampling_cpu_us: 0,
            specimens: 17,
            record: String::new(),
        }
    }

    #[test]
    fn lines_are_as_wide_as_the_page() {
        let expected = Expected {
            lifetime_h: 72.0,
            point_loads_per_mib_h: Some(97.4),
            scans_per_h: None,
            device_share: 0.0,
            cpu_factor: 1.0,
        };
        let page = explanation("lz4 8k", Some(expected)).to_text(true, 80);
        let wanted = "\
links: 10.0 MiB of 50.0 MiB raw, lz4
  prices in millionths: 11 a second of CPU, 150 a GB written, 3300 a GB-month, 5
    a million reads
  level    stored  ratio  chosen  a byte lives  loads/MiB·h  next best
  L6     10.0 MiB   5.00  lz4 8k        3 days         97.4  snappy 8k +25 %
                                                             (points +50 %,
                                                             store -25 %)
  measured: 17 specimens

  L6: set; 0 specimens
  > lz4 8k                        1.0 ±0.1     ratio 4.00, MB/s 400 -;
        points 0.2, store 0.8
    snappy 8k                     1.2 ±0.1     ratio 4.00, MB/s 400 -;
        points 0.8, store 0.5
";
        assert_eq!(page, wanted);
        let wide = explanation("zstd-1+dictionary 16k", Some(expected)).to_text(false, 80);
        let next_best = "97.4\n    snappy 8k +25 % (points +50 %, store -25 %)\n";
        assert!(wide.contains(next_best), "{wide}");
    }

    /// As `stats` and `levels` print them, and as the glossary defines the word.
    #[test]
    fn ratios_are_raw_bytes_per_stored_byte_and_sizes_binary() {
        let explanation = explanation("lz4 4k", None);
        let text = format!("{explanation:#}");
        assert!(text.starts_with("links: 10.0 MiB of 50.0 MiB raw, lz4\n"), "{text}");
        assert!(text.contains("  level    stored  ratio  chosen\n"), "{text}");
        assert!(text.contains("  L6     10.0 MiB   5.00  lz4 4k\n"), "{text}");
        assert!(text.contains(" ratio 4.00, "), "{text}");
        let sizes = [999, 1024, 102_400, 1 << 30].map(size);
        assert_eq!(sizes, ["999 B", "1.00 KiB", "100 KiB", "1.00 GiB"]);
        let json = explanation.to_json();
        assert!(json.contains("\"stored_per_raw\":0.25") && !json.contains("\"ratio\""), "{json}");
    }
}
