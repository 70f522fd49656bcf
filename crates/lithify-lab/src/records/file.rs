//! The file of a record: plain JSON, or JSON compressed with zstd.
//!
//! Owns: the endings ([`ENDINGS`]), the name of a record without them, reading and writing by them.
//!
//! Promises: both forms read alike and hold the same bytes. A damaged frame, or one of more than
//! [`DECODED_BYTES_MAX`] bytes, is an error of one line that names the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer};

use crate::run::RunError;
use crate::run::store::write_atomically;

/// Endings of the file of a record, plain and compressed.
pub const ENDINGS: [&str; 2] = [".json", ".json.zst"];

/// Most bytes that a compressed record may hold: more is no record, and would take the memory.
pub const DECODED_BYTES_MAX: usize = 256 << 20;

/// Records are written once and kept: the level that makes the smallest frames in usual memory.
const LEVEL: i32 = 19;

/// The ending of a file name that is that of a record.
pub fn ending(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy();
    ENDINGS.into_iter().find(|ending| name.ends_with(ending))
}

/// The name of a record: that of its file, without the ending.
pub fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(ending(path).unwrap_or_default()).unwrap_or(&name).to_owned()
}

/// The files of a directory that have the ending of a record, by their names without it. Of a record
/// in both forms it is the plain one, which runs write.
///
/// # Errors
/// The directory cannot be read.
pub fn files_in(directory: &Path) -> Result<BTreeMap<String, PathBuf>, RunError> {
    let entries = std::fs::read_dir(directory).map_err(|error| RunError::io(directory, error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| ending(path).is_some());
    // The plain file is the shorter name, and the last of one name stays.
    paths.sort();
    Ok(paths.into_iter().rev().map(|path| (name(&path), path)).collect())
}

/// The JSON of a record.
///
/// # Errors
/// A file that cannot be read; a frame that is damaged or holds too much.
pub fn read(path: &Path) -> Result<String, RunError> {
    if ending(path) != Some(".json.zst") {
        return std::fs::read_to_string(path).map_err(|error| RunError::io(path, error));
    }
    let frame = std::fs::read(path).map_err(|error| RunError::io(path, error))?;
    decode(&frame, DECODED_BYTES_MAX)
        .map_err(|why| RunError::new(format!("{} is no record of a run: {why}", path.display())))
}

/// Writes the JSON of a record in the form that the ending of the file says. Gives the bytes that
/// the file has.
///
/// # Errors
/// The operating system's; a file without the ending of a record.
pub fn write(path: &Path, json: &str) -> Result<usize, RunError> {
    let bytes = match ending(path) {
        Some(".json") => json.as_bytes().to_vec(),
        Some(_) => {
            encode(json).map_err(|why| RunError::new(format!("{}: zstd: {why}", path.display())))?
        }
        None => {
            let endings = ENDINGS.join(" or ");
            return Err(RunError::new(format!("{} does not end in {endings}", path.display())));
        }
    };
    write_atomically(path, &bytes)?;
    Ok(bytes.len())
}

/// A frame with its size and a checksum.
fn encode(json: &str) -> Result<Vec<u8>, &'static str> {
    let named = zstd_safe::get_error_name;
    let mut context = CCtx::create();
    context.set_parameter(CParameter::CompressionLevel(LEVEL)).map_err(named)?;
    context.set_parameter(CParameter::ChecksumFlag(true)).map_err(named)?;
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(json.len()));
    context.compress2(&mut frame, json.as_bytes()).map_err(named)?;
    Ok(frame)
}

