//! Tests of the room; each file tests the one of the same name.

mod environment;
mod flow;
mod levels;
mod overload;
mod picker;
mod policy;
mod scheduler;
