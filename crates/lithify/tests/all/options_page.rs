//! `docs/options.md` against the tables of settings and the checks in the code.

use lithify::{CfOptions, DATABASE_OPTIONS, Durability, FAMILY_OPTIONS, OptionInfo, Options};
use std::fmt::Write;
use std::path::PathBuf;

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md"))
}

fn table(options: &[OptionInfo]) -> String {
    let mut text = String::from("| setting | default | unit | range | meaning |\n");
    text.push_str("|---|---|---|---|---|\n");
    for option in options {
        let OptionInfo { name, default, unit, minimum, maximum, meaning } = option;
        let range = match (*unit, maximum) {
            ("boolean", _) => "true, false".to_string(),
            (_, 0) => "-".to_string(),
            _ => format!("{minimum} to {maximum}"),
        };
        let default = default();
        writeln!(text, "| `{name}` | `{default}` | {unit} | {range} | {meaning} |").unwrap();
    }
    text
}

/// The page with the text between two marks replaced.
fn with_generated(page: &str, name: &str, generated: &str) -> String {
    let start_mark = format!("<!-- generated: {name} -->\n");
    let start = page.find(&start_mark).expect("the page has a mark") + start_mark.len();
    let end = start + page[start..].find("<!-- end -->").expect("the mark has an end");
    format!("{}{generated}{}", &page[..start], &page[end..])
}

#[test]
fn the_page_lists_every_option_as_the_code_has_it() {
    let page = std::fs::read_to_string(path()).unwrap();
    let expected = with_generated(&page, "database", &table(DATABASE_OPTIONS));
    let expected = with_generated(&expected, "family", &table(FAMILY_OPTIONS));
    if std::env::var_os("LITHIFY_REWRITE").is_some() {
        std::fs::write(path(), expected).unwrap();
        return;
    }
    assert_eq!(page, expected, "LITHIFY_REWRITE=1 writes the page anew");
    let change_table = page.split("## What a change means").nth(1).unwrap();
    for option in DATABASE_OPTIONS.iter().chain(FAMILY_OPTIONS) {
        let named = format!("`{}`", option.name);
        assert!(change_table.contains(&named), "what does a change of {named} mean?");
    }
}

#[test]
fn the_page_names_every_contradiction() {
    let page = std::fs::read_to_string(path()).unwrap();
    let good = Options::default();
    let database = [
        Options { memtable_bytes: good.memory_budget_bytes, ..good.clone() },
        Options { wal_bytes_max: 65_536, ..good.clone() },
        Options { durability: Durability::Interval { milliseconds: 0 }, ..good.clone() },
    ];
    let good = CfOptions::default();
    let family = [
        CfOptions { prefix_length_bytes: 1, filter_bits_per_key: 0, ..good.clone() },
        CfOptions { block_size_bytes: 1 << 20, table_bytes: 65_536, ..good.clone() },
    ];
    let errors = database.iter().map(|options| options.validate().unwrap_err());
    let errors = errors.chain(family.iter().map(|options| options.validate().unwrap_err()));
    let section = page.split("## What contradicts what").nth(1).unwrap();
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| `")).take(5).collect();
    for (error, row) in errors.zip(rows) {
        let names: Vec<_> = row.split('`').skip(1).step_by(2).take(2).collect();
        for name in names {
            assert!(error.to_string().contains(name), "{error} does not name {name}");
        }
    }
    let without_log =
        Options { durability: Durability::None, wal_bytes_max: 65_536, ..Options::default() };
    without_log.validate().unwrap();
}
