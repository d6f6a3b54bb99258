//! The `portmap` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<portmap::Portmap>()
}
