//! Makes a dictionary of samples with the trainer of zstd (fast cover).
//!
//! The parameters are fixed: the same samples and size give the same dictionary. It is of zstd's own
//! form, with entropy tables in front; lz4 uses its bytes as they are.
//!
//! Unsafe: a foreign function that the safe wrapper does not offer with parameters.

use super::dictionary::{DICTIONARY_SIZE_MAX, Dictionary};
use crate::Result;
use std::ffi::c_uint;
use std::sync::Arc;
use zstd_safe::zstd_sys;

/// Bytes that a match has at least, as the trainer counts.
const MATCH_SIZE: c_uint = 8;
/// Bytes of samples that are taken at once.
const SEGMENT_SIZE: c_uint = 256;
/// The binary logarithm of the slots that matches are counted in: 1.5 MiB while it runs.
const SLOTS_LOG: c_uint = 18;
/// The effort that the entropy tables are made for.
const EFFORT: i32 = 3;

/// A dictionary of at most `size_bytes` for blocks like the samples; `None` if these are too few or
/// have nothing in common. Samples are best blocks as they are before encoding, 256 KiB together
/// or more.
///
/// # Errors
/// Those of [`Dictionary::new`].
pub fn train(samples: &[&[u8]], size_bytes: usize) -> Result<Option<Arc<Dictionary>>> {
    let (sizes, joined): (Vec<usize>, Vec<u8>) =
        (samples.iter().map(|sample| sample.len()).collect(), samples.concat());
    let (Ok(count), true) = (c_uint::try_from(sizes.len()), joined.len() >= 64) else {
        return Ok(None);
    };
    let mut content = vec![0; size_bytes.min(DICTIONARY_SIZE_MAX)];
    let parameters = zstd_sys::ZDICT_fastCover_params_t {
        k: SEGMENT_SIZE,
        d: MATCH_SIZE,
        f: SLOTS_LOG,
        steps: 0,
        nbThreads: 0,
        splitPoint: 1.0,
        accel: 1,
        shrinkDict: 0,
        shrinkDictMaxRegression: 0,
        zParams: zstd_sys::ZDICT_params_t {
            compressionLevel: EFFORT,
            notificationLevel: 0,
            dictID: 0,
        },
    };
    #[expect(unsafe_code, reason = "a foreign function")]
    // SAFETY: the sizes add up to the bytes of `joined`, and the library writes at most as many
    // bytes of `content` as it has.
    let made = unsafe {
        zstd_sys::ZDICT_trainFromBuffer_fastCover(
            content.as_mut_ptr().cast(),
            content.len(),
            joined.as_ptr().cast(),
            sizes.as_ptr(),
            count,
            parameters,
        )
    };
    // What is no size is an error's number, above all sizes.
    if made > content.len() || made < super::DICTIONARY_SIZE_MIN {
        return Ok(None);
    }
    content.truncate(made);
    Dictionary::new(&content).map(Some)
}
