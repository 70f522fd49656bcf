//! Advice as one HTML page: the answer, what to paste, all settings with the frontier of each target.

use lithify_report::charts::frontier::{Cost, of_arms};
use lithify_report::figure::{bytes, duration};
use lithify_report::{
    Answer, Block, Bounds, Cell, Column, Detail, Effect, Finding, Outcome as Mark, Report, Section,
    Spread, Table, page,
};

use crate::answer::{Advice, Outcome, TargetAdvice};
use crate::screen::{UNFIT, answer, cpu_basis, cpu_seconds, size, yearly};

/// The page as a file that needs nothing else.
pub fn render(advice: &Advice) -> String {
    page::render(&report(advice))
}

fn report(advice: &Advice) -> Report {
    let data = &advice.data;
    let found = advice.targets.iter().map(|target| {
        let (title, name) = (target.target.title, target.best().name());
        let is_had = target.before().is_some_and(|before| before.is(target.best()));
        let tag = if is_had { "Keep" } else { "Take" };
        Finding::new(Mark::Note, tag, format!("{title}: {name}. {}", answer(target, advice)))
    });
    let mut sections = vec![facts(advice)];
    sections.extend(advice.targets.iter().map(|target| section(target, advice)));
    Report {
        title: format!("Compression settings for {}", data.path),
        context: format!(
            "{}: {}, goal {}, {} places measured in {}",
            data.input.format,
            bytes(data.input.data_bytes),
            advice.goal,
            data.places,
            duration(advice.took.as_secs_f64()),
        ),
        question: "Which codec, effort and block size should these data have?".to_owned(),
        answer: Answer {
            found: found.collect(),
            unknown: advice.unknown.clone(),
            next: Vec::new(),
        },
        headline: Some(headline(advice)),
        sections,
        footer:
            "Sizes are shares of the input's bytes, with their 95 % interval. CPU is that of one \
                 thread on the machine that measured."
                .to_owned(),
        ..Report::default()
    }
}

fn ratio(outcome: &Outcome) -> Cell {
    let (value, half) = (outcome.ratio.value, outcome.ratio.half_width);
    let bounds = Bounds::Interval(value - half, value + half);
    Effect { value, is_difference: false, bounds }.into()
}

fn headline(advice: &Advice) -> Table {
    let columns = [
        Column::new("for"),
        Column::new("take"),
        Column::new("of raw").lower(),
        Column::new("size").lower(),
        Column::new("cost").unit(cost_unit(advice)).lower(),
        Column::new("instead of"),
    ];
    // A figure and its unit stay together.
    let size = |outcome: &Outcome| size(outcome, advice).replace(' ', "\u{a0}");
    let mut table =
        Table::new("The cheapest setting of each, beside what it has now or comes with", columns);
    for target in &advice.targets {
        let (best, default) = (target.best(), target.before());
        table.push([
            target.target.title.into(),
            best.name().into(),
            ratio(best),
            size(best).into(),
            yearly(best, advice).into(),
            match default {
                None => "-".into(),
                Some(default) if default.is(best) => "the same".into(),
                Some(default) => format!("{}: {}", default.name(), size(default)).into(),
            },
        ]);
    }
    table
}

fn facts(advice: &Advice) -> Section {
    let data = &advice.data;
    let mut facts = vec![
        ("format".to_owned(), data.input.format.clone()),
        ("bytes".to_owned(), bytes(data.input.data_bytes)),
        ("sampled".to_owned(), bytes(data.sampled_bytes)),
        ("entropy by frequency alone".to_owned(), format!("{:.2} bits a byte", data.entropy_bits)),
        (
            "4 KiB pieces that do not shrink".to_owned(),
            data.incompressible.map_or_else(unmeasured, share),
        ),
        (
            "64 KiB shrink further than 4 by".to_owned(),
            data.far_repeats.map_or_else(unmeasured, share),
        ),
    ];
    if data.input.has_rows {
        facts.push(("rows".to_owned(), data.rows.to_string()));
        facts.push(("bytes of a row".to_owned(), format!("{:.0}", data.basis.row_bytes)));
    }
    if !data.input.key.is_empty() {
        let order = if data.is_sorted { "sorted by it" } else { "not sorted by it" };
        facts.push(("key".to_owned(), format!("{} ({order})", data.input.key)));
    }
    let of = if advice.is_in_dollars() { " of a dollar" } else { "" };
    facts.push((format!("prices, millionths{of}"), advice.prices.to_string()));
    Section { detail: Detail::Always, ..Section::new("The data, and what was assumed") }
        .with(Block::Facts(facts))
}

