//! A time series under a cursor: ranges, both directions, prefixes that filters know, and
//! deleting what is old by one entry.

use lithify::{CfOptions, Db, Options};

/// Keys that sort by station, then by time.
fn key(station: &str, minute: u32) -> Vec<u8> {
    let mut key = format!("{station:8}").into_bytes();
    key.extend_from_slice(&minute.to_be_bytes());
    key
}

fn minute(key: &[u8]) -> u32 {
    key.last_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let db = Db::open(directory.path().join("weather.db"), Options::default())?;
    // Filters hold the stations too: a scan of one skips the tables that do not have it.
    let options = CfOptions { prefix_length_bytes: 8, ..CfOptions::default() };
    let readings = db.column_family("readings", options)?;
    for time in 0..1440 {
        let mut batch = db.batch();
        for (number, station) in ["alps", "coast", "plain"].into_iter().enumerate() {
            let degrees = (time / 120) as u8 + 5 * number as u8;
            batch.put(&readings, &key(station, time), &[degrees]);
        }
        batch.commit()?;
    }

    // The cursor lends keys and values: nothing is allocated per row.
    let mut warmest = (0, 0);
    let mut rows = readings.cursor(&key("coast", 600)..&key("coast", 720))?;
    while rows.next()? {
        warmest = warmest.max((rows.value()[0], minute(rows.key())));
    }
    println!("warmest of the hours from 10 to 12 on the coast: {} degrees", warmest.0);

    // Backwards from a point: the last readings before noon.
    let mut rows = readings.prefix_cursor(&key("alps", 0)[..8])?;
    let mut is_there = rows.seek_for_prev(&key("alps", 719))?;
    for _ in 0..3 {
        if is_there {
            println!("alps, minute {}: {} degrees", minute(rows.key()), rows.value()[0]);
            is_there = rows.prev()?;
        }
    }
    drop(rows);

    // One entry deletes half a day, however many rows that is.
    readings.delete_range(&key("plain", 0), &key("plain", 720))?;
    let left = readings.prefix_cursor(&key("plain", 0)[..8])?.iter().count();
    println!("readings left of the plain: {left}");

    // What is not needed row by row can be collected.
    let last: Result<Vec<_>, _> = readings.cursor(&key("plain", 1437)..)?.iter().collect();
    println!("the last readings: {:?}", last?.iter().map(|row| row.1[0]).collect::<Vec<_>>());
    db.close()?;
    Ok(())
}
