//! Which keys a cursor of an optimistic transaction has been over, row or no row.

use crate::base::{ColumnFamilyId, key_behind, lock};
use crate::db::committing::recent::{KeySpan, ReadSet};
use std::sync::{Arc, Mutex};

/// The way of a move.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Forward,
    Back,
}

/// Notes each stretch from where the cursor was placed to where it came.
pub(crate) struct Extent {
    reads: Arc<Mutex<ReadSet>>,
    family: ColumnFamilyId,
    /// The bounds of the cursor.
    lower: Box<[u8]>,
    upper: Option<Box<[u8]>>,
    /// Of the stretch at hand.
    place: Option<usize>,
}

impl Extent {
    pub(crate) fn new(
        reads: Arc<Mutex<ReadSet>>,
        family: ColumnFamilyId,
        lower: Option<Box<[u8]>>,
        upper: Option<Box<[u8]>>,
    ) -> Self {
        Extent { reads, family, lower: lower.unwrap_or_default(), upper, place: None }
    }

    /// The cursor was placed, at a key or at an end, and went on to the row `at`, if there was one.
    pub(super) fn place(&mut self, key: Option<&[u8]>, way: Way, at: Option<&[u8]>) {
        let span = match way {
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
        self.place = Some(lock(&self.reads).note_span(self.family, span));
    }

    /// The cursor went on from where it was.
    pub(super) fn go_on(&mut self, way: Way, at: Option<&[u8]>) {
        let Some(place) = self.place else { return self.place(None, way, at) };
        let mut reads = lock(&self.reads);
        let Some(span) = reads.span(place) else { return };
        match (way, at) {
            (Way::Forward, None) => span.upper.clone_from(&self.upper),
            (Way::Forward, Some(at)) => {
                let end = key_behind(at);
                if span.upper.as_ref().is_some_and(|upper| *upper < end) {
                    span.upper = Some(end);
                }
            }
            (Way::Back, None) => span.lower.clone_from(&self.lower),
            (Way::Back, Some(at)) => {
                if *at < *span.lower {
                    span.lower = at.into();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is noted of a cursor over keys from `c` to before `p`.
    fn spans(moves: impl FnOnce(&mut Extent)) -> Vec<String> {
        let reads = Arc::new(Mutex::new(ReadSet::default()));
        let bound = |key: &[u8]| Some(Box::from(key));
        moves(&mut Extent::new(Arc::clone(&reads), 1, bound(b"c"), bound(b"p")));
        let mut reads = lock(&reads);
        let text = |key: &[u8]| key.escape_ascii().to_string();
        (0..)
            .map_while(|place| {
                let span = reads.span(place)?;
                let upper = span.upper.as_ref().map_or("end".to_string(), |upper| text(upper));
                Some(format!("{}..{upper}", text(&span.lower)))
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
            extent.place(Some(b"f"), Forward, Some(b"g"));
            extent.go_on(Forward, Some(b"h"));
            extent.go_on(Back, Some(b"g"));
            extent.go_on(Back, Some(b"d"));
            extent.go_on(Forward, Some(b"g"));
        });
        assert_eq!(there_and_back, ["d..h\\x00"]);
        let twice = spans(|extent| {
            extent.place(Some(b"a"), Forward, Some(b"d"));
            extent.place(Some(b"k"), Back, None);
            extent.go_on(Forward, None);
        });
        assert_eq!(twice, ["c..d\\x00", "c..p"]);
    }
}