fn unmeasured() -> String {
    "not measured".to_owned()
}

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn section(target: &TargetAdvice, advice: &Advice) -> Section {
    let basis = advice.data.basis;
    let mut section = Section::new(target.target.title);
    section = section.with(Block::Heading("To paste".to_owned()));
    section = section.with(Block::Code(target.snippet(target.best(), basis)));
    for (language, lines) in target.other_forms(target.best(), basis) {
        section = section.with(Block::Heading(format!("In {language}")));
        section = section.with(Block::Code(lines));
    }
    section = section.with(Block::Text(target.target.note.to_owned()));
    section = section.with_all(frontier(target, advice));
    section = section.with(settings(target, advice));
    if !target.unfit.is_empty() {
        section = section.with(Block::Text(format!("{UNFIT}: {}.", target.unfit.join(", "))));
    }
    section.with(Block::Text(format!("Rules: {}.", target.target.source)))
}

/// What is marked in a plot: what is advised, and what it is compared with.
fn marks<'a>(target: &'a TargetAdvice, outcome: &Outcome) -> Option<&'a str> {
    let before = match target.present {
        Some(_) => "it has this",
        None => "it comes with this",
    };
    let is_before = target.before().is_some_and(|before| before.is(outcome));
    match (target.best().is(outcome), is_before) {
        (true, true) => Some(if target.present.is_some() { "keep this" } else { before }),
        (true, false) if target.is_provisional() => Some("best so far"),
        (true, false) => Some("take this"),
        (false, true) => Some(before),
        (false, false) => None,
    }
}

/// What takes more CPU than so many times the median stands in the table alone: it would press the others
/// together.
const DEAR: f64 = 4.0;

/// Size against CPU of writes and as many cold reads; a series for each codec, joined over
/// its sizes.
fn frontier(target: &TargetAdvice, advice: &Advice) -> Option<lithify_report::Plot> {
    let codec = |outcome: &Outcome| outcome.setting.compression.to_string();
    let cpu = |outcome: &Outcome| -> f64 { cpu_seconds(outcome, &advice.data).iter().sum() };
    let is_marked = |outcome: &Outcome| marks(target, outcome).is_some();
    let mut outcomes: Vec<&Outcome> = (target.outcomes.iter())
        .filter(|outcome| outcome.encode_ns > 0.0 || is_marked(outcome))
        .collect();
    outcomes.sort_by(|a, b| cpu(a).total_cmp(&cpu(b)));
    let most = DEAR * cpu(outcomes.get(outcomes.len() / 2)?);
    outcomes.retain(|outcome| cpu(outcome) <= most || is_marked(outcome));
    outcomes.sort_by_key(|outcome| outcome.setting.size_bytes);
    let mut series: Vec<String> = Vec::new();
    for outcome in &outcomes {
        if !series.contains(&codec(outcome)) {
            series.push(codec(outcome));
        }
    }
    let cost = |outcome: &&Outcome| {
        let (value, half) = (outcome.ratio.value, outcome.ratio.half_width);
        Some(Cost {
            series: series.iter().position(|name| *name == codec(outcome))?,
            label: outcome.name(),
            size: Spread::of(vec![value - half, value, value + half])?,
            cpu: Spread::of(vec![cpu(outcome)])?,
        })
    };
    let costs: Vec<Cost> = outcomes.iter().filter_map(cost).collect();
    let cpu_name =
        format!("CPU seconds to write and to read cold, {} each", cpu_basis(&advice.data));
    let names = ["stored share of the data", &cpu_name];
    let mut plot = of_arms("Size against CPU", names, &series, &costs, true)?;
    for outcome in outcomes {
        if let Some(note) = marks(target, outcome) {
            plot.mark(&outcome.name(), note);
        }
    }
    plot.about.push_str(
        " Rings mark what is advised and what it is compared with. Of the others those are left out that are \
         dear, or not compressed.",
    );
    Some(plot)
}

fn cost_unit(advice: &Advice) -> &'static str {
    if advice.is_in_dollars() { "dollars a TB-year" } else { "TB-year" }
}

fn settings(target: &TargetAdvice, advice: &Advice) -> Table {
    let cpu_unit = &format!("s {}", cpu_basis(&advice.data));
    let columns = [
        Column::new("setting"),
        Column::new("of raw").lower(),
        Column::new("held out").unit("% off"),
        Column::new("write CPU").unit(cpu_unit).lower(),
        Column::new("cold read CPU").unit(cpu_unit).lower(),
        Column::new("calls over 1 ms").unit("%").lower(),
        Column::new("cost").unit(cost_unit(advice)).lower(),
    ];
    let mut table = Table::folded("Every setting that was measured, cheapest first", columns);
    for outcome in &target.outcomes {
        let [write, read] = cpu_seconds(outcome, &advice.data);
        let off = outcome
            .held_out
            .map(|[predicted, found]| (found.value / predicted.value.max(1e-9) - 1.0) * 100.0);
        table.push([
            outcome.name().into(),
            ratio(outcome),
            off.map_or_else(|| Cell::from("-"), |off| format!("{off:+.1}").into()),
            write.into(),
            read.into(),
            format!("{:.0}", outcome.long_calls * 100.0).into(),
            yearly(outcome, advice).into(),
        ]);
    }
    table
}
