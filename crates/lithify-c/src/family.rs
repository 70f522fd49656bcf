//! Column families, and bounds of ranges of keys.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::{ABSENT, Failure, OK};
use crate::database::Db;
use crate::handle::{Handle, borrow, borrow_option, free_function, new, place};
use crate::options::FamilyOptions;
use libc::{c_char, c_int, c_void};
use lithify::{CfOptions, ScanRange};
use lithify_ffi::arguments::{bytes, text};
use lithify_ffi::memory;
use std::ops::Bound;

/// `lithify_family`.
pub type Family = Handle<lithify::ColumnFamily>;

const START_EXCLUDED: c_int = 1;
const END_INCLUDED: c_int = 2;

/// A bound; NULL is an open end, also with a length of 0. An empty key has a pointer.
///
/// # Safety
/// `pointer` is NULL or has `length` readable bytes behind it during `'a`.
unsafe fn bound<'a>(pointer: *const c_void, length: usize) -> Result<Option<&'a [u8]>, Failure> {
    if pointer.is_null() && length == 0 {
        return Ok(None);
    }
    // SAFETY: the caller promises readable bytes.
    Ok(Some(unsafe { bytes(pointer, length) }?))
}

/// A range of keys as C gives it.
///
/// # Safety
/// Both pointers are NULL or have so many readable bytes behind them during this call.
pub(crate) unsafe fn range(
    start: *const c_void,
    start_length: usize,
    end: *const c_void,
    end_length: usize,
    flags: c_int,
) -> Result<ScanRange, Failure> {
    if flags & !(START_EXCLUDED | END_INCLUDED) != 0 {
        let text =
            format!("invalid argument: flags of a range: {flags} has bits without a meaning");
        return Err(Failure::invalid(text));
    }
    // SAFETY: the caller promises readable bytes.
    let (start, end) = unsafe { (bound(start, start_length)?, bound(end, end_length)?) };
    let start = match start {
        None => Bound::Unbounded,
        Some(key) if flags & START_EXCLUDED != 0 => Bound::Excluded(key),
        Some(key) => Bound::Included(key),
    };
    let end = match end {
        None => Bound::Unbounded,
        Some(key) if flags & END_INCLUDED != 0 => Bound::Included(key),
        Some(key) => Bound::Excluded(key),
    };
    Ok((start, end).into())
}

free_function!(lithify_family_free, lithify::ColumnFamily);

c_functions! {
    /// The family `default`.
    fn lithify_default_family(db: *mut Db, family: *mut *mut Family) {
        let family = place(family)?;
        family.set(new(borrow(db)?.default_family()?));
        Ok(OK)
    }

    /// A family by its name, made if it is not there.
    fn lithify_family_open(
        db: *mut Db,
        name: *const c_char,
        options: *const FamilyOptions,
        family: *mut *mut Family,
    ) {
        let (db, name, family) = (borrow(db)?, text(name)?, place(family)?);
        family.set(new(match borrow_option(options)? {
            Some(options) => db.column_family(name, options.clone())?,
            None => db.column_family_or_create(name, CfOptions::default())?,
        }));
        Ok(OK)
    }

    /// A family by its name, if it is there.
    fn lithify_family_existing(db: *mut Db, name: *const c_char, family: *mut *mut Family) {
        let (found, family) = (borrow(db)?.existing_column_family(text(name)?)?, place(family)?);
        let Some(found) = found else { return Ok(ABSENT) };
        family.set(new(found));
        Ok(OK)
    }

    /// The names of all families.
    fn lithify_family_names(db: *mut Db, names: *mut *mut c_char, count: *mut usize) {
        let (found, names, count) = (borrow(db)?.column_family_names(), place(names)?, place(count)?);
        let text: String = found.iter().flat_map(|name| [name.as_str(), "\0"]).collect();
        names.set(memory::copy(text.as_bytes()));
        count.set(found.len());
        Ok(OK)
    }

    /// Drops a family.
    fn lithify_family_drop(db: *mut Db, name: *const c_char) {
        borrow(db)?.drop_column_family(text(name)?)?;
        Ok(OK)
    }

    /// The options of a family.
    fn lithify_family_text(family: *mut Family, answer: *mut *mut c_char) {
        place(answer)?.set(memory::copy_text(&borrow(family)?.options().to_string()));
        Ok(OK)
    }

    /// Writes its memtable to tables.
    fn lithify_family_flush(family: *mut Family) {
        borrow(family)?.flush()?;
        Ok(OK)
    }

    /// Compacts a range of keys.
    fn lithify_compact_range(
        family: *mut Family,
        start: *const c_void,
        start_length: usize,
        end: *const c_void,
        end_length: usize,
    ) {
        let (start, end) = (bound(start, start_length)?, bound(end, end_length)?);
        borrow(family)?.compact_range((start, end))?;
        Ok(OK)
    }
}
