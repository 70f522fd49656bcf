//! One screen of at most 40 lines: the answer first, then what it costs otherwise, what it was measured
//! on, and what is not known.

use std::fmt::Write;

use lithify_report::figure::{bytes, duration, figure};
use lithify_report::printable;

use crate::answer::{Advice, DataFacts, EQUAL_COST, Outcome, TESTED_PLACES, TargetAdvice};
use crate::columns::{Column, Row, table, wrapped};
use crate::estimate::Estimate;
use crate::input::Present;
use crate::sample::{Collected, WHOLE_BYTES};
use crate::study::write_amplification;
use crate::unknown::too_little;

/// With more targets each has two lines, and none has a table.
const TABLES_MAX: usize = 2;
/// Ways to store blocks that are named of what a database has.
const FOUND_MAX: usize = 3;
/// Lines of a screen.
const LINES_MAX: usize = 40;

/// Shares are shown in steps of a tenth of a percent.
const SHOWN_STEP: f64 = 0.001;
/// An interval of more than half the figure tells nothing of it.
const HELD_OUT_MAX: f64 = 0.5;

/// What a table and a plot may take.
#[derive(Clone, Copy)]
struct Room {
    alternatives: usize,
    plot_lines: usize,
}

/// Tried in this order until all is on one screen.
const ROOMS: [Room; 4] = [
    Room { alternatives: 5, plot_lines: 5 },
    Room { alternatives: 4, plot_lines: 4 },
    Room { alternatives: 3, plot_lines: 0 },
    Room { alternatives: 2, plot_lines: 0 },
];

/// The screen, wrapped at so many columns where lines are prose. Snippets stay whole.
pub fn render(advice: &Advice, columns: usize) -> String {
    let screens = ROOMS.iter().map(|room| render_in(*room, advice, columns));
    let mut smallest = String::new();
    for screen in screens {
        smallest = screen;
        if smallest.lines().count() <= LINES_MAX {
            break;
        }
    }
    printable(&smallest)
}

