//! `conformance run`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use conformance::demo::Style;
use conformance::judge::report::{Run, json, junit, text};
use conformance::judge::{Case, Known, Outcome, Plan, Selection, Subject, inside};
use conformance::{Error, Result, workspace};
use serde_json::Value;

use crate::options::{Form, RunOptions};
use crate::progress::Progress;

/// Judges, and reports on standard output.
pub fn run(options: &RunOptions) -> Result<ExitCode> {
    if !options.inside.is_empty() {
        return play(options);
    }
    let known = match &options.known {
        Some(file) => Known::parse(&read(file)?)?,
        None => Known::default(),
    };
    let config = match &options.config {
        Some(file) => Some(parse(&read(file)?)?),
        None => None,
    };
    let plan = Plan::new(Selection {
        directory: options.cni_path.clone(),
        plugins: options.plugin.clone(),
        only: options.only.clone(),
        spec: options.spec.clone(),
        config,
    })?;
    let progress = Progress::new();
    let cases = plan.run(&workspace::own_path()?, &progress)?;
    progress.clear();
    let run = Run {
        directory: plan.directory(),
        cases: &cases,
        known: &known,
        config: options.config.as_deref(),
    };
    let report = match options.report {
        Form::Text => text(&run, Style::of_terminal()),
        Form::Json => format!("{}\n", json(&run)),
        Form::Junit => junit(&run),
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(report.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|source| Error::System {
            what: "write the report to standard output".into(),
            source,
        })?;
    Ok(verdict(options, &known, &cases))
}

/// The half inside the sandbox.
fn play(options: &RunOptions) -> Result<ExitCode> {
    let config = options.inside_config.as_deref().map(parse).transpose()?;
    let plugin = options.plugin.first().map_or("", String::as_str);
    let subject = Subject::new(&options.cni_path, plugin, config);
    inside(
        &subject,
        &options.inside,
        options.spec.as_deref(),
        std::io::stdout(),
    )?;
    Ok(ExitCode::SUCCESS)
}

fn verdict(options: &RunOptions, known: &Known, cases: &[Case]) -> ExitCode {
    if cases.iter().any(|case| case.outcome == Outcome::Error) {
        return ExitCode::from(super::COULD_NOT_RUN);
    }
    if cases
        .iter()
        .all(|case| case.outcome == Outcome::NotApplicable)
    {
        eprintln!(
            "conformance: nothing was judged: no check that was chosen applies; the report says why"
        );
        return ExitCode::from(super::COULD_NOT_RUN);
    }
    let whole = options.plugin.is_empty() && options.only.is_none() && options.spec.is_none();
    let surprises = known.compare(cases, whole);
    if options.known.is_some() {
        for surprise in &surprises {
            eprintln!("{surprise}");
        }
    }
    if surprises.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|source| Error::System {
        what: format!("read {}", file.display()),
        source,
    })
}

fn parse(text: &str) -> Result<Value> {
    let value: std::result::Result<Value, _> = serde_json::from_str(text);
    match value {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err(Error::Invalid {
            what: "configuration: not an object".into(),
        }),
        Err(error) => Err(Error::Invalid {
            what: format!("configuration: {error}"),
        }),
    }
}
