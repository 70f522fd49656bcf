//! `lithify restore`: makes a database of a backup.

use std::path::PathBuf;

use clap::Args;
use lithify::backup::RestoreOptions;
use lithify::inspect::size;
use serde_json::json;

use super::backup::open_store;
use super::copying::{heard_by, transfer};
use super::sizes::rate;
use super::tool::Watch;
use crate::fault::{Fault, print};

/// `restore`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Make a database of a backup, in a directory that is not there.

Every byte is compared with its checksum on the way. The database appears whole and durable, or not
at all. Of a damaged backup nothing is restored; the error says which others are whole.",
    after_help = "\
Examples:
  lithify restore /mnt/backups --to graph.db
  lithify restore /mnt/backups 3 --to graph-old.db
  lithify restore /mnt/backups latest --to graph.db --up-to-sequence 123456

Exit codes:
  0    done
  1    failed, or the backup is damaged: nothing of the database is left
  2    used wrongly: no store, no such backup, or there is something in the place of the database
  130  stopped by Ctrl-C or SIGTERM: nothing of the database is left"
)]
pub struct RestoreArguments {
    /// The directory of the store
    store: PathBuf,
    /// The number of a backup, or `latest`
    #[arg(default_value = "latest", value_parser = parse_id)]
    id: Choice,
    /// The directory of the database, which must not be there
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Only commits up to this sequence number; `backup list` says from which one on
    #[arg(long, value_name = "N", value_parser = parse_sequence)]
    up_to_sequence: Option<u64>,
    /// Copy at most so much in a second: MB (10^6 bytes), or with a unit, as 512KiB
    #[arg(long, value_name = "MB", value_parser = rate)]
    rate: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Which backup.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Latest,
    Number(u64),
}

fn parse_sequence(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a sequence number, see `lithify backup list`".to_owned())
}

fn parse_id(text: &str) -> Result<Choice, String> {
    match text {
        "latest" => Ok(Choice::Latest),
        number => number
            .parse()
            .map(Choice::Number)
            .map_err(|_| "expected the number of a backup, or latest".to_owned()),
    }
}

/// Restores it.
pub fn run(arguments: &RestoreArguments) -> Result<(), Fault> {
    let store = open_store(&arguments.store)?;
    let id = match arguments.id {
        Choice::Number(id) => id,
        Choice::Latest => store.latest().ok_or_else(|| {
            Fault::usage(format!(
                "{} holds no backup; `lithify backup create` makes one",
                arguments.store.display()
            ))
        })?,
    };
    let listener = heard_by(Watch::begin("restore")?);
    let options = RestoreOptions {
        up_to_sequence: arguments.up_to_sequence,
        transfer: transfer(arguments.rate, &listener),
    };
    let restored = store.restore(id, &arguments.to, &options).map_err(Fault::of_engine)?;
    drop(listener);
    if arguments.json {
        let object = json!({
            "path": restored.path,
            "backup": restored.backup,
            "sequence": restored.sequence,
            "files": restored.files,
            "bytes": restored.bytes,
        });
        return print(&format!("{object}\n"));
    }
    print(&format!(
        "backup {} restored in {}, through sequence {}: {} files, {}\n",
        restored.backup,
        restored.path.display(),
        restored.sequence,
        restored.files,
        size(restored.bytes),
    ))
}
