//! The `vlan` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<vlan::Vlan>()
}
