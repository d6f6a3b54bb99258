//! Judges a directory of CNI plugins, clause by clause.
//!
//! * [`Check`]: one clause, and the function that tries it; [`all`] lists them, [`checks`] holds them by group;
//! * [`Subject`]: the plugin that is judged, with what the suite knows of it ([`profile`]);
//! * [`Trial`]: the place where one check is played with one plugin, and the record of what was seen there;
//! * [`Plan`]: which checks for which plugins; [`run`](Plan::run) plays them, each in a sandbox of its own;
//! * [`Case`]: one verdict; [`report`] prints them for people and machines;
//! * [`Known`]: a list of verdicts that are expected to be bad, so that a run can be compared with it.
//!
//! A new check is a function and a row in the `CHECKS` table of its file.

mod attach;
mod case;
mod check;
mod checks;
mod inside;
mod known;
mod place;
mod plan;
mod profile;
pub mod report;
mod standin;
mod subject;
mod trial;
mod verdict;

pub use case::{Case, Outcome, Step};
pub use check::{Binding, Check, Clause, Group, VERSIONS, Versions, all};
pub use inside::inside;
pub use known::{Known, Surprise};
pub use plan::{Events, Plan, Selection};
pub use subject::{Subject, plugins_in};
pub use trial::Trial;
pub use verdict::{Trouble, Verdict};
