//! The C interface as programs in C meet it: its symbols, every function, every failure, its installation.

mod compiler;
mod install;
mod programs;
mod symbols;
