//! The files of the table, and what they say of themselves.
//!
//! Owns: which files of a table's directory are one "SSTable", what they take, and the head of
//! `CompressionInfo.db`, in which a compressed one keeps its codec, its chunk, and its length before
//! compression. One without that file is not compressed.
//!
//! Promises: no bytes make this panic. Files may come and go meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lithify_lab::adapter::{EngineError, EngineResult};

use super::protocol::Fields;

/// The parts of an SSTable whose names are looked at.
const DATA: &str = "Data.db";
const COMPRESSION: &str = "CompressionInfo.db";

/// The effort of a Zstandard that names none.
const ZSTD_EFFORT: &str = "3";
/// The effort of a strong LZ4 that names none.
const LZ4_EFFORT: &str = "9";

/// One table file: an SSTable with all its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFile {
    /// All parts together, bytes.
    pub stored_bytes: u64,
    /// The rows before compression, bytes.
    pub raw_bytes: u64,
    /// `None` when they are not compressed.
    pub compression: Option<Compression>,
}

/// How the rows of a table file are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The codec, by the names of experiment files; another one by its own.
    pub codec: String,
    /// Raw bytes that are compressed at once.
    pub chunk_bytes: u64,
    /// All of them.
    pub raw_bytes: u64,
}

impl TableFile {
    /// The codec, by the names of experiment files.
    pub fn codec(&self) -> &str {
        self.compression.as_ref().map_or("none", |compression| &compression.codec)
    }
}

impl Compression {
    /// Reads the head of a `CompressionInfo.db`; `None` for something else.
    fn parse(bytes: &[u8]) -> Option<Compression> {
        let mut fields = Fields(bytes);
        let class = String::from_utf8_lossy(fields.string()?).into_owned();
        let mut options = BTreeMap::new();
        for _ in 0..fields.int()? {
            let mut text = || Some(String::from_utf8_lossy(fields.string()?).into_owned());
            options.insert(text()?, text()?);
        }
        let chunk_bytes = u64::try_from(fields.int()?).ok()?;
        let _longest_compressed_bytes = fields.int()?;
        let raw_bytes = u64::try_from(fields.long()?).ok()?;
        Some(Compression { codec: codec_name(&class, &options), chunk_bytes, raw_bytes })
    }
}

/// The codec of a class with options, by the names of experiment files.
pub fn codec_name(class: &str, options: &BTreeMap<String, String>) -> String {
    let option = |name: &str, otherwise: &str| {
        options.get(name).map_or(otherwise, String::as_str).to_owned()
    };
    match class.rsplit('.').next().unwrap_or(class) {
        "LZ4Compressor" if option("lz4_compressor_type", "fast") == "high" => {
            format!("lz4-{}", option("lz4_high_compressor_level", LZ4_EFFORT))
        }
        "LZ4Compressor" => "lz4".to_owned(),
        "SnappyCompressor" => "snappy".to_owned(),
        // It takes no effort: zlib's own choice.
        "DeflateCompressor" => "zlib-6".to_owned(),
        "ZstdCompressor" => format!("zstd-{}", option("compression_level", ZSTD_EFFORT)),
        other => other.to_owned(),
    }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> EngineError {
    EngineError::fatal(format!("{}: {error}", path.display()))
}

/// Those that are in `directory`, which has the tables of one keyspace, a directory each.
///
/// # Errors
/// A directory or file that cannot be read, or is not what its name says.
pub fn table_files(directory: &Path) -> EngineResult<Vec<TableFile>> {
    let mut files = Vec::new();
    for table in entries(directory)? {
        if table.is_dir() {
            files.extend(of_table(&table)?);
        }
    }
    Ok(files)
}

/// What is in a directory; nothing in one that is not there.
fn entries(directory: &Path) -> EngineResult<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(directory, error)),
    }
}

