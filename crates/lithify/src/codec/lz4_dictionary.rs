//! LZ4 blocks with a dictionary, through functions of liblz4 that `lzzzz` does not offer without
//! loading the dictionary for every block.
//!
//! A dictionary is loaded once into a state of the library. A block is encoded by a copy of that
//! state: 16 KiB to copy in fast mode, 256 KiB in high compression. The copy is what makes the
//! bytes a function of block and dictionary alone.
//!
//! Unsafe: foreign functions. The state is plain memory, and points at the dictionary's end that
//! lies beside it in [`LoadedState`], on the heap and never changed.

use crate::{Error, Result};
use std::ffi::{c_char, c_int, c_void};

/// Matches reach back so far: what lies before the end of a dictionary is never used.
const REACH: usize = 64 << 10;

#[expect(unsafe_code, reason = "the safe wrapper loads the dictionary for every block")]
// Defined by the library that `lzzzz` links.
unsafe extern "C" {
    fn LZ4_sizeofState() -> c_int;
    fn LZ4_initStream(state: *mut c_void, size: usize) -> *mut c_void;
    fn LZ4_loadDictSlow(state: *mut c_void, content: *const c_char, size: c_int) -> c_int;
    fn LZ4_compress_fast_continue(
        state: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_size: c_int,
        target_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_sizeofStateHC() -> c_int;
    fn LZ4_initStreamHC(state: *mut c_void, size: usize) -> *mut c_void;
    fn LZ4_resetStreamHC_fast(state: *mut c_void, effort: c_int);
    fn LZ4_loadDictHC(state: *mut c_void, content: *const c_char, size: c_int) -> c_int;
    fn LZ4_compress_HC_continue(
        state: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_size: c_int,
        target_capacity: c_int,
    ) -> c_int;
    fn LZ4_compressBound(source_size: c_int) -> c_int;
    fn LZ4_decompress_safe_usingDict(
        source: *const c_char,
        target: *mut c_char,
        source_size: c_int,
        target_capacity: c_int,
        content: *const c_char,
        content_size: c_int,
    ) -> c_int;
}

/// The end of a dictionary, loaded for one effort.
pub(super) struct LoadedState {
    effort: i32,
    /// The library's state, aligned as it asks for.
    state: Box<[u64]>,
    /// What the state points at. One byte longer than what was loaded: a block that began at its
    /// end would be taken for its continuation.
    end: Box<[u8]>,
}

impl LoadedState {
    pub(super) fn new(content: &[u8], effort: i32) -> Result<Self> {
        let tail = tail(content);
        let end: Box<[u8]> = tail.iter().copied().chain([0]).collect();
        let source = end.as_ptr().cast();
        let size = c_int::try_from(tail.len()).map_err(|_| too_long())?;
        #[expect(unsafe_code, reason = "foreign functions")]
        // SAFETY: these return constants.
        let state_size =
            unsafe { if effort >= 2 { LZ4_sizeofStateHC() } else { LZ4_sizeofState() } };
        let word_count = state_size.unsigned_abs() as usize / size_of::<u64>() + 1;
        let mut state = vec![0_u64; word_count].into_boxed_slice();
        let (place, bytes) = (state.as_mut_ptr().cast(), word_count * size_of::<u64>());
        #[expect(unsafe_code, reason = "foreign functions")]
        // SAFETY: the state has the size that the library asks for, and the alignment of a u64,
        // which is that of its widest fields. The library keeps a pointer to the `size` bytes at
        // `source`, which live and stay where they are for as long as the state.
        let is_ready = unsafe {
            if effort >= 2 {
                let is_ready = !LZ4_initStreamHC(place, bytes).is_null();
                LZ4_resetStreamHC_fast(place, effort);
                LZ4_loadDictHC(place, source, size);
                is_ready
            } else {
                let is_ready = !LZ4_initStream(place, bytes).is_null();
                LZ4_loadDictSlow(place, source, size);
                is_ready
            }
        };
        if !is_ready {
            return Err(Error::invalid("lz4 cannot load the dictionary"));
        }
        Ok(LoadedState { effort, state, end })
    }

    /// Appends the encoded form of `raw`; `working` is memory that is kept between calls.
    pub(super) fn encode(
        &self,
        working: &mut Vec<u64>,
        raw: &[u8],
        target: &mut Vec<u8>,
    ) -> Result<()> {
        working.clear();
        working.extend_from_slice(&self.state);
        let size = c_int::try_from(raw.len()).map_err(|_| too_long())?;
        #[expect(unsafe_code, reason = "a foreign function")]
        // SAFETY: this computes with its argument only.
        let bound = unsafe { LZ4_compressBound(size) };
        let Some(capacity) = usize::try_from(bound).ok().filter(|bound| *bound > 0) else {
            return Err(too_long());
        };
        target.reserve(capacity);
        let place = target.spare_capacity_mut().as_mut_ptr().cast();
        let state = working.as_mut_ptr().cast();
        #[expect(unsafe_code, reason = "foreign functions")]
        // SAFETY: `working` is a copy of a state that was loaded, and what that points at is in
        // `self.end`. The library reads `size` bytes of `raw` and writes at most `bound` bytes,
        // for which `target` has room.
        let count = unsafe {
            let source = raw.as_ptr().cast();
            if self.effort >= 2 {
                LZ4_compress_HC_continue(state, source, place, size, bound)
            } else {
                let acceleration = self.effort.saturating_abs();
                LZ4_compress_fast_continue(state, source, place, size, bound, acceleration)
            }
        };
        let count = usize::try_from(count).unwrap_or(0).min(capacity);
        if count == 0 {
            return Err(Error::limit("lz4 cannot compress the block"));
        }
        #[expect(unsafe_code, reason = "the foreign function has set the bytes")]
        // SAFETY: the library returned that it set `count` bytes, at most `bound`.
        unsafe {
            target.set_len(target.len() + count);
        }
        Ok(())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.state) + self.end.len()
    }
}

/// What of a dictionary matches can reach.
fn tail(content: &[u8]) -> &[u8] {
    &content[content.len().saturating_sub(REACH)..]
}

/// Appends at most `raw_len` decoded bytes; says how many they are.
pub(super) fn decode_append(
    stored: &[u8],
    raw_len: usize,
    content: &[u8],
    target: &mut Vec<u8>,
) -> Result<usize> {
    let content = tail(content);
    let sizes = (c_int::try_from(stored.len()), c_int::try_from(raw_len));
    let ((Ok(stored_size), Ok(raw_size)), Ok(content_size)) =
        (sizes, c_int::try_from(content.len()))
    else {
        return Err(too_long());
    };
    target.reserve_exact(raw_len);
    let room = target.spare_capacity_mut();
    #[expect(unsafe_code, reason = "a foreign function")]
    // SAFETY: the library reads `stored_size` bytes of `stored` and `content_size` of `content`,
    // and writes at most `raw_size` bytes from the start of `room`, which has at least that many.
    let count = unsafe {
        LZ4_decompress_safe_usingDict(
            stored.as_ptr().cast(),
            room.as_mut_ptr().cast(),
            stored_size,
            raw_size,
            content.as_ptr().cast(),
            content_size,
        )
    };
    let count = usize::try_from(count).map_err(|_| Error::corruption("lz4 block"))?;
    #[expect(unsafe_code, reason = "the foreign function has set the bytes")]
    // SAFETY: the library returned that it set `count` bytes, at most `raw_size`.
    unsafe {
        target.set_len(target.len() + count.min(raw_len));
    }
    Ok(count)
}

#[cold]
fn too_long() -> Error {
    Error::limit("lz4 block is longer than the library takes")
}
