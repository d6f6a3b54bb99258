//! The `firewall` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<firewall::Firewall>()
}
