//! A list of actors: a name, then what the person played in, line by line, indented with tabs.

use super::text::Lines;
use super::words::Vocabulary;
use crate::random::Random;

/// Generated lines, so many bytes of them or a line more.
pub(super) struct Actors {
    random: Random,
    surnames: Vocabulary,
    first_names: Vocabulary,
    words: Vocabulary,
    /// Films and series that many played in.
    titles: Vec<String>,
    /// Their frequencies.
    popular: Vocabulary,
    /// What is still to be written, bytes.
    left: u64,
    name: String,
    /// Lines of the present person that are still to come.
    credits: u64,
}

/// Titles that many people played in.
const TITLES: usize = 6_000;

/// Of 100 lines so many name one of them.
const POPULAR_OF_100: u64 = 45;

impl Actors {
    pub(super) fn new(bytes: u64, seed: u64) -> Actors {
        let mut random = Random::new(seed, 0);
        let surnames = Vocabulary::new(&mut random, 8_000, [2, 3]);
        let first_names = Vocabulary::new(&mut random, 1_200, [1, 3]);
        let words = Vocabulary::new(&mut random, 6_000, [1, 3]);
        let popular = Vocabulary::new(&mut random, TITLES, [1, 1]);
        let titles = (0..TITLES).map(|_| title(&words, &mut random)).collect();
        let name = String::new();
        let left = bytes;
        Actors { random, surnames, first_names, words, titles, popular, left, name, credits: 0 }
    }

    fn next_person(&mut self) {
        let random = &mut self.random;
        self.name.clear();
        self.name.push_str(self.surnames.draw(random));
        self.name.push_str(", ");
        self.name.push_str(self.first_names.draw(random));
        if random.below(3) == 0 {
            self.name.push(' ');
            self.name.push_str(self.first_names.draw(random));
        }
        // A few people have long lists: half have one or two lines.
        self.credits = 1 + (random.below(64) >> random.below(7));
    }
}

/// `Title of some Words (1987)`, of a series with the episode.
fn title(words: &Vocabulary, random: &mut Random) -> String {
    let count = 1 + random.below(4);
    let text: Vec<&str> = (0..count).map(|_| words.draw(random)).collect();
    let year = 2019 - (random.below(100) >> random.below(4));
    let text = text.join(" ");
    match random.below(4) {
        0 => format!("\"{text}\" ({year})"),
        1 => format!("{text} ({year}) (TV)"),
        _ => format!("{text} ({year})"),
    }
}

impl Lines for Actors {
    fn next(&mut self, line: &mut Vec<u8>) -> std::io::Result<bool> {
        line.clear();
        if self.left == 0 {
            return Ok(false);
        }
        if self.credits == 0 {
            self.next_person();
            line.extend_from_slice(self.name.as_bytes());
            line.extend_from_slice(b"\t\t");
        } else {
            line.extend_from_slice(b"\t\t\t");
        }
        self.credits -= 1;
        let random = &mut self.random;
        let own;
        let title = match random.below(100) < POPULAR_OF_100 {
            true => &self.titles[self.popular.draw_rank(random)],
            false => {
                own = title(&self.words, random);
                &own
            }
        };
        line.extend_from_slice(title.as_bytes());
        if title.starts_with('"') {
            let episode = format!(" {{(#{}.{})}}", 1 + random.below(12), 1 + random.below(24));
            line.extend_from_slice(episode.as_bytes());
        }
        match random.below(5) {
            0 => line.extend_from_slice(b"  [Himself]"),
            1 => {}
            _ => {
                let role = [self.first_names.draw_rank(random), self.surnames.draw_rank(random)];
                line.extend_from_slice(b"  [");
                line.extend_from_slice(self.first_names.word(role[0]).as_bytes());
                if random.below(2) == 0 {
                    line.push(b' ');
                    line.extend_from_slice(self.surnames.word(role[1]).as_bytes());
                }
                line.push(b']');
            }
        }
        if random.below(3) > 0 {
            let place = 1 + (random.below(64) >> random.below(5));
            line.extend_from_slice(format!("  <{place}>").as_bytes());
        }
        line.push(b'\n');
        self.left = self.left.saturating_sub(line.len() as u64);
        Ok(true)
    }
}
