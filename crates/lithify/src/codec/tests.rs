use super::*;
use crate::ErrorKind;
use crate::base::{MemoryBudget, MemoryUse};

/// A small fast generator (xorshift64*), so that every run sees the same bytes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

fn random_bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    (0..length).map(|_| random.next() as u8).collect()
}

fn text_like(length: usize) -> Vec<u8> {
    let words = ["granite ", "basalt ", "of ", "the ", "sediment ", "layer, ", "and ", "rock.\n"];
    let mut random = Random(7);
    let mut text = Vec::new();
    while text.len() < length {
        text.extend_from_slice(words[random.below(words.len())].as_bytes());
    }
    text.truncate(length);
    text
}

/// Rows of 24 key bytes and 176 value bytes, of which half compress.
fn link_rows(length: usize) -> Vec<u8> {
    let mut random = Random(11);
    let mut rows = Vec::new();
    for row in 0_u64.. {
        if rows.len() >= length {
            break;
        }
        rows.extend_from_slice(&(row / 9).to_be_bytes());
        rows.extend_from_slice(&123_456_789_u64.to_be_bytes());
        rows.extend_from_slice(&(1_000_000 + row).to_be_bytes());
        rows.extend((0..88).map(|_| random.next() as u8));
        rows.extend([b'x'; 88]);
    }
    rows.truncate(length);
    rows
}

fn shapes() -> Vec<Vec<u8>> {
    vec![
        Vec::new(),
        vec![42],
        vec![0; 100],
        vec![0; 70_000],
        random_bytes(4096, 3),
        random_bytes(17, 5),
        text_like(64 << 10),
        link_rows(16 << 10),
        link_rows(300_000),
    ]
}

const COMPRESSIONS: [&str; 30] = [
    "none",
    "snappy",
    "lz4",
    "lz4--1",
    "lz4--8",
    "lz4--65537",
    "lz4-2",
    "lz4-3",
    "lz4-9",
    "lz4-12",
    "zlib-1",
    "zlib-2",
    "zlib-3",
    "zlib-4",
    "zlib-5",
    "zlib-6",
    "zlib-7",
    "zlib-8",
    "zlib-9",
    "libdeflate-1",
    "libdeflate-6",
    "libdeflate-12",
    "zstd--131072",
    "zstd--5",
    "zstd-1",
    "zstd-3",
    "zstd-6",
    "zstd-9",
    "zstd-19",
    "zstd-22",
];

fn parse(text: &str) -> Compression {
    text.parse().unwrap()
}

fn compress(compressor: &mut Compressor, raw: &[u8]) -> Vec<u8> {
    let mut stored = Vec::new();
    compressor.compress(raw, &mut stored).unwrap();
    stored
}

#[test]
fn every_codec_gives_back_every_shape() {
    let mut decompressors = [Decompressor::new(), Decompressor::with_fast_zlib(true)];
    let edges = encoders().flat_map(|(codec, row)| {
        let efforts = (row.efforts)();
        let of_effort = |effort| Compression { codec, effort, encoder: row.encoder };
        [of_effort(*efforts.start()), of_effort(*efforts.end())]
    });
    let mut tried = COMPRESSIONS.map(parse).to_vec();
    tried.extend(edges);
    for name in tried.iter().map(Compression::to_string) {
        let name = &*name;
        let mut compressor = Compressor::new(parse(name)).unwrap();
        for raw in shapes() {
            let mut target = b"before".to_vec();
            compressor.compress(&raw, &mut target).unwrap();
            let stored = target.strip_prefix(b"before").unwrap();
            assert_eq!(stored.is_empty(), raw.is_empty(), "{name}");
            // The extreme accelerations look at next to nothing.
            let tries = name != "none" && parse(name).effort > -1000;
            if tries && raw.len() >= 64 << 10 {
                assert!(stored.len() < raw.len() * 9 / 10, "{name}: {} bytes", stored.len());
            }
            for decompressor in &mut decompressors {
                let codec = parse(name).codec;
                let mut filled = vec![0xAA; raw.len()];
                decompressor.decompress(codec, stored, &mut filled).unwrap();
                assert!(filled == raw, "{name}, {} bytes", raw.len());
                let mut appended = b"before".to_vec();
                decompressor.decompress_into(codec, stored, raw.len(), &mut appended).unwrap();
                assert!(appended.strip_prefix(b"before").unwrap() == raw, "{name}");
            }
        }
    }
}

