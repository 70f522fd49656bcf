//! `--format` of `dump`, `verify`, `repair` and `backup list`: JSON and CSV have the same names and figures.

use std::path::Path;
use std::process::Command;

use lithify::{Db, Options};
use serde_json::Value;

use super::widths::largest_table;

/// Standard output of a command that ends with this code.
fn printed(place: &Path, code: i32, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    let output = command.current_dir(place).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A database, a damaged copy of it, and a store with two backups of it.
fn databases(place: &Path) {
    let db = Db::open(place.join("rocks.db"), Options::default()).unwrap();
    for number in 0..3_000_u32 {
        db.put(number.to_be_bytes(), format!("a stone, \"{number:050}\"").as_bytes()).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    for note in ["first", "second, of \"two\""] {
        printed(place, 0, &["backup", "create", "store", "rocks.db", "--note", note]);
    }
    printed(place, 0, &["checkpoint", "rocks.db", "damaged.db", "--copy"]);
    let table = largest_table(&place.join("damaged.db"));
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(table, bytes).unwrap();
}

/// Header and lines of a CSV text whose fields have no line ends.
fn fields(csv: &str) -> Vec<Vec<String>> {
    let line = |line: &str| {
        let mut fields = vec![String::new()];
        let mut is_quoted = false;
        for sign in line.chars() {
            match sign {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => fields.push(String::new()),
                sign => fields.last_mut().unwrap().push(sign),
            }
        }
        fields
    };
    csv.lines().map(line).collect()
}

/// The lines of the CSV are the objects of the JSON, but for quotation marks, which [`fields`] drops.
fn check_same(csv: &str, objects: &Value) {
    let lines = fields(csv);
    let objects = objects.as_array().unwrap();
    assert_eq!(lines.len(), objects.len() + 1, "{csv}");
    for (line, object) in lines[1..].iter().zip(objects) {
        assert_eq!(line.len(), lines[0].len(), "{csv}");
        let text = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.replace('"', ""),
            figure => figure.to_string(),
        };
        for (name, cell) in lines[0].iter().zip(line) {
            assert_eq!(*cell, text(&object[name]), "{name}");
        }
        let names: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert!(names.iter().all(|name| lines[0].contains(name)), "{names:?}: {csv}");
    }
}

#[test]
fn csv_has_what_json_has() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    databases(place);
    let both = |code: i32, arguments: &[&str], field: &str| {
        let form = |form: &str| printed(place, code, &[arguments, &["--format", form]].concat());
        let json: Value = serde_json::from_str(&form("json")).unwrap();
        check_same(&form("csv"), &json[field]);
        assert_eq!(form("table"), printed(place, code, arguments));
        json
    };
    assert_eq!(both(0, &["verify", "rocks.db"], "findings")["sound"], true);
    assert_eq!(both(1, &["verify", "damaged.db"], "findings")["findings"][0]["weight"], "damage");
    let list = both(0, &["backup", "list", "store"], "backups");
    assert_eq!(list["backups"][1]["note"], "second, of \"two\"");
    // The file has what is printed as JSON, whatever is printed.
    let csv = ["verify", "damaged.db", "--format", "csv", "--json", "report.json"];
    assert!(printed(place, 1, &csv).starts_with("weight,structure,family,file,offset,error,"));
    let file = std::fs::read_to_string(place.join("report.json")).unwrap();
    assert_eq!(file, printed(place, 1, &["verify", "damaged.db", "--format", "json"]));
    // Each repair needs a directory of its own.
    let repair = |to: &str, form: &str| {
        printed(place, 1, &["repair", "damaged.db", "--to", to, "--format", form])
    };
    let json: Value = serde_json::from_str(&repair("one.db", "json")).unwrap();
    assert_eq!(json["lossless"], false);
    check_same(&repair("two.db", "csv"), &json["families"]);
}

#[test]
fn a_dump_as_csv_has_a_line_for_each_field() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    databases(place);
    let table = largest_table(&place.join("rocks.db"));
    let dump = ["dump", table.to_str().unwrap(), "--entries", "--limit", "3"];
    let form = |form: &str| printed(place, 0, &[&dump[..], &["--format", form]].concat());
    assert_eq!(form("table"), printed(place, 0, &dump));
    let json = form("json");
    assert_eq!(json, printed(place, 0, &[&dump[..], &["--json"]].concat()));
    let csv = form("csv");
    let mut lines = fields(&csv).into_iter();
    assert_eq!(lines.next().unwrap(), ["item", "offset", "field", "value"]);
    for object in json.lines() {
        let object: serde_json::Map<String, Value> = serde_json::from_str(object).unwrap();
        let text = |value: &Value| match value {
            Value::String(text) => text.replace('"', ""),
            figure => figure.to_string(),
        };
        let offset = object.get("offset").map(text).unwrap_or_default();
        let named = object.iter().filter(|(name, _)| !["item", "offset"].contains(&name.as_str()));
        let mut expected: Vec<[String; 4]> = named
            .map(|(name, value)| [text(&object["item"]), offset.clone(), name.clone(), text(value)])
            .collect();
        // The names of a parsed object are sorted.
        let mut found: Vec<Vec<String>> = lines.by_ref().take(expected.len()).collect();
        found.sort_by(|a, b| a[2].cmp(&b[2]));
        expected.sort_by(|a, b| a[2].cmp(&b[2]));
        assert_eq!(found, expected);
    }
    assert_eq!(lines.next(), None);
}
