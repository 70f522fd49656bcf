//! The semantics in plain Rust.
