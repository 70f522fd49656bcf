//! The page of read, write and space amplification: formulas beside measurements.

use crate::amplification::report::{Row, Tree, read_table, space_table, write_table};
use crate::amplification::{self, AmplificationCell, AmplificationRecord, QueryKind, Workload};
use crate::html::parts;
use crate::html::parts::{Amplification, claims};
use crate::kind::incomplete::{self, CellEnd};
use crate::report::card::{machine_lines, tree};
use crate::report::figures::{figure, figure_or_dash};
use crate::report::tables::{Align, Grid};
use crate::statistics::median;
use lithify_report::{
    Answer, Axis, Block, Drawing, Finding, Group, Outcome, Paint, Plot, Report, Row as Mark, Rows,
    Section, Table, Triangle, Unit, filled,
};

/// What amplifies: names of the corners of a triangle.
const CORNERS: [&str; 3] = ["written per byte", "reads per point query", "stored per byte"];

/// Figures that differ by less are about the same.
const ABOUT: f64 = 1.5;

/// Figures of one run that differ by less are not told apart.
const NEAR: f64 = 1.1;

/// What the page says.
pub fn report(record: &AmplificationRecord) -> Report {
    let page = Page { record, rows: record.cells.iter().filter_map(Row::of).collect() };
    let mut sections: Vec<Section> = Workload::ALL.map(|workload| page.workload(workload)).into();
    let (head, caveats) = parts::head_of(amplification::NAME);
    sections.extend([page.figures(), page.checks(), page.machine(), caveats]);
    Report {
        answer: Answer { found: page.summary(), unknown: page.unknown(), ..Answer::default() },
        context: page.kicker(),
        sections: filled(sections),
        headline: page.headline(),
        ..head
    }
}

/// Predicted and measured: written, read, stored.
fn triples(row: &Row<'_>) -> [[Option<f64>; 3]; 2] {
    let (predicted, measured) = (&row.predicted, &row.measured);
    [
        [Some(predicted.write), Some(predicted.reads[0]), Some(predicted.space)],
        [
            Some(measured.write_process),
            row.cold_reads(QueryKind::Point),
            Some(measured.space_settled),
        ],
    ]
}

struct Page<'a> {
    record: &'a AmplificationRecord,
    rows: Vec<Row<'a>>,
}

impl<'a> Page<'a> {
    fn kicker(&self) -> String {
        let mut parts = Vec::new();
        if let Some(Row { result, .. }) = self.rows.first() {
            parts.extend(result.started_unix_s.map(parts::day));
            parts.push(format!("{} writes per 100 rows", result.spec.writes_percent));
            parts.push(format!("{}, {} CPUs", result.machine.cpu, result.machine.cpus));
        }
        parts.join(" · ")
    }

