//! Advice as a whole, in one program: what goes in, what comes out.

mod answers;
mod data;
mod inputs;
#[cfg(all(feature = "parquet", feature = "sqlite"))]
mod typed;
