//! `lithify checkpoint`: a second database from a first one, by links.

use std::path::PathBuf;

use clap::Args;
use lithify::inspect::size;
use lithify::{CheckpointOptions, TableTransfer};
use serde_json::json;

use super::copying::{heard_by, open_database, transfer};
use super::sizes::rate;
use super::tool::Watch;
use crate::fault::{Fault, print};

/// `checkpoint`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Make a database of its own in another directory that is as this one is now.

Tables get a second name (a hard link) where the file system allows that, and are copied elsewhere;
the log is copied. The checkpoint appears whole and durable, or not at all.

Works beside a process that has the database open and writes: the checkpoint is what was on disk when
the command began. With durability none that is what was flushed. Only --flush needs a database that
nobody has open.",
    after_help = "\
Examples:
  lithify checkpoint graph.db graph-monday.db
  lithify checkpoint graph.db /mnt/other/graph.db --rate 50
  lithify checkpoint graph.db copy.db --copy --flush --json

Exit codes:
  0    done
  1    failed, or --flush beside another process: nothing of the checkpoint is left
  2    used wrongly: no database, or there is something in the place of the checkpoint
  130  stopped by Ctrl-C or SIGTERM: nothing of the checkpoint is left"
)]
pub struct CheckpointArguments {
    /// The directory of the database
    directory: PathBuf,
    /// The directory of the checkpoint, which must not be there
    to: PathBuf,
    /// Write memtables to tables first, so that no log has to be copied
    #[arg(long)]
    flush: bool,
    /// Copy tables too, so that the two databases share no bytes on the disk
    #[arg(long)]
    copy: bool,
    /// Copy at most so much in a second: MB (10^6 bytes), or with a unit, as 512KiB
    #[arg(long, value_name = "MB", value_parser = rate)]
    rate: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Makes it.
pub fn run(arguments: &CheckpointArguments) -> Result<(), Fault> {
    let db = open_database(&arguments.directory, arguments.flush)?;
    let listener = heard_by(Watch::begin("checkpoint")?);
    let options = CheckpointOptions {
        flush: arguments.flush,
        tables: if arguments.copy { TableTransfer::Copy } else { TableTransfer::Link },
        transfer: transfer(arguments.rate, &listener),
    };
    let made = db.checkpoint_with(&arguments.to, &options).map_err(Fault::of_engine)?;
    drop(listener);
    db.close().map_err(Fault::of_engine)?;
    let refusal = made.link_refusal.as_ref().map(ToString::to_string);
    if arguments.json {
        let object = json!({
            "path": made.path,
            "sequence": made.sequence,
            "linked_tables": made.linked_tables,
            "linked_bytes": made.linked_bytes,
            "copied_tables": made.copied_tables,
            "copied_bytes": made.copied_bytes,
            "log_bytes": made.log_bytes,
            "manifest_bytes": made.manifest_bytes,
            "link_refusal": refusal,
        });
        return print(&format!("{object}\n"));
    }
    let mut text = format!(
        "checkpoint in {}, through sequence {}: {} tables linked ({}), {} copied ({}), {} of log \
         copied\n",
        made.path.display(),
        made.sequence,
        made.linked_tables,
        size(made.linked_bytes),
        made.copied_tables,
        size(made.copied_bytes),
        size(made.log_bytes),
    );
    if let Some(refusal) = refusal {
        text.push_str(&format!("tables were copied because links are refused: {refusal}\n"));
    }
    print(&text)
}
