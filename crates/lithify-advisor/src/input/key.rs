//! Keys as a database would sort by them.

/// Whole numbers are compared as numbers: eight bytes that sort as they do. Everything else is
/// compared byte by byte.
pub(super) fn append_part(key: &mut Vec<u8>, part: &[u8], is_last: bool) {
    match whole_number(part) {
        Some(number) => key.extend_from_slice(&sorting(number)),
        None => {
            key.extend_from_slice(part);
            if !is_last {
                key.push(0);
            }
        }
    }
}

/// A whole number as bytes that sort as it does: the sign bit is turned over.
pub(super) fn sorting(number: i64) -> [u8; 8] {
    ((number as u64) ^ (1 << 63)).to_be_bytes()
}

/// A number as bytes that sort as it does: negative ones have all their bits turned over.
pub(super) fn sorting_float(number: f64) -> [u8; 8] {
    let bits = number.to_bits();
    let sign = 1_u64 << 63;
    let sorting = if bits & sign == 0 { bits | sign } else { !bits };
    sorting.to_be_bytes()
}

/// The number of a row, as the key of data without one.
pub(super) fn of_number(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A number that is written in the one usual way, so that two texts never make one key.
fn whole_number(part: &[u8]) -> Option<i64> {
    let digits = part.strip_prefix(b"-").unwrap_or(part);
    let is_usual = match digits {
        [b'0'] => digits.len() == part.len(),
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    if !is_usual || digits.len() > 19 {
        return None;
    }
    std::str::from_utf8(part).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[&str]) -> Vec<u8> {
        let mut key = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            append_part(&mut key, part.as_bytes(), at + 1 == parts.len());
        }
        key
    }

    #[test]
    fn numbers_sort_as_numbers_and_texts_as_bytes() {
        let numbers = ["-12", "-3", "0", "9", "10", "9223372036854775807"];
        assert!(numbers.windows(2).all(|pair| key(&[pair[0]]) < key(&[pair[1]])), "{numbers:?}");
        assert!(key(&["a", "z"]) < key(&["ab", "a"]));
        assert!(key(&["a", "9"]) < key(&["a", "10"]));
    }

    #[test]
    fn numbers_that_are_not_whole_sort_too() {
        let numbers = [f64::NEG_INFINITY, -2.5, -0.1, 0.0, 0.1, 1e9, f64::INFINITY];
        assert!(numbers.windows(2).all(|pair| sorting_float(pair[0]) < sorting_float(pair[1])));
    }

    #[test]
    fn unusual_numbers_are_texts() {
        for text in ["007", "-0", "+1", "1e3", "", "-", "92233720368547758070"] {
            assert_eq!(key(&[text]), text.as_bytes(), "{text}");
        }
    }
}
