//! Keys and values as text, both ways: on the command line and on the screen.
//!
//! Text goes in and comes out as it is. Bytes that are no printable text are written `\xHH`, and
//! `\n`, `\r`, `\t`, `\0` and `\\` as in most languages. What is printed may be pasted as an argument.

use std::fmt::Write;

use crate::fault::Fault;

/// The bytes that an argument stands for; `what` names it in errors.
pub fn parse(text: &str, is_hex: bool, what: &str) -> Result<Vec<u8>, Fault> {
    let parsed = match is_hex {
        true => unhex(text),
        false => unescape(text),
    };
    parsed.map_err(|error| Fault::usage(format!("{what}: {error}")))
}

/// The bytes of a text with escapes.
pub fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let sign = behind.chars().next();
        let (byte, length) = match sign {
            Some('n') => (b'\n', 1),
            Some('r') => (b'\r', 1),
            Some('t') => (b'\t', 1),
            Some('0') => (0, 1),
            Some(sign @ ('\\' | '"' | '\'')) => (sign as u8, 1),
            Some('x') => (behind.get(1..3).and_then(byte_of).ok_or_else(bad_hex)?, 3),
            Some(sign) => return Err(format!(r"\{sign} is no escape; a backslash itself is \\")),
            None => return Err(r"it ends within an escape; a backslash itself is \\".to_owned()),
        };
        bytes.push(byte);
        rest = &behind[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

fn bad_hex() -> String {
    r"behind \x stand two hexadecimal digits".to_owned()
}

fn byte_of(digits: &str) -> Option<u8> {
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// The bytes of hexadecimal digits.
pub fn unhex(text: &str) -> Result<Vec<u8>, String> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err("an even number of hexadecimal digits is expected".to_owned());
    }
    let pairs = text.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(byte_of);
    pairs.map(|pair| byte(pair).ok_or_else(|| "hexadecimal digits are expected".into())).collect()
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Bytes as text that [`unescape`] takes back.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for sign in chunk.valid().chars() {
            match sign {
                '\\' => text.push_str(r"\\"),
                '\n' => text.push_str(r"\n"),
                '\r' => text.push_str(r"\r"),
                '\t' => text.push_str(r"\t"),
                '"' | '\'' => text.push(sign),
                // What Rust prints as it is, a terminal shows.
                sign if sign.escape_debug().len() == 1 => text.push(sign),
                sign => escape_bytes(&mut text, sign.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        escape_bytes(&mut text, chunk.invalid());
    }
    text
}

fn escape_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let texts = ["", "gneiss", "ümlaut ☃", "a\\b\n\t\r\0\"'", "\u{202e}\u{7f}\u{85}"];
        let pairs = (0..=255).flat_map(|first| [vec![first, 0xc3], vec![0xc3, first]]);
        let all = pairs.chain(texts.map(|text| text.as_bytes().to_vec())).chain([all]);
        for bytes in all {
            let text = escape(&bytes);
            assert_eq!(unescape(&text).as_deref(), Ok(bytes.as_slice()), "{text}");
            assert!(!text.contains(|sign: char| sign.is_control()), "{text:?}");
            assert_eq!(unhex(&hex(&bytes)), Ok(bytes));
        }
        assert_eq!(escape("ü\\\u{0}".as_bytes()), r"ü\\\x00");
        assert_eq!(unescape(r"\x6bey\0").as_deref(), Ok(&b"key\0"[..]));
    }

    #[test]
    fn wrong_escapes_are_told() {
        for text in [r"\", r"\q", r"\x", r"\x1", r"\xg0", r"\x+1", r"\xü"] {
            assert!(unescape(text).is_err(), "{text}");
        }
        for text in ["1", "0g", "+1", "ü"] {
            assert!(unhex(text).is_err(), "{text}");
        }
    }
}
