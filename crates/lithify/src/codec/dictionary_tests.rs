//! Dictionaries: shared, found again, gaining, and never believed.

use super::*;
use crate::ErrorKind;
use crate::base::{MemoryBudget, MemoryUse};
use std::sync::Arc;

const COMPRESSIONS: [&str; 8] =
    ["lz4", "lz4--7", "lz4-2", "lz4-9", "lz4-12", "zstd--3", "zstd-1", "zstd-9"];

/// Rows of one shape, whose numbers differ.
fn block(number: u64) -> Vec<u8> {
    let row = |index: u64| {
        let word = (number * 31 + index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        format!("{{\"id\":{word},\"kind\":\"granite\",\"place\":\"quarry {}\"}}\n", word % 97)
    };
    (0..12).map(row).collect::<String>().into_bytes()
}

fn trained() -> Arc<Dictionary> {
    let blocks: Vec<Vec<u8>> = (0..300).map(block).collect();
    let samples: Vec<&[u8]> = blocks.iter().map(|block| &block[..]).collect();
    train(&samples, 4 << 10).unwrap().unwrap()
}

fn raw() -> Arc<Dictionary> {
    Dictionary::new(&(900..910).flat_map(block).collect::<Vec<u8>>()).unwrap()
}

fn encode(compression: Compression, dictionary: Option<&Dictionary>, raw: &[u8]) -> Vec<u8> {
    let mut stored = Vec::new();
    Compressor::new(compression).unwrap().compress_with(dictionary, raw, &mut stored).unwrap();
    stored
}

fn decode(codec: CodecId, dictionary: &Dictionary, stored: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut raw = b"before".to_vec();
    let mut decompressor = Decompressor::new();
    let decoded = decompressor.decompress_with(codec, dictionary, stored, size, &mut raw);
    assert!(raw.starts_with(b"before"));
    assert!(decoded.is_ok() || raw.len() == 6, "an error leaves the target as it was");
    decoded.map(|()| raw.split_off(6))
}

#[test]
fn blocks_come_back_and_are_smaller() {
    for dictionary in [trained(), raw()] {
        for compression in COMPRESSIONS.map(|name| name.parse::<Compression>().unwrap()) {
            let raw = block(1_000);
            let stored = encode(compression, Some(&dictionary), &raw);
            let without = encode(compression, None, &raw).len();
            assert!(stored.len() < without * 9 / 10, "{compression}: {} {without}", stored.len());
            let found = decode(compression.codec, &dictionary, &stored, raw.len()).unwrap();
            assert_eq!(found, raw, "{compression}");
            assert_eq!(encode(compression, Some(&dictionary), b""), b"");
            assert_eq!(decode(compression.codec, &dictionary, b"", 0).unwrap(), b"");
        }
    }
}

#[test]
fn the_same_block_gives_the_same_bytes_whatever_came_before() {
    let dictionaries = [trained(), raw()];
    for compression in COMPRESSIONS.map(|name| name.parse::<Compression>().unwrap()) {
        let mut used = Compressor::new(compression).unwrap();
        for number in 0..60 {
            let raw = block(number).repeat(1 + number as usize % 9);
            let dictionary = match number % 3 {
                0 => None,
                one_or_two => Some(&*dictionaries[one_or_two as usize - 1]),
            };
            let mut stored = Vec::new();
            used.compress_with(dictionary, &raw, &mut stored).unwrap();
            assert_eq!(stored, encode(compression, dictionary, &raw), "{compression} {number}");
        }
    }
}

#[test]
fn damaged_bytes_and_other_dictionaries_never_panic() {
    let (dictionary, other) = (trained(), raw());
    for compression in COMPRESSIONS.map(|name| name.parse::<Compression>().unwrap()) {
        let raw = block(77);
        let stored = encode(compression, Some(&dictionary), &raw);
        let check = |stored: &[u8], dictionary: &Dictionary| {
            if let Ok(found) = decode(compression.codec, dictionary, stored, raw.len()) {
                assert_eq!(found.len(), raw.len());
            }
        };
        check(&stored, &other);
        assert_ne!(decode(compression.codec, &other, &stored, raw.len()).ok(), Some(raw.clone()));
        for at in 0..stored.len() {
            check(&stored[..at], &dictionary);
            for flip in [1, 0x40, 0xff] {
                let mut damaged = stored.clone();
                damaged[at] ^= flip;
                check(&damaged, &dictionary);
            }
        }
    }
}

#[test]
fn one_content_is_one_dictionary_for_as_long_as_it_is_held() {
    let content = b"a content that no other test has";
    let first = Dictionary::new(content).unwrap();
    let second = Dictionary::new(content).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(first.hash(), DictionaryHash::of(content));
    assert!(first.hash().to_string().len() == 32 && first.id() == first.hash().id());
    let gone = Arc::downgrade(&first);
    drop((first, second));
    assert!(gone.upgrade().is_none());
    for content in [&b"1234567"[..], &vec![7; DICTIONARY_SIZE_MAX + 1]] {
        let error = Dictionary::new(content).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn digests_are_charged_to_the_budget() {
    let budget = MemoryBudget::new(64 << 20);
    let pool = ContextPool::new(Arc::clone(&budget));
    let dictionary = Dictionary::new(b"charged, and charged once for all who hold it").unwrap();
    let used = || budget.used_bytes(MemoryUse::Codec);
    let held = pool.hold(&dictionary);
    let before = used();
    assert!(before >= dictionary.content().len());
    held.prepare_encoding("lz4-9".parse().unwrap()).unwrap();
    held.prepare_decoding(CodecId::Zstd);
    assert!(used() > before + (256 << 10), "{}", used());
    let again = pool.hold(&dictionary);
    assert!(Arc::ptr_eq(&held, &again));
    drop((held, again));
    assert_eq!(used(), 0);
}

#[test]
fn digests_that_others_ask_for_are_not_charged() {
    let dictionary = Dictionary::new(b"used by two databases of one process").unwrap();
    let budgets = [MemoryBudget::new(64 << 20), MemoryBudget::new(64 << 20)];
    let [own, others] = budgets.each_ref().map(|budget| ContextPool::new(Arc::clone(budget)));
    let used = || budgets[0].used_bytes(MemoryUse::Codec);
    let (held, by_others) = (own.hold(&dictionary), others.hold(&dictionary));
    held.prepare_encoding("zstd-3".parse().unwrap()).unwrap();
    let before = used();
    by_others.prepare_encoding("lz4-9".parse().unwrap()).unwrap();
    by_others.prepare_decoding(CodecId::Zstd);
    held.prepare_encoding("zstd-3".parse().unwrap()).unwrap();
    assert!(Arc::ptr_eq(&held, &own.hold(&dictionary)));
    assert_eq!(used(), before);
}

#[test]
fn codecs_without_dictionaries_say_so() {
    let dictionary = raw();
    for name in ["none", "snappy", "zlib-6", "libdeflate-6"] {
        let mut compressor = Compressor::new(name.parse().unwrap()).unwrap();
        let refused = compressor.compress_with(Some(&dictionary), b"abc", &mut Vec::new());
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("lz4, zstd"), "{error}");
        let codec = compressor.compression().codec;
        assert!(decode(codec, &dictionary, b"abc", 3).is_err());
    }
}

#[test]
fn training_is_a_function_of_its_samples() {
    let dictionary = trained();
    assert!(dictionary.content().len() <= 4 << 10);
    assert!(Arc::ptr_eq(&dictionary, &trained()));
    assert!(train(&[], 4 << 10).unwrap().is_none());
    assert!(train(&[b"one"], 4 << 10).unwrap().is_none());
    assert!(train(&[&[7; 100][..]; 20], 0).unwrap().is_none());
}

/// What begins like a dictionary of zstd's own form and is none.
#[test]
fn a_content_that_zstd_refuses_is_an_error_and_no_panic() {
    let dictionary = Dictionary::new(b"\x37\xa4\x30\xec and no tables of entropy").unwrap();
    let mut compressor = Compressor::new("zstd-1".parse().unwrap()).unwrap();
    let refused = compressor.compress_with(Some(&dictionary), b"abc", &mut Vec::new());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let error = decode(CodecId::Zstd, &dictionary, b"abc", 3).unwrap_err();
    assert!(error.to_string().contains(&format!("{:08x}", dictionary.id())), "{error}");
}
