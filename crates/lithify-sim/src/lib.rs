//! The machine that tries to make the engine lose data.
//!
//! Owns: the language that all checks share (operations, the model that answers them, counts,
//! findings), the checks themselves, and the runner that drives them. A check is a function of
//! the number of a case: whatever is found is found again by `lithify-sim replay CHECK CASE`.
//!
//! It uses the engine's public interface and its world in memory, and for fuzzing the ways into
//! private decoders that the feature `internals` opens; the binary `lithify-sim` and the tests call
//! the same checks.

pub mod check;
pub mod crash;
pub mod damage;
mod dated;
pub mod digest;
pub mod faults;
mod filtered;
pub mod fuzz;
pub mod growth;
pub mod leftovers;
pub mod limits;
pub mod metamorphic;
pub mod model;
pub mod operation;
pub mod paid;
pub mod picker;
#[cfg(target_os = "linux")]
pub mod powerloss;
pub mod random;
mod references;
pub mod runner;
pub mod threads;
pub mod versions;

use check::Check;

/// All checks, in the order in which they are run.
pub fn checks() -> Vec<&'static dyn Check> {
    vec![
        &metamorphic::Metamorphic,
        &leftovers::Leftovers,
        &versions::Versions,
        &picker::Picker,
        &growth::Growth,
        &paid::Paid,
        &crash::CrashPoints,
        &crash::Crashes,
        &faults::Faults,
        &damage::Flips,
        &damage::Files,
        &fuzz::Fuzz,
        &threads::Threads,
        &threads::Closes,
        &limits::Limits,
        #[cfg(target_os = "linux")]
        &powerloss::PowerLoss,
        #[cfg(target_os = "linux")]
        &powerloss::Devices,
    ]
}