    fn of(&self, workload: Workload) -> Vec<&Row<'a>> {
        self.rows.iter().filter(|row| row.result.spec.workload == workload).collect()
    }

    fn summary(&self) -> Vec<Finding> {
        let mut judged = Vec::new();
        for workload in Workload::ALL {
            let rows = self.of(workload);
            judged.extend(judge(workload, &rows));
        }
        let ends = |cell: &AmplificationCell| {
            CellEnd::new(&cell.spec, cell.result.as_ref(), cell.failure.as_deref())
        };
        let ends: Vec<CellEnd> = self.record.cells.iter().map(ends).collect();
        let mut findings = incomplete::findings(&ends);
        findings.extend(claims(1, judged));
        for workload in Workload::ALL {
            findings.extend(formulas(workload, &self.of(workload)));
        }
        findings
    }

    /// What cannot be said, and why.
    fn unknown(&self) -> Vec<String> {
        vec!["Each cell ran once: there are directions, and no intervals.".to_owned()]
    }

    /// Every engine under the first workload that was measured: what the formulas say beside what
    /// was found.
    fn headline(&self) -> Option<Table> {
        let workload = self.rows.first()?.result.spec.workload;
        let mut columns = vec![("engine", Align::Left)];
        let names = [
            "written: formula",
            "measured",
            "reads: formula",
            "measured",
            "stored: formula",
            "measured",
        ];
        columns.extend(names.map(|name| (name, Align::Right)));
        let line = |row: &&Row<'_>| {
            let [predicted, measured] = triples(row);
            let pairs = predicted.into_iter().zip(measured);
            let figures = pairs.flat_map(|(said, found)| [said, found].map(figure_or_dash));
            std::iter::once(row.result.engine_name.clone()).chain(figures).collect()
        };
        let lines = self.of(workload).iter().map(line).collect();
        let title = format!(
            "Bytes written per byte, reads per cold point query, bytes stored per byte: {}",
            workload.name()
        );
        Some(Table::new(&title, Grid::new(&columns, lines)))
    }

    fn workload(&self, workload: Workload) -> Section {
        let rows = self.of(workload);
        let mut section = Section::new(&format!("Workload {}", workload.name()));
        if rows.is_empty() {
            return section;
        }
        section = section.with_all(beside(workload, &rows));
        let names: Vec<String> = rows.iter().map(|row| row.result.engine_name.clone()).collect();
        let amplified =
            |(series, row): (usize, &&Row<'_>)| Amplification { series, values: triples(row)[1] };
        let all: Vec<Amplification> = rows.iter().enumerate().map(amplified).collect();
        let title = format!("All engines, {}: each corner in units of the least", workload.name());
        section = section.with_all(parts::amplification(&title, CORNERS, &names, &all));
        let triangles: Vec<Plot> = rows.iter().filter_map(|row| engine_triangle(row)).collect();
        if triangles.is_empty() {
            return section;
        }
        let heading = format!("Predicted and measured, engine by engine, {}", workload.name());
        section.with(Block::Heading(heading)).with(Block::Plots(triangles))
    }

    fn figures(&self) -> Section {
        if self.rows.is_empty() {
            return Section::new("All figures");
        }
        Section::new("All figures")
            .with(Table::new("Write: bytes per byte of users' rows", write_table(&self.rows)))
            .with(Block::Text(
                "theory: levels merged with all of the next one, or a page for each row; practice: \
                 0.7 of the fanout; tables, with log: by the engine's own account, which leaves out the log of engines that \
                 do not count it; process: bytes of write calls, or made dirty by a map; device: \
                 written, others' too, and less than the process where the page cache takes rewrites; \
                 rows/page: changed rows per page written that \
                 explain the process's figure."
                    .to_owned(),
            ))
            .with(Table::new("Space: the directory per byte of live rows", space_table(&self.rows)))
            .with(Table::new("Read: reads of the device and KB per query", read_table(&self.rows)))
            .with(Block::Text(
                "predicted: a cache for all but the lowest blocks; cold: after a restart with no \
                 page in memory; warm: the same queries again."
                    .to_owned(),
            ))
    }

    fn checks(&self) -> Section {
        let failed = self.record.cells.iter().filter_map(|cell| {
            Some(format!("{}: FAILED: {}", cell.spec.id(), cell.failure.as_ref()?))
        });
        let mut lines = vec![format!(
            "{} of {} cells were measured; bytes of users are counted above the engine, in one \
             place for all of them",
            self.rows.len(),
            self.record.cells.len()
        )];
        lines.extend(failed);
        Section::new("Checks").with(Block::List(lines))
    }

    fn machine(&self) -> Section {
        let section = Section::new("Machine and fairness");
        let Some(Row { result, .. }) = self.rows.first() else { return section };
        let settings = &result.spec.settings;
        let mut facts = parts::facts(machine_lines(&result.machine));
        let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
        fact("memory budget", format!("{} MiB", settings.memory_budget_bytes >> 20));
        fact("tree", tree(settings));
        fact("durability", settings.durability.name().to_owned());
        fact("codecs", settings.ladder().to_string());
        fact("queries", format!("{} of each kind, cold and then warm", result.spec.queries));
        let mut engines = Vec::new();
        for Row { result, .. } in &self.rows {
            let engine = (result.engine_name.as_str(), &result.capabilities);
            if engines.iter().all(|(known, _)| *known != engine.0) {
                engines.push(engine);
            }
        }
        section.with(Block::Facts(facts)).with(parts::abilities(&engines))
    }
}

