//! Reading so many bytes, or an error that says how many there were.

use crate::fs::File;
use crate::{Error, Result};

/// Reads exactly `length` bytes at `offset`; a shorter file is corruption that names the place.
pub fn read_exact_at(file: &dyn File, offset: u64, length: usize) -> Result<Vec<u8>> {
    let mut buffer = vec![0; length];
    let count = file.read_at(&mut buffer, offset)?;
    if count < length {
        return Err(Error::corruption("file ends early")
            .at(file.path(), offset)
            .expected(format_args!("{length} bytes"), format_args!("{count} bytes")));
    }
    Ok(buffer)
}
