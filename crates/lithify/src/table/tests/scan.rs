//! The compaction's way of reading: in order, in a range, with reads that complete late.

use super::*;

/// All entries of a scan, and how often it waited.
pub(super) fn scan(scanner: &mut TableScanner, file: Option<&TestFile>) -> (Vec<Entry>, usize) {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let (mut entries, mut waits) = (Vec::new(), 0);
    loop {
        match scanner.poll(&mut meter, &clock).unwrap() {
            ScanPoll::End => return (entries, waits),
            ScanPoll::Waiting(ticket) => {
                waits += 1;
                // Polling before completion must not lose the read.
                let again = scanner.poll(&mut meter, &clock).unwrap();
                assert!(matches!(again, ScanPoll::Waiting(_)));
                assert!(!ticket.is_complete());
                assert!(file.expect("only a late file makes a scan wait").complete_one());
            }
            ScanPoll::Ready => loop {
                let (key, value) = (scanner.key().to_vec(), scanner.value().to_vec());
                entries.push((key, scanner.trailer(), value));
                if !scanner.advance().unwrap() {
                    break;
                }
            },
        }
    }
}

#[test]
fn a_scan_gives_every_entry_of_its_range() {
    let mut random = Random(21);
    for (round, compression) in
        [Compression::NONE, Compression::LZ4, zstd()].into_iter().cycle().take(9).enumerate()
    {
        let options = TableOptions {
            block_size_bytes: [60, 900, 16 << 10][round / 3],
            ..TableOptions::default()
        };
        let entries = random_entries(&mut random, 400, 60);
        let (bytes, _) = build(&options, compression, &entries);
        let reader = open(&bytes, true).unwrap();
        let (bytes, _) = build_two_levels(&options, compression, &entries, 400);
        let readers = [reader, open(&bytes, round % 2 == 0).unwrap()];
        for reader in &readers {
            assert_eq!(scan(&mut reader.scanner(None, None), None).0, entries);
        }
        for _ in 0..30 {
            let mut bounds = [(); 2].map(|()| {
                let mut key = entries[random.below(400) as usize].0.clone();
                key.truncate(random.below(12) as usize);
                key
            });
            bounds.sort();
            let [start, end] = &bounds;
            let (start, end) = match random.below(3) {
                0 => (Some(&start[..]), None),
                1 => (None, Some(&end[..])),
                _ => (Some(&start[..]), Some(&end[..])),
            };
            let expected: Vec<Entry> = entries
                .iter()
                .filter(|entry| {
                    start.is_none_or(|start| &entry.0[..] >= start)
                        && end.is_none_or(|end| &entry.0[..] < end)
                })
                .cloned()
                .collect();
            for reader in &readers {
                assert_eq!(scan(&mut reader.scanner(start, end), None).0, expected);
            }
        }
    }
}

#[test]
fn late_reads_are_waited_for_and_cover_many_blocks() {
    let entries = plain_rows(20_000);
    let options = TableOptions { block_size_bytes: 4096, ..TableOptions::default() };
    let (bytes, summary) = build(&options, Compression::NONE, &entries);
    let file = Arc::new(TestFile { bytes, is_late: true, ..TestFile::default() });
    let reader = TableReader::open(file.clone(), Some(test_cache()), pool()).unwrap();
    let (found, waits) = scan(&mut reader.scanner(None, None), Some(&file));
    assert_eq!(found, entries);
    let chunks = summary.properties.data_stored_bytes / (256 << 10) + 1;
    // The index, and a little more than the fewest chunks, as blocks are not split.
    let submits = file.submits.load(Relaxed);
    assert!((chunks + 1..=chunks + 3).contains(&submits), "{submits} reads, {chunks} chunks");
    assert_eq!(waits as u64, submits);
}

#[test]
fn buffers_for_chunks_are_of_their_size() {
    let entries = plain_rows(40_000);
    let (bytes, summary) = build(&TableOptions::default(), Compression::NONE, &entries);
    assert!(summary.properties.data_stored_bytes > 4 * (256 << 10), "several chunks");
    let file = Arc::new(TestFile { bytes, ..TestFile::default() });
    let reader = TableReader::open(file, Some(test_cache()), pool()).unwrap();
    let mut scanner = reader.scanner(None, None);
    assert_eq!(scan(&mut scanner, None).0, entries);
    let bytes = scanner.memory_bytes();
    assert!(bytes <= 2 * (256 << 10) + (64 << 10), "two chunks and a block take {bytes}");
}

#[test]
fn a_read_that_fails_or_is_short_is_an_error() {
    let (bytes, _) = build(&TableOptions::default(), Compression::NONE, &plain_rows(500));
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let outcomes: [fn(Vec<u8>) -> IoOutcome; 2] = [
        |mut buffer| {
            buffer.pop();
            IoOutcome { buffer, result: Ok(()) }
        },
        |buffer| IoOutcome { buffer, result: Err(crate::Error::new(ErrorKind::Io, "broken disk")) },
    ];
    for (outcome, kind) in outcomes.into_iter().zip([ErrorKind::Corruption, ErrorKind::Io]) {
        let file = TestFile { bytes: bytes.clone(), is_late: true, ..TestFile::default() };
        let file = Arc::new(file);
        let reader = TableReader::open(file.clone(), None, pool()).unwrap();
        let mut scanner = reader.scanner(None, None);
        assert!(matches!(scanner.poll(&mut meter, &clock).unwrap(), ScanPoll::Waiting(_)));
        let (request, ticket) = file.waiting.lock().unwrap().pop().unwrap();
        ticket.complete(outcome(perform(&*file, request).buffer));
        assert_eq!(scanner.poll(&mut meter, &clock).err().map(|error| error.kind()), Some(kind));
    }
}

#[test]
fn a_scan_leaves_the_cache_alone() {
    let (bytes, _) = build(&TableOptions::default(), zstd(), &plain_rows(2000));
    let file = Arc::new(TestFile { bytes, ..TestFile::default() });
    let reader = TableReader::open(file, Some(test_cache()), pool()).unwrap();
    assert_eq!(scan(&mut reader.scanner(None, None), None).0.len(), 2000);
    assert!(reader.resident_index().is_none());
}

#[test]
fn a_verification_leaves_a_full_cache_alone() {
    let rows = plain_rows(30_000);
    let cache = BlockCache::new(MemoryBudget::new(400 << 10), 0);
    let clock = TestClock::default();
    let context = &mut ReadContext::new(&clock);
    let open = |bytes: Vec<u8>| {
        let file = Arc::new(TestFile { bytes, ..TestFile::default() });
        TableReader::open(file, Some(Arc::clone(&cache)), pool()).unwrap()
    };
    for compression in [Compression::NONE, Compression::LZ4] {
        let options = TableOptions { block_size_bytes: 2048, ..TableOptions::default() };
        let hot = open(build(&options, compression, &rows).0);
        let checked = open(build_two_levels(&options, compression, &rows, 4096).0);
        // Its filter and top index are there before.
        assert!(checked.get(b"row000000", 0, context).unwrap().is_some());
        for (key, _, _) in rows.iter().step_by(20) {
            assert!(hot.get(key, 0, context).unwrap().is_some());
        }
        let before = cache.statistics();
        assert!(before.evicted > 100, "the cache is full");
        checked.verify(context).unwrap();
        let after = cache.statistics();
        assert_eq!((after.evicted, after.inserted), (before.evicted, before.inserted));
        assert_eq!(after.used_bytes, before.used_bytes);
    }
}
