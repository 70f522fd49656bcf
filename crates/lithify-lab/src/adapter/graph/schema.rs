//! Tables and indexes of the graph as ordered keys and values.
//!
//! All integers are big-endian and of fixed width, so that bytes order as numbers do. Every key
//! begins with the 4-byte number of its index, as rows of an SQL layer do, although each index also
//! has a space of its own: sizes then compare with published ones.
//!
//! ```text
//! node   key   := index u32 | id u64                                                  12 bytes
//!        value := type u32 | version u64 | time_s u32 | data
//! link   key   := index u32 | link_type u64 | id1 u64 | id2 u64                       28 bytes
//!        value := visibility u8 | version u32 | time_ms u64 | data
//! link_secondary
//!        key   := index u32 | id1 u64 | link_type u64 | visibility u8 | !time_ms u64 | id2 u64
//!        value := version u32 | data                                                  37 bytes
//! count  key   := index u32 | id u64 | link_type u64                                  20 bytes
//!        value := count u32 | time_ms u64 | version u64
//! ```
//!
//! The secondary index covers a list read: newest first is ascending order of keys. Decoders
//! answer `None` for bytes that are no such row.

use crate::adapter::{SpaceId, SpaceSpec};

/// Type of the first link type; others follow.
pub const LINK_TYPE_FIRST: u64 = 123_456_789;
/// Type of all nodes.
pub const NODE_TYPE: u32 = 2048;
/// A link that lists do not show.
pub const VISIBILITY_HIDDEN: u8 = 0;
/// An ordinary link.
pub const VISIBILITY_DEFAULT: u8 = 1;

/// Nodes by id.
pub const NODE: SpaceId = SpaceId(0);
/// Links by primary key.
pub const LINK: SpaceId = SpaceId(1);
/// Links by source, type, visibility and time.
pub const LINK_SECONDARY: SpaceId = SpaceId(2);
/// Visible links per source and type.
pub const COUNT: SpaceId = SpaceId(3);

/// The spaces that an engine is opened with, indexed by the constants above.
pub const SPACES: [SpaceSpec; 4] = [
    SpaceSpec { name: "node", prefix_bytes: None, single_delete: false },
    SpaceSpec { name: "link", prefix_bytes: None, single_delete: false },
    SpaceSpec {
        name: "link_secondary",
        // Index number, source and type: what every list read fixes.
        prefix_bytes: Some(LIST_PREFIX_BYTES),
        single_delete: true,
    },
    SpaceSpec { name: "count", prefix_bytes: None, single_delete: false },
];

const LIST_PREFIX_BYTES: usize = 20;

/// Length of a key of [`NODE`].
pub const NODE_KEY_BYTES: usize = 12;
/// Length of a key of [`LINK`].
pub const LINK_KEY_BYTES: usize = 28;
/// Length of a key of [`LINK_SECONDARY`].
pub const SECONDARY_KEY_BYTES: usize = 37;
/// Length of a key of [`COUNT`].
pub const COUNT_KEY_BYTES: usize = 20;

/// The number of an index at the head of its keys. Fixed for ever: stored keys contain it.
fn index_number(space: SpaceId) -> [u8; 4] {
    (u32::from(space.0) + 256).to_be_bytes()
}

/// Concatenates fixed-width fields into a key.
macro_rules! key {
    ($bytes:expr, $space:expr, $($field:expr),+) => {{
        let mut key = [0u8; $bytes];
        let mut at = 4;
        key[..4].copy_from_slice(&index_number($space));
        $(
            let field = $field.to_be_bytes();
            key[at..at + field.len()].copy_from_slice(&field);
            at += field.len();
        )+
        debug_assert_eq!(at, key.len());
        key
    }};
}

/// Key of a node.
#[inline]
pub fn node_key(id: u64) -> [u8; NODE_KEY_BYTES] {
    key!(NODE_KEY_BYTES, NODE, id)
}

/// Key of a link.
#[inline]
pub fn link_key(link_type: u64, id1: u64, id2: u64) -> [u8; LINK_KEY_BYTES] {
    key!(LINK_KEY_BYTES, LINK, link_type, id1, id2)
}

/// Beginning of the keys of all links of one type.
pub fn link_type_prefix(link_type: u64) -> [u8; 12] {
    key!(12, LINK, link_type)
}

/// Key of a link in the secondary index.
#[inline]
pub fn secondary_key(
    id1: u64,
    link_type: u64,
    visibility: u8,
    time_ms: u64,
    id2: u64,
) -> [u8; SECONDARY_KEY_BYTES] {
    key!(SECONDARY_KEY_BYTES, LINK_SECONDARY, id1, link_type, visibility, !time_ms, id2)
}

