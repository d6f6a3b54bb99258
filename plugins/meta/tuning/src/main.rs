//! The `tuning` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<tuning::Tuning>()
}
