//! Stores the lines of a file under random keys, reads some of them, and prints what compression the
//! engine has decided for, before and after.
//!
//! ```sh
//! cargo run --release --example deciding -- lines.txt auto:space
//! ```

use lithify::{CfOptions, Db, Options};
use std::error::Error;
use std::io::{BufRead, BufReader};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: deciding FILE [SETTING]")?;
    let setting = arguments.next().unwrap_or("auto".to_owned());
    let directory = std::env::temp_dir().join(format!("lithify-deciding-{}", std::process::id()));
    // Small levels, so that a small file fills four of them.
    let options =
        Options { memtable_bytes: 1 << 20, memory_budget_bytes: 8 << 20, ..Options::default() };
    let db = Db::open(&directory, options)?;
    let family = db.column_family(
        "lines",
        CfOptions {
            compression: setting.parse()?,
            block_size_bytes: 0,
            table_bytes: 1 << 20,
            base_level_bytes_max: 2 << 20,
            ..CfOptions::default()
        },
    )?;
    let mut count = 0_u64;
    for line in BufReader::new(std::fs::File::open(path)?).split(b'\n') {
        family.put(key(count), &line?)?;
        count += 1;
        if count.is_multiple_of(200_000) {
            println!("{}", family.explain());
        }
    }
    db.wait_for_compaction()?;
    println!("{count} lines:\n{:#}", family.explain());
    for round in 0..10 {
        for number in 0..50_000 {
            family.get(key((round * 50_000 + number) * 7_919 % count))?;
        }
        println!("after {} lookups:\n{}", (round + 1) * 50_000, family.explain());
    }
    db.wait_for_compaction()?;
    println!("{:#}\n{}", family.explain(), db.stats());
    drop((family, db));
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

/// The number, scattered.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}
