//! The `loopback` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<loopback::Loopback>()
}
