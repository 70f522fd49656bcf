//! Tests of plans, prices and the report.

use super::prices::{Bill, PRESETS, Preset};
use super::*;

fn matrix() -> Matrix {
    let mut arms = Arm::ladders();
    arms.push(Arm::auto());
    Matrix {
        data: vec!["actors".parse().unwrap()],
        bytes: 3_000_000,
        mixes: vec![Mix::Cached],
        arms,
        repeats: 1,
        hours: [24.0, 706.0],
        seconds_per_mb: 0.25,
        build: "test".to_owned(),
    }
}

fn result(cell: &PolicyCell, cpu_s: f64, stored_bytes: f64) -> PolicyResult {
    let phase = PhaseCost {
        seconds: 1.0,
        cpu_s,
        written_bytes: 1_000_000,
        device_reads: 0.0,
        stored_bytes,
    };
    PolicyResult {
        cell: cell.clone(),
        started_unix_s: 0,
        machine: Machine::default(),
        rows: 1,
        row_bytes: 1,
        phases: [phase; 2],
        checksum: "1".to_owned(),
        levels: 4,
        explanation: String::new(),
    }
}

#[test]
fn a_policy_that_decides_is_measured_under_each_preset() {
    let plan = matrix().plan();
    assert_eq!(plan.cells.len(), 5 + PRESETS.len());
    let ids: std::collections::BTreeSet<String> = plan.cells.iter().map(Cell::id).collect();
    assert_eq!(ids.len(), plan.cells.len(), "{ids:?}");
    let space = plan.cells.iter().find(|cell| cell.preset == Some(Preset::Space)).unwrap();
    // 730 hours in 0.75 seconds: the price of a month is 3,504,000 times as high.
    let options: lithify::CfOptions = space.options().parse().unwrap();
    assert!(space.options().contains("month=280320000000,"), "{}", space.options());
    assert!(options.to_string().contains("horizon_s=1"), "{options}");
}

#[test]
fn costs_are_those_of_both_phases_at_the_prices() {
    let plan = matrix().plan();
    let bill = Bill::of(&result(&plan.cells[0], 0.5, 2e9), &Preset::Balanced.prices());
    assert!((bill.cpu - 11.0).abs() < 1e-9 && (bill.written - 0.3).abs() < 1e-9);
    // Two GB for a month of 730 hours.
    assert!((bill.stored - 6_600.0).abs() < 1e-6, "{bill:?}");
    assert_eq!(bill.reads, 0.0);
}

#[test]
fn the_report_begins_with_the_gap_and_names_what_is_lost() {
    let plan = matrix().plan();
    let entry = |cell: &PolicyCell| {
        let (cpu_s, stored) = match cell.arm.name.as_str() {
            "none" => (0.1, 3e9),
            "lz4" => (0.2, 2e9),
            "auto" if cell.preset == Some(Preset::Space) => (0.3, 1.2e9),
            "auto" => (0.2, 1.0e9),
            _ => (0.4, 1.1e9),
        };
        crate::run::cells::Entry::new(cell, Ok(result(cell, cpu_s, stored)))
    };
    let cells = plan.cells.iter().map(entry).collect();
    let record = PolicyRecord::new(&plan, Entries { interrupted: false, cells }).unwrap();
    let text = crate::kind::whole_text(&page::report(&record));
    assert!(text.contains("Whoever knew"), "{text}");
    assert!(text.contains("1 of 4 cells are over +3 %"), "{text}");
    assert!(page::csv(&record).lines().count() == 1 + 5 * 4 + 4);
}

#[test]
fn a_report_without_a_gap_or_a_ladder_says_so() {
    let text_of = |arms: Vec<Arm>| {
        let plan = Matrix { arms, ..matrix() }.plan();
        let entry =
            |cell: &PolicyCell| crate::run::cells::Entry::new(cell, Ok(result(cell, 0.1, 1e9)));
        let cells = plan.cells.iter().map(entry).collect();
        let record = PolicyRecord::new(&plan, Entries { interrupted: false, cells }).unwrap();
        crate::kind::whole_text(&page::report(&record))
    };
    let one = text_of(vec![Arm::fixed("lz4"), Arm::auto()]);
    assert!(one.contains("auto costs +0.0 % against"), "{one}");
    assert!(
        !one.contains("oracle's gain") && !one.contains("NaN") && !one.contains("inf"),
        "{one}"
    );
    let alone = text_of(vec![Arm::auto()]);
    assert!(alone.contains("No fixed ladder was measured"), "{alone}");
}

#[test]
fn void_cells_are_told_with_their_reason() {
    use crate::kind::Kind;
    let plan = matrix().plan();
    let entry = |cell: &PolicyCell| {
        let result = PolicyResult { levels: 3, ..result(cell, 0.1, 1e9) };
        crate::run::cells::Entry::new(cell, Ok(result))
    };
    let cells = plan.cells.iter().map(entry).collect();
    let record = PolicyRecord::new(&plan, Entries { interrupted: false, cells }).unwrap();
    let fault = kind::Policies::fault(&record).unwrap();
    assert!(fault.starts_with("9 of 9 cells failed or are void"), "{fault}");
    assert!(fault.contains("only 3 levels were written into"), "{fault}");
}

#[test]
fn a_cell_that_read_others_is_named() {
    let plan = matrix().plan();
    let mut cells: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| crate::run::cells::Entry::new(cell, Ok(result(cell, 1.0, 1.0))))
        .collect();
    if let Some(result) = &mut cells[2].result {
        result.checksum = "2".to_owned();
    }
    let record = PolicyRecord::new(&plan, Entries { interrupted: false, cells }).unwrap();
    assert_eq!(record.disagreements.len(), 1, "{:?}", record.disagreements);
    let none = PolicyRecord::new(&plan, Entries { interrupted: false, cells: Vec::new() });
    assert!(none.unwrap_err().to_string().contains("no cell was measured"));
}

#[test]
fn all_policies_read_the_same_rows() {
    let plan = matrix().plan();
    let measured = |cell: &PolicyCell| {
        let directory = tempfile::tempdir().unwrap();
        measure::measure(cell, directory.path(), &|_| {}).unwrap()
    };
    let (none, auto) = (measured(&plan.cells[0]), measured(plan.cells.last().unwrap()));
    assert_eq!((&none.checksum, none.rows), (&auto.checksum, auto.rows));
    assert!(none.phases[1].stored_bytes > auto.phases[1].stored_bytes);
    assert!(none.levels >= 4, "{}", none.explanation);
}
