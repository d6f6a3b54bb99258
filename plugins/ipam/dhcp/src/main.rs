//! The IPAM plugin `dhcp`, and with `daemon` as its first argument the daemon behind it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == "daemon" => dhcp::daemon::main(arguments),
        _ => skel::run::<dhcp::Dhcp>(),
    }
}
