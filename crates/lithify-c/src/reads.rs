//! Reading row by row, and snapshots.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::{ABSENT, Failure, OK, SHORT};
use crate::database::Db;
use crate::family::Family;
use crate::handle::{Handle, borrow, borrow_option, free_function, new, place};
use libc::{c_char, c_void};
use lithify::{ColumnFamily, Slice};
use lithify_ffi::arguments::{Refused, bytes};
use lithify_ffi::guard::guarded;
use lithify_ffi::memory;

/// `lithify_snapshot`.
pub type Snapshot = Handle<lithify::Snapshot>;
/// `lithify_pinned`.
pub type Pinned = Handle<Slice>;

free_function!(lithify_snapshot_free, lithify::Snapshot);
free_function!(lithify_pinned_free, Slice);

fn get_at(
    family: &ColumnFamily,
    snapshot: Option<&lithify::Snapshot>,
    key: &[u8],
) -> Result<Option<Slice>, Failure> {
    Ok(match snapshot {
        Some(snapshot) => family.get_at(key, snapshot)?,
        None => family.get(key)?,
    })
}

/// Hands a copy of a value out.
///
/// # Safety
/// As of `place`.
pub(crate) unsafe fn hand_out(
    found: Option<Slice>,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> Result<libc::c_int, Failure> {
    // SAFETY: the caller promises places that are NULL or may be written.
    let (value, value_length) = unsafe { (place(value)?, place(value_length)?) };
    let Some(found) = found else {
        value.set(std::ptr::null_mut());
        value_length.set(0);
        return Ok(ABSENT);
    };
    value.set(memory::copy(&found));
    value_length.set(found.len());
    Ok(OK)
}

/// As many slices as there are places, in order.
fn keys_at(
    family: &ColumnFamily,
    snapshot: Option<&lithify::Snapshot>,
    keys: &[&[u8]],
) -> Result<Vec<Option<Slice>>, Failure> {
    Ok(match snapshot {
        Some(snapshot) => family.multi_get_at(keys, snapshot)?,
        None => family.multi_get(keys)?,
    })
}

/// A slice of a caller's array.
///
/// # Safety
/// `pointer` is NULL, or points at `count` values that nobody changes during `'a`.
unsafe fn array<'a, T>(pointer: *const T, count: usize) -> Result<&'a [T], Failure> {
    check_array(pointer, count)?;
    match count {
        0 => Ok(&[]),
        // SAFETY: the pointer is not NULL, the caller promises `count` values, and they fit.
        _ => Ok(unsafe { std::slice::from_raw_parts(pointer, count) }),
    }
}

/// Refuses NULL for an array that is not empty, and a length that no memory holds.
fn check_array<T>(pointer: *const T, count: usize) -> Result<(), Failure> {
    if isize::try_from(count.saturating_mul(size_of::<T>())).is_err() {
        return Err(Refused::TooLong.into());
    }
    if count > 0 && pointer.is_null() { Err(Refused::Missing.into()) } else { Ok(()) }
}

/// A snapshot of the present; NULL after a failure.
///
/// # Safety
/// `db` is NULL, or came from this library and is not freed; `message` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_snapshot_new(
    db: *mut Db,
    message: *mut *mut c_char,
) -> *mut Snapshot {
    let mut made = std::ptr::null_mut();
    // SAFETY: the caller promises a live object, or NULL, and a message that may be written.
    unsafe {
        crate::call::call(message, || {
            made = new(borrow(db)?.snapshot());
            Ok(OK)
        });
    }
    made
}

/// The last commit that it sees; 0 for NULL and in another process.
///
/// # Safety
/// `snapshot` is NULL, or came from this library and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_snapshot_sequence(snapshot: *const Snapshot) -> u64 {
    // SAFETY: the caller promises a live object, or NULL.
    unsafe { borrow(snapshot) }.map_or(0, lithify::Snapshot::sequence)
}

/// The bytes of a pinned value; NULL and 0 for NULL and in another process.
///
/// # Safety
/// `pinned` is NULL, or came from this library and is not freed; `value_length` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_pinned_value(
    pinned: *const Pinned,
    value_length: *mut usize,
) -> *const c_void {
    // SAFETY: the caller promises a live object, or NULL, and a place that may be written.
    let found = guarded(|| unsafe {
        let value = borrow(pinned).ok();
        if let Ok(place) = place(value_length) {
            place.set(value.map_or(0, |value| value.len()));
        }
        value.map_or(std::ptr::null(), |value| value.as_ptr().cast())
    });
    found.unwrap_or(std::ptr::null())
}

c_functions! {
    /// A copy of a value.
    fn lithify_get(
        family: *mut Family,
        snapshot: *const Snapshot,
        key: *const c_void,
        key_length: usize,
        value: *mut *mut c_char,
        value_length: *mut usize,
    ) {
        let key = bytes(key, key_length)?;
        let found = get_at(borrow(family)?, borrow_option(snapshot)?, key)?;
        hand_out(found, value, value_length)
    }

    /// A value into a buffer.
    fn lithify_get_into(
        family: *mut Family,
        snapshot: *const Snapshot,
        key: *const c_void,
        key_length: usize,
        buffer: *mut c_void,
        capacity: usize,
        value_length: *mut usize,
    ) {
        let (key, length) = (bytes(key, key_length)?, place(value_length)?);
        let found = get_at(borrow(family)?, borrow_option(snapshot)?, key)?;
        let Some(found) = found else { return Ok(ABSENT) };
        length.set(found.len());
        if found.len() > capacity {
            return Ok(SHORT);
        }
        if buffer.is_null() && !found.is_empty() {
            return Err(Refused::Missing.into());
        }
        std::ptr::copy_nonoverlapping(found.as_ptr(), buffer.cast(), found.len());
        Ok(OK)
    }

    /// A value where the engine has it.
    fn lithify_get_pinned(
        family: *mut Family,
        snapshot: *const Snapshot,
        key: *const c_void,
        key_length: usize,
        pinned: *mut *mut Pinned,
    ) {
        // NULL also where there is no answer: freeing it is allowed then.
        place(pinned)?.set(std::ptr::null_mut());
        let key = bytes(key, key_length)?;
        let found = get_at(borrow(family)?, borrow_option(snapshot)?, key)?;
        let Some(found) = found else { return Ok(ABSENT) };
        place(pinned)?.set(new(found));
        Ok(OK)
    }

    /// Whether there is such a key.
    fn lithify_contains(
        family: *mut Family,
        snapshot: *const Snapshot,
        key: *const c_void,
        key_length: usize,
    ) {
        let key = bytes(key, key_length)?;
        let found = get_at(borrow(family)?, borrow_option(snapshot)?, key)?;
        Ok(if found.is_some() { OK } else { ABSENT })
    }

    /// The values of many keys.
    fn lithify_multi_get(
        family: *mut Family,
        snapshot: *const Snapshot,
        count: usize,
        keys: *const *const c_void,
        key_lengths: *const usize,
        pinned: *mut *mut Pinned,
    ) {
        check_array(pinned, count)?;
        for at in 0..count {
            pinned.add(at).write(std::ptr::null_mut());
        }
        let (keys, lengths) = (array(keys, count)?, array(key_lengths, count)?);
        let keys = keys.iter().zip(lengths).map(|(key, length)| bytes(*key, *length));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let found = keys_at(borrow(family)?, borrow_option(snapshot)?, &keys)?;
        for (at, value) in found.into_iter().enumerate() {
            if let Some(value) = value {
                pinned.add(at).write(new(value));
            }
        }
        Ok(OK)
    }
}
