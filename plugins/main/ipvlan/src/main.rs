//! The `ipvlan` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<ipvlan::Ipvlan>()
}
