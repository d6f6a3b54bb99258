//! The bill of materials, as CycloneDX 1.5.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::command;
use crate::dist::Job;
use crate::error::Error;
use crate::workspace::{Package, Workspace};

/// Names every package that is in the binaries, with version, licence, checksum and what it needs. Without the serial number that
/// CycloneDX recommends: it would have to be another each time.
pub fn cyclone_dx(job: &Job, workspace: &Workspace) -> Result<Vec<u8>, Error> {
    let lock = command::read(&job.root.join("Cargo.lock"))?;
    let checksums = checksums(&String::from_utf8_lossy(&lock));
    let closure = workspace.closure();
    let components: Vec<Value> = closure
        .values()
        .map(|package| component(package, &checksums))
        .collect();
    let dependencies: Vec<Value> = closure
        .values()
        .map(|package| json!({"ref": package.reference(), "dependsOn": package.needs}))
        .collect();
    let whole = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(job.epoch),
            "component": {
                "type": "application",
                "name": "ferrule",
                "version": workspace.version,
                "licenses": [{"expression": "Apache-2.0"}],
            },
            "properties": [{"name": "rust:target", "value": job.target}],
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(format!("{whole:#}\n").into_bytes())
}

fn component(package: &Package, checksums: &BTreeMap<(String, String), String>) -> Value {
    let mut component = json!({
        "type": if package.foreign { "library" } else { "application" },
        "bom-ref": package.reference(),
        "name": package.name,
        "version": package.version,
        // Some packages separate licences as cargo once wanted it.
        "licenses": [{"expression": package.license.replace('/', " OR ")}],
    });
    let known = checksums.get(&(package.name.clone(), package.version.clone()));
    if let (Some(object), Some(sum)) = (component.as_object_mut(), known) {
        object.insert("purl".to_owned(), package.reference().into());
        object.insert(
            "hashes".to_owned(),
            json!([{"alg": "SHA-256", "content": sum}]),
        );
    }
    component
}

/// The checksums in a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_start_matches(" = ").trim_matches('"').to_owned())
    };
    lock.split("[[package]]")
        .filter_map(|block| {
            let key = (value(block, "name")?, value(block, "version")?);
            Some((key, value(block, "checksum")?))
        })
        .collect()
}

/// Seconds since 1970 as ISO 8601 in UTC.
fn timestamp(epoch: u64) -> String {
    format!("{}Z", skel::date::date_and_time(epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (epoch, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
        ] {
            assert_eq!(timestamp(epoch), text);
        }
    }

    #[test]
    fn checksums_of_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let key = ("a".to_owned(), "1.0.0".to_owned());
        assert_eq!(checksums(lock), BTreeMap::from([(key, "ab".to_owned())]));
    }
}
