//! The `macvlan` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<macvlan::Macvlan>()
}
