//! The `bridge` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<bridge::Bridge>()
}
