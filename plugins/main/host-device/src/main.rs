//! The `host-device` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<host_device::HostDevice>()
}
