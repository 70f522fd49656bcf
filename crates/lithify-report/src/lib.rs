//! One report of a run, and its renderings: terminal, CSV, JSON, page.
//!
//! Owns: the model of a report ([`Report`]), typed cells ([`Cell`]), how figures are written for
//! people ([`mod@figure`]), plots from figures ([`charts`]), the report over many runs
//! ([`mod@index`]), and the renderers [`text`], [`csv`], [`json`] and [`page`]. [`grid`] is the
//! untyped table that kinds of runs make of figures which are texts already.
//!
//! Promises: knows no workload and no engine. Pure and deterministic: the same report gives the
//! same text. No renderer reads a string back: colour, mark and alignment come from the type of a
//! cell. No line in a terminal is wider than asked for, from 60 columns on. A short report ends
//! within 40 lines where it can, has one table, and says what it leaves out. Every text is escaped
//! in a page. Does not read or write files.
//!
//! # A kind of run
//!
//! A kind has one function from its record to a [`Report`]; everything that shows the run renders
//! that.
//!
//! ```
//! use lithify_report::charts::{Bar, bars};
//! use lithify_report::{
//!     Answer, Block, Bounds, Cell, Column, Finding, Outcome, Report, Section, Spread, Table,
//!     Verdict, csv, json, page, text,
//! };
//!
//! fn report(rates: &[(&str, Vec<f64>)]) -> Report {
//!     // A column has a name, a unit and a direction; it is aligned by its cells.
//!     let columns = [
//!         Column::new("engine"),
//!         Column::new("rate").unit("ops/s").higher(),
//!         Column::new("ratio"),
//!         Column::new("verdict"),
//!     ];
//!     let mut table = Table::new("Rates, medians [ranges] over the repeats", columns);
//!     for (name, values) in rates {
//!         table.push([
//!             Cell::from(*name),
//!             Spread::of(values.clone()).into(), // None is a missing cell: "-"
//!             Cell::ratio(1.25, Bounds::Interval(1.1, 1.4)),
//!             Verdict::Better.into(),
//!         ]);
//!     }
//!     let bar = |(series, (name, values)): (usize, &(&str, Vec<f64>))| {
//!         let value = Spread::of(values.clone())?;
//!         Some(Bar { group: "load".to_owned(), name: (*name).to_owned(), series, value })
//!     };
//!     let all: Vec<Bar> = rates.iter().enumerate().filter_map(bar).collect();
//!     Report {
//!         title: "Loads".to_owned(),
//!         context: "scale cached · 3 repeats".to_owned(),
//!         question: "Which engine loads faster?".to_owned(),
//!         answer: Answer {
//!             found: vec![Finding::new(Outcome::Met, "Faster", "lithify loads 1.25× as fast.")],
//!             unknown: vec!["Cold reads: the data fits in memory.".to_owned()],
//!             next: vec!["--scale out-of-memory measures cold reads.".to_owned()],
//!         },
//!         headline: Some(table),
//!         // For the page and --full; `.always()` shows a section in every terminal.
//!         sections: vec![
//!             Section::new("Rates").with_all(bars("Load", "", ["rate", "ops/s"], &all)),
//!             Section::new("Machine")
//!                 .with(Block::Facts(vec![("memory".to_owned(), "8 GiB".to_owned())])),
//!         ],
//!         footer: "All figures: loads.csv.".to_owned(),
//!         ..Report::default()
//!     }
//! }
//!
//! let report = report(&[("lithify", vec![10.0, 11.0, 12.0]), ("other", vec![8.0, 9.0, 9.5])]);
//! let short = text::render(&report, text::Options { width: 80, full: false, color: false });
//! assert!(short.contains("✓ Faster: lithify loads 1.25× as fast."));
//! assert!(short.contains("11.0 [10.0, 12.0]"));
//! let table = report.headline.as_ref().expect("a headline");
//! assert!(csv::table(table).starts_with("engine,rate ops/s,rate ops/s low,rate ops/s high,"));
//! assert_eq!(json::read(&json::render(&report)?)?, report);
//! assert!(page::render(&report).contains("<h1>Loads</h1>"));
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod charts;
pub mod csv;
pub mod figure;
pub mod grid;
pub mod index;
pub mod json;
mod model;
pub mod page;
mod printable;
#[cfg(test)]
mod tests;
pub mod text;

pub use figure::Spread;
pub use model::*;
pub use printable::printable;
