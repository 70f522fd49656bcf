//! How long the rest of several runs takes: by cells that were measured, else by what is declared.
//!
//! Owns: the arithmetic and its words. An estimate never hides what it rests on: so many cells by
//! cells of the same kind, so many by the declared seconds of their phases, which loads and waits
//! come on top of, so many of which nothing is known.
//!
//! Pure: does not read files or clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::progress::duration;

/// The engine of a cell that measures the driver alone: its time says nothing of others'.
const DRIVER: &str = "null";

/// A cell before it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// Its name, unique in its run.
    pub id: String,
    /// On which engine.
    pub engine: String,
    /// Seconds of its phases that are fixed beforehand, if there are any.
    pub declared_s: Option<f64>,
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
        let open = self.cells.iter().filter(|cell| !self.done.contains(&cell.id));
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

    /// By the cell itself, else by those of its engine, else by those of other engines, else by what
    /// is declared.
    fn known(&self, cell: &PlannedCell) -> Known {
        if let Some(seconds) = self.seconds.get(&cell.id) {
            return Known::Measured(*seconds);
        }
        let mean = |is: &dyn Fn(&PlannedCell) -> bool| {
            let times = self.cells.iter().filter(|other| is(other));
            let times: Vec<f64> =
                times.filter_map(|other| self.seconds.get(&other.id).copied()).collect();
            let count = times.len() as f64;
            (count > 0.0).then(|| times.iter().sum::<f64>() / count)
        };
        let of_engine = mean(&|other| other.engine == cell.engine);
        let of_others = || mean(&|other| other.engine != DRIVER && cell.engine != DRIVER);
        match (of_engine.or_else(of_others), cell.declared_s) {
            (Some(seconds), _) => Known::Measured(seconds),
            (None, Some(seconds)) => Known::Declared(seconds),
            (None, None) => Known::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(id: &str, engine: &str, declared_s: Option<f64>) -> PlannedCell {
        PlannedCell { id: id.to_owned(), engine: engine.to_owned(), declared_s }
    }

    fn outlook() -> Outlook {
        let cells = vec![
            cell("driver", "null", Some(2.0)),
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
        outlook.finish("driver", Some(3.0));
        assert_eq!(outlook.rest().unknown, 1, "the driver says nothing of engines");
        outlook.finish("a-0", Some(30.0));
        let later = outlook.rest();
        assert_eq!((later.seconds, later.by_cells), (60.0, 2), "its own engine, then others");
        assert_eq!(later.time(), "about 60 s");
        outlook.finish("b-0", Some(100.0));
        assert_eq!(outlook.rest().seconds, 30.0, "the mean of the same engine");
        outlook.finish("a-1", None);
        assert_eq!((outlook.rest().time(), outlook.counts()), ("nothing".to_owned(), [4, 4]));
    }

    #[test]
    fn times_of_other_builds_count() {
        let mut seconds = BTreeMap::from([("a-1".to_owned(), 40.0), ("gone".to_owned(), 9.0)]);
        let outlook = Outlook { seconds: seconds.clone(), ..outlook() };
        assert_eq!(outlook.rest().seconds, 2.0 + 40.0 + 40.0 + 40.0);
        seconds.clear();
        let unknown = Outlook::new(vec![cell("x", "x", None)], BTreeSet::new(), seconds);
        assert_eq!(unknown.rest().to_string(), "not known");
    }
}
