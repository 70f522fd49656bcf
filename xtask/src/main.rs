//! Checks of the repository's own rules.
fn main() {}
