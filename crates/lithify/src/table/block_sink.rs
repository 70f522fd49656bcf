//! Where the blocks of a table go that is being made: encoded, sealed, and kept until they are taken.

use super::block::{self, BlockHandle, Encoding, Layout};
use super::dictionaries::DictionaryWriter;
use super::stored_block::StoredBlock;
use crate::base::{Clock, TableId};
use crate::codec::{CodecId, Dictionary, PooledCompressor};
use crate::stats::{Part, WorkMeter};
use crate::{Error, Result};

/// Whoever makes a table writes its finished bytes once so many have gathered.
pub(crate) const WRITE_BYTES: usize = 256 << 10;

/// What the block behind them may take, with what its encoder wants.
const OUTPUT_SLACK_BYTES: usize = 64 << 10;

/// Where blocks go: the compressor and the bytes not taken yet.
pub(super) struct BlockSink {
    pub(super) table_id: TableId,
    pub(super) compressor: PooledCompressor,
    pub(super) output: Vec<u8>,
    /// Where `output` starts in the file.
    pub(super) output_offset: u64,
    /// What the next output is written into.
    pub(super) spare: Vec<u8>,
    pub(super) dictionaries: DictionaryWriter,
}

pub(super) struct Written {
    pub(super) handle: BlockHandle,
    pub(super) codec: CodecId,
    /// The id of the dictionary that it is encoded with; 0: none.
    pub(super) dictionary: u32,
    pub(super) is_fallback: bool,
}

impl BlockSink {
    pub(super) fn offset(&self) -> u64 {
        self.output_offset + self.output.len() as u64
    }

    /// Encodes a block if `encode` is set and it shrinks enough, and seals it.
    pub(super) fn write(
        &mut self,
        layout: Layout,
        raw: &[u8],
        encode: bool,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<Written> {
        if raw.len() > layout.raw_size_max() {
            return Err(Error::limit("a block of the table is too large; cut tables earlier")
                .expected(format_args!("at most {}", layout.raw_size_max()), raw.len()));
        }
        self.make_room(raw.len());
        let start = self.output.len();
        let own = self.dictionaries.own().filter(|_| layout == Layout::Data);
        let (compressor, output) = (&mut self.compressor, &mut self.output);
        let codec = match encode {
            true => encode_block(compressor, own, raw, output, meter, clock)?,
            false => {
                output.extend_from_slice(raw);
                CodecId::None
            }
        };
        let dictionary = own.filter(|_| codec != CodecId::None).map_or(0, Dictionary::id);
        if dictionary != 0 {
            self.dictionaries.note_own();
        }
        let wanted = self.compressor.compression().codec;
        let is_fallback = encode && codec != wanted;
        let encoding = Encoding { codec, dictionary, raw_size: raw.len() as u32 };
        let handle = self.seal(start, layout, encoding, meter, clock);
        Ok(Written { handle, codec, dictionary, is_fallback })
    }

    /// Reserves an empty output at once: one that grows leaves its smaller selves behind in the allocator.
    fn make_room(&mut self, block_bytes: usize) {
        if self.output.capacity() == 0 {
            // A quarter more than the block is over what any encoder wants for the worst case.
            let slack_bytes = OUTPUT_SLACK_BYTES.max(block_bytes + block_bytes / 4);
            self.output.reserve_exact(WRITE_BYTES + slack_bytes);
        }
    }

    /// Writes the dictionaries that blocks use; their bytes together.
    pub(super) fn write_dictionaries(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> u32 {
        let start = self.offset();
        let used: Vec<_> = self.dictionaries.used().cloned().collect();
        for dictionary in used {
            let payload = [&dictionary.hash().0[..], dictionary.content()].concat();
            let encoding = Encoding {
                codec: CodecId::None,
                dictionary: dictionary.id(),
                raw_size: payload.len() as u32,
            };
            self.append(Layout::Dictionary, &payload, encoding, meter, clock);
        }
        (self.offset() - start) as u32
    }

    /// Appends a block that was encoded before.
    pub(super) fn append(
        &mut self,
        layout: Layout,
        payload: &[u8],
        encoding: Encoding,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) {
        self.make_room(payload.len());
        let start = self.output.len();
        self.output.extend_from_slice(payload);
        self.seal(start, layout, encoding, meter, clock);
    }

    /// Puts the trailer behind a payload that starts at `start` of the output.
    fn seal(
        &mut self,
        start: usize,
        layout: Layout,
        encoding: Encoding,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> BlockHandle {
        let offset = self.output_offset + start as u64;
        let (output, place) = (&mut self.output, (&self.table_id, offset));
        meter.time(clock, Part::Checksum, || {
            block::seal(output, start, layout, encoding, place);
        });
        BlockHandle { offset, stored_size: (self.output.len() - start) as u32 }
    }

    /// Appends a block as it is stored in another table.
    pub(super) fn copy(
        &mut self,
        block: &StoredBlock<'_>,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> BlockHandle {
        if let Some(dictionary) = block.dictionary {
            self.dictionaries.carry(dictionary);
        }
        self.make_room(block.stored.len());
        let offset = self.offset();
        let (output, place) = (&mut self.output, (&self.table_id, offset));
        meter.time(clock, Part::Checksum, || {
            block::transplant(output, block.stored, block.of_bytes, place);
        });
        BlockHandle { offset, stored_size: block.stored.len() as u32 }
    }
}

/// Appends a block as it is to be stored, and says with which codec: none if it would be over 7/8
/// of `raw`.
pub(super) fn encode_block(
    compressor: &mut PooledCompressor,
    dictionary: Option<&Dictionary>,
    raw: &[u8],
    target: &mut Vec<u8>,
    meter: &mut WorkMeter,
    clock: &dyn Clock,
) -> Result<CodecId> {
    let codec = compressor.compression().codec;
    if codec == CodecId::None {
        target.extend_from_slice(raw);
        return Ok(codec);
    }
    let start = target.len();
    let started = clock.ticks();
    let result = compressor.compress_with(dictionary, raw, target);
    let ticks = clock.ticks().wrapping_sub(started);
    result?;
    let mut stored_size = target.len() - start;
    let shrinks = stored_size <= raw.len() / 8 * 7;
    if !shrinks {
        target.truncate(start);
        target.extend_from_slice(raw);
        stored_size = raw.len();
        meter.raw_fallback_blocks += 1;
    }
    let number = codec as usize;
    meter.ticks[Part::Compress as usize] += ticks;
    let codecs = meter.codecs();
    codecs.compress_ticks[number] += ticks;
    codecs.compressed_raw_bytes[number] += raw.len() as u64;
    // A block that stays raw counts with what it takes: that is what trying the codec gained.
    codecs.compressed_stored_bytes[number] += stored_size as u64;
    if planted!(CodecMarkerWrong) {
        return Ok(codec);
    }
    Ok(if shrinks { codec } else { CodecId::None })
}
