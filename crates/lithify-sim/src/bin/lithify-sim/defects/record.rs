//! Which case caught each defect last time: the table at the end of `docs/planted-defects.md`.
//!
//! The page is the record. A case follows from its number alone, so the same one catches the
//! defect again, until the engine or the check changes.

use lithify::planted::Defect;
use lithify_sim::check::Check;

/// The page with the table.
const PAGE: &str = include_str!("../../../../../../docs/planted-defects.md");

/// A case that caught a defect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Catch {
    /// The check.
    pub(super) check: String,
    /// The number of its case.
    pub(super) case: u64,
}

/// The case on record for a defect, if it is one of these checks.
pub(super) fn of(defect: Defect, checks: &[&dyn Check]) -> Option<Catch> {
    let name = format!("`{}`", defect.name());
    PAGE.lines().filter_map(row).find(|(of, _)| *of == name).map(|(_, catch)| catch).filter(
        |catch| {
            let is_its = |check: &&&dyn Check| check.name() == catch.check;
            let cases = |check: &&dyn Check| check.cases().unwrap_or(u64::MAX);
            checks.iter().find(is_its).is_some_and(|check| catch.case < cases(check))
        },
    )
}

/// All cases on record for these defects, each once.
pub(super) fn of_all(defects: &[Defect], checks: &[&dyn Check]) -> Vec<Catch> {
    let mut catches: Vec<Catch> = defects.iter().filter_map(|defect| of(*defect, checks)).collect();
    catches.sort();
    catches.dedup();
    catches
}

/// The defect, in its backquotes, and the catch in a row of the table: defect, what it breaks,
/// check, number of cases.
fn row(line: &str) -> Option<(&str, Catch)> {
    let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
    let (name, _, check) = (cells.next()?, cells.next()?, cells.next()?);
    let cases: u64 = cells.next()?.parse().ok()?;
    Some((name, Catch { check: check.to_owned(), case: cases.checked_sub(1)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify::planted::Harness;

    #[test]
    fn every_defect_of_the_checks_is_on_record() {
        let checks = lithify_sim::checks();
        let of_checks = [Harness::Simulator, Harness::RealFiles].map(Defect::of);
        let missing: Vec<&str> = of_checks
            .into_iter()
            .flatten()
            .filter(|defect| of(*defect, &checks).is_none())
            .map(Defect::name)
            .collect();
        assert!(missing.is_empty(), "rows missing in docs/planted-defects.md: {missing:?}");
    }

    #[test]
    fn rows_of_other_tables_are_passed_over() {
        assert_eq!(row("|---|---|---|---|"), None);
        assert_eq!(row("| defect | what it breaks | caught by | after cases |"), None);
        let catch = Catch { check: "flips".into(), case: 16 };
        assert_eq!(row("| `A` | Breaks it. | flips | 17 |"), Some(("`A`", catch)));
    }
}
