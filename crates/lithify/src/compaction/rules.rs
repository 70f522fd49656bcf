//! Which entries of a merge are still needed. Pure: entries in, verdicts out.
//!
//! The snapshots in use, with the newest visible sequence as the last, cut the sequence numbers
//! into *stripes*: all entries of a key within one stripe look the same to every reader except
//! for the newest of them. Entries of a key arrive newest first.
//!
//! 1. A put or tombstone that a newer entry of its stripe shadows is dropped, and so is an entry
//!    that a range tombstone of its stripe covers.
//! 2. A tombstone in the oldest stripe is dropped when no deeper level can hold its key.
//! 3. A single delete waits for the next older entry: a put of its stripe goes with it. Else it
//!    is kept (or dropped as in 2), even when a newer put shadows it: once that put is itself
//!    single-deleted, the older one must not show again.
//! 4. A put in the oldest stripe with nothing of its key below it gets sequence 0, which
//!    compresses to nothing. Not where an older range tombstone covers its key: it may be kept
//!    for other keys, and would then delete the put.
//!
//! 5. A merge operand shadows nothing. It is kept, and `folding` makes one entry of the operands of a
//!    stripe and what they are based on.
//!
//! A kept entry that is obsolete for all but a snapshot is noted by the sequence at which it
//! became so: the table can be rewritten with profit once no snapshot is older.

use crate::base::{SEQUENCE_MAX, SequenceNumber, Trailer, ValueKind};
use crate::{Error, Result};

/// What happens to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is written with this trailer.
    Keep(Trailer),
    /// It is gone.
    Drop,
    /// It is a single delete that waits for what comes next; it may be released later.
    Hold,
    /// It is a merge operand, to be kept or folded; `is_newest` if its key has no newer entry.
    Operand { trailer: Trailer, is_newest: bool },
}

/// What to do before and with an entry of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// A held single delete of the same key, to be written first.
    pub(crate) released: Option<Trailer>,
    /// The entry itself.
    pub(crate) verdict: Verdict,
}

/// The state of the rules within one merge.
pub(crate) struct Rules {
    /// Ascending; never empty; the last is the newest visible sequence.
    snapshots: Vec<SequenceNumber>,
    /// The stripe of the newest entry of the key so far that shadows older ones.
    shadowing_stripe: Option<usize>,
    /// The sequence of the entry before this one, of the same key.
    newer_sequence: Option<SequenceNumber>,
    held: Option<Trailer>,
    /// The stripe in which a single delete met its put: another put there betrays misuse.
    settled_stripe: Option<usize>,
    newest_obsolete_sequence: SequenceNumber,
    single_delete_misuses: u64,
}

impl Rules {
    pub(crate) fn new(mut snapshots: Vec<SequenceNumber>) -> Self {
        if planted!(SnapshotsIgnored) {
            snapshots.drain(..snapshots.len().saturating_sub(1));
        }
        if snapshots.is_empty() {
            snapshots.push(SEQUENCE_MAX);
        }
        Rules {
            snapshots,
            shadowing_stripe: None,
            newer_sequence: None,
            held: None,
            settled_stripe: None,
            newest_obsolete_sequence: 0,
            single_delete_misuses: 0,
        }
    }

    /// The stripe of a sequence number; 0 is the oldest.
    pub(crate) fn stripe(&self, sequence: SequenceNumber) -> usize {
        if self.snapshots.len() == 1 {
            return usize::from(sequence > self.snapshots[0]);
        }
        self.snapshots.partition_point(|snapshot| *snapshot < sequence)
    }

    /// Ends the entries of a key; a single delete still held is given back if it is needed.
    pub(crate) fn end_key(&mut self, nothing_deeper: bool) -> Option<Trailer> {
        self.shadowing_stripe = None;
        self.newer_sequence = None;
        self.settled_stripe = None;
        self.release(nothing_deeper)
    }

    fn release(&mut self, nothing_deeper: bool) -> Option<Trailer> {
        let held = self.held.take()?;
        let droppable = nothing_deeper && self.stripe(held.sequence()) == 0;
        (!droppable).then_some(held)
    }

    /// What the next older entry does to a single delete that is held: gives it if it is to be written
    /// now; `None` if the two go together.
    #[inline(always)]
    fn meet_held(
        &mut self,
        kind: ValueKind,
        stripe: usize,
        nothing_deeper: bool,
    ) -> Option<Option<Trailer>> {
        let Some(held) = self.held else { return Some(None) };
        let mut is_seen_alike = self.stripe(held.sequence()) == stripe;
        if planted!(SingleDeleteAcrossSnapshot) && kind == ValueKind::Put {
            is_seen_alike = true;
        }
        if kind == ValueKind::Put && is_seen_alike {
            self.held = None;
            self.settled_stripe = Some(stripe);
            return None;
        }
        if kind == ValueKind::Delete && is_seen_alike {
            // The delete removes all that the single delete would, and more.
            self.held = None;
            self.shadowing_stripe = None;
            return Some(None);
        }
        Some(self.release(nothing_deeper))
    }

