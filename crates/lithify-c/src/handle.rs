//! Objects that C holds a pointer to.
//!
//! Each remembers the process that made it. In a child of that one it is refused, and freeing it does
//! nothing: its threads are not there, its files are the parent's, its locks may be held for ever.

#![expect(unsafe_code, reason = "pointers that C keeps")]

use crate::call::Failure;
use lithify_ffi::arguments::Refused;
use lithify_ffi::process::Bound;

/// An object of this library in C's hands.
pub type Handle<T> = Bound<T>;

/// Moves an object into memory of its own, whose pointer C gets.
pub(crate) fn new<T>(inner: T) -> *mut Handle<T> {
    Box::into_raw(Box::new(Bound::new(inner)))
}

fn elsewhere() -> Failure {
    Failure::closed("closed: another process opened it before a fork: open it in this one")
}

/// What C points at.
///
/// # Safety
/// `pointer` is NULL, or came from [`new`], is not freed during `'a`, and nobody has it as `&mut`.
pub(crate) unsafe fn borrow<'a, T>(pointer: *const Handle<T>) -> Result<&'a T, Failure> {
    // SAFETY: the caller promises a live object that nobody changes, or NULL.
    let handle = unsafe { pointer.as_ref() }.ok_or(Refused::Missing)?;
    handle.get().ok_or_else(elsewhere)
}

/// What C points at, of which NULL stands for none.
///
/// # Safety
/// As of [`borrow`].
pub(crate) unsafe fn borrow_option<'a, T>(
    pointer: *const Handle<T>,
) -> Result<Option<&'a T>, Failure> {
    // SAFETY: the caller promises what `borrow` asks for.
    if pointer.is_null() { Ok(None) } else { unsafe { borrow(pointer) }.map(Some) }
}

/// What C points at, to be changed.
///
/// # Safety
/// `pointer` is NULL, or came from [`new`], is not freed during `'a`, and nobody else uses it then.
pub(crate) unsafe fn borrow_mut<'a, T>(pointer: *mut Handle<T>) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller promises a live object that nobody else uses, or NULL.
    let handle = unsafe { pointer.as_mut() }.ok_or(Refused::Missing)?;
    handle.get_mut().ok_or_else(elsewhere)
}

/// Frees an object; in a child of the process that made it, only its memory.
///
/// # Safety
/// `pointer` is NULL, or came from [`new`] and was not freed before; nobody uses it any more.
pub(crate) unsafe fn free<T>(pointer: *mut Handle<T>) {
    if !pointer.is_null() {
        // SAFETY: the pointer came from `Box::into_raw` and is freed once, as the caller promises.
        let _ = lithify_ffi::guard::guarded(|| drop(unsafe { Box::from_raw(pointer) }));
    }
}

/// A place of the caller's for an answer; NULL is refused.
///
/// # Safety
/// `place` is NULL, or may be written during `'a`, and holds no object of Rust that would have to be
/// dropped.
pub(crate) unsafe fn place<'a, T>(place: *mut T) -> Result<Place<'a, T>, Failure> {
    // SAFETY: MaybeUninit asks for no content; the caller promises that it may be written.
    let place = unsafe { place.cast::<std::mem::MaybeUninit<T>>().as_mut() };
    Ok(Place(place.ok_or(Refused::Missing)?))
}

/// See [`place`].
pub(crate) struct Place<'a, T>(&'a mut std::mem::MaybeUninit<T>);

impl<T> Place<'_, T> {
    pub(crate) fn set(self, value: T) {
        self.0.write(value);
    }
}

/// Makes the function that frees one kind of object.
macro_rules! free_function {
    ($name:ident, $type:ty) => {
        /// Frees the object; NULL is allowed.
        ///
        /// # Safety
        /// The pointer is NULL, or came from this library and was not freed; nobody uses it any more.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(pointer: *mut $crate::handle::Handle<$type>) {
            // SAFETY: the caller promises an object that was not freed, or NULL.
            unsafe { $crate::handle::free(pointer) }
        }
    };
}
pub(crate) use free_function;
