//! What a table says of itself: a list of named, typed values. Unknown names are skipped, so that
//! an older program reads a newer table's properties.

use crate::base::SequenceNumber;
use crate::codec::{Compression, DictionaryHash, StoredFormat, UnknownCodec};
use crate::format::{Decoder, put_bytes, put_u64};
use crate::retention::WriteTimes;
use crate::{Error, ErrorKind, Result};

/// The properties of a table. Names on disk are the names of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableProperties {
    /// The target size of data blocks before compression; 0 in tables of older versions.
    pub block_size_bytes: u64,
    /// The number of the codec that data blocks were to be encoded with.
    pub codec: u64,
    /// Thread CPU time, in nanoseconds, booked for this table before its end was written.
    pub cpu_ns: u64,
    /// Creation time in seconds since 1970.
    pub created_unix_s: u64,
    /// Data blocks.
    pub data_blocks: u64,
    /// Their bytes before encoding.
    pub data_raw_bytes: u64,
    /// Their bytes in the file, trailers included.
    pub data_stored_bytes: u64,
    /// What the format of the table was decided from, as text; empty if it was not recorded.
    pub decision: Vec<u8>,
    /// Delete entries.
    pub deletes: u64,
    /// Name and size of each dictionary in the table: 16 bytes and 4; empty if there is none.
    pub dictionaries: Vec<u8>,
    /// The name of the dictionary that data blocks were to be encoded with; empty if with none.
    pub dictionary: Vec<u8>,
    /// The codec's strength.
    pub effort: i64,
    /// Which encoder: 0 reference, 1 fast.
    pub encoder: u64,
    /// Point entries.
    pub entries: u64,
    /// Data blocks stored raw because they did not shrink enough.
    pub fallback_blocks: u64,
    /// The id of the column family that it was made for, if it has a name.
    pub family_id: u64,
    /// Its name; empty if it is not known.
    pub family_name: Vec<u8>,
    /// Bits per key of the filter; 0: no filter.
    pub filter_bits_per_key: u64,
    /// All of the family's writes up to here are in this table and others; 0: not known.
    pub flushed_through: SequenceNumber,
    /// Bytes of all user keys.
    pub key_bytes: u64,
    /// The largest user key, or the exclusive end of the last range tombstone.
    pub largest_key: Vec<u8>,
    /// 1 if `largest_key` is such an end.
    pub largest_key_exclusive: u64,
    /// The largest sequence number of entries and range tombstones.
    pub largest_sequence: SequenceNumber,
    /// The level that it was created for.
    pub level: u64,
    /// The largest sequence number at which an entry became obsolete while a snapshot needed it.
    pub newest_obsolete_sequence: SequenceNumber,
    /// When the newest put was written, in seconds since 1970, if puts say so.
    pub newest_write_s: u64,
    /// When the oldest one was.
    pub oldest_write_s: u64,
    /// Length in bytes of the key prefixes in the filter; 0: none.
    pub prefix_length: u64,
    /// Range tombstones given to the builder.
    pub range_tombstones: u64,
    /// Single-delete entries.
    pub single_deletes: u64,
    /// The smallest user key, of entries and range tombstones.
    pub smallest_key: Vec<u8>,
    /// The smallest sequence number of entries and range tombstones.
    pub smallest_sequence: SequenceNumber,
    /// The time to live of the column family, if its values end with the times of their writing.
    pub time_to_live_s: u64,
    /// Bytes of all values.
    pub value_bytes: u64,
}

/// The value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Unsigned(u64),
    Signed(i64),
    Bytes(&'a [u8]),
}

/// Properties that are left out where they are 0 or empty: older versions do not have them.
const OPTIONAL: [&str; 7] = [
    "block_size_bytes",
    "decision",
    "dictionaries",
    "dictionary",
    "newest_write_s",
    "oldest_write_s",
    "time_to_live_s",
];

/// Properties that a table has only if it was made for a column family that was known.
const OF_ORIGIN: [&str; 3] = ["family_id", "family_name", "flushed_through"];

enum Slot<'a> {
    Unsigned(&'a mut u64),
    Signed(&'a mut i64),
    Bytes(&'a mut Vec<u8>),
}

impl Slot<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Slot::Unsigned(value) => **value == 0,
            Slot::Signed(value) => **value == 0,
            Slot::Bytes(value) => value.is_empty(),
        }
    }
}

impl TableProperties {
    /// The format that the table's data blocks were asked to have, as far as it is recorded.
    pub fn stored_format(&self) -> StoredFormat {
        let compression = self.compression().ok();
        let dictionary = self.dictionary.first_chunk().map(|name| DictionaryHash(*name));
        let block_size_bytes = usize::try_from(self.block_size_bytes).ok().filter(|size| *size > 0);
        StoredFormat { compression, block_size_bytes, dictionary: Some(dictionary) }
    }

