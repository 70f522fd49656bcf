//! Names the interface that programs are linked against: it changes when a program must be linked anew.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblithify_leveldb.so.0");
    }
}