    /// Judges the next entry of the current key. `covering` gives the newest range tombstone
    /// over the key at or below a sequence; `nothing_deeper` says that no level below the target
    /// can hold the key.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        trailer: Trailer,
        covering: impl Fn(SequenceNumber) -> SequenceNumber,
        nothing_deeper: bool,
    ) -> Result<Decision> {
        let Some(kind) = trailer.kind() else {
            return Err(Error::corruption("an entry has an unknown kind")
                .expected("0 to 4", trailer.0 & 0xff));
        };
        let sequence = trailer.sequence();
        let stripe = self.stripe(sequence);
        let newer = self.newer_sequence.replace(sequence);
        let Some(released) = self.meet_held(kind, stripe, nothing_deeper) else {
            return Ok(Decision { released: None, verdict: Verdict::Drop });
        };
        let shadowed = self.shadowing_stripe == Some(stripe);
        let newest_tombstone =
            covering(self.snapshots.get(stripe).copied().unwrap_or(SEQUENCE_MAX));
        let covered = newest_tombstone > sequence;
        let gone = covered || (shadowed && kind != ValueKind::SingleDelete);
        // What an operand adds to is below it.
        if kind != ValueKind::Merge || gone {
            self.shadowing_stripe = Some(stripe);
        }
        if gone && kind == ValueKind::Put && self.settled_stripe == Some(stripe) && !covered {
            self.single_delete_misuses += 1;
        }
        let mut is_obsolete_delete = stripe == 0 && nothing_deeper;
        if planted!(DeleteDroppedEarly) {
            is_obsolete_delete = stripe == 0;
        }
        let verdict = match kind {
            _ if gone => Verdict::Drop,
            ValueKind::SingleDelete => {
                self.held = Some(trailer);
                Verdict::Hold
            }
            ValueKind::Delete if is_obsolete_delete => Verdict::Drop,
            ValueKind::Put => {
                let obsolete_since = newer.unwrap_or(0).max(covering(SEQUENCE_MAX));
                if obsolete_since > sequence {
                    self.newest_obsolete_sequence =
                        self.newest_obsolete_sequence.max(obsolete_since);
                }
                let mut seen_by_all = stripe == 0;
                if planted!(SequenceZeroedEarly) {
                    seen_by_all = true;
                }
                let is_oldest = seen_by_all && nothing_deeper && newer.is_none();
                let zeroed = is_oldest && covering(sequence) == 0;
                Verdict::Keep(if zeroed { Trailer::new(0, ValueKind::Put) } else { trailer })
            }
            ValueKind::Merge => Verdict::Operand { trailer, is_newest: newer.is_none() },
            ValueKind::Delete | ValueKind::RangeDelete => Verdict::Keep(trailer),
        };
        Ok(Decision { released, verdict })
    }

    /// Takes the largest sequence at which a kept entry became obsolete since the last call;
    /// 0 if none.
    pub(crate) fn take_newest_obsolete_sequence(&mut self) -> SequenceNumber {
        std::mem::take(&mut self.newest_obsolete_sequence)
    }

    /// How often a second put was found under a settled single delete.
    pub(crate) fn single_delete_misuses(&self) -> u64 {
        self.single_delete_misuses
    }
}

