//! The checks in the length that fits beside other tests, in one program.

mod command;
mod damage;
mod growth;
#[cfg(target_os = "linux")]
mod powerloss;

use lithify_sim::fuzz::allocation::CountingAllocator;

/// Checks ask it how much memory the engine took.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
