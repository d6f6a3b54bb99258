//! Environment, standard input, versions, errors. Every call here ends before a good plugin changes anything.

mod environment;
mod errors;
mod names;
mod order;
mod stdin;
mod version_command;
mod versions;

use crate::judge::attach::refused;
use crate::judge::check::Check;
use crate::judge::trial::{Ask, Trial};
use crate::judge::verdict::{Verdict, ensure};

/// Every table.
pub const TABLES: &[&[Check]] = &[
    environment::MISSING,
    environment::CHECKS,
    names::CHECKS,
    order::CHECKS,
    stdin::REFUSED,
    stdin::CHECKS,
    versions::CHECKS,
    version_command::CHECKS,
    errors::CHECKS,
];

/// The call must be refused with one of these codes; gives message and details.
fn must_refuse(trial: &Trial<'_>, what: &str, ask: &Ask, codes: &[u64]) -> Verdict<String> {
    let answer = trial.send(ask)?;
    let (code, text) = refused(what, &answer)?;
    ensure(codes.contains(&code), || {
        let wanted: Vec<String> = codes.iter().map(u64::to_string).collect();
        format!(
            "{what}: expected code {}, got {}",
            wanted.join(" or "),
            answer.text()
        )
    })?;
    Ok(text)
}

/// The call may succeed or fail, but not with this code: the clause allows the input.
fn must_not_refuse(trial: &Trial<'_>, what: &str, ask: &Ask, codes: &[u64]) -> Verdict {
    let answer = trial.send(ask)?;
    if answer.ok() {
        return Ok(());
    }
    let (code, _) = refused(what, &answer)?;
    ensure(!codes.contains(&code), || {
        format!("{what} was refused: {}", answer.text())
    })
}
