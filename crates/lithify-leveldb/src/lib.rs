//! LevelDB's C interface on Lithify.
//!
//! | module | owns |
//! |---|---|
//! | `status` | LevelDB's classes of failure, and which of the engine's belong to them |
//! | `settings` | LevelDB's options, and what they are in the engine |
//! | `batch` | write batches, which can be gone through |
//! | `order` | comparators: those that order bytewise work, the others are refused before harm is done |
//! | `filter` | filter policies, as far as callers can see them |
//! | `database`, `iterator` | an open database, its reads and writes |
//! | `properties` | what a database says of itself |
//! | `directory` | whose directory it is; destroy and repair; the directory for tests |
//! | `c` | the 68 functions: pointers become references, failures become texts |
//!
//! Promises: the exported symbols are LevelDB's 68 functions and `lithify_leveldb_version`. No panic
//! leaves a call. What a caller frees is memory of the C library. Unsafe code is in `c` alone.

mod batch;
mod c;
mod database;
mod directory;
mod filter;
mod iterator;
mod order;
mod properties;
mod settings;
mod status;
