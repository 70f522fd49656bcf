//! Sizes and rates as flags take them.

use lithify::base::parse_bytes;

/// What a wrong size is told.
const EXPECTED: &str = "expected bytes, as 4096, 8k, 16MiB or 2GB";

/// Most bytes a second that may be asked for.
const RATE_MAX: u64 = 1_000_000 * MB;
const MB: u64 = 1_000_000;

/// Bytes between two bounds, which are allowed too.
pub fn bytes(
    min: u64,
    max: u64,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| within(parse_bytes(text).ok_or_else(|| EXPECTED.to_owned())?, min, max)
}

/// A number if it lies between two others, which are allowed too.
pub fn within(number: u64, min: u64, max: u64) -> Result<u64, String> {
    match (min..=max).contains(&number) {
        true => Ok(number),
        false => Err(format!("{number} is not in {min}..={max}")),
    }
}

/// Bytes a second: a number alone is MB (10^6 bytes).
pub fn rate(text: &str) -> Result<u64, String> {
    let rate = match text.parse::<u64>() {
        Ok(megabytes) => megabytes.checked_mul(MB),
        Err(_) => parse_bytes(text),
    };
    rate.filter(|rate| (1..=RATE_MAX).contains(rate))
        .ok_or_else(|| "expected MB a second, from 1 to 1000000, or a size as 512KiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_have_units() {
        assert_eq!(bytes(1, 8192)("8k"), Ok(8192));
        assert!(bytes(1, 8191)("8k").is_err() && bytes(1, 2)("two").is_err());
        assert_eq!((rate("50"), rate("512KiB")), (Ok(50_000_000), Ok(512 << 10)));
        assert!(rate("0").is_err() && rate("0k").is_err() && rate("1000001").is_err());
    }
}
