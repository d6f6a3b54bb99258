//! The `ptp` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<ptp::Ptp>()
}
