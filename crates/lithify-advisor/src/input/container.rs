//! Files that hold other files, or rows in a form that is not read here.

/// What is said of a file that begins with these bytes, and what to do: "is gzip: unpack it first". `None` of
/// all that may be read.
pub fn container(head: &[u8]) -> Option<&'static str> {
    const KINDS: &[(&[u8], &str)] = &[
        (b"\x1f\x8b", "is gzip: unpack it first (gunzip -k)"),
        (b"\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it first (zstd -dk)"),
        (b"\x04\x22\x4d\x18", "is compressed with lz4: unpack it first (lz4 -dk)"),
        (b"\xfd7zXZ\0", "is xz: unpack it first (unxz -k)"),
        (b"BZh", "is bzip2: unpack it first (bunzip2 -k)"),
        (b"PK\x03\x04", "is a zip archive: unpack it first"),
        (b"\xff\xfe", "is UTF-16: convert it first (iconv -f UTF-16 -t UTF-8)"),
        (b"\xfe\xff", "is UTF-16: convert it first (iconv -f UTF-16 -t UTF-8)"),
        (b"FEA1", "is Feather 1: write it again as Feather 2 or Parquet"),
        (b"Obj\x01", "is Avro: export it as JSON lines or Parquet"),
    ];
    let found = KINDS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, what)| *what);
    found.or_else(|| utf16(head))
}

/// So many bytes tell text without a byte order mark.
const TOLD_BYTES: std::ops::RangeInclusive<usize> = 16..=512;

/// UTF-16 without its mark: one byte of each pair is zero, the other one ASCII text.
fn utf16(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(*TOLD_BYTES.end())];
    if head.len() < *TOLD_BYTES.start() {
        return None;
    }
    let is_text = |byte: u8| matches!(byte, b'\t' | b'\r' | b'\n' | b' '..=b'~');
    let are =
        |text: usize| head.chunks_exact(2).all(|pair| is_text(pair[text]) && pair[1 - text] == 0);
    match () {
        () if are(0) => Some("is UTF-16: convert it first (iconv -f UTF-16LE -t UTF-8)"),
        () if are(1) => Some("is UTF-16: convert it first (iconv -f UTF-16BE -t UTF-8)"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf16_needs_no_mark() {
        let text = "id,name\r\n1,gneiss\r\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert!(container(&little).is_some_and(|what| what.contains("-f UTF-16LE -t UTF-8")));
        assert!(container(&big).is_some_and(|what| what.contains("-f UTF-16BE -t UTF-8")));
        assert!(container(b"\xff\xfei\0d\0").is_some_and(|what| what.contains("iconv")));
        let numbers: Vec<u8> = (0..200_u16).flat_map(u16::to_le_bytes).collect();
        for other in [text.as_bytes(), &numbers, &[0; 64], b"i\0d\0", b""] {
            assert_eq!(container(other), None);
        }
    }
}