/// Replays must give the same files whatever the process did before.
#[test]
fn output_does_not_depend_on_what_the_context_did_before() {
    let probes = [link_rows(900), text_like(2000), link_rows(16 << 10), text_like(80_000)];
    for name in COMPRESSIONS {
        let fresh: Vec<_> = std::thread::spawn({
            let probes = probes.clone();
            move || {
                probes
                    .iter()
                    .map(|raw| compress(&mut Compressor::new(parse(name)).unwrap(), raw))
                    .collect()
            }
        })
        .join()
        .unwrap();
        let mut used = Compressor::new(parse(name)).unwrap();
        for round in 0..3 {
            for raw in [random_bytes(3000, 9), text_like(1500), vec![0; 5000], link_rows(70_000)] {
                compress(&mut used, &raw);
            }
            for (raw, expected) in probes.iter().zip(&fresh) {
                assert!(compress(&mut used, raw) == *expected, "{name}, round {round}");
            }
        }
    }
}

/// No length but the right one is accepted, and the target is left as it was.
#[test]
fn wrong_lengths_are_corruption() {
    let raw = link_rows(4096);
    let mut decompressors = [Decompressor::new(), Decompressor::with_fast_zlib(true)];
    for name in COMPRESSIONS {
        let codec = parse(name).codec;
        let stored = compress(&mut Compressor::new(parse(name)).unwrap(), &raw);
        for decompressor in &mut decompressors {
            for length in [0, 1, 100, raw.len() - 1, raw.len() + 1, 2 * raw.len()] {
                let mut buffer = vec![0; length];
                let error = decompressor.decompress(codec, &stored, &mut buffer).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption, "{name} {length}: {error}");
                // With and without spare room behind: the room must not be mistaken for the length.
                for room in [0, 1 << 16] {
                    let mut target = Vec::with_capacity(6 + room);
                    target.extend_from_slice(b"before");
                    let error = decompressor
                        .decompress_into(codec, &stored, length, &mut target)
                        .unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{name} {length}: {error}");
                    assert_eq!(target, b"before", "{name}");
                }
            }
            // The decoder is as good as new afterwards.
            let mut buffer = vec![0; raw.len()];
            decompressor.decompress(codec, &stored, &mut buffer).unwrap();
            assert!(buffer == raw, "{name}");
        }
    }
}

/// Decodes damaged bytes between guard bytes: an error or wrong bytes, and the guards intact.
fn decode_damaged(decompressor: &mut Decompressor, codec: CodecId, stored: &[u8], length: usize) {
    let mut buffer = vec![0xA5; length + 128];
    let outcome = decompressor.decompress(codec, stored, &mut buffer[64..64 + length]);
    if let Err(error) = outcome {
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    }
    assert!(buffer[..64].iter().chain(&buffer[64 + length..]).all(|byte| *byte == 0xA5));
    let mut target = b"before".to_vec();
    match decompressor.decompress_into(codec, stored, length, &mut target) {
        Ok(()) => assert_eq!(target.len(), 6 + length),
        Err(_) => assert_eq!(target, b"before"),
    }
}

#[test]
fn damaged_input_is_survived() {
    let mut random = Random(13);
    let mut decompressors = [Decompressor::new(), Decompressor::with_fast_zlib(true)];
    for name in ["snappy", "lz4", "lz4-9", "zlib-6", "libdeflate-1", "zstd--5", "zstd-1", "zstd-19"]
    {
        let codec = parse(name).codec;
        for raw in [link_rows(3000), text_like(5000), random_bytes(700, 1), vec![0; 9000]] {
            let stored = compress(&mut Compressor::new(parse(name)).unwrap(), &raw);
            for decompressor in &mut decompressors {
                for _ in 0..40 {
                    let cut = random.below(stored.len());
                    let mut buffer = vec![0; raw.len()];
                    let cut_short = decompressor.decompress(codec, &stored[..cut], &mut buffer);
                    assert!(cut_short.is_err() || buffer == raw, "{name} cut at {cut}");
                    decode_damaged(decompressor, codec, &stored[..cut], raw.len());
                    let mut flipped = stored.clone();
                    for _ in 0..1 + random.below(4) {
                        let place = random.below(flipped.len());
                        flipped[place] ^= 1 << random.below(8);
                    }
                    decode_damaged(decompressor, codec, &flipped, raw.len());
                    let noise = random_bytes(1 + random.below(200), random.next() | 1);
                    decode_damaged(decompressor, codec, &noise, 1 + random.below(5000));
                }
            }
        }
    }
}

#[test]
fn limits_are_checked_before_anything_is_allocated() {
    let mut decompressor = Decompressor::new();
    for codec in CodecId::ALL {
        let mut target = Vec::new();
        let error =
            decompressor.decompress_into(codec, b"\0abc", usize::MAX, &mut target).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::LimitExceeded | ErrorKind::Corruption),
            "{error}"
        );
        assert_eq!(target.capacity(), 0);
    }
}