/// The median of a figure over engines.
fn middle(rows: &[&Row<'_>], of: fn(&Row<'_>) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = rows.iter().filter_map(|row| of(row)).collect();
    values.sort_by(f64::total_cmp);
    median(&values)
}

/// What was published, held against the engines under one workload.
fn judge(workload: Workload, rows: &[&Row<'_>]) -> Vec<(Outcome, String)> {
    let is_leveled = |row: &&&Row<'_>| matches!(row.tree, Tree::Leveled { .. });
    let leveled: Vec<&Row<'_>> = rows.iter().filter(is_leveled).copied().collect();
    let pages: Vec<&Row<'_>> = rows.iter().filter(|row| !is_leveled(row)).copied().collect();
    let mut judged = Vec::new();
    let mut compare = |claim: &str, of: fn(&Row<'_>) -> Option<f64>, is_same: bool| {
        let Some((lsm, tree)) = middle(&leveled, of).zip(middle(&pages, of)) else { return };
        let apart = lsm.max(tree) / lsm.min(tree);
        let outcome = match (is_same, apart) {
            (true, apart) if apart <= ABOUT => Outcome::Met,
            // One run tells nothing of what is that near.
            (false, apart) if apart < NEAR => Outcome::Undecided,
            (false, _) if lsm < tree => Outcome::Met,
            _ => Outcome::Missed,
        };
        let (lsm, tree) = (figure(lsm), figure(tree));
        judged.push((
            outcome,
            format!(
                "\"{claim}\", {}: the median of {} leveled engines is {lsm}, of {} with pages \
                 {tree}.",
                workload.name(),
                leveled.len(),
                pages.len()
            ),
        ));
    };
    compare("leveled trees write less than B-trees", |row| Some(row.measured.write_process), false);
    compare("leveled trees occupy less", |row| Some(row.measured.space_settled), false);
    compare("a point query reads about the same", |row| row.cold_reads(QueryKind::Point), true);
    judged.extend(pick_two(workload, rows));
    judged
}

/// Whether an engine has the least of all three, of those of which all three are known.
fn pick_two(workload: Workload, rows: &[&Row<'_>]) -> Option<(Outcome, String)> {
    let whole = |row: &&Row<'_>| match triples(row)[1] {
        [Some(write), Some(read), Some(space)] => {
            Some((row.result.engine_name.clone(), [write, read, space]))
        }
        _ => None,
    };
    let all: Vec<(String, [f64; 3])> = rows.iter().filter_map(whole).collect();
    if all.len() < 2 {
        return None;
    }
    let least = [0, 1, 2].map(|corner| {
        all.iter().min_by(|a, b| a.1[corner].total_cmp(&b.1[corner])).map_or("", |(name, _)| name)
    });
    let told = format!(
        "least written: {}, fewest reads: {}, least stored: {}",
        least[0], least[1], least[2]
    );
    let claim = format!("\"an algorithm optimises at most two of the three\", {}", workload.name());
    match least[0] == least[1] && least[1] == least[2] {
        true => Some((Outcome::Missed, format!("{claim}: {} has the least of all.", least[0]))),
        false => Some((Outcome::Met, format!("{claim}: {told}."))),
    }
}

/// How far measurements were from formulas under a workload.
fn formulas(workload: Workload, rows: &[&Row<'_>]) -> Option<Finding> {
    let ratios = |of: fn(&Row<'_>) -> f64| -> Option<(f64, f64, f64)> {
        let mut values: Vec<f64> = rows.iter().map(|row| of(row)).collect();
        values.sort_by(f64::total_cmp);
        Some((*values.first()?, median(&values)?, *values.last()?))
    };
    let told = |name: &str, (low, middle, high): (f64, f64, f64)| {
        let (low, middle, high) = (figure(low), figure(middle), figure(high));
        format!("{name} {middle} of the formula (from {low} to {high})")
    };
    let write = ratios(|row| row.measured.write_process / row.predicted.write)?;
    let space = ratios(|row| row.measured.space_settled / row.predicted.space)?;
    let text = format!(
        "{}, median of {} engines: {}, {}.",
        workload.name(),
        rows.len(),
        told("written", write),
        told("stored", space)
    );
    Some(Finding::new(Outcome::Note, "Formulas", text))
}

/// Measured figures with what the formulas say, engine by engine.
fn beside(workload: Workload, rows: &[&Row<'_>]) -> Option<Plot> {
    let (mut groups, mut lines) = (Vec::new(), Vec::new());
    for (corner, name) in CORNERS.iter().enumerate() {
        let mut group = Group { name: (*name).to_owned(), rows: Vec::new() };
        for (series, row) in rows.iter().enumerate() {
            let [predicted, measured] = triples(row).map(|values| values[corner]);
            let engine = &row.result.engine_name;
            let ratio = measured.zip(predicted).map(|(measured, predicted)| measured / predicted);
            let cells = [predicted, measured, ratio].map(figure_or_dash);
            let [said, found, times] = cells.clone();
            let line = [(*name).to_owned(), engine.clone(), row.tree.describe()];
            lines.push(line.into_iter().chain(cells).collect());
            let Some(value) = measured.filter(|value| *value > 0.0) else { continue };
            group.rows.push(Mark {
                name: engine.clone(),
                paint: Paint::Series(series),
                band: None,
                span: None,
                marks: vec![value],
                published: predicted,
                note: found.clone(),
                words: format!(
                    "{engine}, {name}\npredicted {said}, measured {found}: {times} of the formula"
                ),
            });
        }
        groups.push(group);
    }
    groups.retain(|group| !group.rows.is_empty());
    let columns = [
        ("of", Align::Left),
        ("engine", Align::Left),
        ("tree", Align::Left),
        ("predicted", Align::Right),
        ("measured", Align::Right),
        ("measured/predicted", Align::Right),
    ];
    let title = format!("Predicted and measured, {}", workload.name());
    (!groups.is_empty()).then(|| Plot {
        title: title.clone(),
        about:
            "The upright bar is what the formula of the engine's kind predicts, the mark what was \
                measured: bytes that the process made dirty, reads with nothing in any cache, the \
                directory when nothing was due. The axis is logarithmic; less is better."
                .to_owned(),
        series: Vec::new(),
        drawing: Drawing::Rows(Rows {
            x: Axis { name: "times".to_owned(), unit: Unit::Times },
            bars: false,
            reference: Some(1.0),
            groups,
        }),
        table: Table::folded(title, Grid::new(&columns, lines)),
    })
}

/// Predicted and measured amplification of an engine as two triangles; `None` where a corner is
/// missing.
fn engine_triangle(row: &Row<'_>) -> Option<Plot> {
    let whole = |[write, read, space]: [Option<f64>; 3]| {
        let values = [write?, read?, space?];
        values.iter().all(|value| *value > 0.0).then_some(values)
    };
    let [predicted, measured] = triples(row).map(whole);
    let (predicted, measured) = (predicted?, measured?);
    let columns = [("of", Align::Left), ("predicted", Align::Right), ("measured", Align::Right)];
    let line = |corner: usize| {
        vec![CORNERS[corner].to_owned(), figure(predicted[corner]), figure(measured[corner])]
    };
    let name = &row.result.engine_name;
    let grid = Grid::new(&columns, [0, 1, 2].map(line).into());
    Some(Plot {
        title: name.clone(),
        about: format!("{}.", row.tree.describe()),
        series: vec!["predicted".to_owned(), "measured".to_owned()],
        drawing: Drawing::Triangle(Triangle {
            corners: CORNERS.map(str::to_owned),
            units: Some([1.0; 3]),
            shapes: vec![(0, predicted), (1, measured)],
        }),
        table: Table::folded(format!("{name}, {}", row.result.spec.workload.name()), grid),
    })
}
