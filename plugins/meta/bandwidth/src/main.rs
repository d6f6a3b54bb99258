//! The `bandwidth` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<bandwidth::Bandwidth>()
}