#[test]
fn names_are_parsed_and_printed() {
    for name in COMPRESSIONS {
        assert_eq!(parse(name).to_string(), name);
    }
    assert_eq!(parse("lz4-1"), Compression::LZ4);
    assert_eq!(parse("none"), Compression::NONE);
    let fast = parse("libdeflate-6");
    assert_eq!((fast.codec, fast.effort, fast.encoder), (CodecId::Zlib, 6, Encoder::Fast));
    assert_eq!(parse("zlib-6").encoder, Encoder::Reference);
}

#[test]
fn wrong_names_and_efforts_say_what_is_allowed() {
    let kinds = format!("one of {}", encoder_names().collect::<Vec<_>>().join(", "));
    for (name, hint) in [
        ("zlib-0", "1 to 9"),
        ("zlib-10", "1 to 9"),
        ("libdeflate-13", "1 to 12"),
        ("lz4-13", "-1 to -65537 or 1 to 12"),
        ("lz4-0", "-1 to -65537 or 1 to 12"),
        ("lz4--65538", "-1 to -65537"),
        ("zstd-23", "-1 to -131072 or 1 to 22"),
        ("zstd-0", "1 to 22"),
        ("zstd", "needs an effort"),
        ("zlib", "needs an effort"),
        ("snappy-3", "no effort"),
        ("none-1", "no effort"),
        ("brotli-4", &kinds),
        ("", "one of none"),
        ("-", "one of none"),
        ("zstd-", "effort of zstd"),
        ("zstd-3-3", "effort of zstd"),
        ("zlib-99999999999", "effort of zlib"),
    ] {
        let error = name.parse::<Compression>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(hint), "'{name}': {error}");
    }
    let none_fast = Compression { encoder: Encoder::Fast, ..Compression::NONE };
    let error = Compressor::new(none_fast).err().unwrap();
    assert!(error.to_string().contains("reference"), "{error}");
    let too_strong = Compression { effort: 40, ..parse("zstd-3") };
    assert_eq!(Compressor::new(too_strong).err().unwrap().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn libraries_tell_their_versions() {
    let lock_file =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"))
            .expect("the lock file is part of the repository");
    let locked = |name: &str| {
        let (_, rest) = lock_file.split_once(&format!("name = \"{name}\"\nversion = \"")).unwrap();
        rest.split_once('"').unwrap().0.to_string()
    };
    let told = |name: &str| library_name_and_version(parse(name));
    assert_eq!(told("none"), "none");
    assert_eq!(told("snappy"), format!("snap {}", locked("snap")));
    let libdeflate = format!("libdeflate {}", locked("libdeflate-sys"));
    assert!(libdeflate.starts_with(&format!("{}.", told("libdeflate-6"))), "{libdeflate}");
    assert!(locked("zstd-sys").ends_with(&told("zstd-3").replace("zstd ", "+zstd.")));
    assert!(told("lz4").starts_with("lz4 1."));
    // Other makes of zlib name themselves behind the number they are compatible with.
    let zlib = told("zlib-6");
    let number = zlib.strip_prefix("zlib 1.").unwrap();
    assert!(number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "{zlib}");
}

/// The samples of the format document decode to what it says.
#[test]
fn the_documented_samples_decode() {
    let document = include_str!("../../../../docs/format/codec.md");
    let raw = "basalt basalt basalt granite granite granite\n";
    assert!(document.contains(raw.trim_end()));
    let mut codecs_seen = 0;
    for line in document.lines() {
        let Some((name, hex)) = line.strip_prefix("sample ").and_then(|s| s.split_once(": "))
        else {
            continue;
        };
        let stored: Vec<u8> = hex
            .split_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits"))
            .collect();
        for fast_zlib in [false, true] {
            let mut decoded = vec![0; raw.len()];
            let mut decompressor = Decompressor::with_fast_zlib(fast_zlib);
            decompressor.decompress(parse(name).codec, &stored, &mut decoded).unwrap();
            assert_eq!(decoded, raw.as_bytes(), "{name}");
        }
        codecs_seen += 1;
    }
    assert_eq!(codecs_seen, CodecId::ALL.len());
}

/// The registry has the numbers, names and encoders of the format document, for ever.
#[test]
fn codec_numbers_are_those_of_the_document() {
    let document = include_str!("../../../../docs/format/codec.md");
    let mut documented = Vec::new();
    for line in document.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, name, _, encoders, _] = cells[..] else { continue };
        let Ok(number) = number.parse::<u8>() else { continue };
        let codec = CodecId::from_u8(number).unwrap_or_else(|| panic!("{name} is not there"));
        for row in codec.row().encoders.iter().filter(|row| row.new.is_some()) {
            let library = (row.library)();
            let told = library.split(' ').next().unwrap();
            assert!(encoders.contains(told), "the document lacks the encoder {told} of {name}");
        }
        documented.push((number, name));
    }
    let numbers = CodecId::ALL.map(|codec| (codec as u8, codec.name()));
    assert_eq!(documented, numbers);
    assert_eq!(CodecId::from_u8(CodecId::ALL.len() as u8), None);
    assert_eq!(CodecId::from_u8(200), None);
}

