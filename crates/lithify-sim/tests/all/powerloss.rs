//! Power cuts over real files, in their shortest form: a case in each mode of durability, and one on
//! a block device. Skipped, with a line that says why, where FUSE or the right to mount is missing.

use lithify_sim::check::{Check, Tally, run_case};
use lithify_sim::powerloss::{Devices, PowerLoss, missing, set_program};

#[test]
fn power_cuts_over_real_files_leave_what_was_promised() {
    set_program(env!("CARGO_BIN_EXE_lithify-sim").into());
    if missing().is_some() {
        return;
    }
    let mut tally = Tally::default();
    for case in 0..4 {
        run_case(&PowerLoss, case, &mut tally).unwrap_or_else(|finding| panic!("{finding}"));
    }
    for name in ["images, sync", "images, buffered", "images, interval", "images, none"] {
        assert!(tally.get(name) > 20, "{name}: {}", tally.get(name));
    }
    assert!(tally.get("kills") + tally.get("clean closes") >= 8);
    assert!(tally.get("recoveries crashed again") > 0);
    println!("{:?}", tally.figures());
    run_case(&Devices, 0, &mut tally).unwrap_or_else(|finding| panic!("{finding}"));
    assert!(tally.get("device images") > 0 || tally.get("cases skipped") > 0);
    assert_eq!(Devices.name(), "powerloss-devices");
}
