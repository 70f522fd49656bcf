//! What Lithify's C interfaces share.
//!
//! Owns: bytes and texts that come from C ([`arguments`]), memory that C frees ([`memory`]), calls that
//! no panic leaves ([`guard`]), processes told apart after a fork ([`process`]). It knows no engine, so
//! that each interface exports its own symbols and no others.

pub mod arguments;
pub mod guard;
pub mod memory;
pub mod process;