#[test]
fn pooled_contexts_are_reused_charged_and_given_back() {
    let budget = MemoryBudget::new(64 << 20);
    let charged = || budget.used_bytes(MemoryUse::Codec);
    let pool = ContextPool::new(budget.clone());
    let raw = link_rows(16 << 10);
    let mut stored = Vec::new();
    let in_use_bytes = {
        let mut compressor = pool.compressor(parse("zstd-3")).unwrap();
        compressor.compress(&raw, &mut stored).unwrap();
        compressor.compress(&raw, &mut Vec::new()).unwrap();
        assert_eq!(charged(), compressor.memory_bytes());
        charged()
    };
    assert!(in_use_bytes > 10_000);
    assert_eq!(charged(), in_use_bytes, "an idle context stays charged");
    let again = pool.compressor(parse("zstd-3")).unwrap();
    assert_eq!(charged(), in_use_bytes, "the idle context was used again");
    let other = pool.compressor(parse("zlib-6")).unwrap();
    assert_eq!(charged(), in_use_bytes + other.memory_bytes(), "another effort is another context");
    drop((again, other));
    {
        let mut decompressor = pool.decompressor();
        let mut back = Vec::new();
        decompressor.decompress_into(CodecId::Zstd, &stored, raw.len(), &mut back).unwrap();
        assert!(back == raw);
    }
    assert!(charged() > in_use_bytes);
    let before = charged();
    drop(pool.compressor_for_once(parse("zstd-9")).unwrap());
    drop(pool.compressor_for_once(parse("zstd-3")).unwrap());
    assert_eq!(charged(), before, "a context for once does not lie idle, and takes none away");
    pool.clear();
    assert_eq!(charged(), 0);
    assert!(pool.compressor(Compression { effort: 0, ..parse("zstd-3") }).is_err());
}

#[test]
fn idle_contexts_are_bounded_in_number_and_bytes() {
    let budget = MemoryBudget::new(1 << 20);
    let pool = ContextPool::new(budget.clone());
    // Idle contexts may hold 1 MiB: three of zlib's fit, four do not.
    let all: Vec<_> = (0..6).map(|_| pool.compressor(parse("zlib-6")).unwrap()).collect();
    let each = all[0].memory_bytes();
    assert_eq!(budget.used_bytes(MemoryUse::Codec), 6 * each);
    drop(all);
    assert_eq!(budget.used_bytes(MemoryUse::Codec), (1 << 20) / each * each);
    // One that is too large to lie idle is not kept, and goes last.
    drop(pool.compressor(parse("libdeflate-12")).unwrap());
    assert_eq!(budget.used_bytes(MemoryUse::Codec), 0);
    drop((0..40).map(|_| pool.compressor(parse("lz4")).unwrap()).collect::<Vec<_>>());
    let each = pool.compressor(parse("lz4")).unwrap().memory_bytes();
    assert_eq!(budget.used_bytes(MemoryUse::Codec), 16 * each);
    drop(pool);
    assert_eq!(budget.used_bytes(MemoryUse::Codec), 0);
}

#[test]
fn threads_share_a_pool() {
    let budget = MemoryBudget::new(64 << 20);
    let pool = ContextPool::with_fast_zlib(budget.clone(), true);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..50 {
                    let name = ["lz4", "zlib-1", "zstd-1", "libdeflate-1"][(thread + round) % 4];
                    let raw = link_rows(1000 + 37 * round);
                    let stored = compress(&mut pool.compressor(parse(name)).unwrap(), &raw);
                    let mut back = vec![0; raw.len()];
                    let codec = parse(name).codec;
                    pool.decompressor().decompress(codec, &stored, &mut back).unwrap();
                    assert!(back == raw, "{name}");
                }
            });
        }
    });
    pool.clear();
    assert_eq!(budget.used_bytes(MemoryUse::Codec), 0);
}

#[test]
fn no_payload_holds_more_than_its_codec_can_make() {
    let raw = vec![7; 4 << 20];
    for (codec, row) in encoders() {
        let effort = *(row.efforts)().end();
        let compression = Compression { codec, effort, encoder: row.encoder };
        let mut payload = Vec::new();
        Compressor::new(compression).unwrap().compress(&raw, &mut payload).unwrap();
        let most = compression.codec.raw_size_max(payload.len());
        assert!(raw.len() <= most, "{compression}: {} bytes, at most {most}", payload.len());
    }
}
