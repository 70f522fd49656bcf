//! Puts right checksums over changed bytes, so that what lies behind them is reached. Works on
//! whatever it is given: where nothing looks like a structure, nothing is changed.
//!
//! It knows the formats by their documents, not by the engine's code.

use lithify::format::Checksum;
use std::ops::Range;

/// Puts right checksums over bytes.
pub type Seal = fn(&mut [u8]);

const LOG_HEADER: usize = 72;
const FRAME: usize = 32;
const TRAILER: usize = 16;
const FOOTER: usize = 104;
const INDEX_HEADER: usize = 16;
const WORD: usize = 8;
const RECORD: usize = 52;
const CURRENT: usize = 40;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

fn put(bytes: &mut [u8], at: usize, word: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + word.len()) {
        place.copy_from_slice(word);
    }
}

/// The checksum in front of which everything of `range` stands.
fn seal_range(bytes: &mut [u8], range: Range<usize>) {
    if let Some(covered) = bytes.get(range.clone()) {
        let checksum = Checksum::of(covered);
        put(bytes, range.end, &checksum.to_le_bytes());
    }
}

/// `CURRENT`.
pub fn current(bytes: &mut [u8]) {
    put(bytes, 0, b"LITHCUR\n");
    seal_range(bytes, 0..CURRENT - 4);
}

/// A slot of `WITNESS`.
pub fn witness(bytes: &mut [u8]) {
    put(bytes, 0, b"LITHWIT\n");
    seal_range(bytes, 0..52);
}

/// The file `WITNESS`, whose second slot starts in a sector of its own.
pub fn witness_file(bytes: &mut [u8]) {
    witness(bytes);
    if let Some(second) = bytes.get_mut(512..) {
        witness(second);
    }
}

/// The file `HEAT`, as far as its own count of records says.
pub fn heat(bytes: &mut [u8]) {
    put(bytes, 0, b"LITHEA2\n");
    if let Some(count) = u32_at(bytes, 24) {
        seal_range(bytes, 0..32 + 96 * count as usize);
    }
}

/// A log segment.
pub fn log(bytes: &mut [u8]) {
    put(bytes, 0, b"LITHWAL\n");
    records(bytes);
}

/// A manifest.
pub fn manifest(bytes: &mut [u8]) {
    put(bytes, 0, b"LITHMAN\n");
    records(bytes);
}

/// The header, and one record behind the other as far as their lengths lead. Where they lead
/// nowhere, the log ends.
fn records(bytes: &mut [u8]) {
    seal_range(bytes, 0..LOG_HEADER - 4);
    let Some(identity) = bytes.get(24..40).map(|id| Checksum::new().bytes(id)) else { return };
    let Some(number) = u64_at(bytes, 40) else { return };
    let mut start = LOG_HEADER;
    while let Some(length) = u32_at(bytes, start + 4) {
        let end = start + FRAME + length as usize;
        if length == 0 || end > bytes.len() {
            return;
        }
        put(bytes, start + 8, &number.to_le_bytes());
        put(bytes, start + 16, &(start as u64).to_le_bytes());
        let checksum = identity.bytes(&bytes[start + 4..end]).value();
        put(bytes, start, &checksum.to_le_bytes());
        start = end.next_multiple_of(8);
    }
}

/// The last 104 bytes of a table, with the file's size.
pub fn footer(bytes: &mut [u8]) {
    let size = bytes.len();
    let Some(start) = size.checked_sub(FOOTER) else { return };
    put(bytes, start + 64, &(size as u64).to_le_bytes());
    seal_range(bytes, start..start + 92);
    put(bytes, start + 96, b"lithtabl");
}

/// A block of a table with `id` at `offset` of its file.
fn block(bytes: &mut [u8], range: Range<usize>, id: &[u8], offset: u64) {
    let Some(stored) = bytes.get(range.clone()) else { return };
    let Some(covered) = stored.len().checked_sub(4).filter(|size| size + 4 >= TRAILER) else {
        return;
    };
    let checksum = Checksum::new().bytes(&stored[..covered]).bytes(id).u64(offset).value();
    put(bytes, range.start + covered, &checksum.to_le_bytes());
}

/// A block behind one byte that says as what it is asked for, of a table whose id is zeros.
pub fn stored_block(bytes: &mut [u8]) {
    let size = bytes.len();
    block(bytes, 1..size, &[0; 16], 0);
}

/// A whole table: its footer, and all blocks that it and an index stored raw lead to.
pub fn table(bytes: &mut [u8]) {
    footer(bytes);
    let Some(start) = bytes.len().checked_sub(FOOTER) else { return };
    let id: Vec<u8> = bytes[start..start + 16].to_vec();
    let mut index = 0..0;
    for handle in 0..4 {
        let range = place(bytes, start + 16 + 12 * handle);
        block(bytes, range.clone(), &id, range.start as u64);
        if handle == 2 {
            index = range;
        }
    }
    under(bytes, index, &id, 2);
    dictionaries(bytes, start, &id);
}

/// The dictionaries in front of the properties, from the last one on.
fn dictionaries(bytes: &mut [u8], footer: usize, id: &[u8]) {
    let mut end = place(bytes, footer + 52).start;
    let mut left = match bytes.get(footer + 80) {
        Some(bits) if bits & 2 != 0 => u32_at(bytes, footer + 88).unwrap_or(0) as usize,
        _ => 0,
    };
    while left > 0 {
        let raw_size = end.checked_sub(8).and_then(|at| u32_at(bytes, at)).unwrap_or(0) as usize;
        let size = raw_size.saturating_add(TRAILER);
        if size > left.min(end) {
            return;
        }
        block(bytes, end - size..end, id, (end - size) as u64);
        (end, left) = (end - size, left - size);
    }
}

/// Blocks under an index block, and with more than one of `levels` those under them.
fn under(bytes: &mut [u8], index: Range<usize>, id: &[u8], levels: u32) {
    let is_raw = bytes.get(index.end.wrapping_sub(TRAILER) + 1) == Some(&0);
    let count = u32_at(bytes, index.start).unwrap_or(0) as usize;
    let records = index.start + INDEX_HEADER + count.saturating_mul(WORD);
    if levels == 0 || !is_raw || count.saturating_mul(WORD + RECORD) > index.len() {
        return;
    }
    for number in 0..count {
        let range = place(bytes, records + number * RECORD);
        under(bytes, range.clone(), id, levels - 1);
        block(bytes, range.clone(), id, range.start as u64);
    }
}

/// Where a handle or record points: offset u64, stored size u32.
fn place(bytes: &[u8], at: usize) -> Range<usize> {
    let start = u64_at(bytes, at).unwrap_or(0) as usize;
    let size = u32_at(bytes, at + 8).unwrap_or(0) as usize;
    match start.checked_add(size) {
        Some(end) if end <= bytes.len() => start..end,
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::corpus::corpus;
    use super::*;

    /// Sealing what is whole changes nothing, and what was broken is whole again.
    #[test]
    fn seals_are_what_the_engine_writes() {
        let seals: [(&str, Seal); 6] = [
            ("current", current),
            ("log", log),
            ("manifest", manifest),
            ("footer", footer),
            ("table", table),
            ("stored_block", stored_block),
        ];
        for (name, seal) in seals {
            assert!(!corpus().seeds(name).is_empty(), "{name}");
            for seed in corpus().seeds(name) {
                let mut sealed = seed.clone();
                seal(&mut sealed);
                assert!(sealed == *seed, "{name}: sealing changed {} bytes", seed.len());
            }
        }
    }
}
