//! `lithify backup`: makes, lists, verifies and deletes backups.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lithify::backup::{BackupInfo, BackupOptions, BackupStore, BackupVerdict};
use lithify::inspect::size;
use lithify_report::grid::{Align, Grid};
use lithify_report::{Table, text};
use serde_json::{Value, json};

use super::bench::screen::width_or_whole;
use super::copying::{heard_by, open_database, transfer, utc};
use super::format::{FormatArguments, ReportFormat};
use super::rows::csv_of;
use super::sizes::rate;
use super::tool::{Watch, fitted};
use crate::fault::{Fault, print};

/// `backup`
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Make a backup of a database in a store
    Create(CreateArguments),
    /// List the backups of a store
    List(ListArguments),
    /// Read every byte of backups and compare it with what was written
    Verify(VerifyArguments),
    /// Delete backups
    Delete(DeleteArguments),
    /// Delete all backups but the newest
    Purge(PurgeArguments),
}

/// `backup create`
#[derive(Debug, Args)]
#[command(after_help = "\
Tables that an earlier backup has are not copied again. The backup is there as a whole and
durable, or not at all. Works beside a process that has the database open and writes: the backup is
what was on disk when the command began. With durability none that is what was flushed. Only --flush
needs a database that nobody has open.

Examples:
  lithify backup create /mnt/backups graph.db
  lithify backup create /mnt/backups graph.db --note \"before the move\" --rate 50

Exit codes:
  0    done
  1    failed, or the database is damaged, or --flush beside another process: nothing of it is left
  2    used wrongly: no database, or a directory that is no store
  130  stopped by Ctrl-C or SIGTERM: nothing of the backup is left")]
