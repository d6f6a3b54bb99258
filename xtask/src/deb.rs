//! The Debian package: an ar(5) archive of two compressed tar archives.

use ar::{Builder, Header};

use crate::archive::{Entry, gzip, tgz};
use crate::command;
use crate::dist::{Job, Parts};
use crate::error::{Doing, Error};
use skel::date::date;

/// The package's name.
pub const NAME: &str = "ferrule-cni-plugins";

/// The release of the reference set whose behaviour the plugins match; it is in their about line, too.
const REFERENCE: &str = "1.9.1";

/// Where Debian's runtimes look for plugins.
const PLUGINS: &str = "usr/lib/cni";

/// The package.
pub fn package(job: &Job, parts: &Parts) -> Result<Vec<u8>, Error> {
    let files = files(job, parts)?;
    let control = control(job, parts, &files)?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tgz(control, job.epoch)?),
        ("data.tar.gz", tgz(files, job.epoch)?),
    ];
    let mut package = Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mode(0o100_644);
        header.set_mtime(job.epoch);
        package
            .append(&header, bytes.as_slice())
            .doing(|| format!("put {name} into the package"))?;
    }
    package.into_inner().doing(|| "end the package".to_owned())
}

/// What is installed.
fn files(job: &Job, parts: &Parts) -> Result<Vec<Entry>, Error> {
    let mut files = vec![Entry::program("usr/bin/cnitool", parts.cnitool.clone())];
    for (name, bytes) in &parts.plugins {
        files.push(Entry::program(format!("{PLUGINS}/{name}"), bytes.clone()));
    }
    for (name, bytes) in &parts.man {
        let section = name.rsplit('.').next().unwrap_or_default();
        files.push(Entry::file(
            format!("usr/share/man/man{section}/{name}.gz"),
            gzip(bytes)?,
        ));
    }
    for (name, text) in units(job, parts)? {
        files.push(Entry::file(format!("usr/lib/systemd/system/{name}"), text));
    }
    let doc = format!("usr/share/doc/{NAME}");
    let readme = command::read(&job.root.join("README.md"))?;
    files.push(Entry::file(format!("{doc}/README.md"), readme));
    files.push(Entry::file(
        format!("{doc}/sbom.cdx.json"),
        parts.sbom.clone(),
    ));
    files.push(Entry::file(
        format!("{doc}/copyright"),
        template(job, parts, "copyright", 0)?,
    ));
    let changelog = template(job, parts, "changelog", 0)?;
    files.push(Entry::file(
        format!("{doc}/changelog.gz"),
        gzip(changelog.as_bytes())?,
    ));
    Ok(files)
}

/// The units that plugins bring with them, for where the package puts the programs.
fn units(job: &Job, parts: &Parts) -> Result<Vec<(String, String)>, Error> {
    let mut units = Vec::new();
    for kind in ["main", "ipam", "meta"] {
        for (plugin, _) in &parts.plugins {
            let directory = job
                .root
                .join("plugins")
                .join(kind)
                .join(plugin)
                .join("systemd");
            let Ok(listed) = directory.read_dir() else {
                continue;
            };
            for file in listed {
                let file = file.doing(|| format!("list {}", directory.display()))?;
                let text = command::read(&file.path())?;
                let text = String::from_utf8_lossy(&text);
                units.push((
                    file.file_name().to_string_lossy().into_owned(),
                    text.replace("/opt/cni/bin/", &format!("/{PLUGINS}/")),
                ));
            }
        }
    }
    Ok(units)
}

/// What dpkg reads.
fn control(job: &Job, parts: &Parts, files: &[Entry]) -> Result<Vec<Entry>, Error> {
    let size: usize = files
        .iter()
        .map(|file| file.bytes.len().div_ceil(1024))
        .sum();
    let mut control = vec![Entry::file(
        "control",
        template(job, parts, "control", size)?,
    )];
    for script in ["postinst", "prerm", "postrm"] {
        control.push(Entry::program(script, template(job, parts, script, size)?));
    }
    Ok(control)
}

/// A file of `xtask/debian` with its blanks filled in; `size` is in KiB.
fn template(job: &Job, parts: &Parts, name: &str, size: usize) -> Result<String, Error> {
    let text = command::read(&job.root.join("xtask/debian").join(name))?;
    let text = String::from_utf8_lossy(&text);
    Ok([
        ("@NAME@", NAME),
        ("@VERSION@", &parts.workspace.version),
        ("@ARCH@", parts.arch.debian),
        ("@REFERENCE@", REFERENCE),
        ("@SIZE@", &size.to_string()),
        ("@DATE@", &rfc_2822(job.epoch)),
    ]
    .into_iter()
    .fold(text.into_owned(), |text, (blank, value)| {
        text.replace(blank, value)
    }))
}

/// A time as in a Debian changelog.
fn rfc_2822(epoch: u64) -> String {
    let days = epoch / 86400;
    let (year, month, day) = date(days);
    // 1970 began on a Thursday.
    let weekday = pick("Thu Fri Sat Sun Mon Tue Wed", days % 7);
    let month = pick("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", month - 1);
    let (hours, minutes, seconds) = (epoch / 3600 % 24, epoch / 60 % 60, epoch % 60);
    format!("{weekday}, {day:02} {month} {year} {hours:02}:{minutes:02}:{seconds:02} +0000")
}

fn pick(words: &'static str, index: u64) -> &'static str {
    let index = usize::try_from(index).unwrap_or_default();
    words.split(' ').nth(index).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_of_a_changelog() {
        assert_eq!(rfc_2822(951_782_400), "Tue, 29 Feb 2000 00:00:00 +0000");
    }
}
