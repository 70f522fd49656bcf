//! The C interface: what `include/lithify.h` declares, on the crate `lithify`.
//!
//! | module | owns |
//! |---|---|
//! | `call` | the border: codes, messages, panics, the macro that makes a C function of a body |
//! | `handle` | objects that C holds a pointer to, and the process that they belong to |
//! | `rows` | "rows in a buffer": the one format that crosses the border in bulk |
//! | the others | one group of functions of the header each |
//!
//! A function does what its namesake of `lithify` does and no more. What it promises is in the header.
//! Symbols that leave the library are those of the header; a test compares them.

#[macro_use]
mod call;
mod batch;
mod copies;
mod cursor;
mod database;
mod family;
mod handle;
mod ingest;
mod options;
mod reads;
mod rows;
mod statistics;
mod transaction;
mod writes;
