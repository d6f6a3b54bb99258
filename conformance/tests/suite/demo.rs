//! The demo as a program.

use std::process::Command;

use super::support::{plugins, tool};

fn demo(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_demo"))
        .arg("--plugins")
        .arg(plugins())
        .args(arguments)
        .env_remove("CARGO")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        output.status.success(),
        text + &String::from_utf8_lossy(&output.stderr),
    )
}

#[test]
fn it_ends_well_and_marks_every_line() {
    let (ok, text) = demo(&["a", "d"]);
    assert!(ok, "{text}");
    assert!(text.contains("Everything that was tried worked"), "{text}");
    assert!(
        text.lines()
            .filter(|line| line.starts_with("   ok "))
            .count()
            > 40,
        "{text}"
    );
    assert!(!text.contains("FAIL"), "{text}");
}

#[test]
fn a_directory_without_plugins_fails_with_their_names() {
    let output = Command::new(env!("CARGO_BIN_EXE_demo"))
        .args(["--plugins", "/var", "d"])
        .env_remove("CARGO")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("FAIL") && text.contains("plugin bridge in /var"),
        "{text}"
    );
}

#[test]
fn without_iptables_list_b_says_how_to_install_it() {
    // A search path without the tool, in a sandbox where it is nowhere else either.
    let script = "for d in /usr/sbin /sbin /usr/local/sbin; do [ -e $d/iptables ] && mount -t tmpfs none $d; done; exec \"$@\"";
    tool("mount", "util-linux");
    let output = Command::new(env!("CARGO_BIN_EXE_sandbox"))
        .args([
            "sh",
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_demo"),
            "--plugins",
        ])
        .arg(plugins())
        .args(["--inside", "b"])
        .env_remove("CARGO")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        text.contains("n/a") && text.contains("apt-get install -y iptables"),
        "{text}"
    );
}
