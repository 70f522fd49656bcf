//! What a clean close leaves behind.

mod support;

use lithify::{CfOptions, Db, inspect};
use std::path::Path;
use support::{PATH, Parts, Random, small_options};

/// With no threads nobody has removed the inputs of the last compactions when the close comes.
#[test]
fn no_table_is_left_that_nothing_needs() {
    let parts = Parts::new(1);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    let mut random = Random(1);
    for number in 0..4_000u64 {
        let key = random.below(1_000).to_be_bytes();
        family.put(&key, &random.bytes(100 + number as usize % 100)).unwrap();
    }
    assert!(parts.names_ending(".sst").len() > 2);
    db.close().unwrap();
    let options = inspect::LevelsOptions::default();
    let tree = inspect::read_levels(&parts.files, Path::new(PATH), &options).unwrap();
    assert_eq!(parts.names_ending(".sst").len() as u64, tree.total().files);
}
