//! Plans, findings and the report over made-up outcomes.

use super::csv;
use super::figures::{ArmFigures, of_engine};
use super::findings::judge;
use super::plan::{ChunkChoice, ChunkPlan};
use super::sample::{expand, experiment, plan, run};
use crate::adapter::EngineName;
use crate::adapter::codec::Codec;
use crate::chunks::kind::Chunks;
use crate::datasets::TextData;
use crate::experiment::chunks::ChunkCheck;
use crate::kind::{Kind, wide_text};
use crate::records::AnyRecord;
use crate::run::cells::Run;
use crate::run::store::write_files;

#[test]
fn arms_are_codecs_in_chunks_and_rotate_over_repeats() {
    let arms = Some(vec!["lz4".to_owned(), "none-4k".to_owned()]);
    let plan = expand(ChunkChoice { arms, repeats: Some(2), ..ChunkChoice::default() });
    let plan = plan.expect("expands");
    let ids: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids[..3], ["lithify-none-4k-r0", "lithify-lz4-4k-r0", "lithify-lz4-16k-r0"]);
    assert_eq!((ids.len(), ids[5], ids[9]), (10, "lithify-lz4-4k-r1", "lithify-none-4k-r1"));
    assert_eq!(plan.name, "chunk-length-smoke-lithify");
    let cell = &plan.cells[2];
    assert_eq!(cell.settings.block_bytes, 16 << 10);
    let codecs =
        [cell.settings.codec_small, cell.settings.codec_middle, cell.settings.codec_bottom];
    assert_eq!(codecs, [Codec::LZ4; 3]);
}

#[test]
fn impossible_choices_say_what_is_possible() {
    let refused = |choice| expand(choice).expect_err("must be refused").0;
    let arms = Some(vec!["lz4-5k".to_owned()]);
    let text = refused(ChunkChoice { arms, ..ChunkChoice::default() });
    assert!(text.starts_with("there is no arm \"lz4-5k\"; there are: none-4k, lz4-4k"), "{text}");
    let text = refused(ChunkChoice { scale: Some("big".into()), ..ChunkChoice::default() });
    assert!(text.contains("\"big\"; there are: large, smoke, standard"), "{text}");
    let text = Some(TextData::from("no/such/file".to_owned()));
    let text = refused(ChunkChoice { text, ..ChunkChoice::default() });
    assert!(text.starts_with("no/such/file: "), "{text}");
    let model = ChunkChoice { engine: Some(EngineName::model()), ..ChunkChoice::default() };
    let text = ChunkPlan::expand(&experiment(), &model, "b").expect_err("keeps nothing").0;
    assert_eq!(text, "model keeps nothing on disk: it cannot be closed and read again");
    // The lab alone knows no other engines; who links their adapters does.
    let plan = ChunkPlan::expand(&experiment(), &ChunkChoice::default(), "b").expect("expands");
    assert!(plan.skipped[0].contains("there is no engine \"rocksdb\""), "{:?}", plan.skipped);
    assert_eq!(plan.engines, [EngineName::lithify()]);
}

fn figures() -> Vec<ArmFigures> {
    let plan = expand(ChunkChoice::default()).expect("expands");
    of_engine(&run(&plan), &EngineName::lithify())
}

#[test]
fn every_published_finding_can_hold() {
    let figures = figures();
    for finding in &experiment().findings {
        let verdict = judge(finding.check, &figures).expect("all arms are there");
        assert!(verdict.held, "{:?}: {}", finding.check, verdict.figures);
        assert_eq!(judge(finding.check, &[]), None, "{:?}", finding.check);
    }
}

/// Changes the figures of one arm, and expects a finding not to hold, for a reason with `part`.
#[track_caller]
fn falls(check: ChunkCheck, arm: &str, change: fn(&mut ArmFigures), part: &str) {
    let mut figures = figures();
    let of = figures.iter_mut().find(|of| of.arm.to_string() == arm).expect("is there");
    change(of);
    let verdict = judge(check, &figures).expect("all arms are there");
    assert!(!verdict.held && verdict.figures.contains(part), "{verdict:?}");
}

