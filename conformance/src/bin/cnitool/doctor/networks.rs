//! The configurations, and what their plugins say to STATUS.

use std::collections::BTreeMap;

use cni_types::{NetworkList, SpecVersion};
use conformance::libcni::{CallError, Error as CniError};

use super::{Finding, Host};
use crate::settings::plugin_dirs;

pub fn examine(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, loaded) in &host.files {
        let file = path.display().to_string();
        match loaded {
            Ok(list) => names.entry(&list.name).or_default().push(file),
            Err(error) => findings.push(Finding::fault(
                "configuration",
                format!("a file cannot be used: {error}"),
                "mend it or take it away; runtimes differ in whether they pass over it",
            )),
        }
    }
    for (name, files) in names {
        if let [used, passed @ ..] = files.as_slice()
            && !passed.is_empty()
        {
            findings.push(Finding::warning(
                format!("network {name}"),
                format!(
                    "several files have this name: {used} is used, {} not",
                    passed.join(", ")
                ),
                "give each network a name of its own",
            ));
        }
    }
    if plugin_dirs().is_empty() {
        findings.push(Finding::warning(
            "plugins",
            "CNI_PATH does not name their directory, so none was asked",
            "CNI_PATH=/opt/cni/bin cnitool doctor",
        ));
        return findings;
    }
    let mut seen: Vec<&str> = Vec::new();
    for list in host.lists() {
        // The second of a name is never used.
        if !seen.contains(&list.name.as_str()) {
            seen.push(&list.name);
            match SpecVersion::of_config(&list.cni_version) {
                Ok(_) => findings.extend(status(host, list)),
                Err(error) => findings.push(Finding::fault(
                    format!("network {}", list.name),
                    format!("{error}, so every add fails"),
                    "correct its cniVersion",
                )),
            }
        }
    }
    findings
}

fn status(host: &Host, list: &NetworkList) -> Vec<Finding> {
    let errors = host.cni.status_of_all(list);
    if errors.is_empty() {
        let what = "every plugin says that an add would work";
        return vec![Finding::note(format!("network {}", list.name), what)];
    }
    errors
        .into_iter()
        .map(|error| fault(&list.name, error))
        .collect()
}

fn fault(network: &str, error: CniError) -> Finding {
    let subject = format!("network {network}");
    match error {
        CniError::Plugin { plugin, source, .. } => {
            let subject = format!("{subject}, plugin {plugin}");
            match source {
                CallError::Failed(object) => Finding::fault(subject, object.msg, object.details),
                other => Finding::fault(
                    subject,
                    other.to_string(),
                    "install the plugin in a directory of CNI_PATH",
                ),
            }
        }
        other => Finding::fault(subject, other.to_string(), ""),
    }
}
