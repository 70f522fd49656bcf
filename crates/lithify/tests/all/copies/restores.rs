//! Restoring to a sequence number within the copied log.

use super::scene::{COPY, Content, assert_whole, back_up, content, disk, family, key, open, store};
use lithify::backup::{BackupOptions, RestoreOptions};
use lithify::{ErrorKind, TransferOptions};

#[test]
fn every_sequence_number_of_the_log_can_be_gone_back_to() {
    let (files, _) = disk();
    let db = open(&files, 2);
    let (rocks, links) = (family(&db, "rocks"), family(&db, "links"));
    rocks.flush().unwrap();
    let mut states: Vec<(u64, Content)> = vec![(db.snapshot().sequence(), content(&db))];
    for round in 0..40_u8 {
        let mut batch = db.batch();
        // Large enough for several segments.
        batch.put(&rocks, [round], vec![round; 8000]).put(&links, b"round", [round]);
        batch.delete(&rocks, [round / 2]);
        batch.commit().unwrap();
        states.push((db.snapshot().sequence(), content(&db)));
    }
    let mut store = store(&files);
    back_up(&mut store, &db);
    let info = store.list().unwrap().backups.remove(0);
    assert!(info.oldest_sequence <= states[30].0, "{info:?}");
    assert!(info.log_bytes > 100_000);
    let mut restored = 0;
    for sequence in (info.oldest_sequence..=info.sequence).step_by(2) {
        let options = RestoreOptions { up_to_sequence: Some(sequence), ..Default::default() };
        let path = format!("/home/at{sequence}");
        let found = store.restore(1, &path, &options).unwrap();
        let Some((last, expected)) = states.iter().rfind(|(last, _)| *last <= sequence) else {
            continue;
        };
        assert_eq!(found.sequence, *last, "asked for {sequence}");
        assert_whole(&files, &path, expected, &path);
        restored += 1;
    }
    assert!(restored > 10, "{restored}");
}

#[test]
fn a_sequence_number_out_of_range_is_refused_with_the_range() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    let mut store = store(&files);
    back_up(&mut store, &db);
    store.create(&db, &BackupOptions { flush: true, ..Default::default() }).unwrap();
    let list = store.list().unwrap().backups;
    assert!(list[0].oldest_sequence < list[0].sequence);
    assert_eq!(list[1].oldest_sequence, list[1].sequence, "there is no log");
    for (id, sequence) in [
        (1, list[0].oldest_sequence - 1),
        (1, list[0].sequence + 1),
        (2, list[1].sequence - 1),
        (2, u64::MAX),
    ] {
        let options = RestoreOptions { up_to_sequence: Some(sequence), ..Default::default() };
        let error = store.restore(id, COPY, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let range = format!("{} to {}", list[0].oldest_sequence, list[0].sequence);
        assert!(id == 2 || error.to_string().contains(&range), "{error}");
    }
    let options = RestoreOptions {
        up_to_sequence: Some(list[1].sequence),
        transfer: TransferOptions::default(),
    };
    store.restore(2, COPY, &options).unwrap();
    assert_whole(&files, COPY, &expected, "as a whole");
}

#[test]
fn the_log_cannot_be_cut_before_an_ingest_even_when_a_compaction_took_its_number() {
    let (files, _) = disk();
    let db = open(&files, 2);
    let rocks = family(&db, "rocks");
    rocks.flush().unwrap();
    let links = family(&db, "links");
    for number in 0..3_u8 {
        links.put(b"before", [number]).unwrap();
    }
    let mut ingest = rocks.ingest().unwrap();
    (3000..3010).for_each(|number| ingest.put(key(number), b"ingested").unwrap());
    let ingested = ingest.commit().unwrap().sequence;
    rocks.compact_range(..).unwrap();
    let mut store = store(&files);
    // With the ingest at the end of the log, and behind it.
    back_up(&mut store, &db);
    links.put(b"after", b"1").unwrap();
    links.put(b"after", b"2").unwrap();
    // A clean close records the last sequence number; that is not what tables reach to.
    db.close().unwrap();
    let db = open(&files, 6);
    back_up(&mut store, &db);
    let list = store.list().unwrap().backups;
    let range = |index: usize| (list[index].oldest_sequence, list[index].sequence);
    assert_eq!(range(0), (ingested, ingested));
    assert_eq!(range(1), (ingested, ingested + 2));
    let options = RestoreOptions { up_to_sequence: Some(ingested + 1), ..Default::default() };
    store.restore(2, COPY, &options).unwrap();
    let copy = super::scene::open_at(&files, COPY, 7).unwrap();
    assert_eq!(family(&copy, "links").get(b"after").unwrap().as_deref(), Some(&b"1"[..]));
}