#[test]
fn every_finding_can_fall_and_says_why() {
    use ChunkCheck as C;
    falls(C::LargerChunksAreSmaller, "lz4-16k", |of| of.stored_share = 0.7, "lz4 60.0 % > 70.0 %");
    falls(C::FastCodecsHalve, "snappy-64k", |of| of.stored_share = 0.7, "snappy-64k 70.0 %");
    falls(C::StrongCodecsAreSmallest, "lz4-64k", |of| of.stored_share = 0.1, "lz4-64k 10.0 %");
    falls(
        C::EffortsMatterInLargeChunks,
        "zstd-9-256k",
        |of| of.stored_share = 0.9,
        "against effort 1 at 4 KiB",
    );
    falls(C::LightZstdFlushesLikeLz4, "zstd-1-64k", |of| of.flush_ms.mean = 30.0, "zstd-1 30.0 ms");
    falls(C::HighZstdFlushesSlowly, "zstd-9-64k", |of| of.flush_ms.mean = 11.0, "zstd-9 11.0 ms");
    falls(C::FastCodecsReadFaster, "lz4-16k", |of| of.cold_ms.mean = 99.0, "lz4-16k 99.0 : 28.0");
    falls(C::LightZstdReadsSlowerThanZlib, "zstd-1-4k", |of| of.warm_ms.mean = 1.0, "zstd-1-4k");
    falls(C::LargerChunksReadFaster, "none-64k", |of| of.cold_ms.mean = 50.0, "none 30.0 > 50.0");
    falls(C::FastCodecsNeverLong, "zstd-1-64k", |of| of.long_calls = 1.0, "zstd-1-64k at most");
    falls(C::LongCallsNeedLargeChunks, "zstd-9-4k", |of| of.long_calls = 2.0, "zstd-9-4k: 2.00");
}

#[test]
fn one_flush_that_is_faster_beyond_noise_is_enough() {
    let verdict = |of_lz4_4k: f64| {
        let mut figures = figures();
        for of in figures.iter_mut() {
            match (of.arm.to_string().as_str(), of.arm.codec) {
                ("lz4-4k", _) => of.flush_ms.mean = of_lz4_4k,
                (_, Codec::LZ4 | Codec::SNAPPY) => of.flush_ms.mean = 20.0,
                _ => {}
            }
        }
        judge(ChunkCheck::FastCodecsFlushFasterAtTimes, &figures).expect("all arms are there")
    };
    let held = verdict(5.0);
    assert!(held.held && held.figures == "lz4-4k 5.00 : 10.1 ms", "{held:?}");
    for slower_or_noise in [10.05, 11.0] {
        let fell = verdict(slower_or_noise);
        assert!(!fell.held && fell.figures.starts_with("nearest: lz4-4k 1"), "{fell:?}");
    }
}

#[test]
fn a_void_row_is_named_and_counts_in_no_figure() {
    let plan = plan(&["lz4-4k", "none-4k"]);
    let mut run = run(&plan);
    assert!(run.is_complete());
    let outcome = run.entries.cells[1].result.as_mut().expect("is measured");
    outcome.faults.push("the rows that were read are not those that were loaded".to_owned());
    let text = wide_text::<Chunks>(&run);
    assert!(text.contains("- 1 of 2 cells count"), "{text}");
    assert!(text.contains("lithify-lz4-4k-r0: WRONG, row void: the rows that were"), "{text}");
    assert!(text.contains("\"lz4 and snappy halve the size at 64 KB\": not measured here"));
    assert!(text.contains("all rows as read have one hash per seed, on 1 engines"), "{text}");
    let table: Vec<&str> = text.lines().filter(|line| line.contains("10.1 ± 0.141")).collect();
    assert_eq!(table.len(), 1, "none's row stays: {text}");
    assert!(!run.is_complete() && run.valid_cells() == 1);
    let lines: Vec<String> = csv::render(&run).lines().map(str::to_owned).collect();
    assert!(lines[1].contains(",none,0,true,") && lines[2].contains(",lz4,0,false,"), "{lines:?}");
    assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()));
}

#[test]
fn rows_that_differ_between_cells_are_wrong() {
    let mut run = run(&plan(&["lz4-4k", "none-4k"]));
    run.entries.cells[1].result.as_mut().expect("is measured").rows_hash = 1;
    assert!(!run.is_complete() && run.valid_cells() == 2);
    let text = wide_text::<Chunks>(&run);
    assert!(text.contains("WRONG: rows as read differ between cells of one seed"), "{text}");
}

#[test]
fn a_report_is_read_again_and_no_other_is() {
    let place = tempfile::tempdir().expect("a directory");
    let run = run(&plan(&["lz4-4k"]));
    let text = wide_text::<Chunks>(&run);
    let files = write_files(place.path(), &Chunks::files(&run).expect("has files"));
    let files = files.expect("writes");
    let names: Vec<_> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    let name = "chunk-length-smoke-lithify";
    assert_eq!(names, [".txt", ".csv", ".json", ".html"].map(|end| format!("{name}{end}")));
    let again = AnyRecord::read(&files[2]).expect("reads");
    assert_eq!(wide_text::<Chunks>(again.get::<Run<ChunkPlan>>().expect("is one")), text);
    assert!(AnyRecord::read(&files[1]).is_err(), "figures are no record");
    std::fs::write(&files[2], "{\"kind\":\"chunks\"}").expect("writes");
    let error = AnyRecord::read(&files[2]).expect_err("is broken").to_string();
    assert!(error.contains(".json is no record of a run"), "{error}");
}
