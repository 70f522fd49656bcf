//! One target of `lithify-sim` under libFuzzer, chosen by `LITHIFY_FUZZ_TARGET`; with `list` their
//! names. Where `LITHIFY_FUZZ_CORPUS` names a directory, what the engine itself has made is written
//! there first. `fuzz/run` builds and calls it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lithify_sim::fuzz::allocation::CountingAllocator;
use lithify_sim::fuzz::corpus::corpus;
use lithify_sim::fuzz::target::{TARGETS, Target, by_name};
use lithify_sim::fuzz::try_input;
use std::path::Path;
use std::sync::OnceLock;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

fn target() -> &'static Target {
    TARGET.get_or_init(|| {
        let name = std::env::var("LITHIFY_FUZZ_TARGET").unwrap_or_default();
        if name == "list" {
            TARGETS.iter().for_each(|target| println!("{}", target.name));
            std::process::exit(0);
        }
        let Some(target) = by_name(&name) else {
            eprintln!("error: there is no target {name:?}: fuzz/run list names them");
            std::process::exit(2);
        };
        if let Ok(directory) = std::env::var("LITHIFY_FUZZ_CORPUS") {
            for (number, seed) in corpus().seeds(target.name).iter().enumerate() {
                let path = Path::new(&directory).join(format!("seed-{number:04}"));
                if let Err(error) = std::fs::write(&path, seed) {
                    eprintln!("error: cannot write {}: {error}", path.display());
                    std::process::exit(2);
                }
            }
        }
        target
    })
}

fuzz_target!(init: { target(); }, |bytes: &[u8]| {
    let target = target();
    let mut input = bytes.to_vec();
    (target.seal)(&mut input);
    if let Err(what) = try_input(target, &input) {
        panic!("{what}");
    }
});
