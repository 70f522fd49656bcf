//! Tests of the room; each file tests the one of the same name.

mod environment;
mod levels;
mod policy;
mod scheduler;
