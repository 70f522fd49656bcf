//! Deflate by reference zlib, raw: without the zlib header and checksum.
//!
//! It calls the library through `libz-sys` itself and not through `flate2`, because there
//! another crate of the same program can swap the implementation by a feature; here the
//! `stock-zlib` and `static` features hold reference zlib in place.
//!
//! A stream is one heap allocation that the library points back to, so it never moves and is
//! only used through its raw pointer.

#![expect(unsafe_code, reason = "zlib is called through its C interface")]

use super::compressor::BlockEncoder;
use super::decompressor::BlockDecoder;
use crate::{Error, Result};
use libz_sys as z;
use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

/// No header, and the largest window, 32 KiB.
const WINDOW_BITS: c_int = -15;

/// The library's default.
const MEMORY_LEVEL: c_int = 8;

/// What zconf.h gives for these two settings, and a few KiB for the state itself.
const ENCODER_BYTES: usize = (1 << (15 + 2)) + (1 << (MEMORY_LEVEL + 9)) + (6 << 10);

/// What zconf.h gives: the window (made when a damaged block ends early) and about 7 KiB.
const DECODER_BYTES: usize = (1 << 15) + (7 << 10);

pub(super) fn library_name_and_version() -> String {
    // SAFETY: the library returns a constant string that ends with a zero.
    let version = unsafe { CStr::from_ptr(z::zlibVersion()) };
    format!("zlib {}", version.to_string_lossy())
}

/// A stream of the library in a place of its own, with all fields zero until it is set up.
fn new_stream() -> *mut z::z_stream {
    Box::into_raw(Box::new(MaybeUninit::<z::z_stream>::zeroed())).cast()
}

/// Frees what [`new_stream`] made, after the library has let go of what the stream holds.
///
/// # Safety
///
/// `stream` came from [`new_stream`] and is not used any more.
unsafe fn free_stream(stream: *mut z::z_stream) {
    // SAFETY: by the contract of this function; the type is the one it was allocated as.
    drop(unsafe { Box::from_raw(stream.cast::<MaybeUninit<z::z_stream>>()) });
}

/// Gives the library its input and output. The library takes its input through a pointer to
/// mutable bytes, and does not change them.
///
/// # Safety
///
/// `stream` is a stream that the library has set up, `target` has room for `room` bytes, and
/// both buffers live until the library has been called.
unsafe fn give(
    stream: *mut z::z_stream,
    source: &[u8],
    target: *mut u8,
    room: usize,
) -> Result<()> {
    let too_long = |_| Error::limit("zlib block is longer than the library takes");
    let source_len = z::uInt::try_from(source.len()).map_err(too_long)?;
    let room = z::uInt::try_from(room).map_err(too_long)?;
    // SAFETY: `stream` is valid by the contract; only plain fields are written.
    unsafe {
        (*stream).next_in = source.as_ptr().cast_mut();
        (*stream).avail_in = source_len;
        (*stream).next_out = target;
        (*stream).avail_out = room;
    }
    Ok(())
}

fn set_up(code: c_int) -> Result<()> {
    match code {
        z::Z_OK => Ok(()),
        z::Z_MEM_ERROR => Err(Error::limit("no memory for a zlib context")),
        _ => Err(Error::invalid(format!("zlib refuses to set up a context (code {code})"))),
    }
}

pub(super) struct ZlibEncoder {
    stream: *mut z::z_stream,
}

// SAFETY: the stream is owned by this value alone, and the library keeps nothing per thread.
unsafe impl Send for ZlibEncoder {}

impl ZlibEncoder {
    pub(super) fn new(effort: i32) -> Result<Self> {
        let encoder = ZlibEncoder { stream: new_stream() };
        // SAFETY: the stream is zeroed, which asks for the default allocator.
        set_up(unsafe {
            z::deflateInit2_(
                encoder.stream,
                effort,
                z::Z_DEFLATED,
                WINDOW_BITS,
                MEMORY_LEVEL,
                z::Z_DEFAULT_STRATEGY,
                z::zlibVersion(),
                size_of::<z::z_stream>() as c_int,
            )
        })?;
        Ok(encoder)
    }
}

