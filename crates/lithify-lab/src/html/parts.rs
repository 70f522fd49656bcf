//! Parts of pages that kinds of records share: figures in, plots and tables out.
//!
//! A kind that comes later fills these from its own record and adds what only it has. Names of
//! series come with each plot; their numbers are places in that list.

use std::collections::BTreeSet;

use crate::adapter::{Capabilities, EngineStatistics};
use crate::experiment::{BUILT_IN, CommandExperiment, Source};
use crate::report::compare;
pub(crate) use crate::report::days::day;
use crate::report::figures::{figure, figure_or_dash};
use crate::report::floors::{self, Cell, Judgement};
use crate::report::paired::Outcome as Found;
use crate::report::paired::{
    Better, Comparison, DIRECTION_ONLY, NOT_SIGNIFICANT, ratio_text, signed,
};
use crate::report::tables::{Align, Grid};
use crate::statistics::Interval;
pub(crate) use lithify_report::charts::{
    Amplification, Course, LatencyRow, amplification, jobs, latencies, over_time,
};
use lithify_report::{
    Axis, Block, Drawing, Finding, Group, Outcome, Paint, Plot, Report, Row, Rows, Section, Table,
    Unit,
};

/// Missed floors that the summary names; the rest stand in their table.
const MISSED_NAMED: usize = 5;

/// A figure of two sides in a plot of ratios.
pub(crate) struct Ratio {
    /// Its group: phase or step.
    pub group: String,
    /// Name and unit.
    pub name: String,
    /// Which direction is good.
    pub better: Better,
    /// The two sides.
    pub comparison: Comparison,
}

/// Which direction is good.
fn arrow(better: Better) -> char {
    match better {
        Better::Higher => '↑',
        Better::Lower => '↓',
    }
}

/// One word for a verdict, and how it is painted.
fn spoken(found: Found) -> (&'static str, Paint) {
    let paint = match found {
        Found::Better => Paint::Good,
        Found::Worse => Paint::Bad,
        Found::NotSignificant | Found::DirectionOnly(_) => Paint::Even,
    };
    (found.word(), paint)
}

/// Ratios of the first side to the other with their intervals and what could have been shown;
/// `None` without any.
pub(crate) fn ratios(title: &str, [first, other]: [&str; 2], ratios: &[Ratio]) -> Option<Plot> {
    let mut groups: Vec<Group> = Vec::new();
    for item in ratios {
        let Some(ratio) = item.comparison.judged.ratio else { continue };
        let (word, paint) = spoken(item.comparison.outcome(item.better));
        let judged = &item.comparison.judged;
        // A difference has no place on an axis of ratios: the ratio of the means alone is marked.
        let of_ratio = |interval: Interval| (interval.low, interval.high);
        let is_ratio = !judged.scale.is_difference();
        let effect = match is_ratio {
            true => format!("{}×", figure(ratio)),
            false => item.comparison.ratio(),
        };
        let row = Row {
            name: format!("{} {}", item.name, arrow(item.better)),
            paint,
            band: judged.could_have_shown.filter(|_| is_ratio).map(|shown| (1.0 / shown, shown)),
            span: judged.interval.filter(|_| is_ratio).map(of_ratio),
            marks: vec![ratio],
            published: None,
            note: format!("{effect} {word}"),
            words: format!(
                "{}, {}: {}\n{first} {}\n{other} {}\nratio or difference {}",
                item.group,
                item.name,
                word,
                item.comparison.first.with_range(),
                item.comparison.other.with_range(),
                item.comparison.ratio()
            ),
        };
        match groups.iter_mut().find(|group| group.name == item.group) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { name: item.group.clone(), rows: vec![row] }),
        }
    }
    (!groups.is_empty()).then(|| Plot {
        title: title.to_owned(),
        about: format!(
            "{first} in units of {other}: geometric mean over the repeats with its 95 % interval. \
             Full circle: {first} is significantly better; diamond: significantly worse; hollow: \
             {NOT_SIGNIFICANT} (not significant) or {DIRECTION_ONLY}. More is better (↑) or less \
             (↓). Ratios in the grey band would not have been significant; without a band there \
             is no verdict."
        ),
        series: Vec::new(),
        drawing: Drawing::Rows(Rows {
            x: Axis { name: format!("{first} / {other}"), unit: Unit::Times },
            bars: false,
            reference: Some(1.0),
            groups,
        }),
        table: Table::folded(title, ratio_grid([first, other], ratios)),
    })
}

