//! The `sbr` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<sbr::Sbr>()
}
