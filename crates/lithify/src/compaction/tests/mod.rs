//! Tests of the room; each file tests the one of the same name.

mod copied_blocks;
mod deciding;
mod environment;
mod flow;
mod format_policy;
mod levels;
mod overload;
mod picker;
mod placement;
mod policy;
mod pool;
mod retaining;
mod scheduler;
