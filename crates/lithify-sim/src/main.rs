//! The `lithify-sim` command.

fn main() {
    for check in lithify_sim::checks() {
        println!("{:<14} {}", check.name(), check.about());
    }
}