    /// When the puts were written, if there are some that say so.
    pub fn write_times(&self) -> Option<WriteTimes> {
        let (oldest_s, newest_s) = (self.oldest_write_s, self.newest_write_s);
        (self.time_to_live_s > 0 && newest_s > 0).then(|| WriteTimes {
            oldest_s: u32::try_from(oldest_s).unwrap_or(u32::MAX),
            newest_s: u32::try_from(newest_s).unwrap_or(u32::MAX),
        })
    }

    /// What data blocks were to be encoded with, unless this version does not know it.
    ///
    /// # Errors
    /// The number that is unknown.
    pub fn compression(&self) -> std::result::Result<Compression, UnknownCodec> {
        Compression::from_numbers(self.codec, self.effort, self.encoder)
    }

    /// Every property: its name and where it lies, by name. Encoding and decoding follow it.
    fn slots(&mut self) -> [(&'static str, Slot<'_>); 34] {
        use Slot::{Bytes, Signed, Unsigned};
        [
            ("block_size_bytes", Unsigned(&mut self.block_size_bytes)),
            ("codec", Unsigned(&mut self.codec)),
            ("cpu_ns", Unsigned(&mut self.cpu_ns)),
            ("created_unix_s", Unsigned(&mut self.created_unix_s)),
            ("data_blocks", Unsigned(&mut self.data_blocks)),
            ("data_raw_bytes", Unsigned(&mut self.data_raw_bytes)),
            ("data_stored_bytes", Unsigned(&mut self.data_stored_bytes)),
            ("decision", Bytes(&mut self.decision)),
            ("deletes", Unsigned(&mut self.deletes)),
            ("dictionaries", Bytes(&mut self.dictionaries)),
            ("dictionary", Bytes(&mut self.dictionary)),
            ("effort", Signed(&mut self.effort)),
            ("encoder", Unsigned(&mut self.encoder)),
            ("entries", Unsigned(&mut self.entries)),
            ("fallback_blocks", Unsigned(&mut self.fallback_blocks)),
            ("family_id", Unsigned(&mut self.family_id)),
            ("family_name", Bytes(&mut self.family_name)),
            ("filter_bits_per_key", Unsigned(&mut self.filter_bits_per_key)),
            ("flushed_through", Unsigned(&mut self.flushed_through)),
            ("key_bytes", Unsigned(&mut self.key_bytes)),
            ("largest_key", Bytes(&mut self.largest_key)),
            ("largest_key_exclusive", Unsigned(&mut self.largest_key_exclusive)),
            ("largest_sequence", Unsigned(&mut self.largest_sequence)),
            ("level", Unsigned(&mut self.level)),
            ("newest_obsolete_sequence", Unsigned(&mut self.newest_obsolete_sequence)),
            ("newest_write_s", Unsigned(&mut self.newest_write_s)),
            ("oldest_write_s", Unsigned(&mut self.oldest_write_s)),
            ("prefix_length", Unsigned(&mut self.prefix_length)),
            ("range_tombstones", Unsigned(&mut self.range_tombstones)),
            ("single_deletes", Unsigned(&mut self.single_deletes)),
            ("smallest_key", Bytes(&mut self.smallest_key)),
            ("smallest_sequence", Unsigned(&mut self.smallest_sequence)),
            ("time_to_live_s", Unsigned(&mut self.time_to_live_s)),
            ("value_bytes", Unsigned(&mut self.value_bytes)),
        ]
    }

