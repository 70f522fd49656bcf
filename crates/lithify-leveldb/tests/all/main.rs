//! LevelDB's interface, called as C calls it: the built library is loaded while the tests run.

mod actions;
mod different;
mod differential;
mod leveldb;
mod symbols;
mod world;
