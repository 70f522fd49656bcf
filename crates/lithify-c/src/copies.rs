//! Whole databases: checkpoints, backups, verification, repair.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::{Failure, OK};
use crate::database::Db;
use crate::handle::{borrow, place};
use libc::c_char;
use lithify::backup::{BackupInfo, BackupOptions, BackupStore, RestoreOptions};
use lithify::repair::{RepairOptions, repair};
use lithify::verify::{Finding, VerifyOptions, verify};
use lithify::{Error, ErrorKind};
use lithify_ffi::arguments::text;
use lithify_ffi::memory;
use std::fmt;

fn to_json(backup: &BackupInfo) -> serde_json::Value {
    serde_json::json!({
        "id": backup.id,
        "unix_time_s": backup.unix_time_s,
        "sequence": backup.sequence,
        "files": backup.files,
        "bytes": backup.bytes,
        "own_bytes": backup.own_bytes,
        "note": backup.note,
    })
}

/// What was found, a line each, and what it comes to.
fn page(findings: &[Finding], report: &dyn fmt::Display) -> String {
    let lines: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    format!("{lines}{report}")
}

fn newest(store: &BackupStore) -> Result<u64, Failure> {
    let none = || Error::new(ErrorKind::NotFound, "no backup in the store").in_file(store.path());
    Ok(store.latest().ok_or_else(none)?)
}

c_functions! {
    /// Makes a checkpoint.
    fn lithify_checkpoint(db: *mut Db, path: *const c_char) {
        borrow(db)?.checkpoint(text(path)?)?;
        Ok(OK)
    }

    /// Adds a backup to a store.
    fn lithify_backup(
        db: *mut Db,
        store: *const c_char,
        note: *const c_char,
        id: *mut u64,
    ) {
        let (db, mut store) = (borrow(db)?, BackupStore::open(text(store)?)?);
        let note = if note.is_null() { "" } else { text(note)? };
        let options = BackupOptions { note: note.to_owned(), ..BackupOptions::default() };
        let report = store.create(db, &options)?;
        if !id.is_null() {
            place(id)?.set(report.backup.id);
        }
        Ok(OK)
    }

    /// The backups of a store.
    fn lithify_backup_list(store: *const c_char, json: *mut *mut c_char) {
        let (store, json) = (BackupStore::open_read_only(text(store)?)?, place(json)?);
        let backups: Vec<_> = store.list()?.backups.iter().map(to_json).collect();
        json.set(memory::copy_text(&serde_json::Value::from(backups).to_string()));
        Ok(OK)
    }

    /// Removes all backups but the newest ones.
    fn lithify_backup_purge(store: *const c_char, keep: usize) {
        // Opening makes a store where there is none: a wrong path is an error here.
        BackupStore::open_read_only(text(store)?)?;
        BackupStore::open(text(store)?)?.purge(keep)?;
        Ok(OK)
    }

    /// Makes a database of a backup.
    fn lithify_restore(store: *const c_char, id: u64, path: *const c_char) {
        let (store, path) = (BackupStore::open_read_only(text(store)?)?, text(path)?);
        let id = if id == 0 { newest(&store)? } else { id };
        store.restore(id, path, &RestoreOptions::default())?;
        Ok(OK)
    }

    /// Reads and checks a whole database.
    fn lithify_verify(path: *const c_char, report: *mut *mut c_char) {
        let found = verify(text(path)?, &VerifyOptions::default())?;
        if !report.is_null() {
            place(report)?.set(memory::copy_text(&page(&found.findings, &found)));
        }
        if found.is_sound() {
            return Ok(OK);
        }
        let first = found.damage().next().map(ToString::to_string).unwrap_or_default();
        let what = format!("the database is damaged: repair it, or restore a backup; {first}");
        Err(Error::corruption(what))?
    }

    /// Saves what can be saved of a damaged database.
    fn lithify_repair(path: *const c_char, target: *const c_char, report: *mut *mut c_char) {
        let saved = repair(text(path)?, text(target)?, &RepairOptions::default())?;
        if !report.is_null() {
            place(report)?.set(memory::copy_text(&page(&saved.findings, &saved)));
        }
        Ok(OK)
    }

    /// Removes a whole database.
    fn lithify_destroy(path: *const c_char) {
        lithify::Db::destroy(text(path)?)?;
        Ok(OK)
    }
}
