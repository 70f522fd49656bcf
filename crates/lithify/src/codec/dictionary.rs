//! Compression dictionaries: bytes that blocks are likely to repeat, known to encoder and decoder.
//!
//! 1. A [`Dictionary`] is its content. Its name is the hash of the content, its id the beginning of
//!    the name.
//! 2. [`Dictionary::new`] goes through the store of the process: whoever has the same content gets
//!    the same dictionary, for as long as somebody holds it.
//! 3. What an encoder or decoder makes of the content, its digest, is made at the first use and
//!    shared by all: one for decoding, one for each compression.
//!
//! A dictionary may be used by any thread. The store's lock is held for a look-up, the lock of
//! digests while one is made.

use super::lz4_dictionary::LoadedState;
use super::{CodecId, Compression};
use crate::base::lock;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use twox_hash::XxHash3_128;
use zstd_safe::{CDict, DDict};

/// The smallest content of a dictionary, in bytes: codecs make nothing of less.
pub const DICTIONARY_SIZE_MIN: usize = 8;

/// The largest content of a dictionary, in bytes.
pub const DICTIONARY_SIZE_MAX: usize = 1 << 20;

/// The name of a dictionary: the 128-bit hash (XXH3) of its content, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DictionaryHash(pub [u8; 16]);

impl DictionaryHash {
    /// The name of a dictionary of that content.
    pub fn of(content: &[u8]) -> Self {
        DictionaryHash(XxHash3_128::oneshot(content).to_le_bytes())
    }

    /// The beginning of the name, by which blocks name their dictionary. 0 is no dictionary's.
    pub fn id(self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

impl fmt::Display for DictionaryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What an encoder has made of a dictionary.
pub(super) enum EncoderDigest {
    Zstd(CDict<'static>),
    Lz4(LoadedState),
}

impl EncoderDigest {
    fn new(compression: Compression, content: &[u8]) -> Result<Self> {
        match compression.codec {
            CodecId::Zstd => CDict::try_create(content, compression.effort)
                .map(EncoderDigest::Zstd)
                .ok_or_else(|| Error::invalid("zstd cannot compress with the dictionary")),
            CodecId::Lz4 => LoadedState::new(content, compression.effort).map(EncoderDigest::Lz4),
            other => Err(takes_none(other)),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            EncoderDigest::Zstd(digest) => digest.sizeof(),
            EncoderDigest::Lz4(state) => state.memory_bytes(),
        }
    }
}

/// A dictionary with its digests. See the module.
pub struct Dictionary {
    hash: DictionaryHash,
    content: Box<[u8]>,
    /// `None` inside: zstd takes the content for a dictionary of its own form, and it is not one.
    zstd: OnceLock<Option<DDict<'static>>>,
    encoders: Mutex<Vec<(Compression, Arc<EncoderDigest>)>>,
}

static STORE: Mutex<BTreeMap<DictionaryHash, Weak<Dictionary>>> = Mutex::new(BTreeMap::new());

impl Dictionary {
    /// The dictionary of that content: the one that the process has already, or a new one.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] if the content has not [`DICTIONARY_SIZE_MIN`] to
    /// [`DICTIONARY_SIZE_MAX`] bytes, or is one of those few (of 2^32, one) whose id would be 0.
    pub fn new(content: &[u8]) -> Result<Arc<Self>> {
        if !(DICTIONARY_SIZE_MIN..=DICTIONARY_SIZE_MAX).contains(&content.len()) {
            let allowed = format!("{DICTIONARY_SIZE_MIN} to {DICTIONARY_SIZE_MAX} bytes");
            return Err(Error::invalid("size of a dictionary").expected(allowed, content.len()));
        }
        let hash = DictionaryHash::of(content);
        if hash.id() == 0 {
            return Err(Error::invalid("the hash of the dictionary begins with four zero bytes"));
        }
        let mut store = lock(&STORE);
        if let Some(known) = store.get(&hash).and_then(Weak::upgrade) {
            if *known.content != *content {
                return Err(Error::invalid(format!("another dictionary is named {hash}")));
            }
            return Ok(known);
        }
        store.retain(|_, known| known.strong_count() > 0);
        let dictionary = Arc::new(Dictionary {
            hash,
            content: content.into(),
            zstd: OnceLock::new(),
            encoders: Mutex::default(),
        });
        store.insert(hash, Arc::downgrade(&dictionary));
        Ok(dictionary)
    }

    /// Its name.
    pub fn hash(&self) -> DictionaryHash {
        self.hash
    }

    /// The beginning of its name.
    pub fn id(&self) -> u32 {
        self.hash.id()
    }

    /// Its bytes.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// The memory that the content holds, in bytes, and of the digests those that encode with
    /// `compressions`, and that which decodes zstd.
    pub(super) fn memory_bytes(&self, compressions: &[Compression], decodes_zstd: bool) -> usize {
        let encoders = self.encoders();
        let encoders = encoders.iter().filter(|(known, _)| compressions.contains(known));
        let encoders: usize = encoders.map(|(_, digest)| digest.memory_bytes()).sum();
        let zstd = self.zstd.get().and_then(Option::as_ref).filter(|_| decodes_zstd);
        size_of::<Self>() + self.content.len() + zstd.map_or(0, DDict::sizeof) + encoders
    }

    /// Makes what encoding with `compression` needs, unless it is there.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] if the codec takes no dictionary, or not this one.
    pub fn prepare_encoding(&self, compression: Compression) -> Result<()> {
        self.encoder(compression).map(drop)
    }

    /// Makes what decoding of a codec needs, unless it is there.
    pub fn prepare_decoding(&self, codec: CodecId) {
        if codec == CodecId::Zstd {
            // A failure shows where a block is decoded.
            let _ = self.zstd();
        }
    }

    pub(super) fn encoder(&self, compression: Compression) -> Result<Arc<EncoderDigest>> {
        let mut encoders = self.encoders();
        if let Some((_, digest)) = encoders.iter().find(|(known, _)| *known == compression) {
            return Ok(Arc::clone(digest));
        }
        let digest = Arc::new(EncoderDigest::new(compression, &self.content)?);
        encoders.push((compression, Arc::clone(&digest)));
        Ok(digest)
    }

    pub(super) fn zstd(&self) -> Result<&DDict<'static>> {
        let digest = self.zstd.get_or_init(|| DDict::try_create(&self.content));
        digest.as_ref().ok_or_else(|| {
            Error::corruption(format!("zstd cannot decompress with dictionary {:08x}", self.id()))
        })
    }

    fn encoders(&self) -> std::sync::MutexGuard<'_, Vec<(Compression, Arc<EncoderDigest>)>> {
        self.encoders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({}, {} bytes)", self.hash, self.content.len())
    }
}

/// The codec compresses without a dictionary only.
#[cold]
pub(super) fn takes_none(codec: CodecId) -> Error {
    let takers = CodecId::ALL.into_iter().filter(|codec| codec.takes_dictionary());
    let names: Vec<&str> = takers.map(CodecId::name).collect();
    Error::invalid("codec that is to compress with a dictionary")
        .expected(format_args!("one of {}", names.join(", ")), codec.name())
}
