//! STATUS.

use serde_json::json;

use crate::error::{Error, Result};
use crate::snapshot::Snapshot;

use super::site::{Container, Site, contains, equal};

/// STATUS works where ADD would, beside an attachment too, and says what ADD would meet, with the code for "not
/// available".
///
/// # Errors
/// What is not so.
pub fn status_says_what_add_meets(site: &Site) -> Result<()> {
    let Container {
        netns: _netns,
        attachment,
    } = site.container("c1")?;
    let before = Snapshot::take(site.host)?;
    let config = site.config(&json!({}));
    site.good("STATUS", &config, &attachment)?;
    let wrong = [
        (json!({"master": "nowhere"}), "\"nowhere\" not found"),
        (json!({"master": "lo"}), "loopback"),
    ];
    for (keys, words) in wrong.iter().filter(|_| site.kind.has_master) {
        let config = site.config(keys);
        let answer = site.call("STATUS", &config, &attachment)?;
        let error = answer
            .error()
            .ok_or_else(|| Error::unexpected("STATUS to fail", answer.text()))?;
        equal("code", &error.code, &50)?;
        contains(&error.msg, words)?;
        contains(&site.bad("ADD", &config, &attachment)?, words)?;
    }
    let no_ipam = site.config(&json!({"ipam": {"type": "missing-ipam"}}));
    contains(&site.bad("STATUS", &no_ipam, &attachment)?, "missing-ipam")?;
    site.is_as_before(&before)?;
    site.add(&config, &attachment)?;
    site.good("STATUS", &config, &attachment)?;
    site.good("DEL", &config, &attachment)?;
    site.is_as_before(&before)
}