fn render_in(room: Room, advice: &Advice, columns: usize) -> String {
    let mut text = String::new();
    let too_little = too_little(&advice.data);
    if let Some(line) = &too_little {
        // What else would be said would be taken for advice.
        wrapped(&mut text, "", line, columns);
        text.push_str("Nothing is advised.\n");
    } else if advice.targets.len() <= TABLES_MAX {
        for target in &advice.targets {
            with_table(&mut text, target, advice, room, columns);
        }
    } else {
        overview(&mut text, advice, columns);
    }
    // Parts begin with an empty line, and the first one needs none.
    let mut text = text.trim_start_matches('\n').to_owned();
    text.push('\n');
    data(&mut text, &advice.data, advice, columns);
    if !advice.samples.is_empty() {
        text.push_str("\nSome rows\n");
        advice.samples.iter().for_each(|row| text.push_str(&format!("  {row}\n")));
    }
    let is_new = |line: &&String| Some(*line) != too_little.as_ref();
    let unknown: Vec<&String> = advice.unknown.iter().filter(is_new).collect();
    if !unknown.is_empty() {
        text.push_str("\nNot known\n");
        unknown.into_iter().for_each(|line| wrapped(&mut text, "- ", line, columns));
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn data(text: &mut String, data: &DataFacts, advice: &Advice, columns: usize) {
    let input = &data.input;
    let rows = match input.has_rows {
        true => format!(", {}", rows_of(data)),
        false => String::new(),
    };
    let files = if input.files > 1 { format!(" in {} files", input.files) } else { String::new() };
    let about = format!("{}: {}{files}{rows}.", input.format, bytes(input.data_bytes));
    wrapped(text, "Data      ", &about, columns);
    let order = match (input.key.as_str(), data.is_sorted) {
        ("", _) => String::new(),
        (key, true) => format!(" Sorted by {key}."),
        (key, false) => format!(" Not sorted by {key}."),
    };
    let far = match data.far_repeats {
        Some(far) if far >= 0.05 => {
            format!(" Blocks of 64 KiB shrink {} further than those of 4.", percent(far))
        }
        Some(_) => " Larger blocks gain little.".to_owned(),
        None => String::new(),
    };
    let hard = match data.incompressible {
        Some(hard) if hard >= 0.005 => format!(" {} of it does not shrink.", percent(hard)),
        _ => String::new(),
    };
    let entropy = data.entropy_bits;
    let is = format!("{entropy:.1} bits a byte by frequency alone.{hard}{far}{order}");
    wrapped(text, "          ", &is, columns);
    if let Some(present) = &data.present {
        wrapped(text, "Has now   ", &has_now(present), columns);
    }
    let share = data.sampled_bytes as f64 / input.data_bytes.max(1) as f64;
    let places = counted(data.places as u64, "place");
    let sampled = match share {
        0.999.. if share <= 1.0 || is_counted(data) => "all of it".to_owned(),
        // One large row can be in many of them.
        1.0.. => format!("{places}, some of which overlap"),
        _ => format!("{places}, {} of it", share_text(share)),
    };
    let took = duration(advice.took.as_secs_f64());
    let tested = match data.places >= TESTED_PLACES {
        true => "a third was held out to test the predictions",
        false => "too little to hold anything out",
    };
    let measured = format!("{sampled}, in {took}; {tested}.");
    wrapped(text, "Measured  ", &measured, columns);
    wrapped(text, "Prices    ", &prices(advice), columns);
}

/// What a database is set to, and what its tables take with that.
fn has_now(present: &Present) -> String {
    let mut said = present.settings.clone();
    if present.tables > 0 {
        let (size, tables) = (bytes(present.stored_bytes), counted(present.tables, "table"));
        let found = present.found.iter().take(FOUND_MAX).map(ToString::to_string);
        let more = if present.found.len() > FOUND_MAX { " and others" } else { "" };
        let found = found.collect::<Vec<_>>().join(" and ");
        let _ = write!(said, ": {size} in {tables} of {found}{more}");
    }
    if present.rows_in_log > 0 {
        let is = if present.rows_in_log == 1 { "is" } else { "are" };
        let _ = write!(said, "; {} {is} in the log alone", counted(present.rows_in_log, "row"));
    }
    said.push('.');
    said
}

/// A number of things: "1 row", "2 rows".
pub(crate) fn counted(count: u64, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// How many rows there are, and how large they are.
pub(crate) fn rows_of(data: &DataFacts) -> String {
    let row_bytes = data.basis.row_bytes.round() as u64;
    let about = if is_counted(data) { "" } else { "about " };
    format!("{about}{} of {}", counted(data.rows, "row"), counted(row_bytes, "byte"))
}

/// Whether all rows were read to count them. Of larger data their number is estimated from places.
fn is_counted(data: &DataFacts) -> bool {
    data.input.data_bytes <= WHOLE_BYTES
}

/// The prices that costs are at, each with what it is of.
fn prices(advice: &Advice) -> String {
    let prices = &advice.prices;
    format!(
        "{}, in millionths of {}: CPU second {}, GB written {}, GB-month {}, million reads {}, GB-month of \
         memory {}.",
        advice.goal,
        if advice.is_in_dollars() { "a dollar" } else { "your currency" },
        prices.cpu_second,
        prices.gb_written,
        prices.gb_month,
        prices.million_reads,
        prices.memory_gb_month,
    )
}

fn share_text(share: f64) -> String {
    format!("{} %", figure(share * 100.0))
}

fn ratio(estimate: &Estimate) -> String {
    format!("{:.3} ±{:.1} %", estimate.value, estimate.relative() * 100.0)
}

/// Bytes of all data under an outcome.
pub(crate) fn size(outcome: &Outcome, advice: &Advice) -> String {
    bytes((outcome.ratio.value * advice.data.basis.data_bytes) as u64)
}

/// What CPU times are of: rows, or bytes of data that have none.
pub(crate) fn cpu_basis(data: &DataFacts) -> &'static str {
    if data.input.has_rows { "a million rows" } else { "a GB" }
}

/// CPU seconds for a million rows: to write, on the way down a tree if there is one, and to read
/// where every read loads a block. Of data without rows they are for a GB (10^9 bytes) each.
pub(crate) fn cpu_seconds(outcome: &Outcome, data: &DataFacts) -> [f64; 2] {
    match data.input.has_rows {
        true => [data.basis.row_bytes * outcome.write_ns / 1e3, outcome.unit_decode_us],
        false => [outcome.write_ns, outcome.decode_ns],
    }
}

/// Money in a year for a TB (10^12 bytes) of such data, in whole units of the currency.
pub(crate) fn yearly(outcome: &Outcome, advice: &Advice) -> f64 {
    advice.yearly(outcome.cost())
}

fn with_table(
    text: &mut String,
    target: &TargetAdvice,
    advice: &Advice,
    room: Room,
    columns: usize,
) {
    let best = target.best();
    let _ = writeln!(text, "\n{} ({}): {}", target.target.title, advice.goal, best.name());
    for line in target.snippet(best, advice.data.basis) {
        let _ = writeln!(text, "  {line}");
    }
    wrapped(text, "", &answer(target, advice), columns);
    text.push('\n');
    settings(text, target, advice, room.alternatives, columns);
    if !target.unfit.is_empty() {
        let names = target.unfit.join(", ");
        wrapped(text, "  ", &format!("{UNFIT}: {names}."), columns);
    }
    if advice.targets.len() == 1 && room.plot_lines > 0 {
        frontier(text, target, &advice.data, room.plot_lines, columns);
    }
    if let Some((amplification, formula)) = write_amplification(target, &advice.data.basis) {
        let line = format!(
            "Write amplification about {amplification:.1} = {formula}. Upper levels' codecs follow the \
             goal, and so do sizes.{}",
            if has_stronger_upper(target) { STRONGER_UPPER } else { "" }
        );
        wrapped(text, "  ", &line, columns);
    }
    wrapped(text, "  ", target.target.note, columns);
    if advice.targets.len() == 1 {
        for (language, lines) in target.other_forms(best, advice.data.basis) {
            let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
            wrapped(text, &format!("  In {language}: "), &lines.join(" "), columns);
        }
    }
}

/// What is said of settings that do not fit.
pub(crate) const UNFIT: &str = "Not even half of a page fits";

/// The table of settings that are shown.
fn settings(
    text: &mut String,
    target: &TargetAdvice,
    advice: &Advice,
    alternatives: usize,
    columns: usize,
) {
    let shown = shown(target, alternatives);
    let (write, read) = match advice.data.input.has_rows {
        true => ("write\nCPU s\n/M rows", "read\nCPU s\n/M cold"),
        false => ("write\nCPU s\n/GB", "read\nCPU s\n/GB cold"),
    };
    let cost = if advice.is_in_dollars() { "dollars a\nTB-year" } else { "cost a\nTB-year" };
    let mut of_table =
        vec![("setting", 0), ("of raw", 1), ("size", 3), (write, 4), (read, 5), (cost, 2)];
    // Where no call is long, that is no reason to choose.
    let has_long_calls = shown.iter().any(|(outcome, _)| outcome.long_calls > 0.0);
    if has_long_calls {
        of_table.push(("calls\n>1 ms", 6));
    }
    let column = |(heading, place)| Column { heading, place, has_names: place == 0 };
    let of_table: Vec<Column<'_>> = of_table.into_iter().map(column).collect();
    let row = |(outcome, words): (&Outcome, String)| {
        let [write, read] = cpu_seconds(outcome, &advice.data);
        let mut cells = vec![
            outcome.name(),
            ratio(&outcome.ratio),
            size(outcome, advice),
            figure(write),
            figure(read),
            figure(yearly(outcome, advice)),
        ];
        if has_long_calls {
            cells.push(percent(outcome.long_calls));
        }
        Row { cells, words }
    };
    let rows: Vec<Row> = shown.into_iter().map(row).collect();
    table(text, &of_table, &rows, "", [2, columns]);
}

/// Whoever sees a stronger codec above a weaker one doubts it.
const STRONGER_UPPER: &str = " Above the bottom a byte is rewritten before it is read much, so that a \
                              codec that shrinks more pays there.";

/// Whether what is advised shrinks upper levels more than the bottom.
fn has_stronger_upper(target: &TargetAdvice) -> bool {
    let best = target.best();
    let plain = |codec| {
        target.outcomes.iter().find(move |one| {
            let setting = &one.setting;
            let is_size = setting.size_bytes == best.setting.size_bytes;
            setting.compression == codec && is_size && setting.dictionary_bytes == 0
        })
    };
    let upper = best.upper.into_iter().filter_map(plain);
    upper.map(|one| one.bottom.value).any(|upper| upper < best.bottom.value * 0.99)
}

/// Before the plot: an indent and its axis.
const PLOT_LEFT: usize = 3;
/// What the name of the last mark may take.
const PLOT_NAME: usize = 26;

/// The frontier, smallest on the left: a mark for each setting, named where there is room.
fn frontier(
    text: &mut String,
    target: &TargetAdvice,
    data: &DataFacts,
    plot_lines: usize,
    columns: usize,
) {
    let cpu = |outcome: &Outcome| {
        let [write, read] = cpu_seconds(outcome, data);
        (write + read).max(1e-3).ln()
    };
    let best = target.best();
    let mut marks: Vec<&Outcome> =
        target.frontier().into_iter().filter(|one| one.encode_ns > 0.0).collect();
    if best.encode_ns > 0.0 && marks.iter().all(|one| !one.is(best)) {
        marks.push(best);
        marks.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
    }
    let (Some(first), Some(last)) = (marks.first(), marks.last()) else { return };
    let (low, high) = (first.ratio.value, last.ratio.value);
    let most = marks.iter().map(|one| cpu(one)).fold(f64::NEG_INFINITY, f64::max);
    let least = marks.iter().map(|one| cpu(one)).fold(f64::INFINITY, f64::min);
    if marks.len() < 3 || high <= low || most <= least {
        return;
    }
    let width = columns.saturating_sub(PLOT_NAME).max(30);
    let mut lines = vec![vec![' '; columns.saturating_sub(PLOT_LEFT)]; plot_lines];
    // A mark that finds no room is left out, so the advice is placed first.
    marks.sort_by_key(|one| !one.is(best));
    for one in marks {
        let across = (one.ratio.value - low) / (high - low) * (width - 1) as f64;
        let down = (most - cpu(one)) / (most - least) * (plot_lines - 1) as f64;
        let mark = if one.is(best) { '◆' } else { '●' };
        let words = format!("{mark} {} ", one.name());
        let from = across.round() as usize;
        let room = lines[down.round() as usize].get_mut(from..from + words.chars().count());
        if let Some(room) = room.filter(|room| room.iter().all(|sign| *sign == ' ')) {
            room.iter_mut().zip(words.chars()).for_each(|(sign, new)| *sign = new);
        }
    }
    text.push('\n');
    wrapped(
        text,
        "  ",
        "CPU of writes and cold reads, log scale; ◆ the advice, ● the frontier",
        columns,
    );
    for line in lines {
        let _ = writeln!(text, "  │{}", line.iter().collect::<String>().trim_end());
    }
    let (low, high) = (format!("{low:.3}"), format!("{high:.3} of raw"));
    let _ = writeln!(text, "  └{low} {}> {high}", "─".repeat(width.saturating_sub(low.len() + 2)));
}

/// The saving against what it comes with, and whether the held-out places agree.
pub(crate) fn answer(target: &TargetAdvice, advice: &Advice) -> String {
    let best = target.best();
    let mut said = String::new();
    if target.is_provisional() {
        let _ = write!(said, "Provisional: {} were measured. ", tried_of_all(target));
    }
    said.push_str(&match target.before() {
        Some(before) if before.is(best) => {
            let has = if target.present.is_some() { "has" } else { "comes with" };
            let of = if target.unmeasured > 0 { "nothing that was measured" } else { "nothing" };
            format!("That is what it {has}: {of} is cheaper by more than 1 %.")
        }
        Some(default) => {
            let [write, read] = cpu_seconds(best, &advice.data);
            let [write_before, read_before] = cpu_seconds(default, &advice.data);
            let saved = (default.ratio.value - best.ratio.value) * advice.data.basis.data_bytes;
            let size = size(default, advice);
            let saves = match saved.abs() as u64 {
                0 => format!("Takes as much as the {size}"),
                more if saved < 0.0 => format!("Takes {} more than the {size}", bytes(more)),
                less => format!("Saves {} of {size}", bytes(less)),
            };
            let money = yearly(default, advice) - yearly(best, advice);
            format!(
                "{saves} of {}, and saves {}{} a year for a TB. CPU seconds {}: \
                 {} to write instead of {}, {} to read cold instead of {}.",
                default.name(),
                figure(money),
                if advice.is_in_dollars() { " dollars" } else { "" },
                cpu_basis(&advice.data),
                figure(write),
                figure(write_before),
                figure(read),
                figure(read_before),
            )
        }
        None => String::new(),
    });
    if let Some(long) = target.cheaper_but_too_long() {
        let less = percent(1.0 - long.cost() / best.cost());
        let (name, takes) = (long.name(), duration(long.unit_encode_us() / 1e6));
        let _ = write!(said, " {name} costs {less} less, but a call of its codec takes {takes}.");
    }
    if let Some([predicted, found]) = &best.held_out {
        said.push_str(&held_out_words(predicted, found));
    }
    if target.collected == Collected::OfSampledRows {
        said.push_str(" Rows were not in its order: sizes are upper bounds.");
    }
    said
}

/// "12 of 56 settings".
fn tried_of_all(target: &TargetAdvice) -> String {
    format!("{} of {} settings", target.tried(), target.tried() + target.unmeasured)
}

/// What the part of the sample that nothing was learned from says of the prediction.
fn held_out_words(predicted: &Estimate, found: &Estimate) -> String {
    let off = found.value / predicted.value.max(1e-9) - 1.0;
    let allowed = predicted.half_width.hypot(found.half_width) / predicted.value.max(1e-9);
    let holds = match off.abs() <= allowed.max(SHOWN_STEP / 2.0) {
        _ if allowed > HELD_OUT_MAX => return " Held out: too few rows to tell.".to_owned(),
        true => "within",
        false => "outside of",
    };
    format!(" Held out: {}, {holds} the stated ±{:.1} %.", signed_percent(off), allowed * 100.0)
}

/// A difference with its sign: "+1.0 %"; what rounds to nothing is "+0.0 %".
pub(crate) fn signed_percent(share: f64) -> String {
    // Nothing has a sign of its own, which a sum with a positive one has not.
    let percent = (share * 1e3).round() / 10.0 + 0.0;
    format!("{percent:+.1} %")
}

/// What is said in a table of what advice is compared with.
fn before_words(target: &TargetAdvice) -> String {
    let cost = target.before().map_or(f64::INFINITY, Outcome::cost);
    let is_as_cheap = cost <= target.best().cost() * EQUAL_COST;
    let words = match (target.present, target.present_words) {
        (Some(_), Some(words)) => words,
        // It has another one, which was not measured.
        (None, Some(_)) => "the default of a new one",
        _ => "it comes with this",
    };
    format!("{words}{}", if is_as_cheap { ", as cheap" } else { "" })
}

/// The cheapest, what it is compared with, the smallest, the fastest to read, and the next best.
fn shown(target: &TargetAdvice, count: usize) -> Vec<(&Outcome, String)> {
    let least = |figure: fn(&Outcome) -> f64| {
        target.outcomes.iter().min_by(|a, b| figure(a).total_cmp(&figure(b)))
    };
    let compressed = target.outcomes.iter().filter(|one| one.encode_ns > 0.0);
    let quickest = compressed.min_by(|a, b| a.unit_decode_us.total_cmp(&b.unit_decode_us));
    let before_words = before_words(target);
    let candidates: [(Option<&Outcome>, &str); 4] = [
        (Some(target.best()), if target.is_provisional() { "<- so far" } else { "<- take this" }),
        (target.before(), &before_words),
        (least(|one| one.ratio.value), "smallest"),
        (quickest, "quickest of the compressed"),
    ];
    let mut shown: Vec<(&Outcome, String)> = Vec::new();
    for (outcome, what) in candidates {
        let Some(outcome) = outcome else { continue };
        if shown.iter().all(|(one, _)| !one.is(outcome)) {
            shown.push((outcome, what.to_owned()));
        }
    }
    for outcome in &target.outcomes {
        if shown.len() >= count {
            break;
        }
        if shown.iter().all(|(one, _)| !one.is(outcome)) {
            let is_as_cheap = outcome.cost() <= target.best().cost() * EQUAL_COST;
            let what = if is_as_cheap { "as cheap" } else { "" };
            shown.push((outcome, what.to_owned()));
        }
    }
    shown.truncate(count.max(2));
    shown
}

/// On narrower screens a text to paste begins a line of its own.
const WIDE: usize = 80;
/// With less there is no room for money beside what a setting is compared with.
const MONEY: usize = 110;

/// What the advice of a target saves, and whether it may change.
fn saving(target: &TargetAdvice) -> String {
    let best = target.best();
    let mut said = match target.before() {
        None => "-".to_owned(),
        Some(before) if before.is(best) && target.present.is_some() => "it has this".to_owned(),
        Some(before) if before.is(best) => "it comes with this".to_owned(),
        Some(before) => {
            let change = best.cost() / before.cost() - 1.0;
            format!("{}, {:+.0} %", before.name(), change * 100.0)
        }
    };
    if target.is_provisional() {
        said.push_str(", provisional");
    }
    said
}

fn overview(text: &mut String, advice: &Advice, columns: usize) {
    let goal = format!("For ({})", advice.goal);
    let mut of_table = vec![(goal.as_str(), 0), ("take", 1), ("of raw", 2), ("size", 3)];
    if columns >= MONEY {
        of_table.push(("TB-year", 4));
    }
    let column = |(heading, place)| Column { heading, place, has_names: place < 2 };
    let of_table: Vec<Column<'_>> = of_table.into_iter().map(column).collect();
    let row = |target: &TargetAdvice| {
        let best = target.best();
        let mut cells = vec![
            target.target.name.to_owned(),
            best.name(),
            ratio(&best.ratio),
            size(best, advice),
            figure(yearly(best, advice)),
        ];
        cells.truncate(of_table.len());
        Row { cells, words: saving(target) }
    };
    let rows: Vec<Row> = advice.targets.iter().map(row).collect();
    table(text, &of_table, &rows, "instead of, cost", [0, columns]);
    text.push_str("\nTo paste\n");
    for target in &advice.targets {
        let lines = target.snippet(target.best(), advice.data.basis);
        let line = format!("{:<18} {}", target.target.name, lines.join("; "));
        let _ = match columns >= WIDE || line.chars().count() <= columns {
            true => writeln!(text, "{line}"),
            false => writeln!(text, "{}\n  {}", target.target.name, lines.join("\n  ")),
        };
    }
    let money = if advice.is_in_dollars() { "in dollars" } else { "in your currency" };
    let year = format!(" TB-year: a TB of such data for a year, {money}.");
    let year = if columns >= MONEY { year.as_str() } else { "" };
    text.push('\n');
    let last = format!("One target with its alternatives: --for NAME.{year}");
    wrapped(text, "", &last, columns);
}

#[cfg(test)]
mod tests {
    use super::{Estimate, held_out_words};

    #[test]
    fn what_was_held_out_confirms_refutes_or_does_not_tell() {
        let of = |value, half_width| Estimate { value, half_width };
        let said = |found: Estimate| held_out_words(&of(0.4, 0.01), &found);
        assert_eq!(said(of(0.404, 0.01)), " Held out: +1.0 %, within the stated ±3.5 %.");
        assert_eq!(said(of(0.3, 0.01)), " Held out: -25.0 %, outside of the stated ±3.5 %.");
        let said_of_less = said(of(0.399_99, 0.01));
        assert_eq!(said_of_less, " Held out: +0.0 %, within the stated ±3.5 %.");
        assert_eq!(said(of(0.4, 0.6)), " Held out: too few rows to tell.");
        let exact = held_out_words(&of(0.4, 0.0), &of(0.399_99, 0.0));
        assert_eq!(exact, " Held out: +0.0 %, within the stated ±0.0 %.");
    }
}
