//! The manifest on disk: a log of edits and `CURRENT`, which names it.
//!
//! 1. Opening reads `CURRENT` and the manifest that it names, and adds up the edits.
//! 2. A new manifest is then written that begins with the whole state, and put into force; so no
//!    edit is ever appended behind a torn one.
//! 3. An edit is checked against the state, appended and synced before the state moves on.
//! 4. A manifest that grew over its bound is replaced like in 2 before the next edit.
//! 5. How far it is durable is written down beside it, so that an end that is lost later is missed.

use super::current::{self, Current};
use super::edit::{Change, NEXT_FILE_NUMBER_MAX, VersionEdit};
use super::lifetimes::{DirectoryListing, ObsoleteTables};
use super::names::FileName;
use super::readers::ManifestPosition;
use super::state::ManifestState;
use super::witness::{Witness, WitnessKeeper};
use crate::base::FileNumber;
use crate::fs::FileSystem;
use crate::wal::{LogHeader, LogKind, LogStop, SegmentOptions, StopReason, WalReader, WalWriter};
use crate::{Error, ErrorKind, Result};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A manifest is replaced before the next edit once it is longer than this, and longer than
/// twice its first record.
pub const ROTATE_SIZE_BYTES: u64 = 4 << 20;

/// Gives out file numbers; shared by everything that creates files. Any thread.
#[derive(Debug)]
pub struct FileNumbers {
    next: AtomicU64,
}

impl FileNumbers {
    /// Gives out `next` first.
    pub(crate) fn starting_at(next: FileNumber) -> Self {
        FileNumbers { next: AtomicU64::new(next) }
    }

    /// A number that no file of this database ever had.
    pub fn take(&self) -> FileNumber {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Numbers below this one have been given out.
    pub fn next(&self) -> FileNumber {
        self.next.load(Ordering::Relaxed)
    }
}

/// A manifest as it is on disk, read without changing anything.
#[derive(Debug)]
pub struct LoadedManifest {
    /// The identity of the database.
    pub database_id: u128,
    /// The number of the manifest in force.
    pub number: FileNumber,
    /// Its header.
    pub header: LogHeader,
    /// What its edits add up to.
    pub state: ManifestState,
    /// How many edits it holds, the first one included.
    pub edits: u64,
    /// Where reading ended. An edit that was being written when the machine stopped is dropped
    /// here, and counts as never made.
    pub stop: LogStop,
    /// The newest log segment that is known to have begun; 0 if none is.
    pub log_number: FileNumber,
}

impl LoadedManifest {
    /// Reads the manifest in force in `directory`, and hands every edit with its offset to
    /// `on_edit` before it is applied. [`ErrorKind::NotFound`] where there is no `CURRENT`,
    /// [`ErrorKind::Corruption`] with file and offset for anything that was durable and is damaged.
    pub fn read(
        file_system: &dyn FileSystem,
        directory: &Path,
        on_edit: &mut dyn FnMut(u64, &VersionEdit),
    ) -> Result<Self> {
        let current = Current::read(file_system, directory)?;
        let (database_id, number) = (current.database_id, current.manifest_number);
        let path = FileName::Manifest(number).path(directory);
        // Before the manifest: a writer may be adding to both.
        let witness = Witness::read(file_system, directory, (database_id, number));
        let mut reader =
            WalReader::open(file_system, &path, LogKind::Manifest, database_id, number)
                .map_err(|error| missing_manifest(error, directory))?;
        let header = *reader.header()?;
        let mut state = ManifestState::default();
        let mut edits = 0;
        while let Some(record) = reader.next_record()? {
            let offset = record.position.offset;
            let at = |error: Error| error.at(&path, offset);
            let edit = VersionEdit::decode(record.payload).map_err(at)?;
            on_edit(offset, &edit);
            let applied = state.apply(&edit).map_err(|error| {
                at(Error::corruption("edit does not fit what is before it").because(error))
            })?;
            state = applied.state;
            edits += 1;
        }
        let stop = reader.stop()?;
        let synced_through = stop.watermark.max(witness.manifest_end_offset);
        if edits == 0 || synced_through > stop.offset {
            return Err(Error::corruption("manifest damaged below what was synced")
                .at(&path, stop.offset)
                .expected(format_args!("edits up to offset {synced_through}"), "no edit"));
        }
        let log_number = witness.log_number;
        Ok(LoadedManifest { database_id, number, header, state, edits, stop, log_number })
    }

