//! Manual pages, out of the documentation.

mod roff;

use crate::command;
use crate::dist::Job;
use crate::error::Error;
use crate::workspace::Workspace;
use skel::date::date;

/// A page for `cnitool`, and one for each plugin: `cnitool.8`, `cni-bridge.7`.
pub fn pages(job: &Job, workspace: &Workspace) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut pages = vec![page(job, "cnitool", "cnitool", 8)?];
    for plugin in &workspace.plugins {
        pages.push(page(job, plugin, &format!("cni-{plugin}"), 7)?);
    }
    Ok(pages)
}

fn page(job: &Job, doc: &str, name: &str, section: u8) -> Result<(String, Vec<u8>), Error> {
    let path = job.root.join("docs").join(format!("{doc}.md"));
    let text = command::read(&path)?;
    let (year, month, day) = date(job.epoch / 86400);
    let head = format!(
        ".TH \"{}\" \"{section}\" \"{year:04}-{month:02}-{day:02}\" \"Ferrule\"\n",
        name.to_uppercase()
    );
    let body = roff::body(name, &String::from_utf8_lossy(&text));
    Ok((format!("{name}.{section}"), (head + &body).into_bytes()))
}
