//! Tables on screens of any width: columns stand beside each other, however narrow it is.
//!
//! Where there is no room for all columns, the least important ones are left out. Words that belong to a row
//! stand behind it, or below it where it has no room for them.

use std::fmt::Write;

/// Between two columns.
const GAP: usize = 2;
/// Before words below their row.
const WORDS_INDENT: usize = 4;
/// Columns that are never left out.
const KEPT: usize = 2;

/// A column; the first one of a table names its rows.
pub(crate) struct Column<'a> {
    /// Its heading, line by line.
    pub(crate) heading: &'a str,
    /// How important it is: what has the largest number is left out first.
    pub(crate) place: u32,
    /// Whether it has names, and no figures.
    pub(crate) has_names: bool,
}

/// A row of a table.
pub(crate) struct Row {
    /// A cell for each column.
    pub(crate) cells: Vec<String>,
    /// What is said of it.
    pub(crate) words: String,
}

/// A table behind an indent; `words` is the heading of what is said of rows.
pub(crate) fn table(
    text: &mut String,
    columns: &[Column<'_>],
    rows: &[Row],
    words: &str,
    [indent, screen]: [usize; 2],
) {
    let widths: Vec<usize> = (0..columns.len()).map(|at| width_of(columns, rows, at)).collect();
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let total = |kept: &[usize]| {
        indent + kept.iter().map(|at| widths[*at]).sum::<usize>() + GAP * (kept.len() - 1)
    };
    while total(&kept) > screen && kept.len() > KEPT {
        let last = kept.iter().copied().max_by_key(|at| columns[*at].place);
        kept.retain(|at| Some(*at) != last);
    }
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells = kept.iter().map(|at| match columns[*at].has_names {
            true => format!("{:<1$}", cell(*at), widths[*at]),
            false => format!("{:>1$}", cell(*at), widths[*at]),
        });
        " ".repeat(indent) + &cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
    };
    let has_room =
        |words: &str| words.is_empty() || total(&kept) + GAP + words.chars().count() <= screen;
    let height = kept.iter().map(|at| columns[*at].heading.lines().count()).max().unwrap_or(0);
    for number in 0..height {
        // Headings stand on the rows.
        let heading = |at: usize| {
            let lines: Vec<&str> = columns[at].heading.lines().collect();
            let at = (number + lines.len()).checked_sub(height);
            at.and_then(|at| lines.get(at)).copied().unwrap_or_default().to_owned()
        };
        let words = if number + 1 == height && has_room(words) { words } else { "" };
        let line = format!("{}  {words}", line(&heading));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for row in rows {
        let cells = line(&|at| row.cells.get(at).cloned().unwrap_or_default());
        if has_room(&row.words) {
            let _ = writeln!(text, "{}", format!("{cells}  {}", row.words).trim_end());
            continue;
        }
        let _ = writeln!(text, "{}", cells.trim_end());
        wrapped(text, &" ".repeat(indent + WORDS_INDENT), &row.words, screen);
    }
}

/// Prose in lines of so many columns, behind what its first line begins with.
pub(crate) fn wrapped(text: &mut String, first: &str, words: &str, columns: usize) {
    let indent = first.chars().count();
    let lines = lithify::inspect::wrapped(first, words.split_whitespace(), indent, columns);
    let _ = writeln!(text, "{lines}");
}

/// The widest line of a column.
fn width_of(columns: &[Column<'_>], rows: &[Row], at: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.cells.get(at)).map(String::as_str);
    columns[at].heading.lines().chain(cells).map(|line| line.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_column_goes_first_and_words_go_below() {
        let columns = [("setting", 0), ("of raw", 1), ("CPU\ns", 3), ("cost", 2)]
            .map(|(heading, place)| Column { heading, place, has_names: place == 0 });
        let row = |cells: [&str; 4], words: &str| Row {
            cells: cells.map(str::to_owned).to_vec(),
            words: words.to_owned(),
        };
        let rows =
            [row(["lz4 16k", "0.412", "7", "12.5"], "take this"), row(["none", "1", "0", "3"], "")];
        let rendered = |screen: usize| {
            let mut text = String::new();
            table(&mut text, &columns, &rows, "why", [2, screen]);
            assert!(text.lines().all(|line| line.chars().count() <= screen), "{screen}:\n{text}");
            text
        };
        let wide = [
            "                   CPU",
            "  setting  of raw    s  cost  why",
            "  lz4 16k   0.412    7  12.5  take this",
            "  none          1    0     3",
            "",
        ];
        assert_eq!(rendered(39), wide.join("\n"));
        let below = wide.join("\n").replace("  take this", "\n      take this");
        assert_eq!(rendered(38), below);
        let narrow = [
            "  setting  of raw  cost",
            "  lz4 16k   0.412  12.5",
            "      take this",
            "  none          1     3",
            "",
        ];
        assert_eq!(rendered(23), narrow.join("\n"));
    }
}
