//! Floor 11: ways into decoders that are no part of the public interface, for fuzz targets.
//!
//! Compiled with the feature `fuzzing` alone; no behaviour depends on it. Each entry takes bytes
//! as they would come from a file, behind the checksum where there is one. It may panic where a
//! promise of the decoder is broken, which is then a finding.

use crate::base::{Clock, MemoryBudget, TableId};
use crate::chooser::LevelWatch;
use crate::codec::{CodecId, Compression, ContextPool, Decompressor};
use crate::compaction::ReadHeat;
use crate::db::GroupHead;
use crate::fs::File;
use crate::manifest::{CURRENT_SIZE_BYTES, Current, ManifestState, VersionEdit, Witness};
use crate::options::CfOptions;
use crate::table::{TableOptions, fuzzing as table};
use crate::{Error, Result};
use std::sync::Arc;

/// Codec contexts of a run.
const CONTEXT_BYTES: usize = 16 << 20;

/// One decoder.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Decodes, and asks what can be asked of the result.
    pub run: fn(&[u8]) -> Result<()>,
}

/// All of them.
pub const ENTRIES: &[Entry] = &[
    Entry { name: "current", run: current },
    Entry { name: "witness", run: witness },
    Entry { name: "heat", run: heat },
    Entry { name: "group", run: group },
    Entry { name: "edit", run: edit },
    Entry { name: "options", run: options },
    Entry { name: "footer", run: table::footer },
    Entry { name: "properties", run: table::properties },
    Entry { name: "index", run: table::index },
    Entry { name: "filter", run: table::filter },
    Entry { name: "data_block", run: table::data_block },
    Entry { name: "tombstones", run: table::tombstones },
    Entry { name: "stored_block", run: stored_block },
    Entry { name: "codec", run: codec },
];

fn pool() -> Arc<ContextPool> {
    ContextPool::new(MemoryBudget::new(CONTEXT_BYTES))
}

/// The blocks of a table, by the name of the entry that decodes them.
///
/// # Errors
/// What a reader finds wrong with the table.
pub fn blocks(file: Arc<dyn File>) -> Result<Vec<(&'static str, Vec<u8>)>> {
    table::blocks(file, pool())
}

/// The bytes of a small table with an index of two levels, which can be ingested. Rows ascend.
///
/// # Errors
/// What the builder refuses.
pub fn two_level_table(
    table_id: TableId,
    rows: &[(Vec<u8>, Vec<u8>)],
    (options, compression): (TableOptions, Compression),
    partition_bytes: usize,
    clock: &dyn Clock,
) -> Result<Vec<u8>> {
    table::two_level_table(
        table_id,
        rows,
        (options, compression),
        partition_bytes,
        (&pool(), clock),
    )
}

/// The file `CURRENT`, of whatever length.
fn current(bytes: &[u8]) -> Result<()> {
    let whole: Option<&[u8; CURRENT_SIZE_BYTES]> = bytes.try_into().ok();
    let whole = whole.ok_or_else(|| Error::corruption("length of CURRENT"))?;
    let current = Current::decode(whole)?;
    assert_eq!(current.encode(), bytes);
    Ok(())
}

/// A slot of `WITNESS`.
fn witness(bytes: &[u8]) -> Result<()> {
    let (database_id, witness) = Witness::decode(bytes)?;
    assert!(bytes.starts_with(&witness.encode(database_id)));
    Ok(())
}

/// The file `HEAT`.
fn heat(bytes: &[u8]) -> Result<()> {
    let (database_id, heat) = ReadHeat::decode(bytes)?;
    let again = heat.encode(database_id);
    assert_eq!(ReadHeat::decode(&again)?.1.encode(database_id), again);
    for (level, numbers) in heat.families.values().flat_map(|family| &family.levels) {
        let known = LevelWatch::from_numbers(*numbers, *level as u64);
        let _ = known.map(|watch| watch.conditions(730.0));
    }
    Ok(())
}

/// The payload of a log record.
fn group(bytes: &[u8]) -> Result<()> {
    let (head, entries) = GroupHead::split(bytes)?;
    let mut found = 0;
    for entry in entries {
        entry?;
        found += 1;
    }
    assert!(head.first_sequence.checked_add(found).is_some());
    Ok(())
}

/// The payload of a manifest record, as the first one and behind itself.
fn edit(bytes: &[u8]) -> Result<()> {
    let edit = VersionEdit::decode(bytes)?;
    let again = VersionEdit::decode(&edit.encode())?;
    assert_eq!(again, edit);
    let fits = |error: Error| Error::corruption("edit does not fit").because(error);
    let state = ManifestState::default().apply(&edit).map_err(fits)?.state;
    let rebuilt = ManifestState::default().apply(&state.snapshot())?.state;
    assert_eq!(rebuilt.snapshot(), state.snapshot());
    // A second time it may fit or not.
    let _ = state.apply(&edit);
    Ok(())
}

/// The stored options of a column family.
fn options(bytes: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::corruption("options are no text").because(error))?;
    let _ = text.parse::<Compression>();
    let options = CfOptions::from_text(text)?;
    assert_eq!(CfOptions::from_text(&options.to_string())?, options);
    Ok(())
}

fn stored_block(bytes: &[u8]) -> Result<()> {
    thread_local! {
        static POOL: Arc<ContextPool> = pool();
    }
    POOL.with(|pool| table::stored_block(bytes, pool))
}

/// A codec's payload behind its codec, a byte that chooses the decoder of zlib, and the raw size
/// as a `u32`, of which 16 MiB are believed.
fn codec(bytes: &[u8]) -> Result<()> {
    thread_local! {
        static DECODERS: [std::cell::RefCell<Decompressor>; 2] =
            [false, true].map(|fast| Decompressor::with_fast_zlib(fast).into());
    }
    let Some(([codec, fast, a, b, c, d], stored)) = bytes.split_first_chunk::<6>() else {
        return Err(Error::corruption("no payload"));
    };
    let codec = CodecId::ALL[usize::from(*codec) % CodecId::ALL.len()];
    let raw_size = u32::from_le_bytes([*a, *b, *c, *d]) as usize % (16 << 20);
    DECODERS.with(|decoders| {
        let mut decoder = decoders[usize::from(fast % 2)].borrow_mut();
        let mut appended = b"before".to_vec();
        let into = decoder.decompress_into(codec, stored, raw_size, &mut appended);
        let mut raw = vec![0; raw_size];
        let exact = decoder.decompress(codec, stored, &mut raw);
        assert_eq!(into.is_ok(), exact.is_ok(), "the two ways of decoding differ");
        match into {
            Ok(()) => assert_eq!(appended[6..], raw),
            Err(_) => assert_eq!(appended, b"before"),
        }
        exact
    })
}
