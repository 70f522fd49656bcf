//! Writing row by row.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::{ABSENT, OK};
use crate::family::Family;
use crate::handle::borrow;
use libc::c_void;
use lithify_ffi::arguments::bytes;

c_functions! {
    /// Sets the value of a key.
    fn lithify_put(
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        value: *const c_void,
        value_length: usize,
    ) {
        borrow(family)?.put(bytes(key, key_length)?, bytes(value, value_length)?)?;
        Ok(OK)
    }

    /// Removes a key.
    fn lithify_delete(family: *mut Family, key: *const c_void, key_length: usize) {
        borrow(family)?.delete(bytes(key, key_length)?)?;
        Ok(OK)
    }

    /// Removes a key that was put once.
    fn lithify_single_delete(family: *mut Family, key: *const c_void, key_length: usize) {
        borrow(family)?.single_delete(bytes(key, key_length)?)?;
        Ok(OK)
    }

    /// Removes a range of keys.
    fn lithify_delete_range(
        family: *mut Family,
        start: *const c_void,
        start_length: usize,
        end: *const c_void,
        end_length: usize,
    ) {
        borrow(family)?.delete_range(bytes(start, start_length)?, bytes(end, end_length)?)?;
        Ok(OK)
    }

    /// Adds an operand to a key.
    fn lithify_merge(
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        operand: *const c_void,
        operand_length: usize,
    ) {
        borrow(family)?.merge(bytes(key, key_length)?, bytes(operand, operand_length)?)?;
        Ok(OK)
    }

    /// Writes a row if its key is absent.
    fn lithify_put_if_absent(
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        value: *const c_void,
        value_length: usize,
    ) {
        let (key, value) = (bytes(key, key_length)?, bytes(value, value_length)?);
        Ok(if borrow(family)?.put_if_absent(key, value)? { OK } else { ABSENT })
    }

    /// Writes a row if its value is the expected one.
    fn lithify_compare_and_put(
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        expected: *const c_void,
        expected_length: usize,
        value: *const c_void,
        value_length: usize,
    ) {
        let (key, value) = (bytes(key, key_length)?, bytes(value, value_length)?);
        let expected = bytes(expected, expected_length)?;
        Ok(if borrow(family)?.compare_and_put(key, expected, value)? { OK } else { ABSENT })
    }
}
