//! The IPAM plugin `static`.

use std::process::ExitCode;

fn main() -> ExitCode {
    skel::run::<static_ipam::Static>()
}