fn of_table(directory: &Path) -> EngineResult<Vec<TableFile>> {
    let mut files: BTreeMap<String, TableFile> = BTreeMap::new();
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // VERSION-ID-FORMAT-PART; logs of the node have other names.
        let Some((own, part)) = name.rsplit_once('-') else { continue };
        let metadata = match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => metadata,
            // It was removed meanwhile.
            _ => continue,
        };
        let file = files.entry(own.to_owned()).or_default();
        file.stored_bytes += metadata.len();
        match part {
            DATA => file.raw_bytes = metadata.len(),
            COMPRESSION => {
                let bytes = match fs::read(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    read => read.map_err(|error| failed(&path, error))?,
                };
                let compression = Compression::parse(&bytes);
                let compression = compression.ok_or_else(|| failed(&path, "has no such head"))?;
                file.compression = Some(compression);
            }
            _ => {}
        }
    }
    let complete = files.into_values().filter(|file| file.raw_bytes > 0);
    Ok(complete
        .map(|file| {
            let raw_bytes = file.compression.as_ref().map_or(file.raw_bytes, |of| of.raw_bytes);
            TableFile { raw_bytes, ..file }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(to: &mut Vec<u8>, text: &str) {
        to.extend_from_slice(&(text.len() as u16).to_be_bytes());
        to.extend_from_slice(text.as_bytes());
    }

    /// A head as a node writes it.
    fn head(class: &str, options: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        text(&mut bytes, class);
        bytes.extend_from_slice(&(options.len() as i32).to_be_bytes());
        for (name, value) in options {
            text(&mut bytes, name);
            text(&mut bytes, value);
        }
        bytes.extend_from_slice(&16_384i32.to_be_bytes());
        bytes.extend_from_slice(&i32::MAX.to_be_bytes());
        bytes.extend_from_slice(&1_000_000i64.to_be_bytes());
        bytes
    }

    #[test]
    fn heads_name_codec_chunk_and_length() {
        let bytes = head("ZstdCompressor", &[("compression_level", "5")]);
        let codec = "zstd-5".to_owned();
        let expected = Compression { codec, chunk_bytes: 16_384, raw_bytes: 1_000_000 };
        assert_eq!(Compression::parse(&bytes), Some(expected));
        for length in 0..bytes.len() {
            assert_eq!(Compression::parse(&bytes[..length]), None, "{length}");
        }
        let codec = |class, options: &[(&str, &str)]| {
            Compression::parse(&head(class, options)).expect("is one").codec
        };
        assert_eq!(codec("LZ4Compressor", &[]), "lz4");
        let high = [("lz4_compressor_type", "high"), ("lz4_high_compressor_level", "12")];
        assert_eq!(codec("LZ4Compressor", &high), "lz4-12");
        assert_eq!(codec("SnappyCompressor", &[]), "snappy");
        assert_eq!(codec("DeflateCompressor", &[]), "zlib-6");
        assert_eq!(codec("org.apache.cassandra.io.compress.ZstdCompressor", &[]), "zstd-3");
        assert_eq!(codec("NoopCompressor", &[]), "NoopCompressor");
    }

    #[test]
    fn parts_of_one_file_are_added_up() {
        let root = tempfile::tempdir().expect("a directory");
        let keyspace = root.path().join("lab");
        assert_eq!(table_files(&keyspace).expect("is not there"), []);
        let table = keyspace.join("lines-1");
        fs::create_dir_all(table.join("backups")).expect("is made");
        let write = |name: &str, bytes: &[u8]| fs::write(table.join(name), bytes).expect("writes");
        write("oa_txn_flush_1.log", &[0; 7]);
        write("oa-1-big-Data.db", &[0; 100]);
        write("oa-1-big-CompressionInfo.db", &head("LZ4Compressor", &[]));
        write("oa-1-big-Index.db", &[0; 10]);
        write("oa-2-big-Data.db", &[0; 50]);
        // Its rows are gone already.
        write("oa-3-big-Index.db", &[0; 10]);
        let files = table_files(&keyspace).expect("reads");
        let told: Vec<_> =
            files.iter().map(|of| (of.codec(), of.stored_bytes, of.raw_bytes)).collect();
        let head_bytes = head("LZ4Compressor", &[]).len() as u64;
        assert_eq!(told, [("lz4", 110 + head_bytes, 1_000_000), ("none", 50, 50)]);
        write("oa-1-big-CompressionInfo.db", &[0; 3]);
        let error = table_files(&keyspace).expect_err("is damaged").to_string();
        assert!(error.ends_with("CompressionInfo.db: has no such head"), "{error}");
    }
}