fn ratio_grid([first, other]: [&str; 2], ratios: &[Ratio]) -> Grid {
    let controls = [first, other].map(|side| format!("A/A {side}"));
    let columns = [
        ("figure", Align::Left),
        ("in", Align::Left),
        (first, Align::Right),
        (other, Align::Right),
        ("ratio [95 %]", Align::Right),
        (controls[0].as_str(), Align::Right),
        (controls[1].as_str(), Align::Right),
        ("could have shown", Align::Right),
        ("repeats to decide", Align::Right),
        ("verdict", Align::Left),
    ];
    let row = |item: &Ratio| {
        let comparison = &item.comparison;
        vec![
            item.name.clone(),
            item.group.clone(),
            comparison.first.with_range(),
            comparison.other.with_range(),
            comparison.ratio(),
            comparison.control(0),
            comparison.control(1),
            comparison.could_have_shown(),
            comparison.repeats_to_decide(),
            comparison.outcome(item.better).word().to_owned(),
        ]
    };
    Grid::new(&columns, ratios.iter().map(row).collect())
}

/// The ratios of one figure in every group, in words: `throughput ops/s: load 1.17× (n.s.)`.
fn course_of(figure_name: &str, ratios: &[Ratio]) -> Option<String> {
    let of_figure = ratios.iter().filter(|item| item.name == figure_name);
    let said = of_figure.filter_map(|item| {
        let judged = &item.comparison.judged;
        let effect = match judged.scale.is_difference() {
            true => signed(judged.difference?),
            false => format!("{}×", figure(judged.ratio?)),
        };
        let word = item.comparison.outcome(item.better).word();
        Some(format!("{} {effect} ({word})", item.group))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| format!("{figure_name}: {}.", said.join(", ")))
}

/// How often the first side was better, worse, and neither, and its ratios in the figures that are
/// named, in words.
pub(crate) fn tally([first, other]: [&str; 2], ratios: &[Ratio], named: &[&str]) -> String {
    let count = |wanted: fn(Found) -> bool| {
        ratios.iter().filter(|item| wanted(item.comparison.outcome(item.better))).count()
    };
    let mut text = format!(
        "{first} against {other}: significantly better in {} of {} figures, worse in {}, not \
         significant in {}",
        count(|found| found == Found::Better),
        ratios.len(),
        count(|found| found == Found::Worse),
        count(|found| found == Found::NotSignificant),
    );
    let directions = count(|found| matches!(found, Found::DirectionOnly(_)));
    if directions > 0 {
        text.push_str(&format!(", {DIRECTION_ONLY} in {directions}"));
    }
    text.push('.');
    for said in named.iter().filter_map(|name| course_of(name, ratios)) {
        text.push(' ');
        text.push_str(&said);
    }
    text
}

/// A published ratio beside the measured one.
pub(crate) struct Published {
    /// In which phase or test, on which engine.
    pub group: String,
    /// Figure and arms.
    pub name: String,
    /// As published.
    pub ratio: f64,
    /// As measured, if it was.
    pub measured: Option<compare::Comparison>,
}

/// How a claim came out.
pub(crate) fn outcome(measured: Option<&compare::Comparison>) -> Outcome {
    verdict(measured.map(|measured| measured.verdict))
}

/// How a verdict came out; what was not measured is not decided.
pub(crate) fn verdict(verdict: Option<compare::Verdict>) -> Outcome {
    match verdict {
        Some(compare::Verdict::Confirmed(_)) => Outcome::Met,
        Some(compare::Verdict::Contradicted) => Outcome::Missed,
        Some(compare::Verdict::NotSignificant | compare::Verdict::DirectionOnly(_)) | None => {
            Outcome::Undecided
        }
    }
}

/// Published and measured ratios: a plot of those that were measured, else the table alone; nothing
/// without any.
pub(crate) fn published(items: &[Published], grid: Grid) -> Option<Block> {
    let mut groups: Vec<Group> = Vec::new();
    for item in items {
        let Some(measured) = &item.measured else { continue };
        let Some(ratio) = measured.judged.ratio else { continue };
        let interval = measured.judged.interval.filter(|_| !measured.judged.scale.is_difference());
        let word = compare::direction(measured.verdict);
        let paint = match outcome(Some(measured)) {
            Outcome::Met => Paint::Good,
            Outcome::Missed => Paint::Bad,
            Outcome::Undecided | Outcome::Note => Paint::Even,
        };
        let row = Row {
            name: item.name.clone(),
            paint,
            band: None,
            span: interval.map(|interval| (interval.low, interval.high)),
            marks: vec![ratio],
            published: Some(item.ratio),
            note: format!("{}× {word}", figure(ratio)),
            words: format!(
                "{}, {}\npublished {}, measured {}: {word}",
                item.group,
                item.name,
                figure(item.ratio),
                ratio_text(&measured.judged)
            ),
        };
        match groups.iter_mut().find(|group| group.name == item.group) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { name: item.group.clone(), rows: vec![row] }),
        }
    }
    let table = Table::folded("Published against measured", grid);
    if groups.is_empty() {
        return (!table.rows.is_empty()).then(|| table.into());
    }
    let plot = Plot {
        title: "Published and measured ratios".to_owned(),
        about: "The upright bar is the published ratio. The mark is ours, the geometric mean over \
                the repeats, with its 95 % interval. Full circle: confirmed; diamond: contradicted; \
                hollow: not significant, or a direction only. Lines of a table that begin with a \
                space stand beside the published figure."
            .to_owned(),
        series: Vec::new(),
        drawing: Drawing::Rows(Rows {
            x: Axis { name: "ratio".to_owned(), unit: Unit::Times },
            bars: false,
            reference: Some(1.0),
            groups,
        }),
        table,
    };
    Some(plot.into())
}