/// Beginning of the keys of a list's rows of one visibility.
#[inline]
pub fn list_prefix(id1: u64, link_type: u64, visibility: u8) -> [u8; 21] {
    key!(21, LINK_SECONDARY, id1, link_type, visibility)
}

/// Where in a list the rows of at most `time_ms` begin.
#[inline]
pub fn list_position(id1: u64, link_type: u64, visibility: u8, time_ms: u64) -> [u8; 29] {
    key!(29, LINK_SECONDARY, id1, link_type, visibility, !time_ms)
}

/// Key of a count.
#[inline]
pub fn count_key(id1: u64, link_type: u64) -> [u8; COUNT_KEY_BYTES] {
    key!(COUNT_KEY_BYTES, COUNT, id1, link_type)
}

/// A node without its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRow<'a> {
    /// Type.
    pub node_type: u32,
    /// Version: 1 when added, 2 when updated.
    pub version: u64,
    /// Time of the last change, seconds since 1970.
    pub time_s: u32,
    /// Payload.
    pub data: &'a [u8],
}

impl<'a> NodeRow<'a> {
    /// Replaces `value` by the encoded row.
    #[inline]
    pub fn encode(&self, value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(&self.node_type.to_be_bytes());
        value.extend_from_slice(&self.version.to_be_bytes());
        value.extend_from_slice(&self.time_s.to_be_bytes());
        value.extend_from_slice(self.data);
    }

    /// The row in `value`.
    #[inline]
    pub fn decode(value: &'a [u8]) -> Option<Self> {
        let (node_type, rest) = split_u32(value)?;
        let (version, rest) = split_u64(rest)?;
        let (time_s, data) = split_u32(rest)?;
        Some(NodeRow { node_type, version, time_s, data })
    }
}

/// The id in a node's key.
pub fn decode_node_key(key: &[u8]) -> Option<u64> {
    let (id, rest) = split_u64(split_index(NODE, key)?)?;
    rest.is_empty().then_some(id)
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// Source.
    pub id1: u64,
    /// Type.
    pub link_type: u64,
    /// Target.
    pub id2: u64,
    /// [`VISIBILITY_HIDDEN`] or [`VISIBILITY_DEFAULT`].
    pub visibility: u8,
    /// Version.
    pub version: u32,
    /// Time, milliseconds since 1970; lists order by it.
    pub time_ms: u64,
    /// Payload.
    pub data: &'a [u8],
}

impl<'a> Link<'a> {
    /// Its primary key.
    #[inline]
    pub fn key(&self) -> [u8; LINK_KEY_BYTES] {
        link_key(self.link_type, self.id1, self.id2)
    }

    /// Its key in the secondary index.
    #[inline]
    pub fn secondary_key(&self) -> [u8; SECONDARY_KEY_BYTES] {
        secondary_key(self.id1, self.link_type, self.visibility, self.time_ms, self.id2)
    }

    /// Replaces `value` by its value under the primary key.
    #[inline]
    pub fn encode(&self, value: &mut Vec<u8>) {
        value.clear();
        value.push(self.visibility);
        value.extend_from_slice(&self.version.to_be_bytes());
        value.extend_from_slice(&self.time_ms.to_be_bytes());
        value.extend_from_slice(self.data);
    }

    /// Replaces `value` by its value in the secondary index.
    #[inline]
    pub fn encode_secondary(&self, value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(&self.version.to_be_bytes());
        value.extend_from_slice(self.data);
    }

    /// The link of a primary key and value.
    #[inline]
    pub fn decode(key: &[u8], value: &'a [u8]) -> Option<Self> {
        let (link_type, rest) = split_u64(split_index(LINK, key)?)?;
        let (id1, rest) = split_u64(rest)?;
        let (id2, rest) = split_u64(rest)?;
        let (&visibility, columns) = value.split_first()?;
        let (version, columns) = split_u32(columns)?;
        let (time_ms, data) = split_u64(columns)?;
        let link = Link { id1, link_type, id2, visibility, version, time_ms, data };
        rest.is_empty().then_some(link)
    }

    /// The link of a key and value of the secondary index.
    #[inline]
    pub fn decode_secondary(key: &[u8], value: &'a [u8]) -> Option<Self> {
        let (id1, rest) = split_u64(split_index(LINK_SECONDARY, key)?)?;
        let (link_type, rest) = split_u64(rest)?;
        let (&visibility, rest) = rest.split_first()?;
        let (inverted_time_ms, rest) = split_u64(rest)?;
        let (id2, rest) = split_u64(rest)?;
        let (version, data) = split_u32(value)?;
        let time_ms = !inverted_time_ms;
        let link = Link { id1, link_type, id2, visibility, version, time_ms, data };
        rest.is_empty().then_some(link)
    }
}

