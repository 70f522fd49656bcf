//! Sizes in bytes as people write them.

/// The bytes of `4096`, `8k`, `16MiB` or `2GB`: digits, and a unit in letters of any case. `k`, `m`,
/// `g`, `t` and `KiB`, `MiB`, `GiB`, `TiB` are powers of 1024, `kB`, `MB`, `GB`, `TB` of 1000, and `B` is
/// one byte. `None` for anything else, and for more than 64 bits hold.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    let power = |letter: &str| match letter {
        "k" => Some(1),
        "m" => Some(2),
        "g" => Some(3),
        "t" => Some(4),
        _ => None,
    };
    let unit = unit.trim_start().to_ascii_lowercase();
    let factor = match unit.as_str() {
        "" | "b" => 1,
        unit => match (unit.strip_suffix("ib"), unit.strip_suffix('b')) {
            (Some(letter), _) => 1024_u64.checked_pow(power(letter)?)?,
            (None, Some(letter)) => 1000_u64.checked_pow(power(letter)?)?,
            (None, None) => 1024_u64.checked_pow(power(unit)?)?,
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// A size for people, to three digits.
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ if value < 10.0 => format!("{value:.2} {}", units[unit]),
        _ if value < 100.0 => format!("{value:.1} {}", units[unit]),
        _ => format!("{value:.0} {}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("8k", 8192),
            ("8K", 8192),
            ("8 KiB", 8192),
            ("16MiB", 16 << 20),
            ("16m", 16 << 20),
            ("2GB", 2_000_000_000),
            ("3kB", 3000),
            ("5B", 5),
            ("1t", 1 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "k", "-1", "1.5g", "8x", "8kk", "8ki", "8 k b", "17179869184g", "ü", "1ib"]
        {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