/// How writers were held back: a line of the stall ledger.
pub(crate) struct Stalls<'a> {
    /// Of whom, in what.
    pub of: String,
    /// What the engine said before and after.
    pub statistics: [&'a EngineStatistics; 2],
    /// Share of the time in which it slowed writers, percent.
    pub slowed_percent: Option<f64>,
    /// Share of the windows of 100 ms without a write, percent.
    pub gap_percent: Option<f64>,
    /// The longest time without a write, milliseconds.
    pub longest_gap_ms: Option<f64>,
}

/// The stall ledger.
pub(crate) fn stalls(caption: &str, lines: &[Stalls<'_>]) -> Table {
    let columns = [
        ("of", Align::Left),
        ("slowed %", Align::Right),
        ("delayed s", Align::Right),
        ("stopped s", Align::Right),
        ("windows without a write %", Align::Right),
        ("longest gap ms", Align::Right),
        ("stalls by cause, as the engine counts them", Align::Left),
    ];
    let row = |line: &Stalls<'_>| {
        let [before, after] = line.statistics.map(|statistics| &statistics.stalls);
        let seconds = |to: u64, from: u64| {
            let seconds = to.saturating_sub(from) as f64 / 1e6;
            figure_or_dash(after.is_timed.then_some(seconds))
        };
        // Records of old adapters have microseconds by cause, which add up to the times exactly.
        let are_times = after.is_timed
            && after.by_cause.values().sum::<u64>() == after.delayed_us + after.stopped_us;
        let cause = |(cause, count): (&String, &u64)| {
            let count = count.saturating_sub(before.by_cause.get(cause).copied().unwrap_or(0));
            let told = match are_times {
                true => format!("{cause} {} s", figure(count as f64 / 1e6)),
                false => format!("{cause} {count} times"),
            };
            (count > 0).then_some(told)
        };
        let causes: Vec<String> = after.by_cause.iter().filter_map(cause).collect();
        vec![
            line.of.clone(),
            figure_or_dash(line.slowed_percent),
            seconds(after.delayed_us, before.delayed_us),
            seconds(after.stopped_us, before.stopped_us),
            figure_or_dash(line.gap_percent),
            figure_or_dash(line.longest_gap_ms),
            if causes.is_empty() { "-".to_owned() } else { causes.join(", ") },
        ]
    };
    Table::new(caption, Grid::new(&columns, lines.iter().map(row).collect()))
}

/// How many targets were missed, then which, the farthest behind first, in words.
pub(crate) fn missed(cells: &[Cell]) -> Vec<Finding> {
    if cells.is_empty() {
        return Vec::new();
    }
    let behind = floors::behind(cells);
    let mut missed: Vec<(&Cell, f64)> = behind
        .iter()
        .filter_map(|cell| match cell.judgement {
            Judgement::Missed(factor) => Some((*cell, factor)),
            _ => None,
        })
        .collect();
    // A limit that an arm misses is in every pair of that arm.
    missed.dedup_by(|(one, _), (other, _)| one == other);
    let outcome = if missed.is_empty() { Outcome::Met } else { Outcome::Note };
    let counts = Finding::new(outcome, "Targets", format!("{}.", floors::counts(cells)));
    let sentences = missed.iter().take(MISSED_NAMED).map(|(cell, factor)| {
        let by = match factor.is_finite() {
            true => format!("{}× behind", figure(*factor)),
            false => "the base has none of it".to_owned(),
        };
        let (value, target) = (&cell.value, &cell.target);
        let text = format!("{}, {}: {value}. Target: {target}; {by}.", cell.figure, cell.place);
        Finding::new(Outcome::Missed, "Missed", text)
    });
    std::iter::once(counts).chain(sentences).collect()
}

