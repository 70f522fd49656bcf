//! The merge operators of the families: by slot, so that whoever opens a family knows which it has.
//!
//! The first family has one of the engine's, whose code is always there. The second has one of the
//! program's own: what is written while only its name is known must not be lost. The third has none,
//! so that single deletes stay what they are.

use super::lifetimes::with_lifetime;
use crate::random::Random;
use lithify::{CfOptions, MergeOperator};

/// The slot of the family with an operator of the program's own.
pub const OWN: usize = 1;

/// So many bytes [`OWN`]'s operator keeps.
const TAIL_BYTES: usize = 40;

/// Operands are shorter than this.
pub const OPERAND_BYTES_MAX: u64 = 24;

fn tail(mut bytes: Vec<u8>) -> Vec<u8> {
    let cut = bytes.len().saturating_sub(TAIL_BYTES);
    bytes.drain(..cut);
    bytes
}

/// What a family has; one of the program's own in either of its forms, which do the same.
pub fn operator(slot: usize, random: &mut Random) -> MergeOperator {
    match slot {
        0 => MergeOperator::append(),
        OWN if random.one_in(2) => MergeOperator::new("tail", |_, value, operands| {
            Some(tail([value.unwrap_or_default(), &operands.concat()].concat()))
        }),
        OWN => MergeOperator::associative("tail", |_, older, newer| {
            Some(tail([older, newer].concat()))
        }),
        _ => MergeOperator::none(),
    }
}

/// Options with what a slot has: a merge operator, or a time to live.
pub fn with_operator(options: CfOptions, slot: usize, random: &mut Random) -> CfOptions {
    with_lifetime(CfOptions { merge_operator: operator(slot, random), ..options }, slot)
}

/// Whether families in a slot have an operator.
pub fn is_merged(slot: usize) -> bool {
    slot <= OWN
}

/// What has to come of an operand over a value.
pub fn merged(slot: usize, value: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
    let all = [value.unwrap_or_default(), operand].concat();
    if slot == OWN { tail(all) } else { all }
}
