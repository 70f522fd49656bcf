//! Dictionaries for the values and keys of scripts: each has what most rows have, in another place,
//! so that a block that is decoded with the wrong one is another block.

use super::Value;
use crate::random::Random;
use lithify::ColumnFamily;

/// So many are in use: more than a table can have.
const COUNT: u64 = 6;

/// What the last two begin with, so that their names begin alike: no table may have both.
const TWINS: [u64; 2] = [382_424, 1_331];

/// The content of each.
fn contents() -> Vec<Vec<u8>> {
    let content = |number: u64| {
        let twin = number.checked_sub(COUNT - 2).and_then(|twin| TWINS.get(twin as usize));
        let mut content = twin.unwrap_or(&number).to_le_bytes().to_vec();
        let mut random = Random::new(number);
        for _ in 0..24 {
            let seed = random.next();
            content.extend(Value { seed, length: 40 + (seed % 80) as u32 }.bytes());
            content.extend_from_slice(b"key0");
            content.extend_from_slice((seed % 1000).to_string().as_bytes());
            content.extend_from_slice(b"a/rather/long/beginning/that/all/keys/have/in/common/0");
        }
        content
    };
    (0..COUNT).map(content).collect()
}

/// Has the family's tables be written with dictionaries by chance: those of one case in two, whose
/// seed this is.
pub fn vary(family: &ColumnFamily, seed: u64) -> lithify::Result<()> {
    if !seed.is_multiple_of(2) {
        return Ok(());
    }
    let contents = contents();
    // The twins alone meet more often.
    let skipped = if seed.is_multiple_of(4) { contents.len() - 2 } else { 0 };
    let contents: Vec<&[u8]> = contents[skipped..].iter().map(|content| &content[..]).collect();
    family.vary_dictionaries(&contents, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify::codec::DictionaryHash;
    use std::collections::BTreeSet;

    #[test]
    fn the_last_two_have_one_id() {
        let names: Vec<_> = contents().iter().map(|content| DictionaryHash::of(content)).collect();
        let ids: BTreeSet<u32> = names.iter().map(|name| name.id()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), COUNT as usize);
        assert_eq!(ids.len(), COUNT as usize - 1);
    }
}
