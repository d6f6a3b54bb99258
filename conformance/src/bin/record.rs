//! Stands in a plugin directory under a plugin's name, passes each call on and writes it down.

use std::process::ExitCode;

use conformance::transcript;

fn main() -> ExitCode {
    match transcript::pass_on() {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("record: {error}");
            ExitCode::from(2)
        }
    }
}