pub struct CreateArguments {
    /// The directory of the store, made if it is not there
    store: PathBuf,
    /// The directory of the database
    directory: PathBuf,
    /// A note for the list
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Write memtables to tables first, so that no log has to be copied
    #[arg(long)]
    flush: bool,
    /// Read tables that are in the store already again, and replace damaged ones
    #[arg(long)]
    check_shared: bool,
    /// Copy without looking for damage in the database
    #[arg(long)]
    no_check: bool,
    /// Copy at most so much in a second: MB (10^6 bytes), or with a unit, as 512KiB
    #[arg(long, value_name = "MB", value_parser = rate)]
    rate: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `backup list`
#[derive(Debug, Args)]
#[command(after_help = "\
Columns: number; when it was made; the last sequence number in it; the first sequence number that
it can be restored to; files and their size. OWN is the size that no other backup needs. Then the note.

Exit codes:
  0  done
  1  a backup cannot be read: the error says which and why, the others are listed
  2  there is no store")]
pub struct ListArguments {
    /// The directory of the store
    store: PathBuf,
    #[command(flatten)]
    format: FormatArguments<ReportFormat>,
}

/// `backup verify`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lithify backup verify /mnt/backups
  lithify backup verify /mnt/backups 3 --rate 50

Exit codes:
  0    all of them are whole
  1    damage: the lines above the error say what is wrong and where
  2    used wrongly: no store, no such backup
  130  stopped by Ctrl-C or SIGTERM")]
pub struct VerifyArguments {
    /// The directory of the store
    store: PathBuf,
    /// The number of a backup; all of them when not given
    #[arg(value_parser = parse_number)]
    id: Option<u64>,
    /// Read at most so much in a second: MB (10^6 bytes), or with a unit, as 512KiB
    #[arg(long, value_name = "MB", value_parser = rate)]
    rate: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `backup delete`
#[derive(Debug, Args)]
#[command(after_help = "\
Files that another backup needs stay.

Exit codes:
  0  done
  1  failed
  2  used wrongly: no store, no such backup; nothing was deleted")]
pub struct DeleteArguments {
    /// The directory of the store
    store: PathBuf,
    /// Numbers of backups
    #[arg(required = true, value_parser = parse_number)]
    ids: Vec<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `backup purge`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lithify backup purge /mnt/backups --keep 7

Exit codes:
  0  done
  1  failed
  2  used wrongly: no store")]
pub struct PurgeArguments {
    /// The directory of the store
    store: PathBuf,
    /// How many of the newest backups stay
    #[arg(long, value_name = "N", value_parser = parse_keep)]
    keep: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn parse_number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "expected the number of a backup, see `lithify backup list`".to_owned())
}

/// A script whose variable is empty or 0 should not end with no backup at all.
fn parse_keep(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("this would delete every backup; `lithify backup delete` does, number by \
                      number"
            .to_owned()),
        Ok(keep) => Ok(keep),
        Err(_) => Err("expected how many backups stay".to_owned()),
    }
}

/// Does it.
pub fn run(command: &BackupCommand) -> Result<(), Fault> {
    match command {
        BackupCommand::Create(arguments) => create(arguments),
        BackupCommand::List(arguments) => list(arguments),
        BackupCommand::Verify(arguments) => verify(arguments),
        BackupCommand::Delete(arguments) => delete(arguments),
        BackupCommand::Purge(arguments) => purge(arguments),
    }
}

/// Opens a store for reading.
pub fn open_store(path: &Path) -> Result<BackupStore, Fault> {
    BackupStore::open_read_only(path).map_err(Fault::of_engine)
}

/// Opens a store that is there, for changing it.
fn open_store_for_writing(path: &Path) -> Result<BackupStore, Fault> {
    drop(open_store(path)?);
    BackupStore::open(path).map_err(Fault::of_engine)
}

fn object_of(info: &BackupInfo) -> Value {
    json!({
        "id": info.id,
        "unix_time_s": info.unix_time_s,
        "sequence": info.sequence,
        "oldest_sequence": info.oldest_sequence,
        "database_id": format!("{:032x}", info.database_id),
        "note": info.note,
        "files": info.files,
        "bytes": info.bytes,
        "log_bytes": info.log_bytes,
        "copied_bytes": info.copied_bytes,
        "own_bytes": info.own_bytes,
    })
}

fn create(arguments: &CreateArguments) -> Result<(), Fault> {
    // First the database: a store is not made for one that is not there.
    let db = open_database(&arguments.directory, arguments.flush)?;
    let mut store = BackupStore::open(&arguments.store).map_err(Fault::of_engine)?;
    let listener = heard_by(Watch::begin("backup")?);
    let options = BackupOptions {
        flush: arguments.flush,
        check: !arguments.no_check,
        check_shared: arguments.check_shared,
        note: arguments.note.clone(),
        transfer: transfer(arguments.rate, &listener),
    };
    let report = store.create(&db, &options).map_err(Fault::of_engine)?;
    drop(listener);
    db.close().map_err(Fault::of_engine)?;
    let info = &report.backup;
    if arguments.json {
        let object = json!({
            "backup": object_of(info),
            "copied_files": report.copied_files,
            "shared_files": report.shared_files,
            "shared_bytes": report.shared_bytes,
            "mended_files": report.mended_files,
        });
        return print(&format!("{object}\n"));
    }
    let mut text = format!(
        "backup {}, through sequence {}: {} files copied ({}), {} tables were there ({})\n",
        info.id,
        info.sequence,
        report.copied_files,
        size(info.copied_bytes),
        report.shared_files,
        size(report.shared_bytes),
    );
    if report.mended_files > 0 {
        text.push_str(&format!(
            "{} tables were damaged in the store and were replaced\n",
            report.mended_files
        ));
    }
    print(&text)
}

fn list(arguments: &ListArguments) -> Result<(), Fault> {
    let list = open_store(&arguments.store)?.list().map_err(Fault::of_engine)?;
    let objects = || list.backups.iter().map(object_of).collect::<Vec<_>>();
    print(&match arguments.format.of_report() {
        ReportFormat::Table => page(&list.backups),
        ReportFormat::Json => {
            let unreadable = list.unreadable.iter();
            let unreadable: Vec<_> = unreadable
                .map(|(id, error)| json!({ "id": id, "error": error.to_string() }))
                .collect();
            format!("{}\n", json!({ "backups": objects(), "unreadable": unreadable }))
        }
        ReportFormat::Csv => csv_of(&BACKUP, &objects()),
    })?;
    match list.unreadable.into_iter().next() {
        Some((id, error)) => Err(Fault::failure(format!("backup {id} cannot be read: {error}"))),
        None => Ok(()),
    }
}

/// The fields of a backup, with the names that the JSON has.
const BACKUP: [&str; 11] = [
    "id",
    "unix_time_s",
    "sequence",
    "oldest_sequence",
    "database_id",
    "note",
    "files",
    "bytes",
    "log_bytes",
    "copied_bytes",
    "own_bytes",
];

/// The columns of a list of backups; the first one names a line.
const COLUMNS: [(&str, Align); 8] = [
    ("ID", Align::Right),
    ("MADE (UTC)", Align::Left),
    ("SEQUENCE", Align::Right),
    ("FROM", Align::Right),
    ("FILES", Align::Right),
    ("SIZE", Align::Right),
    ("OWN", Align::Right),
    ("NOTE", Align::Left),
];

fn page(backups: &[BackupInfo]) -> String {
    let row = |info: &BackupInfo| {
        vec![
            info.id.to_string(),
            utc(info.unix_time_s),
            info.sequence.to_string(),
            info.oldest_sequence.to_string(),
            info.files.to_string(),
            size(info.bytes),
            size(info.own_bytes),
            info.note.clone(),
        ]
    };
    let table = Table::new("", Grid::new(&COLUMNS, backups.iter().map(row).collect()));
    text::table(&table, width_or_whole())
}

fn verify(arguments: &VerifyArguments) -> Result<(), Fault> {
    let store = open_store(&arguments.store)?;
    let listener = heard_by(Watch::begin("verify")?);
    let options = transfer(arguments.rate, &listener);
    let found = store.verify(arguments.id, &options).map_err(Fault::of_engine)?;
    drop(listener);
    if arguments.json {
        let verdict = |verdict: &BackupVerdict| {
            let damage: Vec<_> = verdict.damage.iter().map(ToString::to_string).collect();
            json!({
                "id": verdict.id,
                "whole": verdict.is_whole(),
                "files": verdict.files,
                "bytes": verdict.bytes,
                "damage": damage,
            })
        };
        let backups: Vec<_> = found.backups.iter().map(verdict).collect();
        let object = json!({
            "backups": backups,
            "read_files": found.read_files,
            "read_bytes": found.read_bytes,
        });
        print(&format!("{object}\n"))?;
    } else {
        let mut text = String::new();
        for verdict in &found.backups {
            let (id, files, bytes) = (verdict.id, verdict.files, size(verdict.bytes));
            match verdict.is_whole() {
                true => text.push_str(&format!("backup {id}: whole, {files} files, {bytes}\n")),
                false => text.push_str(&format!("backup {id}: damaged\n")),
            }
            verdict.damage.iter().for_each(|damage| text.push_str(&format!("  {damage}\n")));
        }
        text.push_str(&format!("{} files read, {}\n", found.read_files, size(found.read_bytes)));
        print(&fitted(&text, width_or_whole()))?;
    }
    let damaged: Vec<_> = found.backups.iter().filter(|verdict| !verdict.is_whole()).collect();
    match damaged.first().and_then(|verdict| verdict.damage.first()) {
        Some(first) => Err(Fault::failure(format!(
            "{} of {} backups are damaged: {first}",
            damaged.len(),
            found.backups.len()
        ))),
        None => Ok(()),
    }
}

fn delete(arguments: &DeleteArguments) -> Result<(), Fault> {
    let mut store = open_store_for_writing(&arguments.store)?;
    let there = store.ids();
    if let Some(missing) = arguments.ids.iter().find(|id| !there.contains(id)) {
        return Err(Fault::usage(format!("there is no backup {missing}; nothing was deleted")));
    }
    let mut ids = arguments.ids.clone();
    ids.sort_unstable();
    ids.dedup();
    for id in &ids {
        store.delete(*id).map_err(Fault::of_engine)?;
    }
    report_deleted(&store, &ids, arguments.json)
}

fn purge(arguments: &PurgeArguments) -> Result<(), Fault> {
    let mut store = open_store_for_writing(&arguments.store)?;
    let deleted = store.purge(arguments.keep).map_err(Fault::of_engine)?;
    report_deleted(&store, &deleted, arguments.json)
}

fn report_deleted(store: &BackupStore, deleted: &[u64], json: bool) -> Result<(), Fault> {
    let left = store.ids();
    if json {
        return print(&format!("{}\n", json!({ "deleted": deleted, "left": left })));
    }
    print(&format!("{} backups deleted, {} left\n", deleted.len(), left.len()))
}