/// A count without its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountRow {
    /// Visible links.
    pub count: u32,
    /// Time of the last change, milliseconds since 1970.
    pub time_ms: u64,
    /// Changes since it was inserted.
    pub version: u64,
}

impl CountRow {
    /// Replaces `value` by the encoded row.
    #[inline]
    pub fn encode(&self, value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(&self.count.to_be_bytes());
        value.extend_from_slice(&self.time_ms.to_be_bytes());
        value.extend_from_slice(&self.version.to_be_bytes());
    }

    /// The row in `value`.
    #[inline]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (count, rest) = split_u32(value)?;
        let (time_ms, rest) = split_u64(rest)?;
        let (version, rest) = split_u64(rest)?;
        rest.is_empty().then_some(CountRow { count, time_ms, version })
    }
}

/// Source and type in a count's key.
pub fn decode_count_key(key: &[u8]) -> Option<(u64, u64)> {
    let (id1, rest) = split_u64(split_index(COUNT, key)?)?;
    let (link_type, rest) = split_u64(rest)?;
    rest.is_empty().then_some((id1, link_type))
}

#[inline]
fn split_index(space: SpaceId, key: &[u8]) -> Option<&[u8]> {
    key.strip_prefix(&index_number(space))
}

#[inline]
fn split_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*head), rest))
}

#[inline]
fn split_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*head), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Link<'static> = Link {
        id1: 5,
        link_type: LINK_TYPE_FIRST,
        id2: 9,
        visibility: 1,
        version: 3,
        time_ms: 1_700_000_000_123,
        data: b"data",
    };

    #[test]
    fn rows_come_back_as_they_were() {
        let mut value = Vec::new();
        SAMPLE.encode(&mut value);
        assert_eq!(value.len(), 13 + 4);
        assert_eq!(Link::decode(&SAMPLE.key(), &value), Some(SAMPLE));
        SAMPLE.encode_secondary(&mut value);
        assert_eq!(value.len(), 4 + 4);
        assert_eq!(Link::decode_secondary(&SAMPLE.secondary_key(), &value), Some(SAMPLE));
        let node = NodeRow { node_type: NODE_TYPE, version: 2, time_s: 17, data: b"xyz" };
        node.encode(&mut value);
        assert_eq!(value.len(), 16 + 3);
        assert_eq!(NodeRow::decode(&value), Some(node));
        assert_eq!(decode_node_key(&node_key(77)), Some(77));
        let count = CountRow { count: 4, time_ms: 5, version: 6 };
        count.encode(&mut value);
        assert_eq!(CountRow::decode(&value), Some(count));
        assert_eq!(decode_count_key(&count_key(8, 9)), Some((8, 9)));
    }

    #[test]
    fn foreign_and_short_bytes_are_no_rows() {
        let mut value = Vec::new();
        SAMPLE.encode(&mut value);
        assert_eq!(Link::decode(&SAMPLE.secondary_key(), &value), None);
        assert_eq!(Link::decode_secondary(&SAMPLE.key(), &value), None);
        assert_eq!(Link::decode(&SAMPLE.key()[..27], &value), None);
        assert_eq!(Link::decode(&SAMPLE.key(), &value[..12]), None);
        assert_eq!(Link::decode_secondary(&SAMPLE.secondary_key(), &[1, 2, 3]), None);
        assert_eq!(NodeRow::decode(&[0; 15]), None);
        assert_eq!(CountRow::decode(&[0; 19]), None);
        assert_eq!(CountRow::decode(&[0; 21]), None);
        assert_eq!(decode_node_key(&count_key(1, 1)), None);
        assert_eq!(decode_count_key(&[0; 20]), None);
    }

    #[test]
    fn lists_order_newest_first() {
        let at = |time_ms, id2| Link { time_ms, id2, ..SAMPLE }.secondary_key();
        let prefix = list_prefix(SAMPLE.id1, SAMPLE.link_type, 1);
        assert!(at(200, 1) < at(100, 1) && at(100, 1) < at(100, 2));
        assert!(at(200, 1).starts_with(&prefix));
        let position = list_position(SAMPLE.id1, SAMPLE.link_type, 1, 150);
        assert!(at(151, u64::MAX)[..] < position[..] && position[..] < at(150, 0)[..]);
        assert_eq!(SPACES[2].prefix_bytes, Some(prefix.len() - 1));
    }
}
