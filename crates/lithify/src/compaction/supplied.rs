//! Dictionaries that a user supplies for a column family, beside whatever policy it has.
//!
//! The first of them is used for every table of a codec that takes one. They are not kept in the
//! manifest: whoever supplies them does so after each opening. Tables written with them need nothing
//! of it, each has its copy.

use super::deciding::Deciding;
use super::format_policy::{Evidence, FormatPolicy, TablePlace};
use crate::Result;
use crate::codec::{BlockFormat, Dictionary, DictionaryHash, FormatMismatch, StoredFormat};
use crate::manifest::FileMetadata;
use std::sync::Arc;

/// Dictionaries by their content.
#[derive(Clone, Default)]
pub(crate) struct SuppliedDictionaries {
    dictionaries: Vec<Arc<Dictionary>>,
    /// For harnesses: a table has one of them or none by chance, however small it is, and blocks of
    /// the others are copied into it.
    seed: Option<u64>,
}

impl SuppliedDictionaries {
    pub(crate) fn new(contents: &[&[u8]], seed: Option<u64>) -> Result<Self> {
        let dictionaries = contents.iter().map(|content| Dictionary::new(content));
        Ok(SuppliedDictionaries { dictionaries: dictionaries.collect::<Result<_>>()?, seed })
    }

    /// The policy with these dictionaries.
    pub(crate) fn over(&self, formats: Arc<dyn FormatPolicy>) -> Arc<dyn FormatPolicy> {
        if self.dictionaries.is_empty() {
            return formats;
        }
        Arc::new(WithDictionaries { formats, supplied: self.clone() })
    }

    fn choose(&self, place: &TablePlace, evidence: &Evidence) -> Option<&Arc<Dictionary>> {
        let Some(seed) = self.seed else { return self.dictionaries.first() };
        let known = [place.level as u64, evidence.entries, evidence.raw_bytes];
        let chance = known.iter().fold(seed, |sum, word| {
            (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        self.dictionaries.get((chance % (self.dictionaries.len() as u64 + 1)) as usize)
    }
}

struct WithDictionaries {
    formats: Arc<dyn FormatPolicy>,
    supplied: SuppliedDictionaries,
}

impl WithDictionaries {
    fn supply(&self, format: BlockFormat, place: &TablePlace, evidence: &Evidence) -> BlockFormat {
        if format.dictionary.is_some() || !format.compression.codec.takes_dictionary() {
            return format;
        }
        let dictionary = self.supplied.choose(place, evidence).map(|chosen| chosen.hash());
        BlockFormat { dictionary, ..format }
    }
}

impl FormatPolicy for WithDictionaries {
    fn decide(&self, place: &TablePlace, evidence: &Evidence) -> BlockFormat {
        self.supply(self.formats.decide(place, evidence), place, evidence)
    }

    fn peek(&self, place: &TablePlace) -> BlockFormat {
        self.supply(self.formats.peek(place), place, &Evidence::default())
    }

    fn debt(&self, place: &TablePlace, table: &FileMetadata) -> Option<FormatMismatch> {
        // Which dictionary a table has is no debt: it would be rewritten over and over, small tables
        // have none, and a harness gives each another one.
        self.formats.debt(place, table).filter(|owed| *owed != FormatMismatch::Dictionary)
    }

    fn takes_blocks(&self, wanted: &BlockFormat, stored: &StoredFormat) -> bool {
        match wanted.mismatch(stored) {
            Some(FormatMismatch::Dictionary) => self.supplied.seed.is_some(),
            mismatch => mismatch.is_none(),
        }
    }

    fn deciding(&self) -> Option<&Deciding> {
        self.formats.deciding()
    }

    fn dictionary(&self, name: DictionaryHash) -> Option<Arc<Dictionary>> {
        let supplied = self.supplied.dictionaries.iter().find(|known| known.hash() == name);
        supplied.cloned().or_else(|| self.formats.dictionary(name))
    }

    fn dictionary_raw_bytes_min(&self) -> u64 {
        match self.supplied.seed {
            Some(_) => 0,
            None => self.formats.dictionary_raw_bytes_min(),
        }
    }
}
