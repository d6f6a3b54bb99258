//! The `dummy` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<dummy::Dummy>()
}
