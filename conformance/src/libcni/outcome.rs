//! From how a plugin ended to an answer or a CNI error.

use super::exec::Output;
use cni_types::{CniError, Value, code, json};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// What the plugin printed, if it succeeded.
///
/// # Errors
///
/// The plugin's own error object; or one with code 0 made of what it said otherwise. An error
/// object printed by a plugin that then claims success counts as an error.
pub(super) fn judge(output: Output) -> Result<Vec<u8>, CniError> {
    if output.status.success() {
        return match claimed_success(&output.stdout) {
            Some(error) => Err(error),
            None => Ok(output.stdout),
        };
    }
    Err(failure(&output))
}

fn failure(output: &Output) -> CniError {
    let how = how(output.status);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let unknown = |text: String| CniError::new(code::UNKNOWN, text);
    if stdout.trim().is_empty() {
        return match stderr.trim() {
            "" => unknown(format!("netplugin failed with no error message: {how}")),
            text => unknown(format!("netplugin failed: {text:?}: {how}")),
        };
    }
    let decoded = json::parse(&output.stdout)
        .map_err(|error| error.to_string())
        .and_then(|value| CniError::decode(&value).map_err(|error| error.to_string()));
    match decoded {
        Ok(error) if error == CniError::default() => unknown(format!(
            "netplugin failed with an empty error object: {how}"
        )),
        Ok(error) => error,
        Err(problem) => unknown(format!(
            "netplugin failed but error parsing its diagnostic message {stdout:?}: {problem}"
        )),
    }
}

/// An error object: a code other than 0, a text, and no key of a result.
fn claimed_success(stdout: &[u8]) -> Option<CniError> {
    let value = json::parse(stdout).ok()?;
    let has = |key: &str| json::get(&value, key).is_some();
    let result_keys = ["ips", "ip", "ip4", "ip6", "interfaces", "routes", "dns"];
    if result_keys.into_iter().any(has) || !json::get(&value, "msg").is_some_and(Value::is_string) {
        return None;
    }
    CniError::decode(&value)
        .ok()
        .filter(|error| error.code != code::UNKNOWN)
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => match nix::sys::signal::Signal::try_from(signal) {
            Ok(signal) => format!("signal: {signal}"),
            Err(_) => format!("signal: {signal}"),
        },
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(code: i32, stdout: &str, stderr: &str) -> Result<String, CniError> {
        let status = ExitStatus::from_raw(code << 8);
        let output = Output {
            status,
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        judge(output).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn failed(code: i32, stdout: &str, stderr: &str) -> (u32, String) {
        let error = judged(code, stdout, stderr).unwrap_err();
        (error.code, error.to_string())
    }

    #[test]
    fn success_is_what_was_printed() {
        assert_eq!(judged(0, "{}", "warning"), Ok("{}".into()));
        assert_eq!(judged(0, "rubbish", ""), Ok("rubbish".into()));
        let result = r#"{"cniVersion":"1.0.0","ips":[],"code":7,"msg":"m"}"#;
        assert_eq!(judged(0, result, ""), Ok(result.into()));
    }

    #[test]
    fn an_error_object_is_an_error_whatever_the_exit_code() {
        let object = r#"{"cniVersion":"1.0.0","code":11,"msg":"busy","details":"dd"}"#;
        for exit in [0, 1, 2] {
            assert_eq!(failed(exit, object, "noise"), (11, "busy; dd".into()));
        }
    }

    #[test]
    fn other_failures_become_code_0() {
        assert_eq!(
            failed(2, "", ""),
            (
                0,
                "netplugin failed with no error message: exit status 2".into()
            )
        );
        assert_eq!(
            failed(1, "\n", "a\n\"b\""),
            (0, r#"netplugin failed: "a\n\"b\"": exit status 1"#.into())
        );
        let (code, text) = failed(1, "{}{", "x");
        assert!(
            code == 0
                && text.starts_with(
                    r#"netplugin failed but error parsing its diagnostic message "{}{": "#
                )
        );
        assert!(failed(1, "{}", "").1.contains("empty error object"));
        let killed = Output {
            status: ExitStatus::from_raw(9),
            stdout: vec![],
            stderr: vec![],
        };
        let text = judge(killed).unwrap_err().to_string();
        assert_eq!(
            text,
            "netplugin failed with no error message: signal: SIGKILL"
        );
    }
}
