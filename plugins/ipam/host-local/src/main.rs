//! The IPAM plugin `host-local`.

use std::process::ExitCode;

fn main() -> ExitCode {
    skel::run::<host_local::HostLocal>()
}