/// Claims with how they came out, those that did not hold first, and their count before them. Here
/// alone fewer repeats than verdicts need become directions, whoever judged.
pub(crate) fn claims(repeats: u64, items: Vec<(Outcome, String)>) -> Vec<Finding> {
    if items.is_empty() {
        return Vec::new();
    }
    let decides = repeats >= compare::REPEATS_WANTED;
    let as_direction = |(outcome, text): (Outcome, String)| match outcome {
        Outcome::Met | Outcome::Missed if !decides => {
            let side = if outcome == Outcome::Met { "As published" } else { "Not as published" };
            (Outcome::Undecided, format!("{text} {side}: {}.", compare::NO_VERDICT))
        }
        _ => (outcome, text),
    };
    let items: Vec<(Outcome, String)> = items.into_iter().map(as_direction).collect();
    let count = |wanted| items.iter().filter(|(outcome, _)| *outcome == wanted).count();
    let undecided = match count(Outcome::Undecided) {
        0 => String::new(),
        undecided => format!(", {undecided} are not decided by this run"),
    };
    let all = items.len();
    let text = match count(Outcome::Undecided) == all {
        true => format!("None of {all} published claims is decided by this run."),
        false => format!(
            "Of {all} published claims {} are confirmed here, {} contradicted{undecided}.",
            count(Outcome::Met),
            count(Outcome::Missed)
        ),
    };
    let mut findings = vec![Finding::new(Outcome::Note, "Claims", text)];
    for wanted in [Outcome::Missed, Outcome::Undecided, Outcome::Met] {
        let tag = match wanted {
            Outcome::Missed => "Contradicted",
            Outcome::Undecided => "Undecided",
            Outcome::Met | Outcome::Note => "Confirmed",
        };
        let of_outcome = items.iter().filter(|(outcome, _)| *outcome == wanted);
        findings.extend(of_outcome.map(|(outcome, text)| Finding::new(*outcome, tag, text)));
    }
    findings
}

/// Why figures are to be doubted: few repeats, other processes. `believed` are the figures that other
/// processes leave alone.
pub(crate) fn doubts(repeats: u64, foreign_percent: f64, believed: &str) -> Vec<String> {
    let mut doubts = Vec::new();
    if repeats < compare::REPEATS_WANTED {
        doubts.push(format!(
            "{}: directions, no verdicts; --repeats {} is the least that can decide.",
            crate::report::repeats(repeats),
            compare::REPEATS_WANTED
        ));
    }
    if foreign_percent > compare::FOREIGN_PERCENT_MAX {
        doubts.push(format!(
            "The machine was not quiet: other processes took up to {} % of its CPUs. Only {believed} \
             can be believed.",
            figure(foreign_percent)
        ));
    }
    doubts
}

/// Title, question and source of an experiment with a command of its own, by its name, and what a
/// reader must know; nothing of one that is not part of the program.
pub(crate) fn head_of(name: &str) -> (Report, Section) {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    let parsed = found.and_then(|(name, text)| CommandExperiment::parse(name, text).ok());
    let Some(experiment) = parsed else { return (Report::default(), Section::default()) };
    let CommandExperiment { title, question, hypothesis, source, .. } = &experiment;
    let head = head(title, question, hypothesis, source.as_ref());
    (head, crate::html::caveats::caveats(&experiment.caveats))
}

/// A page of an experiment with nothing but its title, its question, what was expected, and where
/// published figures come from.
pub(crate) fn head(
    title: &str,
    question: &str,
    hypothesis: &str,
    source: Option<&Source>,
) -> Report {
    let expected = format!("Expected: {}", hypothesis.trim());
    let source = match source {
        None => expected,
        Some(Source { author, title, date, setup }) => {
            format!("{expected} Published: {author}, {title}, {date}: {setup}.")
        }
    };
    let (title, question) = (title.to_owned(), question.to_owned());
    Report { title, question, source, ..Report::default() }
}

/// Names and values of a card for a list of facts.
pub(crate) fn facts(lines: Vec<(&'static str, String)>) -> Vec<(String, String)> {
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The libraries behind the codecs, each once, as a fact.
pub(crate) fn libraries<'a>(names: impl Iterator<Item = &'a str>) -> Block {
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    Block::Facts(vec![("codec libraries".to_owned(), names.join(", "))])
}

/// What engines can do by themselves: their names and capabilities.
pub(crate) fn abilities(engines: &[(&str, &Capabilities)]) -> Table {
    let columns = [
        ("engine", Align::Left),
        ("row locks", Align::Left),
        ("codec by level", Align::Left),
        ("follows block sizes", Align::Left),
        ("counts itself", Align::Left),
        ("remarks", Align::Left),
    ];
    let yes = |has: bool| if has { "yes" } else { "no" }.to_owned();
    let row = |(name, can): &(&str, &Capabilities)| {
        let abilities =
            [can.transactions, can.codec_per_level, can.block_size, can.own_statistics].map(yes);
        let name = std::iter::once((*name).to_owned());
        name.chain(abilities).chain([can.labels.join(", ")]).collect()
    };
    let grid = Grid::new(&columns, engines.iter().map(row).collect());
    Table::new("What each engine does by itself", grid)
}
