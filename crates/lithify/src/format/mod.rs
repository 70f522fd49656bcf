//! Floor 0: the bytes that every format on disk is made of.
//!
//! Owns: fixed-width and variable-length integers, a bounds-checked [`Decoder`], checksums, and
//! the feature bits that say whether a file can be read. Everything is little-endian; `usize`
//! never reaches a file.
//!
//! Promises: pure functions, any thread; no input makes a decoder panic or allocate. Errors are
//! typed and say what was expected; the caller adds the file and the offset.
//!
//! It knows no file: the layouts of tables, logs and manifests live in their own rooms.

mod checksum;
mod decoder;
mod encode;
mod features;
#[cfg(test)]
pub(crate) mod golden;

pub use checksum::Checksum;
pub use decoder::{Decoder, read_u16, read_u32, read_u64, read_varint};
pub use encode::{VARINT_SIZE_MAX, put_bytes, put_u16, put_u32, put_u64, put_varint, varint_size};
pub use features::Features;
