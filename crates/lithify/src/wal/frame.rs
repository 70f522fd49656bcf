//! The frame of a record: what stands before a payload, and the checksum over both.
//!
//! ```text
//! checksum 4 | payload_length 4 | log_number 8 | offset 8 | synced_through 8 | payload | padding
//! ```

use crate::format::{Checksum, Decoder};

/// The bytes of a frame.
pub const FRAME_SIZE_BYTES: usize = 32;

/// The longest payload, in bytes.
pub const PAYLOAD_SIZE_MAX: usize = 1 << 30;

/// Records start at multiples of this.
pub(super) const ALIGNMENT: u64 = 8;

/// The bytes that a record takes in the file: frame, payload and padding.
pub fn stored_size_bytes(payload_size: usize) -> u64 {
    (FRAME_SIZE_BYTES as u64 + payload_size as u64).next_multiple_of(ALIGNMENT)
}

/// A frame without its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub payload_length: u32,
    pub log_number: u64,
    pub offset: u64,
    pub synced_through: u64,
}

/// What checksums of a database's records start from.
pub(super) fn identity(database_id: u128) -> Checksum {
    Checksum::new().bytes(&database_id.to_le_bytes())
}

impl Frame {
    /// The bytes on disk with the checksum over them and over the pieces of the payload.
    pub fn encode<'a>(
        &self,
        identity: Checksum,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> [u8; FRAME_SIZE_BYTES] {
        let mut bytes = [0; FRAME_SIZE_BYTES];
        bytes[4..8].copy_from_slice(&self.payload_length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.log_number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..].copy_from_slice(&self.synced_through.to_le_bytes());
        let checksum = pieces.fold(identity.bytes(&bytes[4..]), Checksum::bytes);
        bytes[..4].copy_from_slice(&checksum.value().to_le_bytes());
        bytes
    }

    /// Reads a frame that claims to be of that log at that offset, with a payload that may be
    /// there; nothing is verified yet.
    pub fn claimed(bytes: &[u8], log_number: u64, offset: u64) -> Option<Frame> {
        let mut decoder = Decoder::new(bytes.get(4..)?);
        let frame = Frame {
            payload_length: decoder.u32().ok()?,
            log_number: decoder.u64().ok()?,
            offset: decoder.u64().ok()?,
            synced_through: decoder.u64().ok()?,
        };
        let mut is_of_log = frame.log_number == log_number;
        if planted!(FormerLifeAccepted) {
            is_of_log = true;
        }
        let plausible = is_of_log
            && frame.offset == offset
            && frame.synced_through <= offset
            && frame.payload_length as usize <= PAYLOAD_SIZE_MAX;
        plausible.then_some(frame)
    }

    /// Whether `record`, a frame and its payload, has the checksum that it should.
    pub fn verifies(record: &[u8], identity: Checksum) -> bool {
        let Some((stored, covered)) = record.split_first_chunk::<4>() else {
            return false;
        };
        if planted!(RecordChecksumIgnored) {
            return true;
        }
        identity.bytes(covered).value() == u32::from_le_bytes(*stored)
    }
}
