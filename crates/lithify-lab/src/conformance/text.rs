//! What every engine of text has to do alike.

use super::{Failures, Verdict, same, text as told};
use crate::adapter::text::TextEngine;

/// A line that no text has.
const BYTES: &[u8] = &[0, 0xff, b'\n', 0xc3, 0x28];

/// Longer than any batch, page or chunk.
const LONG_BYTES: usize = 200_000;

/// Runs the cases over an empty engine, which then holds rows unless it stays open; gives a line for
/// each that failed.
pub fn check(engine: &dyn TextEngine) -> Vec<String> {
    let mut failures = Failures::default();
    failures.note("rows come back by partition and number", rows(engine));
    failures.note("rows are found one by one", gets(engine));
    let settled = engine.flush().and_then(|()| engine.rest()).map_err(told);
    failures.note("flush and waiting", settled);
    failures.note("rows are there after a flush", expect(engine, &expected()));
    failures.note("pages of rows", pages(engine));
    if engine.stays_open() {
        failures.note("emptied", engine.clear().map_err(told).and_then(|()| expect(engine, &[])));
    }
    failures.0
}

type Row = (u32, u32, Vec<u8>);

/// The rows, in their order.
fn expected() -> Vec<Row> {
    let long: Vec<u8> = (0..LONG_BYTES).map(|at| (at % 251) as u8).collect();
    vec![
        (0, 1, b"first".to_vec()),
        (0, 256, Vec::new()),
        (0, 70_000, long),
        (1, 2, BYTES.to_vec()),
        (300, 0, b"last".to_vec()),
    ]
}

/// Puts them in another order.
fn rows(engine: &dyn TextEngine) -> Verdict {
    let mut session = engine.session().map_err(told)?;
    let rows = expected();
    for index in [3, 2, 0, 4, 1] {
        let (partition, number, line) = &rows[index];
        session.insert((*partition, *number, line)).map_err(told)?;
    }
    session.finish().map_err(told)?;
    session.finish().map_err(told)?;
    expect(engine, &rows)
}

fn expect(engine: &dyn TextEngine, rows: &[Row]) -> Verdict {
    let mut session = engine.session().map_err(told)?;
    let mut seen: Vec<Row> = Vec::new();
    session
        .scan(&mut |(partition, number, line)| seen.push((partition, number, line.to_vec())))
        .map_err(told)?;
    let keys = |rows: &[Row]| rows.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>();
    same("rows", keys(&seen), keys(rows))?;
    same("lines", seen == rows, true)
}

fn gets(engine: &dyn TextEngine) -> Verdict {
    let mut session = engine.session().map_err(told)?;
    let mut line = b"left from before".to_vec();
    for (partition, number, stored) in expected() {
        same("found", session.get(partition, number, &mut line).map_err(told)?, true)?;
        same("its line", line == stored, true)?;
    }
    for (partition, number) in [(0, 2), (2, 1)] {
        same("missing", session.get(partition, number, &mut line).map_err(told)?, false)?;
        same("what a missing row leaves", line.len(), 0)?;
    }
    Ok(())
}

/// More rows than any engine gives at once.
fn pages(engine: &dyn TextEngine) -> Verdict {
    const PARTITION: u32 = 400;
    const ROWS: u32 = 5_000;
    let mut session = engine.session().map_err(told)?;
    for number in 0..ROWS {
        session.insert((PARTITION, number, &number.to_le_bytes())).map_err(told)?;
    }
    session.finish().map_err(told)?;
    let mut next = 0;
    session
        .scan(&mut |(partition, number, line)| {
            let is_next = partition == PARTITION && number == next && line == number.to_le_bytes();
            next += u32::from(is_next);
        })
        .map_err(told)?;
    same("rows in their order", next, ROWS)
}