impl BlockEncoder for ZlibEncoder {
    fn encode(&mut self, raw: &[u8], target: &mut Vec<u8>) -> Result<()> {
        // SAFETY: the stream is set up.
        let bound = unsafe {
            z::deflateReset(self.stream);
            z::deflateBound(self.stream, raw.len() as z::uLong) as usize
        };
        target.reserve(bound);
        let room = target.spare_capacity_mut();
        let room_len = room.len().min(bound);
        // SAFETY: the stream is set up; `room` has at least `room_len` bytes, and it and `raw`
        // outlive the call.
        let (code, left) = unsafe {
            give(self.stream, raw, room.as_mut_ptr().cast(), room_len)?;
            (z::deflate(self.stream, z::Z_FINISH), (*self.stream).avail_out as usize)
        };
        if code != z::Z_STREAM_END {
            return Err(Error::limit(format!("zlib cannot compress the block (code {code})")));
        }
        // SAFETY: the library has set all of the `room_len` bytes but the `left` last ones.
        unsafe { target.set_len(target.len() + (room_len - left)) };
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        ENCODER_BYTES
    }
}

impl Drop for ZlibEncoder {
    fn drop(&mut self) {
        // SAFETY: the stream is from `new_stream`; the library frees what it holds, and accepts
        // one that was never set up. Nothing uses it later.
        unsafe {
            z::deflateEnd(self.stream);
            free_stream(self.stream);
        }
    }
}

pub(super) struct ZlibDecoder {
    stream: *mut z::z_stream,
}

// SAFETY: as for the encoder.
unsafe impl Send for ZlibDecoder {}

impl ZlibDecoder {
    pub(super) fn new() -> Result<Self> {
        let decoder = ZlibDecoder { stream: new_stream() };
        // SAFETY: the stream is zeroed, which asks for the default allocator.
        set_up(unsafe {
            z::inflateInit2_(
                decoder.stream,
                WINDOW_BITS,
                z::zlibVersion(),
                size_of::<z::z_stream>() as c_int,
            )
        })?;
        Ok(decoder)
    }

    /// Decodes to `target`; returns how many bytes were set.
    ///
    /// # Safety
    ///
    /// `target` has room for `room` bytes.
    unsafe fn inflate(&mut self, stored: &[u8], target: *mut u8, room: usize) -> Result<usize> {
        // SAFETY: the stream is set up, `target` is as promised, and both outlive the call.
        let (code, left, unread) = unsafe {
            z::inflateReset(self.stream);
            give(self.stream, stored, target, room)?;
            let code = z::inflate(self.stream, z::Z_FINISH);
            (code, (*self.stream).avail_out as usize, (*self.stream).avail_in)
        };
        match code {
            z::Z_STREAM_END if unread == 0 => Ok(room - left),
            z::Z_STREAM_END => Err(Error::corruption("zlib block")
                .expected("its end", format_args!("{unread} more bytes"))),
            z::Z_BUF_ERROR => Err(Error::corruption("zlib block is cut short or too long")),
            z::Z_MEM_ERROR => Err(Error::limit("no memory for a zlib window")),
            _ => Err(Error::corruption(format!("zlib block (code {code})"))),
        }
    }
}

impl BlockDecoder for ZlibDecoder {
    fn decode(&mut self, stored: &[u8], raw: &mut [u8]) -> Result<usize> {
        // SAFETY: `raw` has the room that its length says.
        unsafe { self.inflate(stored, raw.as_mut_ptr(), raw.len()) }
    }

    fn decode_append(
        &mut self,
        stored: &[u8],
        raw_len: usize,
        target: &mut Vec<u8>,
    ) -> Result<usize> {
        target.reserve_exact(raw_len);
        let room = target.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: `raw_len` bytes were reserved behind the length.
        let count = unsafe { self.inflate(stored, room, raw_len) }?;
        // SAFETY: the decoder has set `count` bytes there.
        unsafe { target.set_len(target.len() + count) };
        Ok(count)
    }

    fn memory_bytes(&self) -> usize {
        DECODER_BYTES
    }
}

impl Drop for ZlibDecoder {
    fn drop(&mut self) {
        // SAFETY: as for the encoder.
        unsafe {
            z::inflateEnd(self.stream);
            free_stream(self.stream);
        }
    }
}
