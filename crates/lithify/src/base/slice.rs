//! A counted, immutable piece of bytes.

use bytes::Bytes;
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// Bytes returned by the engine: `'static`, cheap to clone, never copied on clone. A slice that
/// points into a cached block keeps that block in memory until it is dropped; the statistics
/// show those bytes as pinned. Once they are half of the memory budget, reads copy small values instead.
///
/// ```
/// let slice = lithify::Slice::from(b"basalt".to_vec());
/// let same = slice.clone();
/// assert_eq!(&*same, b"basalt");
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slice(Bytes);

impl Slice {
    /// Wraps shared bytes.
    pub(crate) fn from_bytes(bytes: Bytes) -> Self {
        Slice(bytes)
    }

    /// A copy of `bytes` in memory of its own.
    pub fn copy_from(bytes: &[u8]) -> Self {
        Slice(Bytes::copy_from_slice(bytes))
    }

    /// Its first `size` bytes, all if it has no more.
    pub(crate) fn first_bytes(&self, size: usize) -> Self {
        Slice(self.0.slice(..size.min(self.0.len())))
    }
}

impl Deref for Slice {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Slice {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Slice {
    fn from(bytes: Vec<u8>) -> Self {
        Slice(Bytes::from(bytes))
    }
}

impl From<&[u8]> for Slice {
    fn from(bytes: &[u8]) -> Self {
        Slice::copy_from(bytes)
    }
}

impl From<&str> for Slice {
    fn from(text: &str) -> Self {
        Slice::copy_from(text.as_bytes())
    }
}

impl From<Bytes> for Slice {
    fn from(bytes: Bytes) -> Self {
        Slice(bytes)
    }
}

impl From<Slice> for Vec<u8> {
    fn from(slice: Slice) -> Self {
        slice.0.into()
    }
}

impl From<Slice> for Bytes {
    fn from(slice: Slice) -> Self {
        slice.0
    }
}

/// Comparisons with what else is bytes, both ways round.
macro_rules! equals {
    ($([$($generics:tt)*] $other:ty),+ $(,)?) => {
        $(
            impl<$($generics)*> PartialEq<$other> for Slice {
                fn eq(&self, other: &$other) -> bool {
                    self.0[..] == *AsRef::<[u8]>::as_ref(other)
                }
            }

            impl<$($generics)*> PartialEq<Slice> for $other {
                fn eq(&self, other: &Slice) -> bool {
                    other.0[..] == *AsRef::<[u8]>::as_ref(self)
                }
            }
        )+
    };
}

equals! {
    [] [u8], [] &[u8], [] Vec<u8>, [] str, [] &str, [] String, [] Bytes,
    [const N: usize] [u8; N], [const N: usize] &[u8; N],
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