    /// Hands out every property that the table has, by name.
    pub(crate) fn visit(&self, visitor: &mut dyn FnMut(&'static str, Value<'_>)) {
        let has_origin = !self.family_name.is_empty();
        for (name, slot) in self.clone().slots() {
            if !has_origin && OF_ORIGIN.contains(&name) {
                continue;
            }
            if OPTIONAL.contains(&name) && slot.is_empty() {
                continue;
            }
            let value = match &slot {
                Slot::Unsigned(value) => Value::Unsigned(**value),
                Slot::Signed(value) => Value::Signed(**value),
                Slot::Bytes(value) => Value::Bytes(value),
            };
            visitor(name, value);
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut target = Vec::new();
        self.visit(&mut |name, value| put_property(&mut target, name, value));
        target
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::new(bytes);
        let mut values: Vec<(&[u8], Value<'_>)> = Vec::new();
        while !decoder.is_empty() {
            let property = take_property(&mut decoder)?;
            if values.last().is_some_and(|last| last.0 >= property.0) {
                return Err(Error::corruption("properties do not ascend"));
            }
            values.push(property);
        }
        let mut properties = TableProperties::default();
        let mut missing_of_origin = 0;
        for (name, slot) in properties.slots() {
            let found = values.binary_search_by(|value| value.0.cmp(name.as_bytes()));
            match (slot, found.ok().map(|index| values[index].1)) {
                (Slot::Unsigned(target), Some(Value::Unsigned(value))) => *target = value,
                (Slot::Signed(target), Some(Value::Signed(value))) => *target = value,
                (Slot::Bytes(target), Some(Value::Bytes(value))) => *target = value.to_vec(),
                (_, None) if OF_ORIGIN.contains(&name) => missing_of_origin += 1,
                (_, None) if OPTIONAL.contains(&name) => {}
                _ => {
                    let what = format!("property {name} is missing or of another kind");
                    return Err(Error::corruption(what));
                }
            }
        }
        let of_origin = if properties.family_name.is_empty() { 0 } else { OF_ORIGIN.len() };
        if OF_ORIGIN.len() - missing_of_origin != of_origin {
            let what = "properties of the column family are there in part";
            return Err(Error::corruption(what));
        }
        Ok(properties)
    }
}

fn put_property(target: &mut Vec<u8>, name: &str, value: Value<'_>) {
    target.push(name.len() as u8);
    target.extend_from_slice(name.as_bytes());
    match value {
        Value::Unsigned(value) => {
            target.push(1);
            put_u64(target, value);
        }
        Value::Signed(value) => {
            target.push(2);
            put_u64(target, value.cast_unsigned());
        }
        Value::Bytes(value) => {
            target.push(3);
            put_bytes(target, value);
        }
    }
}

fn take_property<'a>(decoder: &mut Decoder<'a>) -> Result<(&'a [u8], Value<'a>)> {
    let name_size = decoder.u8()?;
    let name = decoder.bytes(usize::from(name_size))?;
    let value = match decoder.u8()? {
        1 => Value::Unsigned(decoder.u64()?),
        2 => Value::Signed(decoder.u64()?.cast_signed()),
        3 => Value::Bytes(decoder.sized_bytes(usize::MAX)?),
        kind => {
            let what = format!("a property is of kind {kind}, which this version does not know");
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
    };
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::golden;

    #[test]
    fn the_sample_of_properties_is_what_is_written_and_read() {
        let properties = TableProperties {
            codec: 4,
            created_unix_s: 1_700_000_000,
            data_blocks: 1,
            data_raw_bytes: 93,
            data_stored_bytes: 86,
            effort: 1,
            entries: 2,
            family_id: 3,
            family_name: b"rocks".to_vec(),
            filter_bits_per_key: 10,
            flushed_through: 7,
            key_bytes: 21,
            largest_key: b"rock/shale".to_vec(),
            largest_sequence: 7,
            smallest_key: b"rock/basalt".to_vec(),
            smallest_sequence: 6,
            value_bytes: 18,
            ..TableProperties::default()
        };
        let mut fields = Vec::new();
        properties.visit(&mut |name, value| {
            let mut bytes = Vec::new();
            put_property(&mut bytes, name, value);
            fields.push((bytes.len(), name));
        });
        let sample = golden::check("properties-v1.hex", &properties.encode(), &fields);
        assert_eq!(TableProperties::decode(&sample).unwrap(), properties);
    }

    #[test]
    fn unknown_properties_are_skipped_and_known_ones_must_be_there() {
        let mut properties = TableProperties { effort: -3, entries: 7, ..Default::default() };
        properties.largest_key = b"z".to_vec();
        for (index, (_, slot)) in properties.slots().into_iter().enumerate() {
            if let Slot::Unsigned(value) = slot {
                *value = index as u64;
            }
        }
        properties.family_name = b"rocks".to_vec();
        let bytes = properties.encode();
        let whole = bytes.clone();
        assert_eq!(TableProperties::decode(&bytes).unwrap(), properties);

        let mut newer = Vec::new();
        put_property(&mut newer, "aardvark", Value::Bytes(b"unknown"));
        newer.extend_from_slice(&bytes);
        put_property(&mut newer, "zebra", Value::Signed(-1));
        assert_eq!(TableProperties::decode(&newer).unwrap(), properties);

        assert!(TableProperties::decode(&bytes[..bytes.len() - 1]).is_err());
        let last = "value_bytes".len() + 10;
        let error = TableProperties::decode(&bytes[..bytes.len() - last]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let unordered = [&bytes[..], &bytes[..]].concat();
        assert!(TableProperties::decode(&unordered).is_err());

        // Tables of no known family, as all were once, have none of it.
        let anonymous = TableProperties { family_name: Vec::new(), ..properties };
        let bytes = anonymous.encode();
        assert!(!bytes.windows(6).any(|part| part == b"family"));
        let found = TableProperties::decode(&bytes).unwrap();
        assert_eq!((found.family_id, found.flushed_through), (0, 0));

        let mut renamed = whole;
        let place = renamed.windows(11).position(|part| part == b"family_name").unwrap();
        renamed[place + 7] = b'm';
        let error = TableProperties::decode(&renamed).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
}
