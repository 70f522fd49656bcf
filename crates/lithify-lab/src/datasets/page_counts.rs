//! Page counts of an encyclopedia: a row per page and hour, sorted by day and hour, with a long
//! title of which every second is percent-escaped.

use super::words::Vocabulary;
use super::{Table, set_text};
use crate::adapter::table::schema::{Column, Kind, Query, Range, Row, Schema, Value};
use crate::random::Random;

/// The days that the rows are spread over.
const DAYS: u64 = 10;
/// The first one.
const FIRST_DAY: i64 = 20_160_101;
/// The day that the query asks for.
const QUERY_DAY: i64 = 20_160_105;
const HOURS: u64 = DAYS * 24;

/// Projects in the order in which the rows of an hour have them, the parts of a thousand that they
/// have, and the first bytes of their letters in UTF-8 where they are not Latin.
const PROJECTS: [(&str, u64, &[u8]); 16] = [
    ("ar", 40, &[0xD8, 0xD9]),
    ("commons.m", 40, &[]),
    ("de", 80, &[]),
    ("el", 30, &[0xCE, 0xCF]),
    ("en", 150, &[]),
    ("en.b", 20, &[]),
    ("en.mw", 60, &[]),
    ("es", 60, &[]),
    ("fa", 50, &[0xD8, 0xDA]),
    ("fr", 70, &[]),
    ("he", 40, &[0xD7]),
    ("hy", 40, &[0xD5, 0xD6]),
    ("it", 50, &[]),
    ("ru", 150, &[0xD0, 0xD1]),
    ("sr", 40, &[0xD0, 0xD1]),
    ("uk", 80, &[0xD0, 0xD1]),
];

/// Names of the places of columns.
mod column {
    pub(super) const DAY: usize = 1;
    pub(super) const HOUR: usize = 2;
    pub(super) const REQUEST: usize = 5;
    pub(super) const SIZE: usize = 6;
}

/// The columns and keys of page counts.
pub(super) fn schema() -> Schema {
    let columns = vec![
        Column::new("id", Kind::Unsigned32),
        Column::new("day", Kind::Date),
        Column::new("hour", Kind::Unsigned8),
        Column::new("project", Kind::Text(30)),
        Column::new("title", Kind::Text(4096)),
        Column::new("request", Kind::Unsigned32),
        Column::new("size", Kind::Unsigned32),
    ];
    Schema::new("page_counts", columns, &[0], &[column::DAY, column::HOUR])
}

/// One day, by hour.
pub(super) fn query(day: i64) -> Query {
    Query {
        range: Some(Range { column: column::DAY, from: day, to: day }),
        group: vec![column::DAY, column::HOUR],
        figures: vec![column::REQUEST, column::SIZE],
        top: None,
    }
}

/// Generated page counts: so many rows, each a function of the seed and its number.
pub struct PageCounts {
    schema: Schema,
    rows: u64,
    seed: u64,
    /// In the order of the alphabet: the first words of titles.
    heads: Vocabulary,
    words: Vocabulary,
}

impl PageCounts {
    /// So many rows.
    pub fn new(rows: u64, seed: u64) -> PageCounts {
        let mut random = Random::new(seed, u64::MAX);
        let mut heads = Vocabulary::new(&mut random, 20_000, [2, 3]);
        heads.sort();
        let words = Vocabulary::new(&mut random, 20_000, [1, 4]);
        PageCounts { schema: schema(), rows, seed, heads, words }
    }

    /// Writes the title of a row that lies at `place` of 2^32 in the part of its project.
    fn title(&self, random: &mut Random, place: u64, letters: &[u8], title: &mut Vec<u8>) {
        let head = (place * self.heads.len() as u64) >> 32;
        let words = 3 + random.below(5);
        let escape = |byte: u8, title: &mut Vec<u8>| {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            title.push(b'%');
            title.push(DIGITS[usize::from(byte >> 4)]);
            title.push(DIGITS[usize::from(byte & 15)]);
        };
        for number in 0..words {
            let word = match number {
                0 => self.heads.word(head as usize + random.below(3) as usize),
                _ => self.words.draw(random),
            };
            if number > 0 {
                title.push(b'_');
            }
            for letter in word.bytes() {
                match letters {
                    // Every fortieth Latin letter has an accent.
                    [] if random.below(40) == 0 => {
                        escape(0xC3, title);
                        escape(0xA0 + letter % 32, title);
                    }
                    [] => title.push(letter),
                    _ => {
                        escape(letters[usize::from(letter) % letters.len()], title);
                        escape(0x80 + letter % 64, title);
                    }
                }
            }
            // Titles in other letters have fewer words: an escaped letter takes six bytes.
            if !letters.is_empty() && title.len() > 60 + number as usize * 20 {
                break;
            }
        }
    }
}

impl Table for PageCounts {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn row(&self, index: u64, row: &mut Row) {
        let mut random = Random::new(self.seed, index);
        let hour = index * HOURS / self.rows.max(1);
        let first = (hour * self.rows).div_ceil(HOURS);
        let next = ((hour + 1) * self.rows).div_ceil(HOURS);
        let part = ((index - first) * 1000 * 64 / (next - first).max(1)).min(1000 * 64 - 1);
        let mut start = 0;
        let (project, share, letters) = PROJECTS
            .into_iter()
            .find(|(_, share, _)| {
                start += share * 64;
                part < start
            })
            .unwrap_or(PROJECTS[0]);
        let place = ((part + share * 64).saturating_sub(start) << 32) / (share * 64);
        row.resize(self.schema.columns.len(), Value::Whole(0));
        row[0] = Value::Whole(index as i64 + 1);
        row[column::DAY] = Value::Whole(FIRST_DAY + (hour / 24) as i64);
        row[column::HOUR] = Value::Whole((hour % 24) as i64);
        set_text(&mut row[3], |text| text.extend_from_slice(project.as_bytes()));
        set_text(&mut row[4], |text| {
            self.title(&mut random, place, letters, text);
        });
        let request = (random.gaussian() * 1.3).exp().clamp(1.0, 1e6) as i64;
        let page_bytes = (random.gaussian() * 0.8 + 9.6).exp().clamp(200.0, 1e6) as i64;
        row[column::REQUEST] = Value::Whole(request);
        row[column::SIZE] = Value::Whole((request * page_bytes).min(i64::from(u32::MAX) / 2));
    }

    fn query(&self) -> Query {
        query(QUERY_DAY)
    }

    fn updated_column(&self) -> usize {
        column::REQUEST
    }
}
