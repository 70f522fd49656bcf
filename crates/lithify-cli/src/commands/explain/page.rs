//! A priced ladder as text, JSON and lines of CSV.

use lithify::chooser::Terms;
use lithify::inspect::{size, wrapped};
use lithify::{CandidateCost, Explanation, LevelExplanation};
use lithify_advisor::ladder::{CodecPrice, Ladder, Place, PlacePrices};
use lithify_report::figure::figure;
use serde_json::{Map, Value, json};

use super::pricing::{Found, Priced, Pricing};

/// Other codecs of a place that its line names.
const OTHERS_MAX: usize = 3;
/// Columns in front of what continues a sentence.
const INDENT: usize = 4;
/// Less room than this in the last column is none: what it says begins a line.
const LAST_COLUMN_MIN: usize = 24;
/// Terms below this part of a cost are left out.
const SHOWN_PART: f64 = 0.005;

impl Priced {
    /// The answer, a table of the levels, what it was measured on; with `details` every codec with its terms.
    pub fn to_text(&self, explanation: &Explanation, details: bool, columns: usize) -> String {
        let prose = |line: &str| wrapped("  ", line.split(' '), INDENT, columns) + "\n";
        let answer = format!("{}: {}", explanation.family, self.answer());
        let mut text = wrapped("", answer.split(' '), INDENT, columns) + "\n";
        text.push_str(&prose(&self.prices_line()));
        text.push_str(&self.table(columns));
        for mixture in explanation.levels.iter().filter_map(LevelExplanation::mixture) {
            text.push_str(&prose(&mixture));
        }
        text.push_str(&prose(&self.measured()));
        if details {
            self.places().for_each(|(found, place)| {
                text.push_str(&self.details(found, place, columns));
            });
        }
        text
    }

    /// "none,lz4,zstd-1 16k costs 61.6 dollars a TB-year; the best ladder would be …".
    fn answer(&self) -> String {
        let (set, best) = (&self.prices.set, &self.prices.best);
        let yearly = |ladder: &Ladder| figure(self.advice.yearly(ladder.cost()));
        let of = if self.advice.is_in_dollars() { " dollars" } else { "" };
        let costs = format!("{} costs {}{of} a TB-year", set.name, yearly(set));
        match self.prices.saving() {
            Some(saving) => format!(
                "{costs}; the best ladder would be {} at {} ({:.0} % less)",
                best.name,
                yearly(best),
                saving * 100.0
            ),
            None => format!("{costs}; no ladder that was measured is cheaper by more than 1 %"),
        }
    }

    fn prices_line(&self) -> String {
        let prices = &self.advice.prices;
        format!(
            "{}, in millionths: {} a second of CPU, {} a GB written, {} a GB-month, {} a million reads",
            self.advice.goal,
            prices.cpu_second,
            prices.gb_written,
            prices.gb_month,
            prices.million_reads
        )
    }

    /// What it was measured on, and what is assumed or missing.
    fn measured(&self) -> String {
        let data = &self.advice.data;
        let part = data.sampled_bytes as f64 / data.input.data_bytes.max(1) as f64;
        let unmeasured: usize = self.advice.targets.iter().map(|target| target.unmeasured).sum();
        let missing = match unmeasured {
            0 => String::new(),
            count => format!(" {count} settings were not measured: --time has more."),
        };
        let part =
            if part >= 0.999 { "all".to_owned() } else { format!("{} %", figure(part * 100.0)) };
        let (took, loads) = (self.advice.took, self.advice.expectations.loads_per_mib(&data.basis));
        format!(
            "measured: {part} of the rows in {:.1} s. Assumed: {} block loads for a raw MiB in a month.\
             {missing}",
            took.as_secs_f64(),
            figure(loads),
        )
    }

    /// The places of the ladder that the tree has, from the top down, with their prices where there are.
    fn places(&self) -> impl Iterator<Item = (&Found, &PlacePrices)> {
        let prices = |place: Place| self.prices.places.iter().find(move |one| one.place == place);
        self.found.iter().filter_map(move |found| Some((found, prices(found.place)?)))
    }

    fn table(&self, columns: usize) -> String {
        let names = self.places().filter_map(|(_, place)| Some(place.set()?.name.chars().count()));
        let width = names.max().unwrap_or(0).max("codec".len());
        let line = |cells: &str, words: &[String]| {
            let used = cells.chars().count();
            let indent = if used + LAST_COLUMN_MIN > columns { INDENT } else { used };
            let line = wrapped(cells, words.iter().map(String::as_str), indent, columns);
            format!("{}\n", line.trim_end())
        };
        let header = format!("  level     stored  ratio  {:<width$}     cost  of all  ", "codec");
        let mut text = line(&header, &["runners-up".to_owned()]);
        let all = self.prices.set.cost();
        for (found, place) in self.places() {
            let Some(set) = place.set() else { continue };
            let (stored, ratio) = match found.stored_bytes {
                0 => ("-".to_owned(), "-".to_owned()),
                bytes => (size(bytes), format!("{:.2}", found.raw_bytes as f64 / bytes as f64)),
            };
            let (levels, codec) = (&found.levels, &set.name);
            let (cost, part) = (figure(self.advice.yearly(set.cost())), 100.0 * set.cost() / all);
            let cells = format!(
                "  {levels:<6} {stored:>9}  {ratio:>5}  {codec:<width$} {cost:>8}  {part:>4.0} %  "
            );
            text.push_str(&line(&cells, &self.runners_up(set, place)));
        }
        text
    }