    /// A defect: leaves out the last edit if it removes tables, and these are still there.
    fn take_back(&mut self, file_system: &dyn FileSystem, directory: &Path) -> Result<()> {
        let mut edits = Vec::new();
        LoadedManifest::read(file_system, directory, &mut |_, edit| edits.push(edit.clone()))?;
        let Some(last) = edits.pop() else { return Ok(()) };
        let removed = last.changes.iter().filter_map(|change| match change {
            Change::RemoveFile { number, .. } => Some(FileName::Table(*number).path(directory)),
            _ => None,
        });
        let are_there: Vec<bool> =
            removed.map(|path| file_system.exists(&path)).collect::<Result<_>>()?;
        if !are_there.is_empty() && are_there.iter().all(|is_there| *is_there) {
            self.state = edits.iter().try_fold(ManifestState::default(), |state, edit| {
                state.apply(edit).map(|applied| applied.state)
            })?;
        }
        Ok(())
    }

    /// How far it was read.
    pub fn position(&self) -> ManifestPosition {
        ManifestPosition { number: self.number, offset: self.stop.offset }
    }

    /// Whether bytes of an edit that was not finished were dropped.
    pub fn dropped_an_edit(&self) -> bool {
        !matches!(self.stop.reason, StopReason::EndOfFile | StopReason::Zeros)
    }
}

/// A missing manifest is not a missing database: `CURRENT` names it.
fn missing_manifest(error: Error, directory: &Path) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    Error::corruption("CURRENT names a manifest that is not there")
        .in_file(FileName::Current.path(directory))
        .because(error)
}

/// The manifest of an open database. One thread at a time; states and file numbers are shared.
pub struct Manifest {
    file_system: Arc<dyn FileSystem>,
    directory: PathBuf,
    database_id: u128,
    number: FileNumber,
    /// `None` if it is only read.
    writer: Option<WalWriter>,
    rotate_size_bytes: u64,
    rotate_at_bytes: u64,
    finished_bytes: u64,
    state: Arc<ManifestState>,
    numbers: Arc<FileNumbers>,
    obsolete: ObsoleteTables,
    poison: Option<Error>,
    witness: Arc<WitnessKeeper>,
}

/// A manifest that was opened, with what was found.
pub struct OpenedManifest {
    /// Ready for edits.
    pub manifest: Manifest,
    /// What was read.
    pub loaded: LoadedManifest,
    /// The directory before anything was written.
    pub listing: DirectoryListing,
}

impl Manifest {
    /// Makes a database without column families in `directory`, which must exist and have no
    /// `CURRENT`: [`ErrorKind::AlreadyExists`]. The directory must be locked.
    pub fn create(
        file_system: Arc<dyn FileSystem>,
        directory: &Path,
        database_id: u128,
    ) -> Result<Self> {
        let path = FileName::Current.path(directory);
        if file_system.exists(&path)? {
            let what = "there is a database already";
            return Err(Error::new(ErrorKind::AlreadyExists, what).in_file(path));
        }
        // What an attempt that did not get as far as CURRENT left keeps its number.
        let largest_number = DirectoryListing::read(&*file_system, directory)?.largest_number();
        let state = ManifestState::default();
        Manifest::start(file_system, directory, database_id, state, (largest_number, 0))
    }

    /// Reads the manifest in force and replaces it by a new one. The directory must be locked.
    /// File numbers go on behind the largest one in the directory.
    pub fn open(file_system: Arc<dyn FileSystem>, directory: &Path) -> Result<OpenedManifest> {
        let listing = DirectoryListing::read(&*file_system, directory)?;
        let (manifest, loaded) = Manifest::open_listed(file_system, directory, &listing)?;
        Ok(OpenedManifest { manifest, loaded, listing })
    }

    /// [`Manifest::open`] in a directory of which the files are known.
    pub fn open_listed(
        file_system: Arc<dyn FileSystem>,
        directory: &Path,
        listing: &DirectoryListing,
    ) -> Result<(Self, LoadedManifest)> {
        let mut loaded = LoadedManifest::read(&*file_system, directory, &mut |_, _| {})?;
        loaded.header.check_writable(&FileName::Manifest(loaded.number).path(directory))?;
        if planted!(LastCompactionTakenBack) {
            loaded.take_back(&*file_system, directory)?;
        }
        let manifest = Manifest::start(
            file_system,
            directory,
            loaded.database_id,
            loaded.state.clone(),
            (listing.largest_number(), loaded.log_number),
        )?;
        Ok((manifest, loaded))
    }

