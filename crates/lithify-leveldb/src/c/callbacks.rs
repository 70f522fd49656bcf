//! Comparators and filter policies: functions of the caller with a state.
//!
//! What is called from is a copy of the pointers, as the interface asks callers to keep both alive while
//! a database uses them. The destructor is called once, when the handle is destroyed.

#![expect(unsafe_code, reason = "functions of the caller")]

use super::{exported, quietly};
use crate::filter::FilterPolicy;
use crate::order::Order;
use crate::settings::Filter;
use lithify_ffi::memory;
use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// Names are read so far: a caller may forget the zero behind one.
const NAME_BYTES_MAX: usize = 1024;

type Destructor = unsafe extern "C" fn(*mut c_void);
type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type Compare =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
type CreateFilter = unsafe extern "C" fn(
    *mut c_void,
    *const *const c_char,
    *const usize,
    c_int,
    *mut usize,
) -> *mut c_char;
type KeyMayMatch =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8;

/// The caller's state, with what ends it.
struct State {
    state: *mut c_void,
    destructor: Option<Destructor>,
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: a function of the caller, called once with its own state.
            unsafe { destructor(self.state) }
        }
    }
}

/// `leveldb_comparator_t`
pub struct ComparatorHandle {
    comparator: Comparator,
    _state: State,
}

impl ComparatorHandle {
    /// The order that it says.
    pub fn order(&self) -> Arc<dyn Order> {
        Arc::new(self.comparator)
    }
}

#[derive(Clone, Copy)]
struct Comparator {
    state: *mut c_void,
    compare: Compare,
    name: Name,
}

// SAFETY: the interface asks of a comparator that any thread may call it; the pointers never change.
unsafe impl Send for Comparator {}
// SAFETY: as above.
unsafe impl Sync for Comparator {}

impl Order for Comparator {
    fn name(&self) -> Vec<u8> {
        // SAFETY: a function of the caller, called with its own state. It answers NULL, or a text that
        // ends with a zero; no byte behind the zero is read.
        unsafe {
            let name = (self.name)(self.state).cast::<u8>();
            let length = match name.is_null() {
                true => 0,
                false => (0..NAME_BYTES_MAX).take_while(|at| *name.add(*at) != 0).count(),
            };
            lithify_ffi::arguments::bytes(name.cast(), length).unwrap_or_default().to_vec()
        }
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // SAFETY: a function of the caller, called with its own state and bytes that live for the call.
        let said = unsafe {
            (self.compare)(self.state, a.as_ptr().cast(), a.len(), b.as_ptr().cast(), b.len())
        };
        said.cmp(&0)
    }
}

/// `leveldb_filterpolicy_t`
pub struct FilterPolicyHandle {
    filter: Filter,
    _state: Option<State>,
}

impl FilterPolicyHandle {
    /// What it is in the settings.
    pub fn filter(&self) -> Filter {
        self.filter.clone()
    }
}

#[derive(Clone, Copy)]
struct OwnPolicy {
    state: *mut c_void,
    create_filter: CreateFilter,
    key_may_match: KeyMayMatch,
}

// SAFETY: the interface asks of a policy that any thread may call it; the pointers never change.
unsafe impl Send for OwnPolicy {}
// SAFETY: as above.
unsafe impl Sync for OwnPolicy {}

impl FilterPolicy for OwnPolicy {
    fn keeps(&self, key: &[u8]) -> bool {
        let (keys, lengths) = ([key.as_ptr().cast::<c_char>()], [key.len()]);
        let mut filter_length = 0;
        // SAFETY: functions of the caller, called with its own state, arrays of the one key that is said
        // and bytes that live for the calls. The filter is memory of the C library that was handed over;
        // it is freed once.
        unsafe {
            let (keys, lengths) = (keys.as_ptr(), lengths.as_ptr());
            let filter = (self.create_filter)(self.state, keys, lengths, 1, &raw mut filter_length);
            let key_start = key.as_ptr().cast();
            let said =
                (self.key_may_match)(self.state, key_start, key.len(), filter, filter_length);
            memory::release(filter.cast());
            said != 0
        }
    }
}

exported! {
    /// A comparator. Nothing if a function is missing.
    fn leveldb_comparator_create(
        state: *mut c_void,
        destructor: Option<Destructor>,
        compare: Option<Compare>,
        name: Option<Name>,
    ) -> Option<Box<ComparatorHandle>> {
        quietly(|| {
            let comparator = Comparator { state, compare: compare?, name: name? };
            let state = State { state, destructor };
            Some(Some(Box::new(ComparatorHandle { comparator, _state: state })))
        })
    }

    /// Ends a comparator, and its state.
    fn leveldb_comparator_destroy(comparator: Option<Box<ComparatorHandle>>) {
        drop(comparator);
    }

    /// A filter policy of the caller. Nothing if a function is missing. Its name is not asked for: no
    /// file holds its filters.
    fn leveldb_filterpolicy_create(
        state: *mut c_void,
        destructor: Option<Destructor>,
        create_filter: Option<CreateFilter>,
        key_may_match: Option<KeyMayMatch>,
        _name: Option<Name>,
    ) -> Option<Box<FilterPolicyHandle>> {
        quietly(|| {
            let (create_filter, key_may_match) = (create_filter?, key_may_match?);
            let policy = OwnPolicy { state, create_filter, key_may_match };
            let state = Some(State { state, destructor });
            let filter = Filter::Own(Arc::new(policy));
            Some(Some(Box::new(FilterPolicyHandle { filter, _state: state })))
        })
    }

    /// The engine's own filter, with so many bits a key.
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> Option<Box<FilterPolicyHandle>> {
        quietly(|| {
            let filter = Filter::Bloom(bits_per_key);
            Some(Some(Box::new(FilterPolicyHandle { filter, _state: None })))
        })
    }

    /// Ends a filter policy, and its state.
    fn leveldb_filterpolicy_destroy(policy: Option<Box<FilterPolicyHandle>>) {
        drop(policy);
    }
}