    /// "lz4 52.1 (+6 %)," and so on.
    fn runners_up(&self, set: &CodecPrice, place: &PlacePrices) -> Vec<String> {
        let shown = place.others().take(OTHERS_MAX).map(|other| {
            let percent = (other.cost() / set.cost() - 1.0) * 100.0;
            let cost = figure(self.advice.yearly(other.cost()));
            format!("{} {cost} ({percent:+.0} %),", other.name)
        });
        let mut shown: Vec<String> = shown.collect();
        if let Some(last) = shown.last_mut() {
            last.pop();
        }
        shown
    }

    fn details(&self, found: &Found, place: &PlacePrices, columns: usize) -> String {
        let (levels, name) = (&found.levels, place.place.name());
        let (share, writes) = (place.share * 100.0, place.writes);
        let title = format!(
            "\n  {levels}, {name}: {share:.0} % of the bytes, each written {writes:.1} times\n"
        );
        let mut text = title;
        for codec in &place.codecs {
            let mark = if codec.is_set { '>' } else { ' ' };
            let cost = figure(self.advice.yearly(codec.cost()));
            let first = format!("  {mark} {:<20} {cost:>8}  ", codec.name);
            let rate = |ns: f64| rate(ns).map_or("-".to_owned(), |rate| format!("{rate:.0}"));
            let mut terms = codec.terms.named();
            terms.sort_by(|a, b| b.1.total_cmp(&a.1));
            let shown = terms.iter().filter(|(_, cost)| *cost > SHOWN_PART * codec.cost());
            let shown =
                shown.map(|(name, cost)| format!("{name} {}", figure(self.advice.yearly(*cost))));
            let shown: Vec<String> = shown.collect();
            let words = format!(
                "ratio {:.2}, MB/s {} {}; {}",
                1.0 / codec.ratio.max(f64::MIN_POSITIVE),
                rate(codec.encode_ns),
                rate(codec.decode_ns),
                shown.join(", ")
            );
            text.push_str(&wrapped(&first, words.split(' '), 2 * INDENT, columns));
            text.push('\n');
        }
        text
    }

    /// The ladder for machines. Costs are millionths for a raw GB in its life; with `_per_tb_year` whole
    /// units of the currency.
    fn json(&self) -> Value {
        let ladder = |ladder: &Ladder| {
            json!({
                "name": ladder.name,
                "cost": ladder.cost(),
                "cost_per_tb_year": self.advice.yearly(ladder.cost()),
                "stored_per_raw": ladder.ratio,
                "terms": terms(&ladder.terms),
            })
        };
        let codec = |codec: &CodecPrice| {
            json!({
                "name": codec.name,
                "is_chosen": codec.is_set,
                "cost": codec.cost(),
                "cost_per_tb_year": self.advice.yearly(codec.cost()),
                "stored_per_raw": codec.ratio,
                "compress_mbps": rate(codec.encode_ns),
                "decompress_mbps": rate(codec.decode_ns),
                "terms": terms(&codec.terms),
            })
        };
        let place = |(found, place): (&Found, &PlacePrices)| {
            json!({
                "place": place.place.name(),
                "levels": found.levels,
                "stored_bytes": found.stored_bytes,
                "raw_bytes": found.raw_bytes,
                "share": place.share,
                "writes": place.writes,
                "candidates": place.codecs.iter().map(codec).collect::<Vec<_>>(),
            })
        };
        json!({
            "goal": self.advice.goal,
            "prices": self.advice.prices.to_string(),
            "set": ladder(&self.prices.set),
            "best": ladder(&self.prices.best),
            "saving": self.prices.saving().unwrap_or(0.0),
            "places": self.places().map(place).collect::<Vec<_>>(),
        })
    }
}

/// Raw MB in a second of CPU.
fn rate(ns: f64) -> Option<f64> {
    (ns > 0.0).then(|| 1e3 / ns)
}

fn terms(terms: &Terms) -> Map<String, Value> {
    terms.named().into_iter().map(|(name, cost)| (name.to_owned(), cost.into())).collect()
}