    /// A manifest as it was read, to which nothing can be added: [`ErrorKind::ReadOnly`].
    pub fn read_only(
        file_system: Arc<dyn FileSystem>,
        directory: &Path,
        loaded: &LoadedManifest,
    ) -> Self {
        let state = loaded.state.clone();
        Manifest {
            file_system,
            directory: directory.to_path_buf(),
            database_id: loaded.database_id,
            number: loaded.number,
            writer: None,
            witness: Arc::new(WitnessKeeper::none(loaded.database_id, loaded.log_number)),
            rotate_size_bytes: ROTATE_SIZE_BYTES,
            rotate_at_bytes: u64::MAX,
            finished_bytes: 0,
            numbers: Arc::new(FileNumbers::starting_at(state.next_file_number)),
            state: Arc::new(state),
            obsolete: ObsoleteTables::default(),
            poison: Some(Error::new(ErrorKind::ReadOnly, "the manifest was opened for reading")),
        }
    }

    /// Writes a manifest with that state and puts it into force. Segments up to `log_number` have
    /// begun.
    fn start(
        file_system: Arc<dyn FileSystem>,
        directory: &Path,
        database_id: u128,
        state: ManifestState,
        (largest_number, log_number): (FileNumber, FileNumber),
    ) -> Result<Self> {
        let next = state.next_file_number.max(largest_number.saturating_add(1));
        if next > NEXT_FILE_NUMBER_MAX / 2 {
            let what = "no file numbers are left: a file with a very large number is in the way";
            return Err(Error::limit(what)
                .in_file(directory)
                .expected(format_args!("at most {}", NEXT_FILE_NUMBER_MAX / 2), next));
        }
        let numbers = Arc::new(FileNumbers::starting_at(next));
        let number = numbers.take();
        let state = ManifestState { next_file_number: numbers.next(), ..state };
        let writer = write_snapshot(&*file_system, directory, database_id, number, &state)?;
        put_into_force(&*file_system, directory, database_id, number)?;
        let witness = WitnessKeeper::open(&*file_system, directory, database_id, log_number);
        witness.manifest_is_durable(number, writer.end_offset());
        let mut manifest = Manifest {
            file_system,
            directory: directory.to_path_buf(),
            database_id,
            number,
            writer: Some(writer),
            rotate_size_bytes: ROTATE_SIZE_BYTES,
            rotate_at_bytes: 0,
            finished_bytes: current::SIZE_BYTES as u64,
            state: Arc::new(state),
            numbers,
            obsolete: ObsoleteTables::default(),
            poison: None,
            witness: Arc::new(witness),
        };
        manifest.set_rotate_size_bytes(ROTATE_SIZE_BYTES);
        Ok(manifest)
    }

    /// Writes a manifest with that state into a directory that has none, and puts it into force: the
    /// manifest of a copy. It takes the state's next file number. Gives the bytes written.
    pub fn export(
        file_system: &dyn FileSystem,
        directory: &Path,
        database_id: u128,
        state: &ManifestState,
    ) -> Result<u64> {
        let number = state.next_file_number;
        let state = ManifestState { next_file_number: number + 1, ..state.clone() };
        let writer = write_snapshot(file_system, directory, database_id, number, &state)?;
        put_into_force(file_system, directory, database_id, number)?;
        Ok(writer.end_offset() + current::SIZE_BYTES as u64)
    }

    /// Checks an edit, makes it durable, and gives the state that it leads to. An error of
    /// [`ManifestState::apply`] or a full disk leaves everything as it was. After a failed write
    /// or sync it is unknown what is durable: [`ErrorKind::Poisoned`] from then on.
    ///
    /// The next file number is recorded with every edit, before its changes.
    pub fn append(&mut self, edit: VersionEdit) -> Result<Arc<ManifestState>> {
        self.check_usable()?;
        if self.end_offset() > self.rotate_at_bytes {
            self.rotate()?;
        }
        let mut changes = vec![Change::NextFileNumber(self.numbers.next())];
        changes.extend(edit.changes);
        let edit = VersionEdit { changes };
        let applied = self.state.apply(&edit)?;
        let durable = self.writer.as_mut().map_or(Ok(()), |writer| {
            writer.append(&[IoSlice::new(&edit.encode())])?;
            if planted!(IngestEditUnsynced)
                && edit.changes.iter().any(|change| {
                    matches!(change, Change::AddFile { metadata, .. } if metadata.ingested)
                })
            {
                return Ok(());
            }
            if planted!(EditUnsynced) {
                return Ok(());
            }
            writer.sync()
        });
        self.poison_if_unknown(durable)?;
        self.witness.manifest_is_durable(self.number, self.end_offset());
        self.obsolete.retire(applied.removed);
        self.state = Arc::new(applied.state);
        Ok(Arc::clone(&self.state))
    }

