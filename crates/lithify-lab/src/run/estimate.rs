//! How long the rest of a run or of several takes: by cells that were measured, else by what is
//! declared.
//!
//! Owns: the arithmetic and its words. A cell takes its declared seconds, and beyond them as long
//! for its work as measured cells took for theirs. An estimate never hides what it rests on: so many
//! cells by cells of the same kind, so many by the declared seconds of their phases, which loads and
//! waits come on top of, so many of which nothing is known.
//!
//! Pure: does not read files or clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::progress::duration;

/// What is known of a cell's time before it is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Seconds of its phases and pauses that are fixed beforehand, if there are any.
    pub declared_s: Option<f64>,
    /// What it has to do beyond them beside other cells of its run, in any unit; 0 for a cell whose
    /// time says nothing of others', as the driver's alone.
    pub work: f64,
}

impl Effort {
    /// Nothing is known but that it is like other cells.
    pub const UNKNOWN: Effort = Effort { declared_s: None, work: 1.0 };

    /// As long as that, and what other cells take beyond theirs.
    pub fn declared(seconds: f64) -> Effort {
        Effort { declared_s: (seconds > 0.0).then_some(seconds), ..Effort::UNKNOWN }
    }

    /// Seconds, when a unit of work takes `per_work`.
    fn seconds(&self, per_work: f64) -> f64 {
        self.declared_s.unwrap_or(0.0) + per_work * self.work
    }
}

/// What cells took beyond their declared seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    seconds: f64,
    work: f64,
}

impl Measured {
    fn plus(self, effort: &Effort, seconds: f64) -> Measured {
        if effort.work == 0.0 {
            return self;
        }
        let beyond = (seconds - effort.declared_s.unwrap_or(0.0)).max(0.0);
        Measured { seconds: self.seconds + beyond, work: self.work + effort.work }
    }

    /// Seconds of a unit of work; `None` before anything was measured.
    fn per_work(&self) -> Option<f64> {
        (self.work > 0.0).then(|| self.seconds / self.work)
    }
}

/// How far a run is, and how long the rest will take by its cells measured so far.
pub(crate) struct Pace {
    cells: usize,
    done: usize,
    declared_left_s: f64,
    work_left: f64,
    measured: Measured,
}

impl Pace {
    /// Before the first of these cells.
    pub(crate) fn new(cells: impl ExactSizeIterator<Item = Effort> + Clone) -> Pace {
        Pace {
            cells: cells.len(),
            done: 0,
            declared_left_s: cells.clone().filter_map(|cell| cell.declared_s).sum(),
            work_left: cells.map(|cell| cell.work).sum(),
            measured: Measured::default(),
        }
    }

    /// A cell need not be measured, or cannot be.
    pub(crate) fn skip(&mut self, cell: &Effort) {
        self.done += 1;
        self.declared_left_s -= cell.declared_s.unwrap_or(0.0);
        self.work_left -= cell.work;
    }

    /// A cell took so long.
    pub(crate) fn measured(&mut self, cell: &Effort, seconds: f64) {
        self.skip(cell);
        self.measured = self.measured.plus(cell, seconds);
    }

    /// Which cell comes next: `3/16`.
    pub(crate) fn position(&self) -> String {
        format!("{}/{}", self.done + 1, self.cells)
    }

    /// What is left, as the end of a line; nothing before anything was measured.
    pub(crate) fn rest(&self) -> String {
        let Some(per_work) = self.measured.per_work() else { return String::new() };
        let seconds = self.declared_left_s + per_work * self.work_left;
        format!(", about {} left of this run", duration(seconds))
    }
}

/// A cell before it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// Its name, unique in its run.
    pub id: String,
    /// On which engine.
    pub engine: String,
    /// The row of the tables that it is measured for.
    pub row: String,
    /// What is known of its time.
    pub effort: Effort,
}

/// The cells of one run with what is known of their times.
#[derive(Clone, Debug)]
pub struct Outlook {
    cells: Vec<PlannedCell>,
    done: BTreeSet<String>,
    seconds: BTreeMap<String, f64>,
}

/// How long something takes, and what that rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// All that is known of, seconds.
    pub seconds: f64,
    /// Cells whose time follows from measured ones.
    pub by_cells: usize,
    /// Cells of which only declared phases are known.
    pub by_declaration: usize,
    /// Cells of which nothing is known.
    pub unknown: usize,
}

