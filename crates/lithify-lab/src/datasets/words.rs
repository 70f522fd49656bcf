//! Made-up words: vocabularies of syllables, drawn with Zipf's frequencies.

use crate::random::Random;

const ONSETS: [&str; 24] = [
    "b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "r", "s",
    "st", "t", "tr", "v", "w", "z",
];
const VOWELS: [&str; 9] = ["a", "e", "i", "o", "u", "a", "e", "ai", "ou"];
const CODAS: [&str; 12] = ["", "", "", "n", "r", "l", "s", "t", "m", "nd", "ck", "ss"];

/// The weight of the first rank; that of rank `k` is this divided by `k`.
const FIRST_WEIGHT: u64 = 1 << 32;

/// Words in the order of their ranks, drawn so that rank `k` comes `1 / k` times as often as the
/// first. It takes a few dozen bytes per word and nothing else.
pub(super) struct Vocabulary {
    words: Vec<Box<str>>,
    /// Sums of the weights up to and with each rank.
    sums: Vec<u64>,
}

impl Vocabulary {
    /// `count` words of `min` to `max` syllables.
    pub(super) fn new(random: &mut Random, count: usize, [min, max]: [u64; 2]) -> Vocabulary {
        let words = (0..count).map(|_| {
            let syllables = min + random.below(max - min + 1);
            let mut word = String::new();
            for _ in 0..syllables {
                for part in [&ONSETS[..], &VOWELS, &CODAS] {
                    word.push_str(part[random.below(part.len() as u64) as usize]);
                }
            }
            capitalized(&word)
        });
        let words: Vec<Box<str>> = words.collect();
        let mut sum = 0;
        let sums = (1..=count as u64).map(|rank| {
            sum += FIRST_WEIGHT / rank;
            sum
        });
        let sums = sums.collect();
        Vocabulary { words, sums }
    }

    /// The number of words.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// A word by its rank, from 0.
    pub(super) fn word(&self, rank: usize) -> &str {
        &self.words[rank % self.words.len()]
    }

    /// A word, frequent ones often.
    pub(super) fn draw(&self, random: &mut Random) -> &str {
        self.word(self.draw_rank(random))
    }

    /// Its rank.
    pub(super) fn draw_rank(&self, random: &mut Random) -> usize {
        let point = random.below(self.sums.last().copied().unwrap_or(1));
        self.sums.partition_point(|sum| *sum <= point)
    }

    /// Puts the words into the order of the alphabet: ranks are then places in it.
    pub(super) fn sort(&mut self) {
        self.words.sort();
    }
}

fn capitalized(word: &str) -> Box<str> {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rank_comes_twice_as_often_as_the_second() {
        let words = Vocabulary::new(&mut Random::new(1, 1), 500, [1, 3]);
        let mut random = Random::new(2, 1);
        let mut counts = vec![0; words.len()];
        (0..200_000).for_each(|_| counts[words.draw_rank(&mut random)] += 1);
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((1.9..2.1).contains(&ratio), "{ratio}");
        assert!(counts[499] > 0 && counts[499] < counts[49], "the last is rare");
        assert!(words.word(0).starts_with(|first: char| first.is_ascii_uppercase()));
    }
}
