//! Values out of columns of Arrow.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, ArrayRef, GenericByteArray, OffsetSizeTrait, RecordBatch};
use arrow_schema::DataType;

use super::super::record::{Value, push_length};

/// Gives the value of a row. Memory of the column is shared, not copied.
pub(super) type Cell = Box<dyn Fn(usize, &mut dyn FnMut(Value<'_>))>;

/// A cell for each column of a batch; an error names the column.
pub(super) fn of_batch(batch: &RecordBatch) -> Result<Vec<Cell>, String> {
    let schema = batch.schema();
    let columns = batch.columns().iter().zip(schema.fields());
    columns
        .map(|(array, field)| {
            cell(array).map_err(|what| {
                format!("column '{}' is of type {what}, which is not read", field.name())
            })
        })
        .collect()
}

/// The cell of a column; an error is the type that has none.
fn cell(array: &ArrayRef) -> Result<Cell, String> {
    let given = value_of(array)?;
    let nulls = array.logical_nulls();
    Ok(Box::new(move |row, give| match &nulls {
        Some(nulls) if nulls.is_null(row) => give(Value::Null),
        _ => given(row, give),
    }))
}

fn value_of(array: &ArrayRef) -> Result<Cell, String> {
    let kind = array.data_type();
    if let Some(bytes) = kind.primitive_width() {
        return Ok(number(array, bytes));
    }
    Ok(match kind {
        DataType::Null => Box::new(|_, give| give(Value::Null)),
        DataType::Boolean => {
            let array = array.as_boolean().clone();
            Box::new(move |row, give| give(Value::Whole(i64::from(array.value(row)), 1)))
        }
        DataType::Utf8 => text(array.as_string::<i32>()),
        DataType::LargeUtf8 => text(array.as_string::<i64>()),
        DataType::Binary => text(array.as_binary::<i32>()),
        DataType::LargeBinary => text(array.as_binary::<i64>()),
        DataType::Utf8View => {
            let array = array.as_string_view().clone();
            Box::new(move |row, give| give(Value::Text(array.value(row).as_bytes())))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view().clone();
            Box::new(move |row, give| give(Value::Text(array.value(row))))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary().clone();
            Box::new(move |row, give| give(Value::Fixed(array.value(row))))
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            // Null keys have no value to stand for; they are not asked for.
            let keys = if dictionary.values().is_empty() {
                vec![0; dictionary.len()]
            } else {
                dictionary.normalized_keys()
            };
            let values = cell(dictionary.values())?;
            Box::new(move |row, give| values(keys[row], give))
        }
        DataType::List(_) => list::<i32>(array)?,
        DataType::LargeList(_) => list::<i64>(array)?,
        DataType::Map(..) => {
            let map = array.as_map();
            let offsets = map.offsets().clone();
            let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
            several(cell(&entries)?, move |row| offsets[row] as usize..offsets[row + 1] as usize)
        }
        DataType::FixedSizeList(_, count) => {
            let count = usize::try_from(*count).unwrap_or(0);
            let values = cell(array.as_fixed_size_list().values())?;
            several(values, move |row| row * count..(row + 1) * count)
        }
        DataType::Struct(_) => {
            let fields: Vec<Cell> =
                array.as_struct().columns().iter().map(cell).collect::<Result<_, _>>()?;
            Box::new(move |row, give| {
                let mut bytes = Vec::new();
                fields.iter().for_each(|field| field(row, &mut |value| append(&mut bytes, value)));
                give(Value::Text(&bytes));
            })
        }
        other => return Err(other.to_string()),
    })
}

fn text<T: ByteArrayType>(array: &GenericByteArray<T>) -> Cell {
    let array = array.clone();
    Box::new(move |row, give| {
        let value: &T::Native = array.value(row);
        give(Value::Text(value.as_ref()));
    })
}

/// Numbers, dates and times: little-endian bytes of a width.
fn number(array: &ArrayRef, width: usize) -> Cell {
    let data = array.to_data();
    let (offset, is_signed) = (data.offset(), is_signed(array.data_type()));
    let is_floating = array.data_type().is_floating();
    let buffer = data.buffers().first().cloned();
    Box::new(move |row, give| {
        let start = (offset + row) * width;
        let bytes = buffer.as_ref().and_then(|buffer| buffer.get(start..start + width));
        let Some(bytes) = bytes else { return give(Value::Null) };
        match (is_floating, bytes) {
            (true, [a, b, c, d]) => {
                return give(Value::Float(f32::from_le_bytes([*a, *b, *c, *d]).into(), true));
            }
            (true, [a, b, c, d, e, f, g, h]) => {
                let number = f64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
                return give(Value::Float(number, false));
            }
            (true, _) => return give(Value::Fixed(bytes)),
            // Large decimal numbers as they sort: big-endian, the sign bit turned over.
            (false, _) if width > 8 => {
                let mut sorting: Vec<u8> = bytes.iter().rev().copied().collect();
                sorting[0] ^= 0x80;
                return give(Value::Fixed(&sorting));
            }
            (false, [a, b, c, d, e, f, g, h]) if !is_signed => {
                return give(Value::Fixed(&[*h, *g, *f, *e, *d, *c, *b, *a]));
            }
            _ => {}
        }
        let mut whole = [0; 8];
        whole[..width].copy_from_slice(bytes);
        let unused = 64 - 8 * width as u32;
        let number = i64::from_le_bytes(whole) << unused;
        let number = if is_signed { number >> unused } else { ((number as u64) >> unused) as i64 };
        give(Value::Whole(number, width));
    })
}

fn is_signed(kind: &DataType) -> bool {
    use DataType::{UInt8, UInt16, UInt32, UInt64};
    !matches!(kind, UInt8 | UInt16 | UInt32 | UInt64)
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef) -> Result<Cell, String> {
    let list = array.as_list::<O>();
    let offsets = list.offsets().clone();
    Ok(several(cell(list.values())?, move |row| {
        offsets[row].as_usize()..offsets[row + 1].as_usize()
    }))
}

/// Several values as one text, each behind its length.
fn several(values: Cell, range: impl Fn(usize) -> std::ops::Range<usize> + 'static) -> Cell {
    Box::new(move |row, give| {
        let mut bytes = Vec::new();
        for at in range(row) {
            values(at, &mut |value| append(&mut bytes, value));
        }
        give(Value::Text(&bytes));
    })
}

fn append(bytes: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Null => bytes.push(0),
        Value::Whole(number, width) => {
            bytes.extend_from_slice(&number.to_be_bytes()[8 - width.clamp(1, 8)..]);
        }
        Value::Float(number, true) => bytes.extend_from_slice(&(number as f32).to_le_bytes()),
        Value::Float(number, false) => bytes.extend_from_slice(&number.to_le_bytes()),
        Value::Fixed(fixed) => bytes.extend_from_slice(fixed),
        Value::Text(text) => {
            push_length(bytes, text.len());
            bytes.extend_from_slice(text);
        }
    }
}
