//! Advice as a whole, in one program: what goes in, what comes out.

mod answers;
mod data;
mod inputs;
