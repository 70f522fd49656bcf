//! Which keys a cursor of an optimistic transaction has been over, row or no row.

use crate::Result;
use crate::base::{ColumnFamilyId, key_behind, lock};
use crate::db::committing::reads::{KeySpan, ReadSet};
use std::sync::{Mutex, Weak};

/// The way of a move.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Forward,
    Back,
}

/// Notes each stretch from where the cursor was placed to where it came, as long as its transaction lives.
pub(crate) struct Extent {
    reads: Weak<Mutex<ReadSet>>,
    family: ColumnFamilyId,
    /// The bounds of the cursor.
    lower: Box<[u8]>,
    upper: Option<Box<[u8]>>,
    /// The stretch at hand.
    stretch: Option<KeySpan>,
}

impl Extent {
    pub(crate) fn new(
        reads: Weak<Mutex<ReadSet>>,
        family: ColumnFamilyId,
        lower: Option<Box<[u8]>>,
        upper: Option<Box<[u8]>>,
    ) -> Self {
        Extent { reads, family, lower: lower.unwrap_or_default(), upper, stretch: None }
    }

    /// The cursor was placed, at a key or at an end, and went on to the row `at`, if there was one.
    ///
    /// # Errors
    /// As [`ReadSet::note_span`].
    pub(super) fn place(&mut self, key: Option<&[u8]>, way: Way, at: Option<&[u8]>) -> Result<()> {
        let stretch = match way {
            Way::Forward => KeySpan {
                lower: key.map_or(self.lower.clone(), |key| key.max(&self.lower[..]).into()),
                upper: at.map_or(self.upper.clone(), |at| Some(key_behind(at))),
            },
            Way::Back => KeySpan {
                lower: at.map_or(self.lower.clone(), Into::into),
                upper: match (key.map(key_behind), &self.upper) {
                    (Some(key), Some(upper)) => Some(key.min(upper.clone())),
                    (key, upper) => key.or(upper.clone()),
                },
            },
        };
        self.note(stretch)
    }

    /// The cursor went on from where it was.
    ///
    /// # Errors
    /// As [`ReadSet::note_span`].
    pub(super) fn go_on(&mut self, way: Way, at: Option<&[u8]>) -> Result<()> {
        let Some(mut stretch) = self.stretch.take() else { return self.place(None, way, at) };
        match (way, at) {
            (Way::Forward, None) => stretch.upper.clone_from(&self.upper),
            (Way::Forward, Some(at)) => {
                let end = key_behind(at);
                if stretch.upper.as_ref().is_some_and(|upper| *upper < end) {
                    stretch.upper = Some(end);
                }
            }
            (Way::Back, None) => stretch.lower.clone_from(&self.lower),
            (Way::Back, Some(at)) => {
                if *at < *stretch.lower {
                    stretch.lower = at.into();
                }
            }
        }
        self.note(stretch)
    }

    /// The cursor stands nowhere: its next move begins a stretch, at an end.
    pub(super) fn leave(&mut self) {
        self.stretch = None;
    }

    fn note(&mut self, stretch: KeySpan) -> Result<()> {
        if let Some(reads) = self.reads.upgrade() {
            lock(&reads).note_span(self.family, &stretch)?;
        }
        self.stretch = Some(stretch);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// What is noted of a cursor over keys from `c` to before `p`.
    fn spans(moves: impl FnOnce(&mut Extent) -> Result<()>) -> Vec<String> {
        let reads = Arc::new(Mutex::new(ReadSet::new(1 << 20)));
        let bound = |key: &[u8]| Some(Box::from(key));
        moves(&mut Extent::new(Arc::downgrade(&reads), 1, bound(b"c"), bound(b"p"))).unwrap();
        let reads = lock(&reads);
        let text = |key: &[u8]| key.escape_ascii().to_string();
        let spans = reads.spans();
        spans
            .map(|(_, span)| {
                let upper = span.upper.as_ref().map_or("end".to_string(), |upper| text(upper));
                format!("{}..{upper}", text(&span.lower))
            })
            .collect()
    }

    #[test]
    fn stretches_reach_from_the_placing_to_the_row_or_to_the_bound() {
        use Way::{Back, Forward};
        assert_eq!(spans(|extent| extent.go_on(Forward, Some(b"e"))), ["c..e\\x00"]);
        assert_eq!(spans(|extent| extent.go_on(Back, Some(b"m"))), ["m..p"]);
        assert_eq!(spans(|extent| extent.go_on(Forward, None)), ["c..p"]);
        let there_and_back = spans(|extent| {
            extent.place(Some(b"f"), Forward, Some(b"g"))?;
            extent.go_on(Forward, Some(b"h"))?;
            extent.go_on(Back, Some(b"g"))?;
            extent.go_on(Back, Some(b"d"))?;
            extent.go_on(Forward, Some(b"g"))
        });
        assert_eq!(there_and_back, ["d..h\\x00"]);
        let twice = spans(|extent| {
            extent.place(Some(b"a"), Forward, Some(b"d"))?;
            extent.place(Some(b"k"), Back, Some(b"f"))?;
            extent.go_on(Forward, Some(b"l"))
        });
        assert_eq!(twice, ["c..d\\x00", "f..l\\x00"]);
        let after_an_error = spans(|extent| {
            extent.place(Some(b"d"), Forward, Some(b"e"))?;
            extent.leave();
            extent.go_on(Back, Some(b"m"))
        });
        assert_eq!(after_an_error, ["d..e\\x00", "m..p"]);
    }
}