/// A family as one JSON object: what the library says of it, and what its ladder costs.
pub fn json_of(explanation: &Explanation, pricing: &Pricing) -> String {
    let json = explanation.to_json();
    let (name, value) = match pricing {
        Pricing::None => return json,
        Pricing::Priced(priced) => ("ladder", priced.json()),
        Pricing::Unpriced(why) => ("unpriced", Value::from(why.as_str())),
    };
    // The object has its own order of fields, which a map would not keep.
    let open = json.strip_suffix('}').unwrap_or(&json);
    format!("{open},\"{name}\":{value}}}")
}

/// The names of the cells of [`csv_lines`], in front of those of the terms.
const CSV_HEADER: [&str; 9] = [
    "family",
    "level",
    "name",
    "is_chosen",
    "cost",
    "cost_per_tb_year",
    "stored_per_raw",
    "compress_mbps",
    "decompress_mbps",
];

/// The header of the lines.
pub fn csv_header() -> Vec<String> {
    let terms = Terms::default().named().map(|(name, _)| name);
    CSV_HEADER.iter().copied().chain(terms).map(str::to_owned).collect()
}

/// A line for each candidate of each level; of ladders for the one that is set and the best one, too.
pub fn csv_lines(explanation: &Explanation, pricing: &Pricing) -> Vec<Vec<String>> {
    let family = explanation.family.as_str();
    let mut lines = Vec::new();
    if let Pricing::Priced(priced) = pricing {
        for (ladder, is_set) in [(&priced.prices.set, true), (&priced.prices.best, false)] {
            let yearly = Some(priced.advice.yearly(ladder.cost()));
            let figures = [Some(ladder.cost()), yearly, Some(ladder.ratio), None, None];
            let named = ladder.terms.named();
            lines.push(csv_line([family, "all", &ladder.name], is_set, figures, &named));
        }
        for (found, place) in priced.places() {
            for codec in &place.codecs {
                let yearly = Some(priced.advice.yearly(codec.cost()));
                let rates = [rate(codec.encode_ns), rate(codec.decode_ns)];
                let figures = [Some(codec.cost()), yearly, Some(codec.ratio), rates[0], rates[1]];
                let names = [family, found.levels.as_str(), &codec.name];
                lines.push(csv_line(names, codec.is_set, figures, &codec.terms.named()));
            }
        }
    }
    for level in &explanation.levels {
        let name = format!("L{}", level.level);
        let line = |one: &CandidateCost| {
            let rates = [one.compress_mbps, one.decompress_mbps];
            let figures = [Some(one.cost), None, Some(one.stored_per_raw), rates[0], rates[1]];
            csv_line([family, &name, &one.name], one.is_chosen, figures, &one.terms)
        };
        lines.extend(level.candidates.iter().map(line));
    }
    lines
}

