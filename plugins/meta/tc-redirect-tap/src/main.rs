//! The `tc-redirect-tap` plugin.

fn main() -> std::process::ExitCode {
    skel::run::<tc_redirect_tap::TcRedirectTap>()
}