/// A range tombstone on its way into a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeTombstoneSpan {
    pub(crate) start: Box<[u8]>,
    pub(crate) end: Box<[u8]>,
    pub(crate) sequence: SequenceNumber,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_TOMBSTONE: fn(SequenceNumber) -> SequenceNumber = |_| 0;

    /// Runs the entries of one key through the rules: `"p9 s7 p5"`, newest first; the answer
    /// lists what is written.
    fn run(snapshots: &[SequenceNumber], entries: &str, nothing_deeper: bool) -> String {
        run_covered(snapshots, entries, nothing_deeper, NO_TOMBSTONE).0
    }

    fn run_covered(
        snapshots: &[SequenceNumber],
        entries: &str,
        nothing_deeper: bool,
        covering: impl Fn(SequenceNumber) -> SequenceNumber,
    ) -> (String, Rules) {
        let mut rules = Rules::new(snapshots.to_vec());
        let mut written = Vec::new();
        let mut write = |trailer: Trailer| {
            let letter = match trailer.kind() {
                Some(ValueKind::Put) => 'p',
                Some(ValueKind::Delete) => 'd',
                Some(ValueKind::Merge) => 'm',
                _ => 's',
            };
            written.push(format!("{letter}{}", trailer.sequence()));
        };
        for entry in entries.split_whitespace() {
            let kind = match &entry[..1] {
                "p" => ValueKind::Put,
                "d" => ValueKind::Delete,
                "m" => ValueKind::Merge,
                _ => ValueKind::SingleDelete,
            };
            let trailer = Trailer::new(entry[1..].parse().unwrap(), kind);
            let decision = rules.judge(trailer, &covering, nothing_deeper).unwrap();
            if let Some(released) = decision.released {
                write(released);
            }
            if let Verdict::Keep(trailer) | Verdict::Operand { trailer, .. } = decision.verdict {
                write(trailer);
            }
        }
        if let Some(released) = rules.end_key(nothing_deeper) {
            write(released);
        }
        (written.join(" "), rules)
    }

    #[test]
    fn shadowed_versions_go_as_early_as_snapshots_allow() {
        assert_eq!(run(&[100], "p9 p7 p5", false), "p9");
        assert_eq!(run(&[7, 100], "p9 p7 p5", false), "p9 p7");
        assert_eq!(run(&[6, 8, 100], "p9 p7 p5", false), "p9 p7 p5");
        assert_eq!(run(&[4, 100], "p9 p7 p5", false), "p9");
    }

    #[test]
    fn tombstones_stay_until_nothing_is_below() {
        assert_eq!(run(&[100], "d9 p7", false), "d9");
        assert_eq!(run(&[100], "d9 p7", true), "");
        assert_eq!(run(&[8, 100], "d9 p7", true), "d9 p7");
    }

    #[test]
    fn a_single_delete_goes_with_its_put() {
        assert_eq!(run(&[100], "s9 p7", false), "");
        assert_eq!(run(&[8, 100], "s9 p7", false), "s9 p7");
        assert_eq!(run(&[100], "s9", false), "s9");
        assert_eq!(run(&[100], "s9", true), "");
    }

    #[test]
    fn a_delete_under_a_single_delete_stays() {
        assert_eq!(run(&[100], "s9 d8 p7", false), "d8");
        assert_eq!(run(&[100], "s9 d8 p7", true), "");
    }

    #[test]
    fn a_rewritten_key_keeps_its_single_delete_until_the_put_is_met() {
        assert_eq!(run(&[100], "p9 s8", false), "p9 s8");
        assert_eq!(run(&[100], "p9 s8 p7", false), "p9");
        assert_eq!(run(&[100], "s10 p9 s8", false), "s8");
        assert_eq!(run(&[100], "s10 p9 s8 p7", false), "");
        assert_eq!(run(&[100], "p11 s10 p9 s8 p7", false), "p11");
    }

    #[test]
    fn a_merge_shadows_nothing_and_is_shadowed() {
        assert_eq!(run(&[100], "m9 m8 p7 p5", true), "m9 m8 p7");
        assert_eq!(run(&[100], "p9 m8 m7", false), "p9");
        assert_eq!(run(&[100], "d9 m8", false), "d9");
        assert_eq!(run(&[100], "d9 m8", true), "");
        assert_eq!(run(&[7, 100], "p9 m7 p5", true), "p9 m7 p5");
        assert_eq!(run(&[100], "s9 m8", false), "s9");
        assert_eq!(run(&[100], "m9 s8 p7", true), "m9");
        let at_8 = |upper: SequenceNumber| if upper >= 8 { 8 } else { 0 };
        assert_eq!(run_covered(&[100], "m9 m7 p5", false, at_8).0, "m9");
        assert_eq!(run_covered(&[7, 100], "m9 m7 p5", false, at_8).0, "m9 m7 p5");
    }

    #[test]
    fn a_second_put_under_a_single_delete_is_counted() {
        let (written, rules) = run_covered(&[100], "s9 p7 p5", false, NO_TOMBSTONE);
        assert_eq!((written.as_str(), rules.single_delete_misuses()), ("", 1));
        let (_, rules) = run_covered(&[100], "s9 p7 s6 p5", false, NO_TOMBSTONE);
        assert_eq!(rules.single_delete_misuses(), 0);
    }

    #[test]
    fn the_bottom_zeroes_sequences_of_lone_puts() {
        assert_eq!(run(&[100], "p9", true), "p0");
        assert_eq!(run(&[7, 100], "p9 p5", true), "p9 p5");
        assert_eq!(run(&[7, 100], "p9", true), "p9");
        let at_8 = |upper: SequenceNumber| if upper >= 8 { 8 } else { 0 };
        assert_eq!(run_covered(&[100], "p9", true, at_8).0, "p9", "8 may stay, and delete p0");
    }

    #[test]
    fn range_tombstones_cover_within_a_stripe_only() {
        let at_8 = |upper: SequenceNumber| if upper >= 8 { 8 } else { 0 };
        assert_eq!(run_covered(&[100], "p9 p7", false, at_8).0, "p9");
        assert_eq!(run_covered(&[100], "p7", false, at_8).0, "");
        assert_eq!(run_covered(&[7, 100], "p7", false, at_8).0, "p7");
    }

    #[test]
    fn what_a_snapshot_holds_back_is_noted() {
        let (_, mut rules) = run_covered(&[7, 100], "p9 p5", false, NO_TOMBSTONE);
        assert_eq!(rules.take_newest_obsolete_sequence(), 9);
        assert_eq!(rules.take_newest_obsolete_sequence(), 0);
    }
}
