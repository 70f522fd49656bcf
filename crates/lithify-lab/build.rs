//! Hands the compiler's version to the reports: figures without it cannot be judged.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "rustc of unknown version".to_owned(), |text| text.trim().to_owned());
    println!("cargo::rustc-env=LITHIFY_LAB_COMPILER={version}");
}
