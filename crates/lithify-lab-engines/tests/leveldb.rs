//! LevelDB behind the adapter, where it is there.

mod harness;

use std::ops::ControlFlow;

use harness::{ROWS, conforms_in_all, fill, linkbench, present};
use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineName, ScanRange, SpaceId};
use lithify_lab::conformance::kill;
use lithify_lab::engines::registry::open_spaces;

fn engine() -> Option<EngineName> {
    present("leveldb")
}

fn settings(codec: Codec, durability: DurabilityMode) -> EngineSettings {
    EngineSettings { codec_bottom: codec, durability, ..EngineSettings::small() }
}

#[test]
fn conforms() {
    let Some(engine) = engine() else { return };
    conforms_in_all(&engine, &settings(Codec::SNAPPY, DurabilityMode::Buffered));
}

/// Is run in processes of its own.
#[test]
fn child_that_commits() {
    lithify_lab_engines::register();
    kill::child();
}

#[test]
fn the_codec_is_in_the_files() {
    let Some(engine) = engine() else { return };
    for codec in [Codec::NONE, Codec::SNAPPY] {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = settings(codec, DurabilityMode::Buffered);
        let open =
            || open_spaces(&engine, directory.path(), &settings, &ROWS, Transactions::Unneeded);
        let opened = open().expect("opens");
        assert_eq!(opened.name(), "LevelDB 1.23");
        fill(&*opened, 40_000);
        opened.flush().expect("flushes");
        opened.wait_for_compaction().expect("waits");
        let statistics = opened.statistics().expect("says");
        let (mut stored, mut raw) = (0, 0);
        for level in statistics.levels.iter().filter(|level| level.files > 0) {
            assert_eq!(level.codec, codec.to_string(), "{level:?}");
            (stored, raw) = (stored + level.stored_bytes, raw + level.raw_bytes);
        }
        assert!(raw > 3_000_000, "{raw}");
        assert_eq!(stored < raw * 8 / 10, codec == Codec::SNAPPY, "{stored} of {raw}");
        let written = &statistics.written_bytes_by_cause;
        assert!(written["flush"] > 1_000_000, "{written:?}");
        assert!(statistics.live_bytes >= stored);
        opened.close().expect("closes");

        let opened = open().expect("opens again");
        let mut session = opened.session().expect("a session");
        let all = ScanRange::prefix(b"");
        let rows = session.scan(SpaceId(0), &all, &mut |_, _| ControlFlow::Continue(()));
        assert_eq!(rows.expect("scans"), 40_000);
    }
}

#[test]
fn what_it_cannot_do_is_refused() {
    let Some(engine) = engine() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let plain = settings(Codec::SNAPPY, DurabilityMode::Buffered);
    let open = |settings: &EngineSettings| {
        open_spaces(&engine, directory.path(), settings, &ROWS, Transactions::Unneeded)
    };
    let refused = |settings| open(&settings).err().expect("is refused").to_string();
    let error = refused(settings(Codec::zstd(1), DurabilityMode::Buffered));
    assert!(error.contains("zstd"), "{error}");
    let error = refused(settings(Codec::SNAPPY, DurabilityMode::None));
    assert!(error.contains("none") || error.contains("log"), "{error}");
    let opened = open(&plain).expect("opens");
    let mut session = opened.session().expect("a session");
    assert!(session.begin(1).is_err() && session.commit().is_err());
    let error = session.get(SpaceId(1), b"k", &mut Vec::new()).expect_err("has one space");
    assert!(error.to_string().contains("no space 1"), "{error}");
    let error = refused(plain.clone());
    assert!(error.starts_with("LevelDB: IO error") && error.contains("lock"), "{error}");
}

#[test]
fn linkbench_passes_its_oracle() {
    let Some(engine) = engine() else { return };
    let result = linkbench(&engine, |settings| settings.codec_bottom = Codec::SNAPPY);
    assert!(result.capabilities.labels.contains(&"external lock".to_owned()));
}
