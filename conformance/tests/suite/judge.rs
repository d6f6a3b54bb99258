//! The judge is judged: it finds nothing to object in our plugins, exactly the known faults in the reference set's, and each
//! clause that a deliberately broken plugin breaks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use conformance::judge::{Case, Events, Known, Outcome, Plan, Selection, all, plugins_in};
use serde_json::Value;

use super::support::{plugins, reference_directory, sandboxed};

struct Quiet;

impl Events for Quiet {
    fn done(&self, _units: usize, _of: usize, _cases: &[Case]) {}
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_conformance"))
}

fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn judge(selection: Selection) -> Vec<Case> {
    let plan = Plan::new(selection).unwrap();
    plan.run(program(), &Quiet).unwrap()
}

fn told(cases: &[Case], outcome: Outcome) -> Vec<String> {
    let wanted = cases.iter().filter(|case| case.outcome == outcome);
    wanted
        .map(|case| {
            format!(
                "{} {}@{}: {}",
                case.plugin, case.check, case.version, case.reason
            )
        })
        .collect()
}

#[test]
fn our_plugins_pass_every_check_in_every_version() {
    let cases = judge(Selection {
        directory: plugins(),
        ..Selection::default()
    });
    assert_eq!(told(&cases, Outcome::Error), [""; 0]);
    assert_eq!(told(&cases, Outcome::Fail), [""; 0]);
    // So that nobody takes it for good news when nothing can be tried any more.
    let passed = cases
        .iter()
        .filter(|case| case.outcome == Outcome::Pass)
        .count();
    assert!(passed > 2000, "only {passed} passed");
    for version in conformance::judge::VERSIONS {
        let added = cases.iter().filter(|case| {
            case.check == "lifecycle.add"
                && case.version == version
                && case.outcome == Outcome::Pass
        });
        assert!(added.count() >= 7, "hardly any ADD in {version}");
    }
}

#[test]
fn the_reference_set_has_exactly_the_faults_that_are_known() {
    let directory = reference_directory();
    let cases = judge(Selection {
        directory: directory.clone(),
        ..Selection::default()
    });
    assert_eq!(told(&cases, Outcome::Error), [""; 0]);
    let failed = |check: &str| {
        cases
            .iter()
            .any(|case| case.check == check && case.outcome == Outcome::Fail)
    };
    // Every release has these.
    assert!(failed("results.keys") && failed("lifecycle.own-namespace"));
    let newest = cases
        .iter()
        .find(|case| case.plugin == "bridge" && case.check == "protocol.version-answer");
    if newest.is_some_and(|case| case.version == "1.0.0") {
        // The release that Debian 12 has.
        let text = fs::read_to_string(own("known/debian-1.1.1.txt")).unwrap();
        let surprises = Known::parse(&text).unwrap().compare(&cases, true);
        let lines: Vec<String> = surprises.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "{}", lines.join("\n"));
    }
}

/// A deliberately broken plugin.
struct Broken {
    file: PathBuf,
    wraps: String,
    breaks: String,
}

fn broken() -> Vec<Broken> {
    let mut all = Vec::new();
    for entry in fs::read_dir(own("broken")).unwrap() {
        let file = entry.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let said = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_else(|| panic!("{}: no {key}", file.display()))
                .trim()
                .to_owned()
        };
        all.push(Broken {
            wraps: said("# wraps:"),
            breaks: said("# breaks:"),
            file: file.clone(),
        });
    }
    all
}

/// A directory like ours, in which one plugin is broken.
fn directory_with(broken: &Broken, at: &Path) {
    let ours = plugins();
    let real = at.join(".real");
    fs::create_dir_all(&real).unwrap();
    for name in plugins_in(&ours).unwrap() {
        symlink(ours.join(&name), real.join(&name)).unwrap();
        if name != broken.wraps {
            symlink(ours.join(&name), at.join(&name)).unwrap();
        }
    }
    fs::copy(&broken.file, at.join(&broken.wraps)).unwrap();
}

