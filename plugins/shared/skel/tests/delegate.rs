//! Delegation, with scripts for IPAM plugins.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cni_types::SpecVersion;
use skel::{Delegate, DelegateError};

fn script(dir: &Path, name: &str, body: &str) {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn delegate(dir: &Path, body: &str, stdin: &[u8]) -> Delegate {
    script(dir, "ipam", body);
    Delegate::new(
        "ipam",
        vec!["/nonexistent".into(), dir.to_owned()],
        stdin.to_vec(),
        SpecVersion::V1_0_0,
    )
}

#[test]
fn the_request_and_the_command_reach_it_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let large = vec![b'x'; 1 << 20];
    let body = format!(
        "cat >{0}/stdin; echo \"$CNI_COMMAND\" >{0}/command",
        dir.path().display()
    );
    delegate(dir.path(), &body, &large).del().unwrap();
    assert_eq!(std::fs::read(dir.path().join("stdin")).unwrap(), large);
    assert_eq!(
        std::fs::read_to_string(dir.path().join("command")).unwrap(),
        "DEL\n"
    );
}

#[test]
fn a_delegate_that_reads_nothing_is_fine() {
    let dir = tempfile::tempdir().unwrap();
    delegate(dir.path(), "exit 0", &vec![b'x'; 5 << 20])
        .check()
        .unwrap();
}

#[test]
fn its_result_is_read_by_its_own_version() {
    let dir = tempfile::tempdir().unwrap();
    let body = r#"echo '{"cniVersion":"0.2.0","ip4":{"ip":"192.0.2.2/24","gateway":"192.0.2.1"}}'"#;
    let result = delegate(dir.path(), body, b"{}").add().unwrap();
    assert_eq!(result.ips[0].address.to_string(), "192.0.2.2/24");
    let body = r#"echo '{"ips":[{"address":"192.0.2.3/24"}]}'"#;
    let result = delegate(dir.path(), body, b"{}").add().unwrap();
    assert_eq!(result.ips[0].address.to_string(), "192.0.2.3/24");
    let error = delegate(dir.path(), "echo nonsense", b"{}")
        .add()
        .unwrap_err();
    assert!(matches!(error, DelegateError::BadResult { .. }), "{error}");
    let error = delegate(dir.path(), "", b"{}").add().unwrap_err();
    assert!(matches!(error, DelegateError::BadResult { .. }), "{error}");
}

#[test]
fn its_error_object_is_passed_through() {
    let dir = tempfile::tempdir().unwrap();
    let body = r#"echo '{"code":11,"msg":"busy","details":"dd"}'; exit 1"#;
    match delegate(dir.path(), body, b"{}").add().unwrap_err() {
        DelegateError::Refused(object) => {
            assert_eq!(
                (object.code, object.msg.as_str(), object.details.as_str()),
                (11, "busy", "dd")
            );
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_delegate_that_dies_is_quoted() {
    let dir = tempfile::tempdir().unwrap();
    let died = |body: &str| {
        delegate(dir.path(), body, b"{}")
            .add()
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        died("echo out of luck >&2; exit 3"),
        r#"plugin "ipam" failed: exit status: 3: out of luck"#
    );
    assert_eq!(died("exit 1"), r#"plugin "ipam" failed: exit status: 1"#);
    assert_eq!(
        died("kill -9 $$"),
        r#"plugin "ipam" failed: signal: 9 (SIGKILL)"#
    );
    assert_eq!(
        died("echo '{}'; exit 1"),
        r#"plugin "ipam" failed: exit status: 1: {}"#
    );
}

#[test]
fn a_process_left_behind_keeps_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let started = std::time::Instant::now();
    delegate(dir.path(), "sleep 30 & exit 0", b"{}")
        .check()
        .unwrap();
    assert!(started.elapsed().as_secs() < 10);
}

#[test]
fn names_that_cannot_be_plugins() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    let named = |name: &str| {
        Delegate::new(
            name,
            vec![dir.path().to_owned()],
            Vec::new(),
            SpecVersion::V1_0_0,
        )
        .add()
        .unwrap_err()
    };
    assert!(matches!(named("../ipam"), DelegateError::BadName(_)));
    assert!(matches!(named("folder"), DelegateError::Missing { .. }));
    let missing = named("nope").to_string();
    assert_eq!(
        missing,
        format!(
            "failed to find plugin \"nope\" in path [{}]",
            dir.path().display()
        )
    );
}

/// What a delegate was asked to do, one command a line, by a script that ends an ADD in this way.
fn commands_after(end: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let body = format!(
        "echo \"$CNI_COMMAND\" >>{}/commands; [ \"$CNI_COMMAND\" = DEL ] || {end}",
        dir.path().display()
    );
    delegate(dir.path(), &body, b"{}").add().unwrap_err();
    std::fs::read_to_string(dir.path().join("commands")).unwrap()
}

#[test]
fn a_delegate_that_dies_in_add_is_asked_to_release() {
    assert_eq!(commands_after("kill -9 $$"), "ADD\nDEL\n");
    assert_eq!(commands_after("echo junk"), "ADD\nDEL\n");
}

#[test]
fn a_delegate_that_never_ends_is_killed_and_asked_to_release() {
    let dir = tempfile::tempdir().unwrap();
    let body = format!(
        "echo \"$CNI_COMMAND\" >>{0}/commands; [ \"$CNI_COMMAND\" = DEL ] || exec sleep 60",
        dir.path().display()
    );
    let started = std::time::Instant::now();
    let hanging =
        delegate(dir.path(), &body, b"{}").with_patience(std::time::Duration::from_secs(2));
    let error = hanging.add().unwrap_err();
    assert!(matches!(error, DelegateError::Hangs { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("\"ipam\" did not end within 2 s"),
        "{error}"
    );
    assert!(started.elapsed().as_secs() < 30);
    let commands = std::fs::read_to_string(dir.path().join("commands")).unwrap();
    assert_eq!(commands, "ADD\nDEL\n");
}

#[test]
fn a_delegate_that_refuses_is_believed() {
    let refusal = r#"{ echo '{"code": 11, "msg": "try again later"}'; exit 1; }"#;
    assert_eq!(commands_after(refusal), "ADD\n");
}