impl Estimate {
    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Estimate) -> Estimate {
        Estimate {
            seconds: self.seconds + other.seconds,
            by_cells: self.by_cells + other.by_cells,
            by_declaration: self.by_declaration + other.by_declaration,
            unknown: self.unknown + other.unknown,
        }
    }

    /// Cells that are still to be measured.
    pub fn cells(&self) -> usize {
        self.by_cells + self.by_declaration + self.unknown
    }

    /// The time alone: `about 2.5 h`, `at least 20 min` where something is not known.
    pub fn time(&self) -> String {
        match self.cells() {
            0 => "nothing".to_owned(),
            cells if cells == self.unknown => "not known".to_owned(),
            cells if cells == self.by_cells => format!("about {}", duration(self.seconds)),
            _ => format!("at least {}", duration(self.seconds)),
        }
    }
}

impl fmt::Display for Estimate {
    /// The time with what it rests on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.time())?;
        if self.cells() == self.unknown {
            return Ok(());
        }
        let parts = [
            (self.by_cells, "by measured cells"),
            (
                self.by_declaration,
                "by the declared seconds of their phases, loads and waits on top",
            ),
            (self.unknown, "not known"),
        ];
        let parts = parts.iter().filter(|(cells, _)| *cells > 0);
        let told: Vec<String> = parts.map(|(cells, basis)| format!("{cells} {basis}")).collect();
        write!(f, " ({})", told.join("; "))
    }
}

/// What a cell's time follows from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    Measured(f64),
    Declared(f64),
    Nothing,
}

impl Outlook {
    /// `done` are the names of cells that need not be measured, `seconds` the times of whatever was
    /// measured, by other builds too.
    pub fn new(
        cells: Vec<PlannedCell>,
        done: BTreeSet<String>,
        seconds: BTreeMap<String, f64>,
    ) -> Outlook {
        Outlook { cells, done, seconds }
    }

    /// How many cells there are, and how many of them are done.
    pub fn counts(&self) -> [usize; 2] {
        [self.cells.len(), self.done.len()]
    }

    /// A cell is done; it took so many seconds, unless it was measured before.
    pub fn finish(&mut self, id: &str, seconds: Option<f64>) {
        self.done.insert(id.to_owned());
        if let Some(seconds) = seconds {
            self.seconds.insert(id.to_owned(), seconds);
        }
    }

    /// How long the cells take that are not done.
    pub fn rest(&self) -> Estimate {
        self.rest_of(self.cells.iter())
    }

    /// The rows of the tables in the order of their first cells: name, number of cells and how many of
    /// them are done, how long the others take.
    pub fn rows(&self) -> Vec<(&str, [usize; 2], Estimate)> {
        let mut rows: Vec<(&str, [usize; 2], Estimate)> = Vec::new();
        for PlannedCell { row, .. } in &self.cells {
            if rows.iter().any(|(known, ..)| known == row) {
                continue;
            }
            let own = || self.cells.iter().filter(|cell| cell.row == *row);
            let done = own().filter(|cell| self.done.contains(&cell.id)).count();
            rows.push((row, [own().count(), done], self.rest_of(own())));
        }
        rows
    }

