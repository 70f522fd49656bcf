//! Jobs.

pub(crate) mod background;
pub(crate) mod compacting;
pub(crate) mod refusal;
pub(crate) mod stall;