#[test]
fn each_broken_plugin_is_caught_by_the_check_meant_for_it() {
    let all = broken();
    assert!(all.len() >= 70);
    let mut missed = Vec::new();
    for broken in all {
        let scratch = tempfile::tempdir().unwrap();
        directory_with(&broken, scratch.path());
        let cases = judge(Selection {
            directory: scratch.path().to_owned(),
            plugins: vec![broken.wraps.clone()],
            only: Some(broken.breaks.clone()),
            ..Selection::default()
        });
        if !cases.iter().any(|case| case.outcome == Outcome::Fail) {
            missed.push(format!("{}: {cases:#?}", broken.file.display()));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn broken_plugins_name_checks_that_exist() {
    for broken in broken() {
        assert!(
            all().iter().any(|check| check.id == broken.breaks),
            "{} is no check",
            broken.breaks
        );
    }
}

fn conformance(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

/// A directory with the plugin in sh that is in the examples.
fn shell_plugin() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    fs::copy(own("examples/note"), scratch.path().join("note")).unwrap();
    scratch
}

#[test]
fn a_plugin_in_sh_that_nobody_knows_is_judged_and_good() {
    let scratch = shell_plugin();
    let directory = scratch.path().to_str().unwrap();
    let output = conformance(&["run", "--cni-path", directory, "--report", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let cases = report["cases"].as_array().unwrap();
    let passed = |check: &str| {
        cases
            .iter()
            .any(|case| case["check"] == check && case["outcome"] == "pass")
    };
    for check in [
        "protocol.two-requests",
        "lifecycle.add",
        "lifecycle.del-twice",
        "lifecycle.check",
        "lifecycle.gc-keeps-the-valid",
    ] {
        assert!(passed(check), "{check}: {report:#}");
    }
    // A case says everything that is needed to look at it again.
    let add = cases
        .iter()
        .find(|case| case["check"] == "lifecycle.add")
        .unwrap();
    assert!(
        add["clause"]
            .as_str()
            .unwrap()
            .starts_with("CNI specification")
    );
    assert!(
        add["steps"][0]["command"]
            .as_str()
            .unwrap()
            .contains("CNI_COMMAND=ADD")
    );
    assert!(
        add["repeat"]
            .as_str()
            .unwrap()
            .contains("--only lifecycle.add")
    );
}

#[test]
fn exit_codes_and_reports() {
    let scratch = shell_plugin();
    let directory = scratch.path().to_str().unwrap();
    let one = [
        "run",
        "--cni-path",
        directory,
        "--only",
        "protocol.error-exit-code",
    ];
    let text = conformance(&one);
    assert_eq!(text.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&text.stdout).contains("1 passed, 0 failed"));
    let plugin = scratch.path().join("note");
    let bad = fs::read_to_string(&plugin)
        .unwrap()
        .replace("exit 1", "exit 0");
    fs::write(&plugin, bad).unwrap();
    let failed = conformance(&one);
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert!(
        said.contains("FAIL note protocol.error-exit-code"),
        "{said}"
    );
    assert!(
        said.contains("repeat") && said.contains("CNI specification, 2"),
        "{said}"
    );
    let junit = conformance(&[&one[..], &["--report", "junit"]].concat());
    let said = String::from_utf8_lossy(&junit.stdout).into_owned();
    assert!(
        said.contains("<testsuite name=\"note\" tests=\"1\" failures=\"1\""),
        "{said}"
    );
    // A fault that is known is no news; one that is mended is.
    let known = scratch.path().join(".known");
    fs::write(&known, "note protocol.error-exit-code on purpose\n").unwrap();
    let known = known.to_str().unwrap();
    let expected = conformance(&[&one[..], &["--known", known]].concat());
    assert_eq!(expected.status.code(), Some(0));
    fs::copy(own("examples/note"), &plugin).unwrap();
    let mended = conformance(&[&one[..], &["--known", known]].concat());
    assert_eq!(mended.status.code(), Some(1));
    for arguments in [
        &["run", "--cni-path", "/nonexistent"][..],
        &["run", "--cni-path", directory, "--plugin", "nobody"],
        &["run", "--cni-path", directory, "--only", "nothing"],
    ] {
        let output = conformance(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn the_list_of_checks() {
    let output = conformance(&["list"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("lifecycle.del-twice\n    a second DEL succeeds\n    CNI specification, 2")
    );
    assert!(all().len() > 140, "{}", all().len());
}

#[test]
fn every_check_can_be_repeated_alone() {
    // Ids are what `--only` takes.
    for check in all() {
        let selection = Selection {
            only: Some(check.id.to_owned()),
            ..Selection::default()
        };
        assert!(selection.wants(check), "{}", check.id);
    }
}

sandboxed! {
    fn the_library_example_runs_a_list(lab) {
        let netns = lab.container("blue");
        let list = Path::new("/run/sandbox/tmp/list.conflist");
        fs::write(list, serde_json::json!({"cniVersion": "1.1.0", "name": "example", "plugins": [
            {"type": "bridge", "bridge": "br0", "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}},
            {"type": "firewall"}]}).to_string()).unwrap();
        let example = program().with_file_name("examples").join("run_list");
        let output = Command::new(example).arg(plugins()).arg(list).arg(netns.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["ips"][0]["address"], "10.77.0.2/24");
        assert!(lab.snapshot().mentioning("10.77.0.2").is_empty());
    }
}
