//! The `lithify` command.
fn main() {}
