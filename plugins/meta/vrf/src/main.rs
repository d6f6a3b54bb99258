//! The `vrf` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<vrf::Vrf>()
}
