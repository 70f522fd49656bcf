//! Which file it is, and the files that are one piece: `CURRENT` and `LOCK`.

use super::item::Item;
use super::{log, table};
use crate::compaction::{HEAT_MAGIC, ReadHeat};
use crate::fs::{File, FileSystem, OpenMode, read_exact_at};
use crate::manifest::{
    CURRENT_MAGIC, CURRENT_SIZE_BYTES, Current, FileName, WITNESS_MAGIC, Witness,
};
use crate::table::TABLE_MAGIC;
use crate::wal::LogKind;
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a lock file that are looked at.
const LOCK_SIZE_MAX: u64 = 64;

/// What of a file is handed out. Whatever is left out is read and checked all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// The data blocks of a table, with what the index says of them.
    pub blocks: bool,
    /// The entries of data blocks and of log records.
    pub entries: bool,
    /// At most so many items of each kind that a file can hold any number of.
    pub limit: u64,
    /// Keys and values in full, however long.
    pub full: bool,
}

impl Default for DumpOptions {
    /// No blocks, no entries, no limit, long keys and values cut.
    fn default() -> Self {
        DumpOptions { blocks: false, entries: false, limit: u64::MAX, full: false }
    }
}

/// Where items go, and what was damaged so far.
pub(super) struct Output<'a> {
    pub(super) options: DumpOptions,
    sink: &'a mut dyn FnMut(&Item) -> Result<()>,
    /// Per kind: how many there were.
    counts: BTreeMap<&'static str, u64>,
    damage: Option<Error>,
}

impl Output<'_> {
    /// Hands out an item.
    pub(super) fn put(&mut self, item: Item) -> Result<()> {
        (self.sink)(&item)
    }

    /// Counts one more of a kind; whether it is within the limit.
    pub(super) fn admits(&mut self, kind: &'static str) -> bool {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        *count <= self.options.limit
    }

    /// Takes note of damage and goes on. The first one is the result of the dump.
    pub(super) fn note_damage(&mut self, error: Error) -> Result<()> {
        let mut item = Item::line("damage", 0);
        if let Some(offset) = error.offset() {
            item = item.at(offset);
        }
        let item = item.text("error", &error);
        self.damage.get_or_insert(error);
        self.put(item)
    }

    pub(super) fn has_damage(&self) -> bool {
        self.damage.is_some()
    }

    /// Says what the limit left out, and gives the first damage.
    fn finish(mut self) -> Result<()> {
        let limit = self.options.limit;
        for (kind, count) in std::mem::take(&mut self.counts) {
            if count > limit {
                let item = Item::line("left out", 0).text("kind", kind);
                self.put(item.number("count", count - limit).number("of", count))?;
            }
        }
        self.damage.map_or(Ok(()), Err)
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Table,
    Log(LogKind),
    Current,
    Witness,
    Heat,
    Lock,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Table => "table",
            Kind::Log(kind) => kind.name(),
            Kind::Current => "CURRENT",
            Kind::Witness => "WITNESS",
            Kind::Heat => "HEAT",
            Kind::Lock => "LOCK",
        }
    }
}

/// Hands every part of a file of the engine to `sink`, in the order of the file. An error of
/// `sink` ends it.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for what is not a file of the engine, [`ErrorKind::NotFound`]
/// for no file. [`ErrorKind::Corruption`] with file and offset for the first damage, after
/// everything that can be read was handed out; [`ErrorKind::Unsupported`] for a version that this
/// one cannot read, after its header was. [`ErrorKind::Io`].
///
/// ```
/// use lithify::{CfOptions, Db, Options, fs::World, inspect};
/// let world = World::memory(7);
/// let options = Options { background_threads: 0, ..Options::default() };
/// let db = Db::open_in("rocks.db", options, world.clone())?;
/// db.column_family("rocks", CfOptions::default())?.put(b"basalt", b"igneous")?;
/// db.close()?;
/// let path = std::path::Path::new("rocks.db/CURRENT");
/// let mut names = Vec::new();
/// inspect::dump(&*world.files, path, &Default::default(), &mut |item| {
///     names.push(item.name());
///     Ok(())
/// })?;
/// assert_eq!(names, ["file", "current"]);
/// # Ok::<(), lithify::Error>(())
/// ```
pub fn dump(
    files: &dyn FileSystem,
    path: &Path,
    options: &DumpOptions,
    sink: &mut dyn FnMut(&Item) -> Result<()>,
) -> Result<()> {
    if !files.exists(path)? {
        return Err(Error::new(ErrorKind::NotFound, "there is no such file").in_file(path));
    }
    if files.is_directory(path)? {
        let what = "this is a directory: name a file in it, or ask for its levels";
        return Err(Error::invalid(what).in_file(path));
    }
    let file = files.open(path, OpenMode::Read)?;
    let size_bytes = file.length()?;
    let kind = identify(&*file, size_bytes)?;
    let mut output = Output { options: *options, sink, counts: BTreeMap::new(), damage: None };
    let item = Item::line("file", 0).text("kind", kind.name());
    output.put(item.number("size_bytes", size_bytes))?;
    match kind {
        Kind::Table => table::dump(&file, &mut output)?,
        Kind::Log(kind) => log::dump(files, &file, kind, &mut output)?,
        Kind::Current => dump_current(&file, &mut output)?,
        Kind::Witness => dump_witness(&file, &mut output)?,
        Kind::Heat => dump_heat(&file, size_bytes, &mut output)?,
        Kind::Lock => dump_lock(&file, size_bytes, &mut output)?,
    }
    output.finish()
}

