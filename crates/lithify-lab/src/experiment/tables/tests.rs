//! Errors name the line and the key; the built-in experiment says what was published.

use super::*;
use crate::experiment::AnyExperiment;
use crate::experiment::tests::built_in;

/// Replaces the first line that is `from`; returns its number and the error of the new text.
fn refused(from: &str, to: &str) -> (usize, ExperimentError) {
    let text = built_in("compression-options");
    let line = text.lines().position(|line| line == from);
    let line = line.unwrap_or_else(|| panic!("{from} is there")) + 1;
    let text = text.replacen(&format!("\n{from}\n"), &format!("\n{to}\n"), 1);
    (line, TableExperiment::parse("e.toml", &text).expect_err("must be refused"))
}

#[test]
fn bad_keys_are_named_with_their_line() {
    let rows = "rows = { page-counts = 100_000, wide = 6_000 }";
    let tables =
        "tables = [\"page-counts\", \"wide\", \"wiki-edits\", \"grid-load\", \"grid-plants\"]";
    let size = "published = 0.417";
    let mine = "engines = [\"innodb\"]";
    let cases = [
        ("insert_rows = 1000", "insert_row = 1000", "workload.insert_row", "unknown field"),
        ("insert_rows = 1000", "insert_rows = 0", "workload.insert_rows", "1 to 1000000"),
        ("access = \"secondary\"", "access = \"index\"", "workload.access", "unknown variant"),
        (tables, "tables = []", "workload.tables", "at least one table"),
        (tables, "tables = [\"wide\", \"wide\"]", "workload.tables[1]", "wide twice"),
        (tables, "tables = [\"narrow\"]", "workload.tables[0]", "unknown variant `narrow`"),
        (rows, "rows = { wide = 10 }", "scale.smoke.rows.wide", "1000 to 4000000000"),
        (rows, "rows = { narrow = 6_000 }", "scale.smoke.rows.narrow", "unknown variant"),
        ("updates = 2000", "updates = 9000", "scale.smoke.rows.wide", "than are updated"),
        ("mode_updates = 10", "mode_updates = 0", "scale.smoke.mode_updates", "1 to 1000000"),
        ("name = \"lz4-16k\"", "name = \"none-16k\"", "arm[1].name", "second arm"),
        ("codec = \"lz4\"", "codec = \"lz5\"", "arm[1].codec", "one of none, snappy"),
        (mine, "engines = [\"innodb\", \"innodb\"]", "arm[7].engines[1]", "innodb twice"),
        (size, "published = -1.0", "headline[0].published", "above 0"),
        ("base = \"none-16k\"", "base = \"none\"", "headline[0].base", "there are: none-16k"),
    ];
    for (from, to, key, what) in cases {
        let (line, error) = refused(from, to);
        assert!(error.what.contains(what), "{error}");
        assert_eq!(error.key, key, "{error}");
        if key != "scale.smoke.rows.wide" || from == rows {
            assert_eq!(error.line, line, "{error}");
        }
        assert!(error.to_string().starts_with(&format!("e.toml:{}: key {key}: ", error.line)));
    }
}

#[test]
fn a_table_that_is_not_run_has_no_figures() {
    let tables =
        "tables = [\"page-counts\", \"wide\", \"wiki-edits\", \"grid-load\", \"grid-plants\"]";
    let (_, error) = refused(tables, "tables = [\"page-counts\"]");
    assert!(error.what.contains("wide is no table of this experiment"), "{error}");
    assert!(error.what.ends_with("there are: page-counts"), "{error}");
}

#[test]
fn the_built_in_goes_through_json() {
    let text = built_in("compression-options");
    let experiment = TableExperiment::parse("e.toml", text).expect("parses");
    assert!(["smoke", "standard"].iter().all(|scale| experiment.scales.contains_key(*scale)));
    assert_eq!(experiment.published_mode.len(), UpdateMode::ALL.len());
    let again: TableExperiment =
        serde_json::from_str(&serde_json::to_string(&experiment).expect("to JSON")).expect("back");
    assert_eq!(again, experiment);
    let any = AnyExperiment::parse("e.toml", text).expect("parses");
    assert!(matches!(any, AnyExperiment::Tables(_)));
    let names: BTreeSet<&str> = TableColumn::ALL.iter().map(|column| column.name()).collect();
    assert_eq!(names.len(), TableColumn::ALL.len());
    assert_eq!(TableColumn::MAIN.last(), Some(&TableColumn::UpdateWrittenDevice));
    for column in TableColumn::ALL {
        let said = serde_json::to_string(&column).expect("to JSON");
        assert_eq!(said, format!("\"{}\"", column.name()), "one name everywhere");
    }
}
