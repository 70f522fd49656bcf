//! `CURRENT` and the manifest, as far as they are whole.

use super::report::{Structure, Weight};
use crate::base::FileNumber;
use crate::fs::{FileSystem, OpenMode};
use crate::manifest::{Current, DirectoryListing, FileName, ManifestState, VersionEdit, Witness};
use crate::wal::{HEADER_SIZE_BYTES, LogHeader, LogKind, LogRecord, StopReason, WalReader};
use crate::{Error, ErrorKind, Result};
use std::path::Path;

/// Takes what is wrong.
pub(crate) type OnFinding<'a> = dyn FnMut(Weight, Structure, Error) + 'a;

/// What is known of a database by its manifest.
#[derive(Debug, Default)]
pub(crate) struct FoundManifest {
    /// The identity of the database, if `CURRENT` or a manifest tells it.
    pub(crate) database_id: Option<u128>,
    /// The manifest that was read.
    pub(crate) number: Option<FileNumber>,
    /// What its edits add up to, as far as they are whole.
    pub(crate) state: ManifestState,
    /// Whether that is everything: `CURRENT` names the manifest, and all of it is whole.
    pub(crate) is_whole: bool,
    /// Edits that were added up.
    pub(crate) edits: u64,
    /// Bytes of `CURRENT` and the manifest.
    pub(crate) bytes: u64,
    /// The newest log segment that is known to have begun; 0 if none is.
    pub(crate) begun_log: FileNumber,
}

/// Reads the manifest in force. Where `CURRENT` does not name one, the newest one whose header is
/// whole, which may not be the one that was in force.
pub(crate) fn find_manifest(
    files: &dyn FileSystem,
    directory: &Path,
    listing: &DirectoryListing,
    on_finding: &mut OnFinding<'_>,
) -> FoundManifest {
    let mut found = FoundManifest::default();
    let current_path = FileName::Current.path(directory);
    let current = Current::read(files, directory);
    found.bytes = files.length(&current_path).unwrap_or(0);
    let has_current = current.is_ok();
    let named = match current {
        Ok(current) => Some((current.database_id, current.manifest_number)),
        Err(error) => {
            let error = match error.kind() {
                ErrorKind::NotFound => Error::corruption("there is no CURRENT").because(error),
                _ => error,
            };
            on_finding(Weight::Damage, Structure::Current, error.in_file(&current_path));
            newest_manifest(files, directory, listing)
        }
    };
    let Some((database_id, number)) = named else { return found };
    found.database_id = Some(database_id);
    found.number = Some(number);
    let path = FileName::Manifest(number).path(directory);
    // Before the manifest: a writer may be adding to both.
    let witness = Witness::read(files, directory, (database_id, number));
    found.begun_log = witness.log_number;
    found.bytes += files.length(&path).unwrap_or(0);
    let is_whole = read_edits(files, &path, witness.manifest_end_offset, &mut found, on_finding);
    found.is_whole = has_current && is_whole;
    found
}

/// The manifest with the largest number among those whose header is whole, and whose it is.
fn newest_manifest(
    files: &dyn FileSystem,
    directory: &Path,
    listing: &DirectoryListing,
) -> Option<(u128, FileNumber)> {
    listing.names.iter().rev().find_map(|name| {
        let FileName::Manifest(number) = *name else { return None };
        let header = read_header(files, &name.path(directory), LogKind::Manifest).ok()?;
        (header.log_number == number).then_some((header.database_id, number))
    })
}

/// The header of a log, whosever it is.
pub(crate) fn read_header(files: &dyn FileSystem, path: &Path, kind: LogKind) -> Result<LogHeader> {
    let file = files.open(path, OpenMode::Read)?;
    let mut bytes = vec![0; HEADER_SIZE_BYTES];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    LogHeader::decode(&bytes, kind).map_err(|error| error.at(path, 0))
}

/// Adds up the edits, as far as they are whole; whether they are to the end, and at least to
/// `synced_through`.
fn read_edits(
    files: &dyn FileSystem,
    path: &Path,
    synced_through: u64,
    found: &mut FoundManifest,
    on_finding: &mut OnFinding<'_>,
) -> bool {
    let mut damage =
        |error: Error| on_finding(Weight::Damage, Structure::Manifest, error.in_file(path));
    let (database_id, number) =
        (found.database_id.unwrap_or_default(), found.number.unwrap_or_default());
    let opened = WalReader::open(files, path, LogKind::Manifest, database_id, number);
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(error) => {
            damage(match error.kind() {
                ErrorKind::NotFound => {
                    Error::corruption("CURRENT names a manifest that is not there").because(error)
                }
                _ => error,
            });
            return false;
        }
    };
    let mut is_whole = true;
    if let Err(error) = reader.header() {
        damage(error);
        is_whole = false;
    }
    loop {
        match reader.next_record() {
            Ok(None) => break,
            Ok(Some(record)) => {
                if let Err(error) = add_edit(&record, found) {
                    // Whatever follows builds on this edit.
                    damage(error.at(path, record.position.offset));
                    return false;
                }
            }
            Err(error) => {
                damage(error);
                return false;
            }
        }
    }
    let stop = match reader.stop() {
        Ok(stop) => stop,
        Err(error) => {
            damage(error);
            return false;
        }
    };
    let synced_through = stop.watermark.max(synced_through);
    if found.edits == 0 || synced_through > stop.offset {
        let error = Error::corruption("manifest damaged below what was synced");
        let expected = format!("edits up to offset {synced_through}");
        let behind = format!("{} whole edits behind the damage", stop.records_behind);
        damage(error.at(path, stop.offset).expected(expected, behind));
        return false;
    }
    if !matches!(stop.reason, StopReason::EndOfFile | StopReason::Zeros) {
        let what = "the last edit was not written to its end: it counts as never made";
        let error = Error::corruption(what).at(path, stop.offset);
        on_finding(Weight::Notice, Structure::Manifest, error);
    }
    is_whole
}

fn add_edit(record: &LogRecord<'_>, found: &mut FoundManifest) -> Result<()> {
    let edit = VersionEdit::decode(record.payload)?;
    let applied = found
        .state
        .apply(&edit)
        .map_err(|error| Error::corruption("edit does not fit what is before it").because(error))?;
    found.state = applied.state;
    found.edits += 1;
    Ok(())
}
