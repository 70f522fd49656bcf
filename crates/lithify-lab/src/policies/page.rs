//! The report: the gap that an oracle would close first, then what each policy closes of it, then the
//! cells that it loses.

use std::collections::BTreeMap;

use lithify_report::csv::{Columns, Fixed};
use lithify_report::{Answer, Block, Finding, Outcome, Report, Section, Spread, Table, filled};

use super::prices::{Bill, PRESETS, Preset};
use super::{PolicyRecord, PolicyResult};
use crate::kind::incomplete;
use crate::report::figures::figure;
use crate::report::tables::{Align, Grid};

/// A cell is lost that costs more than this over the best fixed ladder.
const LOST: f64 = 1.03;

/// Costs by place and preset, and then by policy.
struct Costs {
    by_cell: BTreeMap<(String, Preset), BTreeMap<String, f64>>,
    /// Policies that never change, in the order of the run.
    fixed: Vec<String>,
    /// The others.
    deciding: Vec<String>,
}

/// The median of a few.
fn median(values: Vec<f64>) -> f64 {
    Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

impl Costs {
    fn of(record: &PolicyRecord) -> Costs {
        let mut all: BTreeMap<(String, Preset), BTreeMap<String, Vec<f64>>> = BTreeMap::new();
        let (mut fixed, mut deciding) = (Vec::new(), Vec::new());
        for result in record.entries.results() {
            let cell = &result.cell;
            let names = if cell.arm.is_fixed() { &mut fixed } else { &mut deciding };
            if !names.contains(&cell.arm.name) {
                names.push(cell.arm.name.clone());
            }
            for preset in PRESETS.into_iter().filter(|p| cell.preset.is_none_or(|own| own == *p)) {
                let costs = all.entry((cell.place(), preset)).or_default();
                let cost = Bill::of(result, &preset.prices()).total();
                costs.entry(cell.arm.name.clone()).or_default().push(cost);
            }
        }
        let medians = |costs: BTreeMap<String, Vec<f64>>| {
            costs.into_iter().map(|(arm, costs)| (arm, median(costs))).collect()
        };
        let by_cell = all.into_iter().map(|(cell, costs)| (cell, medians(costs))).collect();
        Costs { by_cell, fixed, deciding }
    }

    /// The fixed ladder that is cheapest in a cell, with its cost.
    fn best(&self, costs: &BTreeMap<String, f64>) -> Option<(String, f64)> {
        let fixed = self.fixed.iter().filter_map(|arm| Some((arm.clone(), *costs.get(arm)?)));
        fixed.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// What a policy costs relative to the best fixed ladder, cell by cell.
    fn relative(&self, arm: &str, preset: Option<Preset>) -> Vec<(String, Preset, f64)> {
        let cells = self.by_cell.iter().filter(|((_, of), _)| preset.is_none_or(|p| p == *of));
        cells
            .filter_map(|((place, preset), costs)| {
                let (_, best) = self.best(costs)?;
                Some((place.clone(), *preset, costs.get(arm)? / best))
            })
            .collect()
    }

    fn mean(&self, arm: &str, preset: Option<Preset>) -> Option<f64> {
        let all = self.relative(arm, preset);
        let sum: f64 = all.iter().map(|(.., relative)| relative).sum();
        (!all.is_empty()).then(|| sum / all.len() as f64)
    }

    /// The fixed ladder that is best over all cells, with its mean relative cost.
    fn best_single(&self) -> Option<(String, f64)> {
        let means = self.fixed.iter().filter_map(|arm| Some((arm.clone(), self.mean(arm, None)?)));
        means.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// The report of a record.
pub fn report(record: &PolicyRecord) -> Report {
    let costs = Costs::of(record);
    let lacking = incomplete::findings(&incomplete::ends(&record.entries.cells));
    let sections =
        vec![overview(&costs), lost(&costs), cells(&costs), measured(record), checks(record)];
    Report {
        answer: Answer { found: [lacking, findings(&costs)].concat(), ..Answer::default() },
        title: "Policies of compression at a user's prices".to_owned(),
        context: format!("{} cells measured", record.entries.results().count()),
        question:
            "What does each policy of compression cost at usual prices, beside the fixed ladder \
                   that is best for each data set and mix?"
                .to_owned(),
        source: String::new(),
        sections: filled(sections),
        ..Report::default()
    }
}

fn percent(relative: f64) -> String {
    format!("{:+.1} %", (relative - 1.0) * 100.0)
}

/// An oracle that saves less than this says nothing of a policy's part in it.
const ORACLE_GAIN_MIN: f64 = 0.001;

fn findings(costs: &Costs) -> Vec<Finding> {
    let Some((single, gap)) = costs.best_single() else {
        let text = "No fixed ladder was measured, and costs are relative to the best of them: name \
                    one or more with --only.";
        return vec![Finding::new(Outcome::Undecided, "Not compared", text)];
    };
    let text = format!(
        "Whoever knew the best fixed ladder of each cell would save {:.1} % against {single} everywhere.",
        (1.0 - 1.0 / gap) * 100.0
    );
    let mut findings = vec![Finding::new(Outcome::Note, "Oracle", text)];
    for arm in &costs.deciding {
        let all = costs.relative(arm, None);
        let Some(mean) = costs.mean(arm, None) else { continue };
        let worst = all.iter().max_by(|a, b| a.2.total_cmp(&b.2));
        let Some((place, preset, most)) = worst else { continue };
        let lost = all.iter().filter(|(.., relative)| *relative > LOST).count();
        let outcome = if lost == 0 { Outcome::Met } else { Outcome::Missed };
        let share = (gap - mean) / (gap - 1.0) * 100.0;
        let share = match gap - 1.0 > ORACLE_GAIN_MIN {
            true => format!(", which is {share:.0} % of the oracle's gain"),
            false => String::new(),
        };
        let text = format!(
            "{arm} costs {} against the best fixed ladder of each cell{share}; {lost} of {} cells are over +3 %, at most {} ({place}, {}).",
            percent(mean),
            all.len(),
            percent(*most),
            preset.name()
        );
        findings.push(Finding::new(outcome, "Policy", text));
    }
    findings
}

fn overview(costs: &Costs) -> Section {
    let mut columns = vec![("policy", Align::Left)];
    columns.extend(PRESETS.map(|preset| (preset.name(), Align::Right)));
    columns.extend([("all", Align::Right), ("worst", Align::Right)]);
    let arms = costs.deciding.iter().chain(&costs.fixed);
    let rows = arms.map(|arm| {
        let shown = |mean: Option<f64>| mean.map_or("-".to_owned(), percent);
        let mut row = vec![arm.clone()];
        row.extend(PRESETS.map(|preset| shown(costs.mean(arm, Some(preset)))));
        row.push(shown(costs.mean(arm, None)));
        let worst = costs.relative(arm, None).into_iter().map(|(.., relative)| relative);
        row.push(shown(worst.max_by(f64::total_cmp)));
        row
    });
    let grid = Grid::new(&columns, rows.collect());
    Section::new("Costs").with(Table::new(
        "Costs relative to the best fixed ladder of each cell, means over cells",
        grid,
    ))
}

fn lost(costs: &Costs) -> Section {
    let mut rows = Vec::new();
    for arm in &costs.deciding {
        rows.extend(costs.relative(arm, None).into_iter().map(|row| (arm.clone(), row)));
    }
    rows.retain(|(_, (.., relative))| *relative > LOST);
    rows.sort_by(|a, b| b.1.2.total_cmp(&a.1.2));
    let columns = [
        ("policy", Align::Left),
        ("cell", Align::Left),
        ("preset", Align::Left),
        ("cost", Align::Right),
    ];
    let shown = rows.into_iter().map(|(arm, (place, preset, relative))| {
        vec![arm, place, preset.name().to_owned(), percent(relative)]
    });
    let section = Section::new("Lost cells");
    match shown.len() {
        0 => section,
        _ => section.with(Table::new(
            "Cells that cost over 3 % more than their best fixed ladder, the worst first",
            Grid::new(&columns, shown.collect()),
        )),
    }
}

fn cells(costs: &Costs) -> Section {
    let arms: Vec<&String> = costs.deciding.iter().chain(&costs.fixed).collect();
    let mut columns = vec![("cell", Align::Left), ("preset", Align::Left), ("best", Align::Left)];
    columns.extend(arms.iter().map(|arm| (arm.as_str(), Align::Right)));
    let rows = costs.by_cell.iter().filter_map(|((place, preset), of_cell)| {
        let (best, least) = costs.best(of_cell)?;
        let mut row = vec![place.clone(), preset.name().to_owned(), best];
        row.extend(
            arms.iter()
                .map(|arm| of_cell.get(*arm).map_or("-".to_owned(), |cost| percent(cost / least))),
        );
        Some(row)
    });
    Section::new("Cells").with(Table::new(
        "Every cell relative to its best fixed ladder",
        Grid::new(&columns, rows.collect()),
    ))
}

fn measured(record: &PolicyRecord) -> Section {
    let columns = [
        ("cell", Align::Left),
        ("policy", Align::Left),
        ("goes by", Align::Left),
        ("CPU s", Align::Right),
        ("GB written", Align::Right),
        ("MB stored", Align::Right),
        ("device reads", Align::Right),
        ("s", Align::Right),
    ];
    let rows = record.entries.results().map(|result| {
        let [load, second] = &result.phases;
        vec![
            result.cell.place(),
            result.cell.arm.name.clone(),
            result.cell.preset.map_or("-", Preset::name).to_owned(),
            figure(load.cpu_s + second.cpu_s),
            figure((load.written_bytes + second.written_bytes) as f64 / 1e9),
            figure(second.stored_bytes / 1e6),
            figure(load.device_reads + second.device_reads),
            figure(load.seconds + second.seconds),
        ]
    });
    Section::new("What was measured").with(Table::new(
        "Both phases together; bytes stored of the second",
        Grid::new(&columns, rows.collect()),
    ))
}

fn checks(record: &PolicyRecord) -> Section {
    let mut lines = vec!["All policies of a data set and mix read the same bytes".to_owned()];
    if !record.disagreements.is_empty() {
        lines.clone_from(&record.disagreements);
    }
    lines.extend(record.entries.problems());
    Section::new("Checks").with(Block::List(lines))
}

/// A line for each cell and preset.
pub fn csv(record: &PolicyRecord) -> String {
    type Line<'a> = (&'a PolicyResult, Preset);
    let lines: Vec<Line<'_>> = record
        .entries
        .results()
        .flat_map(|result| PRESETS.map(|preset| (result, preset)))
        .filter(|(result, preset)| result.cell.preset.is_none_or(|own| own == *preset))
        .collect();
    let bill = |line: &Line<'_>| Bill::of(line.0, &line.1.prices());
    Columns::new()
        .with("data", |line: &Line<'_>| line.0.cell.data.to_string())
        .with("mix", |line: &Line<'_>| line.0.cell.mix.name())
        .with("policy", |line: &Line<'_>| line.0.cell.arm.name.clone())
        .with("preset", |line: &Line<'_>| line.1.name())
        .with("repeat", |line: &Line<'_>| line.0.cell.repeat)
        .with("cost", move |line: &Line<'_>| Fixed(bill(line).total(), 3))
        .with("cost_cpu", move |line: &Line<'_>| Fixed(bill(line).cpu, 3))
        .with("cost_written", move |line: &Line<'_>| Fixed(bill(line).written, 3))
        .with("cost_stored", move |line: &Line<'_>| Fixed(bill(line).stored, 3))
        .with("cost_reads", move |line: &Line<'_>| Fixed(bill(line).reads, 3))
        .csv(&lines)
}