fn csv_line(
    names: [&str; 3],
    is_chosen: bool,
    figures: [Option<f64>; 5],
    terms: &[(&str, f64)],
) -> Vec<String> {
    let cell = |figure: Option<f64>| figure.map_or_else(String::new, |figure| figure.to_string());
    // Terms come in any order.
    let term = |(name, _): (&str, f64)| {
        cell(terms.iter().find(|(of, _)| *of == name).map(|(_, cost)| *cost))
    };
    let names = names.into_iter().map(str::to_owned).chain([is_chosen.to_string()]);
    let terms = Terms::default().named().map(term);
    names.chain(figures.map(cell)).chain(terms).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lithify::Prices;
    use lithify_advisor::answer::{Course, DataFacts};
    use lithify_advisor::ladder::LadderPrices;
    use lithify_advisor::{Advice, Expectations};

    use super::*;

    /// A cost of 250 is 3 dollars a TB-year.
    fn terms_of(cost: f64) -> Terms {
        Terms { store: 0.8 * cost, compress: 0.2 * cost, ..Terms::default() }
    }

    fn place(place: Place, share: f64, codecs: &[(&str, f64)]) -> PlacePrices {
        let codec = |(at, (name, cost)): (usize, &(&str, f64))| CodecPrice {
            name: (*name).to_owned(),
            is_set: at == 0,
            terms: terms_of(*cost),
            ratio: 0.5,
            encode_ns: 4.0,
            decode_ns: 0.0,
        };
        let mut codecs: Vec<CodecPrice> = codecs.iter().enumerate().map(codec).collect();
        codecs.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
        PlacePrices { place, share, writes: 5.5, codecs }
    }

    fn found(place: Place, levels: &str, mib: u64) -> Found {
        let levels = levels.to_owned();
        Found { place, levels, stored_bytes: mib << 20, raw_bytes: (2 * mib) << 20 }
    }

    fn priced(best: f64) -> Priced {
        let mut data = DataFacts { sampled_bytes: 20, ..DataFacts::default() };
        data.input.data_bytes = 1_000;
        let ladder = |name: &str, cost: f64| Ladder {
            name: name.to_owned(),
            terms: terms_of(cost),
            ratio: 0.5,
        };
        let bottom =
            [("zstd-1", 4_000.0), ("lz4", 4_400.0), ("zstd-3", 4_600.0), ("none", 9_000.0)];
        Priced {
            advice: Advice {
                data,
                targets: Vec::new(),
                goal: "balanced".to_owned(),
                prices: Prices::BALANCED,
                expectations: Expectations::default(),
                took: Duration::from_millis(2_100),
                course: Course::default(),
                unknown: Vec::new(),
                samples: Vec::new(),
            },
            prices: LadderPrices {
                set: ladder("none,lz4,zstd-1 16k", 5_000.0),
                best: ladder("lz4,lz4,zstd-1 8k", best),
                places: vec![
                    place(Place::Small, 0.01, &[("none", 250.0), ("lz4", 200.0)]),
                    place(Place::Middle, 0.09, &[("lz4", 750.0), ("snappy", 765.0)]),
                    place(Place::Bottom, 0.9, &bottom),
                ],
            },
            found: vec![
                found(Place::Small, "L0-L4", 0),
                found(Place::Middle, "L5", 24),
                found(Place::Bottom, "L6", 268),
            ],
        }
    }

    fn explanation() -> Explanation {
        Explanation {
            family: "rocks".to_owned(),
            setting: "none,lz4,zstd-1".to_owned(),
            prices: None,
            levels: Vec::new(),
            sampling_cpu_us: 0,
            specimens: 0,
            record: String::new(),
        }
    }

    #[test]
    fn the_answer_comes_first_and_each_place_has_a_line() {
        let text = priced(4_500.0).to_text(&explanation(), false, 80);
        let wanted = "\
rocks: none,lz4,zstd-1 16k costs 60.0 dollars a TB-year; the best ladder would
    be lz4,lz4,zstd-1 8k at 54.0 (10 % less)
  balanced, in millionths: 11 a second of CPU, 150 a GB written, 3300 a
    GB-month, 5 a million reads
  level     stored  ratio  codec      cost  of all  runners-up
  L0-L4          -      -  none       3.00     5 %  lz4 2.40 (-20 %)
  L5      24.0 MiB   2.00  lz4        9.00    15 %  snappy 9.18 (+2 %)
  L6       268 MiB   2.00  zstd-1     48.0    80 %  lz4 52.8 (+10 %),
                                                    zstd-3 55.2 (+15 %),
                                                    none 108 (+125 %)
  measured: 2.00 % of the rows in 2.1 s. Assumed: 4000 block loads for a raw MiB
    in a month.
";
        assert_eq!(text, wanted);
        let narrow = priced(4_500.0).to_text(&explanation(), false, 60);
        let bottom = "80 %\n    lz4 52.8 (+10 %), zstd-3 55.2 (+15 %), none 108 (+125 %)\n";
        assert!(narrow.contains(bottom), "{narrow}");
        // Within what two runs differ by.
        let same = priced(4_990.0).to_text(&explanation(), false, 100);
        assert!(same.contains("a TB-year; no ladder that was measured is cheaper"), "{same}");
    }

    #[test]
    fn details_have_every_codec_with_its_terms() {
        let text = priced(4_500.0).to_text(&explanation(), true, 80);
        let wanted = "
  L5, middle: 9 % of the bytes, each written 5.5 times
  > lz4                      9.00  ratio 2.00, MB/s 250 -; store 7.20, compress
        1.80
    snappy                   9.18  ratio 2.00, MB/s 250 -; store 7.34, compress
        1.84
";
        assert!(text.contains(wanted), "{text}");
    }

    #[test]
    fn json_and_csv_have_all_candidates_with_the_same_names() {
        let pricing = Pricing::Priced(Box::new(priced(4_500.0)));
        let json: Value =
            serde_json::from_str(&json_of(&explanation(), &pricing)).expect("is JSON");
        assert_eq!(json["family"], "rocks");
        assert_eq!(json["ladder"]["set"]["cost_per_tb_year"], 60.0);
        assert_eq!(json["ladder"]["places"][2]["candidates"][0]["name"], "zstd-1");
        let header = csv_header();
        let lines = csv_lines(&explanation(), &pricing);
        assert_eq!(lines.len(), 2 + 2 + 2 + 4);
        assert!(lines.iter().all(|line| line.len() == header.len()));
        let store = header.iter().position(|name| name == "store").expect("is there");
        assert_eq!((lines[0][1].as_str(), lines[0][store].as_str()), ("all", "4000"));
        let unpriced = Pricing::Unpriced("too late".to_owned());
        assert!(json_of(&explanation(), &unpriced).ends_with(",\"unpriced\":\"too late\"}"));
        assert_eq!(json_of(&explanation(), &Pricing::None), explanation().to_json());
    }
}