    /// Replaces the manifest by one that holds nothing but the present state, and removes the old
    /// one. A full disk changes nothing; other failures are like those of [`Manifest::append`].
    pub fn rotate(&mut self) -> Result<()> {
        self.check_usable()?;
        let number = self.numbers.take();
        let state =
            ManifestState { next_file_number: self.numbers.next(), ..(*self.state).clone() };
        let (files, directory) = (&*self.file_system, &self.directory);
        let replaced =
            write_snapshot(files, directory, self.database_id, number, &state).and_then(|writer| {
                put_into_force(files, directory, self.database_id, number).map(|()| writer)
            });
        let writer = self.poison_if_unknown(replaced)?;
        let old_path = FileName::Manifest(self.number).path(&self.directory);
        self.finished_bytes += self.end_offset() + current::SIZE_BYTES as u64;
        self.number = number;
        self.witness.manifest_is_durable(number, writer.end_offset());
        self.writer = Some(writer);
        self.state = Arc::new(state);
        self.set_rotate_size_bytes(self.rotate_size_bytes);
        // The new manifest is in force; an old one that cannot be removed now is an orphan that
        // the next open finds.
        let _ = self.file_system.remove(&old_path);
        Ok(())
    }

    /// Takes no more edits: the directory is about to be given up. Later ones are refused with
    /// [`ErrorKind::Closed`].
    pub fn seal(&mut self) {
        let sealed = || Error::new(ErrorKind::Closed, "the manifest is closed");
        self.poison.get_or_insert_with(sealed);
    }

    fn check_usable(&self) -> Result<()> {
        self.poison.as_ref().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn poison_if_unknown<T>(&mut self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| {
            if error.kind() == ErrorKind::Poisoned {
                self.poison = Some(error.clone());
            }
        })
    }

    /// Sets the length in bytes over which the manifest is replaced.
    pub fn set_rotate_size_bytes(&mut self, rotate_size_bytes: u64) {
        self.rotate_size_bytes = rotate_size_bytes;
        self.rotate_at_bytes = rotate_size_bytes.max(2 * self.end_offset());
    }

    /// The present state.
    pub fn state(&self) -> &Arc<ManifestState> {
        &self.state
    }

    /// Gives out file numbers.
    pub fn file_numbers(&self) -> &Arc<FileNumbers> {
        &self.numbers
    }

    /// The identity of the database.
    pub fn database_id(&self) -> u128 {
        self.database_id
    }

    /// The number of the manifest in force.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Tables that edits removed and somebody may still hold.
    pub fn obsolete(&mut self) -> &mut ObsoleteTables {
        &mut self.obsolete
    }

    /// Bytes written so far to manifests, `CURRENT` and `WITNESS`.
    pub fn written_bytes(&self) -> u64 {
        self.finished_bytes + self.end_offset() + self.witness.written_bytes()
    }

    /// What keeps how far manifest and log are durable.
    pub(crate) fn witness(&self) -> &Arc<WitnessKeeper> {
        &self.witness
    }

    /// Behind the newest edit.
    pub fn position(&self) -> ManifestPosition {
        ManifestPosition { number: self.number, offset: self.end_offset() }
    }

    fn end_offset(&self) -> u64 {
        self.writer.as_ref().map_or(0, WalWriter::end_offset)
    }
}

/// A new manifest whose first record is the state, durable.
fn write_snapshot(
    file_system: &dyn FileSystem,
    directory: &Path,
    database_id: u128,
    number: FileNumber,
    state: &ManifestState,
) -> Result<WalWriter> {
    let options = SegmentOptions {
        kind: LogKind::Manifest,
        database_id,
        log_number: number,
        previous: None,
        preallocate_bytes: 0,
    };
    let path = FileName::Manifest(number).path(directory);
    let written = WalWriter::create(file_system, &path, options, None).and_then(|mut writer| {
        writer.append(&[IoSlice::new(&state.snapshot().encode())])?;
        writer.sync()?;
        Ok(writer)
    });
    if written.is_err() {
        // Nothing names it. If it stays, the next open finds it; the first error tells more.
        let _ = file_system.remove(&path);
    }
    written
}

/// Lets `CURRENT` name a manifest. [`ErrorKind::Poisoned`] where it is unknown whether it does.
fn put_into_force(
    file_system: &dyn FileSystem,
    directory: &Path,
    database_id: u128,
    manifest_number: FileNumber,
) -> Result<()> {
    let current = Current { database_id, manifest_number };
    current.write_temporary(file_system, directory).inspect_err(|_| {
        // Nothing names the new manifest. Where the disk is full each try would leave another one.
        let _ = file_system.remove(&FileName::Manifest(manifest_number).path(directory));
        let _ = file_system.remove(&FileName::CurrentTemporary.path(directory));
    })?;
    Current::install_temporary(file_system, directory).map_err(|error| {
        let what = "it is unknown which manifest is in force; reopen the database";
        Error::new(ErrorKind::Poisoned, what)
            .in_file(FileName::Current.path(directory))
            .because(error)
    })
}
