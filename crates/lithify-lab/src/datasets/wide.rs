//! Figures of a monitor of database servers: 134 columns, nearly all numbers, most of them zero,
//! small, or equal to their neighbours.
//!
//! Behind the key stand 19 metrics of seven statistics each (the last one of five): sum, least,
//! most, 95th percentile, standard deviation, median, mean. Metrics of whole numbers and of floats
//! alternate. A metric is nothing in a third of the rows. In half of the rows a query ran once: its
//! statistics are all the same number, and its deviation is zero. So two fifths of all figures are
//! zeros, three tenths small whole numbers, three tenths floats.

use super::Table;
use crate::adapter::table::schema::{Column, Kind, Query, Range, Row, Schema, Value};
use crate::random::Random;

const COLUMNS: usize = 134;
const KEY_COLUMNS: usize = 3;
const STATISTICS: [&str; 7] = ["sum", "min", "max", "p95", "stddev", "median", "mean"];

/// Rows of one minute: so many servers, each with so many classes of queries.
const SERVERS: u64 = 8;
const CLASSES_PER_SERVER: u64 = 25;
const ROWS_PER_MINUTE: u64 = SERVERS * CLASSES_PER_SERVER;
/// Classes that can stand at one place of a server's list.
const CLASSES_PER_PLACE: u64 = 80;
/// 2014-09-01, seconds since 1970.
const FIRST_SECOND: i64 = 1_409_529_600;

/// Of 1000 metrics that a row could have, so many are nothing.
const NOTHING_OF_1000: u64 = 354;

/// The sum of the first metric: what the query adds up and updates change.
const TOTAL: usize = KEY_COLUMNS;

/// Generated figures: so many rows, each a function of the seed and its number.
pub struct Wide {
    schema: Schema,
    rows: u64,
    seed: u64,
}

impl Wide {
    /// So many rows.
    pub fn new(rows: u64, seed: u64) -> Wide {
        let mut columns = vec![
            Column::new("start_ts", Kind::Unsigned32),
            Column::new("instance_id", Kind::Unsigned32),
            Column::new("query_class_id", Kind::Unsigned32),
        ];
        for index in 0..COLUMNS - KEY_COLUMNS {
            let (metric, statistic) = (index / STATISTICS.len(), index % STATISTICS.len());
            let kind = if metric % 2 == 0 { Kind::Signed64 } else { Kind::Float32 };
            columns.push(Column::new(format!("m{metric:02}_{}", STATISTICS[statistic]), kind));
        }
        Wide { schema: Schema::new("wide", columns, &[0, 1, 2], &[1]), rows, seed }
    }

    fn second(&self, minute: u64) -> i64 {
        FIRST_SECOND + 60 * minute as i64
    }
}

/// The statistics of a metric of whole numbers: `once` when there was one query.
fn whole_statistics(random: &mut Random, once: bool) -> [i64; 7] {
    // Half of the numbers are below 10, and nearly all below 1000.
    let value = 1 + (random.below(1 << 10) >> random.below(10)) as i64;
    if once {
        return [value, value, value, value, 0, value, value];
    }
    let count = 2 + random.below(20) as i64;
    let least = value / 3;
    [value * count, least, value * 2, value * 2 - value / 4, value / 2, value, value]
}

/// The same of a metric of floats: seconds, of which a few microseconds are the least.
fn float_statistics(random: &mut Random, once: bool) -> [f32; 7] {
    let value = 1e-6 * (1 + (random.below(1 << 24) >> random.below(16))) as f32;
    if once {
        return [value, value, value, value, 0.0, value, value];
    }
    let count = (2 + random.below(20)) as f32;
    [value * count, value / 3.0, value * 2.0, value * 1.75, value / 2.0, value, value]
}

impl Table for Wide {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn row(&self, index: u64, row: &mut Row) {
        let mut random = Random::new(self.seed, index);
        let within = index % ROWS_PER_MINUTE;
        let place = within % CLASSES_PER_SERVER;
        let class = place * CLASSES_PER_PLACE + random.below(CLASSES_PER_PLACE);
        row.resize(COLUMNS, Value::Whole(0));
        row[0] = Value::Whole(self.second(index / ROWS_PER_MINUTE));
        row[1] = Value::Whole(1000 + (within / CLASSES_PER_SERVER) as i64);
        row[2] = Value::Whole(class as i64);
        let once = random.below(2) == 0;
        for (metric, figures) in row[KEY_COLUMNS..].chunks_mut(STATISTICS.len()).enumerate() {
            let is_nothing = random.below(1000) < NOTHING_OF_1000;
            if metric % 2 == 0 {
                let numbers = match is_nothing {
                    true => [0; 7],
                    false => whole_statistics(&mut random, once),
                };
                figures.iter_mut().zip(numbers).for_each(|(f, n)| *f = Value::Whole(n));
            } else {
                let numbers = match is_nothing {
                    true => [0.0; 7],
                    false => float_statistics(&mut random, once),
                };
                figures.iter_mut().zip(numbers).for_each(|(f, n)| *f = Value::Float(n));
            }
        }
    }

    /// Half of the time, by class: those with the largest totals.
    fn query(&self) -> Query {
        let minutes = self.rows.div_ceil(ROWS_PER_MINUTE);
        Query {
            range: Some(Range {
                column: 0,
                from: self.second(minutes / 4),
                to: self.second(minutes * 3 / 4),
            }),
            group: vec![2],
            figures: vec![TOTAL],
            top: Some(10),
        }
    }

    fn updated_column(&self) -> usize {
        TOTAL
    }
}