/// The text in one frame or in several, of at most `bytes_max` bytes.
fn decode(frames: &[u8], bytes_max: usize) -> Result<String, String> {
    let mut context = DCtx::create();
    let mut input = InBuffer::around(frames);
    let mut chunk = vec![0u8; DCtx::out_size()];
    let mut text = Vec::new();
    loop {
        let mut output = OutBuffer::around(chunk.as_mut_slice());
        let wanted = context
            .decompress_stream(&mut output, &mut input)
            .map_err(|code| format!("zstd: {}", zstd_safe::get_error_name(code)))?;
        let written = output.pos();
        text.extend_from_slice(&chunk[..written]);
        if text.len() > bytes_max {
            return Err(format!("it holds more than {} MiB", bytes_max >> 20));
        }
        let is_read = input.pos() == frames.len();
        if is_read && wanted == 0 {
            return String::from_utf8(text).map_err(|error| error.to_string());
        }
        if is_read && written < chunk.len() {
            return Err("zstd: the file is cut off".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_hold_the_same_bytes() {
        let place = tempfile::tempdir().expect("a directory");
        let json = format!("{{\"figures\": [{}1]}}\n", "0.25, ".repeat(100_000));
        let plain = place.path().join("a.json");
        let packed = place.path().join("a.json.zst");
        assert_eq!(write(&plain, &json).expect("writes"), json.len());
        assert!(write(&packed, &json).expect("writes") < json.len() / 100);
        assert_eq!(read(&plain).expect("reads"), json);
        assert_eq!(read(&packed).expect("reads"), json);
        let error = write(&place.path().join("a.zst"), &json).expect_err("no record").to_string();
        assert!(error.ends_with("a.zst does not end in .json or .json.zst"), "{error}");
    }

    #[test]
    fn frames_that_are_broken_or_too_large_are_refused() {
        let json = "[1, 2, 3]".repeat(100_000);
        let frame = encode(&json).expect("encodes");
        assert_eq!(decode(&frame, json.len()).as_ref(), Ok(&json));
        let twice = [frame.as_slice(), &frame].concat();
        assert_eq!(decode(&twice, 2 * json.len()).map(|text| text.len()), Ok(2 * json.len()));
        let why = decode(&frame, json.len() - 1).expect_err("too much");
        assert!(why.starts_with("it holds more than "), "{why}");
        for cut in [0, 3, frame.len() / 2, frame.len() - 1] {
            assert_eq!(decode(&frame[..cut], 1 << 20), Err("zstd: the file is cut off".to_owned()));
        }
        for at in [0, frame.len() / 2, frame.len() - 1] {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x55;
            let why = decode(&damaged, 1 << 20).expect_err("damaged");
            assert!(why.starts_with("zstd: "), "{at}: {why}");
        }
        assert!(decode(&encode("x").expect("encodes"), 1).is_ok());
    }

    #[test]
    fn a_bomb_is_refused_before_it_takes_the_memory() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("bomb.json.zst");
        let mut frames = Vec::new();
        let frame = encode(&" ".repeat(16 << 20)).expect("encodes");
        (0..17).for_each(|_| frames.extend_from_slice(&frame));
        std::fs::write(&path, &frames).expect("writes");
        let error = read(&path).expect_err("too much").to_string();
        assert!(error.ends_with("bomb.json.zst is no record of a run: it holds more than 256 MiB"));
    }

    #[test]
    fn names_have_no_endings_and_plain_files_come_first() {
        let place = tempfile::tempdir().expect("a directory");
        for file in ["a.json", "a.json.zst", "b.7.json.zst", "c.json", "d.csv", "e.zst"] {
            std::fs::write(place.path().join(file), "").expect("writes");
        }
        let files = files_in(place.path()).expect("lists");
        let files: Vec<(&str, String)> = files
            .iter()
            .map(|(name, path)| (name.as_str(), path.file_name().unwrap().to_string_lossy().into()))
            .collect();
        let expected = [("a", "a.json"), ("b.7", "b.7.json.zst"), ("c", "c.json")];
        assert_eq!(files, expected.map(|(name, file)| (name, file.to_owned())));
        assert_eq!(name(Path::new("runs/some.7-8")), "some.7-8");
    }
}