    fn rest_of<'a>(&self, cells: impl Iterator<Item = &'a PlannedCell>) -> Estimate {
        let open = cells.filter(|cell| !self.done.contains(&cell.id));
        open.fold(Estimate::default(), |sum, cell| {
            sum.plus(match self.known(cell) {
                Known::Measured(seconds) => {
                    Estimate { seconds, by_cells: 1, ..Estimate::default() }
                }
                Known::Declared(seconds) => {
                    Estimate { seconds, by_declaration: 1, ..Estimate::default() }
                }
                Known::Nothing => Estimate { unknown: 1, ..Estimate::default() },
            })
        })
    }

    /// How long a cell took; what is shorter than its declared phases was a smaller run's.
    fn measured_s(&self, cell: &PlannedCell) -> Option<f64> {
        let declared_s = cell.effort.declared_s.unwrap_or(0.0);
        self.seconds.get(&cell.id).copied().filter(|seconds| *seconds >= declared_s)
    }

    /// By the cell itself, else by those of its engine, else by those of other engines, else by what
    /// is declared.
    fn known(&self, cell: &PlannedCell) -> Known {
        if let Some(seconds) = self.measured_s(cell) {
            return Known::Measured(seconds);
        }
        let per_work = |is: &dyn Fn(&PlannedCell) -> bool| {
            let cells = self.cells.iter().filter(|other| is(other));
            let timed = cells.filter_map(|other| Some((other, self.measured_s(other)?)));
            timed.fold(Measured::default(), |sum, (other, s)| sum.plus(&other.effort, s)).per_work()
        };
        let of_engine = || per_work(&|other| other.engine == cell.engine);
        let rate = match cell.effort.work > 0.0 {
            true => of_engine().or_else(|| per_work(&|_| true)),
            false => None,
        };
        match (rate, cell.effort.declared_s) {
            (Some(per_work), _) => Known::Measured(cell.effort.seconds(per_work)),
            (None, Some(seconds)) => Known::Declared(seconds),
            (None, None) => Known::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(id: &str, engine: &str, declared_s: Option<f64>) -> PlannedCell {
        let effort = Effort { declared_s, ..Effort::UNKNOWN };
        let [engine, row] = [engine, engine].map(str::to_owned);
        PlannedCell { id: id.to_owned(), engine, row, effort }
    }

    fn outlook() -> Outlook {
        let driver = Effort { work: 0.0, ..Effort::declared(2.0) };
        let cells = vec![
            PlannedCell { effort: driver, ..cell("driver", "null", None) },
            cell("a-0", "a", Some(10.0)),
            cell("a-1", "a", Some(10.0)),
            cell("b-0", "b", None),
        ];
        Outlook::new(cells, BTreeSet::new(), BTreeMap::new())
    }

    #[test]
    fn what_is_measured_goes_before_what_is_declared() {
        let mut outlook = outlook();
        let first = outlook.rest();
        assert_eq!((first.seconds, first.by_declaration, first.unknown), (22.0, 3, 1));
        assert_eq!(
            first.to_string(),
            "at least 22 s (3 by the declared seconds of their phases, loads and waits on top; 1 \
             not known)"
        );
        outlook.finish("a-0", Some(4.0));
        outlook.done.clear();
        assert_eq!(outlook.rest(), first, "a smaller run says nothing");
        outlook.finish("driver", Some(3.0));
        assert_eq!(outlook.rest().unknown, 1, "the driver says nothing of engines");
        outlook.finish("a-0", Some(30.0));
        let later = outlook.rest();
        assert_eq!((later.seconds, later.by_cells), (50.0, 2), "its own engine, then others");
        assert_eq!(later.time(), "about 50 s");
        outlook.finish("b-0", Some(100.0));
        assert_eq!(outlook.rest().seconds, 30.0, "its declared 10 s, and 20 as its engine before");
        outlook.finish("a-1", None);
        assert_eq!((outlook.rest().time(), outlook.counts()), ("nothing".to_owned(), [4, 4]));
    }

    #[test]
    fn rows_add_up_to_the_run() {
        let mut outlook = outlook();
        outlook.finish("a-0", None);
        let rows = outlook.rows();
        let counts: Vec<_> = rows.iter().map(|(name, counts, _)| (*name, *counts)).collect();
        assert_eq!(counts, [("null", [1, 0]), ("a", [2, 1]), ("b", [1, 0])]);
        assert_eq!(rows[1].2.time(), "at least 10 s");
        let sum = rows.iter().fold(Estimate::default(), |sum, (.., rest)| sum.plus(*rest));
        assert_eq!(sum, outlook.rest());
    }

    #[test]
    fn times_of_other_builds_count() {
        let mut seconds = BTreeMap::from([("a-1".to_owned(), 40.0), ("gone".to_owned(), 9.0)]);
        let outlook = Outlook { seconds: seconds.clone(), ..outlook() };
        assert_eq!(outlook.rest().seconds, 2.0 + 40.0 + 40.0 + 30.0);
        seconds.clear();
        let unknown = Outlook::new(vec![cell("x", "x", None)], BTreeSet::new(), seconds);
        assert_eq!(unknown.rest().to_string(), "not known");
    }

    #[test]
    fn what_is_left_of_a_run_is_told_by_the_work_of_its_cells() {
        let of_rows = |work| Effort { declared_s: Some(30.0), work };
        let cells = [800.0, 800.0, 40.0, 40.0].map(of_rows);
        let mut pace = Pace::new(cells.into_iter());
        pace.skip(&cells[0]);
        assert_eq!((pace.position().as_str(), pace.rest().as_str()), ("2/4", ""), "nothing known");
        pace.measured(&cells[1], 830.0);
        assert_eq!(pace.position(), "3/4");
        assert_eq!(pace.rest(), ", about 2 min left of this run", "twice 30 s, and 1 s a row");
    }

    #[test]
    fn the_driver_says_nothing_of_what_is_left_of_a_run() {
        let driver = Effort { work: 0.0, ..Effort::declared(10.0) };
        let cells = [driver, Effort::declared(10.0), Effort::declared(10.0)];
        let mut pace = Pace::new(cells.into_iter());
        pace.measured(&cells[0], 600.0);
        assert_eq!(pace.rest(), "", "nothing known");
        pace.measured(&cells[1], 30.0);
        assert_eq!(pace.rest(), ", about 30 s left of this run");
    }
}
