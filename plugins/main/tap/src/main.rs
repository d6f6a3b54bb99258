//! The `tap` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<tap::Tap>()
}
