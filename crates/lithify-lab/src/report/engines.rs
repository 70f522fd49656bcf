//! The engines that a program knows: what each can do by itself, and how to get those missing.

use serde::Serialize;

use super::tables::{Align, table};
use crate::adapter::Capabilities;
use crate::adapter::provider::Provider;

/// An engine in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListedEngine {
    /// Its name on the command line, in experiment files and in results.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// The version that is opened; empty when it has none.
    pub version: String,
    /// How to get it; `None` when it is there.
    pub missing: Option<String>,
    /// What it can do by itself; nothing when the engine is not part of this program.
    pub capabilities: Capabilities,
}

impl ListedEngine {
    /// What a provider says about its engine.
    pub fn of(provider: &dyn Provider) -> ListedEngine {
        ListedEngine {
            name: provider.name(),
            about: provider.about(),
            version: provider.version(),
            missing: provider.available().err().map(|error| error.to_string()),
            capabilities: provider.capabilities(),
        }
    }

    fn row(&self) -> Vec<String> {
        let can = &self.capabilities;
        let yes = |flag| if flag { "yes" } else { "no" }.to_owned();
        // An engine that cannot even be scanned is one of which nothing is known.
        let known = can.ordered_scan;
        let known_or_dash = |text: String| if known { text } else { "-".to_owned() };
        let transactions = match can.labels.iter().find(|label| label.contains("lock")) {
            Some(lock) => lock.clone(),
            None => if can.transactions { "own" } else { "none" }.to_owned(),
        };
        vec![
            self.name.to_owned(),
            match &self.missing {
                Some(_) => "missing".to_owned(),
                None if self.version.is_empty() => "-".to_owned(),
                None => self.version.clone(),
            },
            known_or_dash(transactions),
            known_or_dash(yes(can.ordered_scan)),
            list(&can.codecs),
            known_or_dash(yes(can.codec_per_level)),
            known_or_dash(yes(can.block_size)),
            list(&can.durability),
            known_or_dash(yes(can.own_statistics)),
            self.about.to_owned(),
        ]
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(" ") }
}

/// The list as text: a table, then a line for each engine that is missing.
pub fn render(engines: &[ListedEngine]) -> String {
    let names = [
        "engine",
        "version",
        "transactions",
        "scan",
        "codecs",
        "per level",
        "block size",
        "durability",
        "own statistics",
        "what",
    ];
    let columns = names.map(|name| (name, Align::Left));
    let rows: Vec<Vec<String>> = engines.iter().map(ListedEngine::row).collect();
    let mut text = table(&columns, &rows);
    text.push('\n');
    for engine in engines {
        if let Some(missing) = &engine.missing {
            text.push_str(&format!("\n{} is missing: {missing}", engine.name));
        }
    }
    text.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::EngineName;
    use crate::adapter::codec::Codec;
    use crate::engines::elsewhere;
    use crate::engines::registry::find;

    #[test]
    fn engines_say_what_they_can_do_and_missing_ones_how_to_get_them() {
        let lithify = find(&EngineName::lithify()).expect("is known");
        let model = find(&EngineName::model()).expect("is known");
        let engines = [lithify, model, &elsewhere::LMDB].map(ListedEngine::of);
        let text = render(&engines);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split("  ").collect()).collect();
        let cells = |line: &[&str]| -> Vec<String> {
            let cells = line.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty());
            cells.map(str::to_owned).collect()
        };
        let version = env!("CARGO_PKG_VERSION");
        let codecs = Codec::kinds().collect::<Vec<_>>().join(" ");
        assert_eq!(
            cells(&lines[1])[..9],
            ["lithify", version, "own", "yes", &codecs, "yes", "yes", "sync buffered none", "yes"]
        );
        assert_eq!(cells(&lines[2])[..7], ["model", "-", "own", "yes", "-", "no", "no"]);
        assert_eq!(cells(&lines[3])[..4], ["lmdb", "missing", "-", "-"]);
        let last = text.lines().last().expect("has lines");
        assert!(last.starts_with("lmdb is missing: lmdb is not in this build; get"), "{last}");
        assert!(last.ends_with("--features embedded-engines"), "{last}");
        let json = serde_json::to_value(&engines).expect("is JSON");
        assert_eq!(json[0]["missing"], serde_json::Value::Null);
        assert_eq!(json[0]["capabilities"]["codec_per_level"], true);
        assert_eq!(json[2]["name"], "lmdb");
    }
}