/// A file is what its magic says, so that it can have any name; where there is none, it is what
/// its name says, so that damage in the magic is found and named.
fn identify(file: &dyn File, size_bytes: u64) -> Result<Kind> {
    let mut start = [0; 8];
    let mut end = [0; 8];
    if size_bytes >= 8 {
        file.read_at(&mut start, 0)?;
        file.read_at(&mut end, size_bytes - 8)?;
    }
    let kinds = [LogKind::Wal, LogKind::Manifest];
    if let Some(kind) = kinds.into_iter().find(|kind| *kind.magic() == start) {
        return Ok(Kind::Log(kind));
    }
    if start == *CURRENT_MAGIC {
        return Ok(Kind::Current);
    }
    if start == *WITNESS_MAGIC {
        return Ok(Kind::Witness);
    }
    if start == *HEAT_MAGIC {
        return Ok(Kind::Heat);
    }
    if end == *TABLE_MAGIC {
        return Ok(Kind::Table);
    }
    match FileName::of_path(file.path()) {
        Some(FileName::Table(_)) => Ok(Kind::Table),
        Some(FileName::Wal(_)) => Ok(Kind::Log(LogKind::Wal)),
        Some(FileName::Manifest(_)) => Ok(Kind::Log(LogKind::Manifest)),
        Some(FileName::Current | FileName::CurrentTemporary) => Ok(Kind::Current),
        Some(FileName::Witness) => Ok(Kind::Witness),
        Some(FileName::Heat) => Ok(Kind::Heat),
        Some(FileName::Lock) => Ok(Kind::Lock),
        None => {
            let what = "this is not a file of the engine: neither its magic nor its name is one";
            Err(Error::invalid(what).in_file(file.path()))
        }
    }
}

fn dump_current(file: &Arc<dyn File>, output: &mut Output<'_>) -> Result<()> {
    let current = Current::read_file(&**file)?;
    let checksum = read_exact_at(&**file, CURRENT_SIZE_BYTES as u64 - 4, 4)?;
    let checksum = checksum.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    output.put(
        Item::long("current")
            .at(0)
            .bytes("magic", CURRENT_MAGIC, true)
            .text("database_id", format_args!("{:032x}", current.database_id))
            .number("manifest_number", current.manifest_number)
            .bits("checksum", checksum),
    )
}

/// The slots that are whole. One that is not is no damage: a crash may have torn it.
fn dump_witness(file: &Arc<dyn File>, output: &mut Output<'_>) -> Result<()> {
    for (offset, slot) in Witness::slots(&**file) {
        let item = match slot {
            Ok((database_id, witness)) => Item::long("witness")
                .at(offset)
                .bytes("magic", WITNESS_MAGIC, true)
                .text("database_id", format_args!("{database_id:032x}"))
                .number("manifest_number", witness.manifest_number)
                .number("manifest_end_offset", witness.manifest_end_offset)
                .number("log_number", witness.log_number),
            Err(_) => Item::line("witness", 0).at(offset).text("state", "not whole"),
        };
        output.put(item)?;
    }
    Ok(())
}

/// What is known of each level. A file that is not whole is no damage: a crash may have torn it.
fn dump_heat(file: &Arc<dyn File>, size_bytes: u64, output: &mut Output<'_>) -> Result<()> {
    let content = read_exact_at(&**file, 0, (size_bytes as usize).min(ReadHeat::SIZE_BYTES_MAX))?;
    let Ok((database_id, heat)) = ReadHeat::decode(&content) else {
        return output.put(Item::line("heat", 0).at(0).text("state", "not whole"));
    };
    let database_id = format_args!("{database_id:032x}");
    output.put(
        Item::long("heat").at(0).bytes("magic", HEAT_MAGIC, true).text("database_id", database_id),
    )?;
    for (id, family) in &heat.families {
        for (level, numbers) in &family.levels {
            let item = Item::line("level", 1).number("family", u64::from(*id));
            let item =
                item.number("level", *level as u64).text("device_share", family.device_share);
            let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
            output.put(item.text("numbers", numbers.join(" ")))?;
        }
    }
    Ok(())
}

/// The file is there to be locked; the holder leaves its process id in it, for messages.
fn dump_lock(file: &Arc<dyn File>, size_bytes: u64, output: &mut Output<'_>) -> Result<()> {
    let content = read_exact_at(&**file, 0, size_bytes.min(LOCK_SIZE_MAX) as usize)?;
    let item = Item::long("lock").at(0);
    output.put(item.bytes("last_holder_process", content.trim_ascii_end(), true))
}
