//! `conformance list`.

use std::io::Write;

use conformance::judge::{Selection, all};

use crate::options::ListOptions;

/// Prints the checks with their clauses.
pub fn list(options: &ListOptions) {
    let selection = Selection {
        only: options.only.clone(),
        ..Selection::default()
    };
    let mut out = std::io::stdout().lock();
    let mut number = 0;
    for check in all().into_iter().filter(|check| selection.wants(check)) {
        number += 1;
        // A reader that has seen enough is no failure.
        if writeln!(
            out,
            "{}\n    {}\n    {}",
            check.id, check.title, check.clause
        )
        .is_err()
        {
            return;
        }
    }
    let _ = writeln!(out, "\n{number} checks");
}
