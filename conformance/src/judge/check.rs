//! What a check is: data and a function.

use std::fmt;

use super::trial::Trial;
use super::verdict::Verdict;

/// The protocol versions that exist.
pub const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// One clause and how it is tried.
#[derive(Clone, Copy)]
pub struct Check {
    /// Stable name: `group.name`.
    pub id: &'static str,
    /// What must hold.
    pub title: &'static str,
    /// Where that is written.
    pub clause: Clause,
    /// In which versions it is tried.
    pub versions: Versions,
    /// Tries it.
    pub run: fn(&Trial<'_>) -> Verdict,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Where a check comes from.
#[derive(Clone, Copy, Debug)]
pub struct Clause {
    /// Whom it binds.
    pub binding: Binding,
    /// The place and the gist.
    pub text: &'static str,
}

/// Whom a clause binds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Binding {
    /// The CNI specification: every plugin.
    Specification,
    /// What the reference set's plugins document or do and runtimes rely on: plugins that carry one of their names.
    Reference,
}

/// A clause of the specification.
pub const fn spec(text: &'static str) -> Clause {
    Clause {
        binding: Binding::Specification,
        text,
    }
}

/// Something that runtimes expect of plugins with the reference set's names.
pub const fn reference(text: &'static str) -> Clause {
    Clause {
        binding: Binding::Reference,
        text,
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.binding {
            Binding::Specification => write!(f, "CNI specification, {}", self.text),
            Binding::Reference => write!(f, "plugins' documented behaviour, {}", self.text),
        }
    }
}

/// In which of a plugin's versions a check is tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Versions {
    /// Once, in the newest that the plugin supports.
    Newest,
    /// Once, in the newest, if that is at least this one.
    NewestFrom(&'static str),
    /// In each.
    Each,
    /// In each from this one on.
    EachFrom(&'static str),
}

impl Versions {
    /// Those of `supported` (oldest first) in which the check is tried; with `only`, at most that one.
    #[must_use]
    pub fn of(self, supported: &[String], only: Option<&str>) -> Vec<String> {
        let from = match self {
            Self::Newest | Self::Each => "0.1.0",
            Self::NewestFrom(version) | Self::EachFrom(version) => version,
        };
        let mut chosen: Vec<String> = supported
            .iter()
            .filter(|version| rank(version) >= rank(from))
            .filter(|version| only.is_none_or(|only| only == *version))
            .cloned()
            .collect();
        if matches!(self, Self::Newest | Self::NewestFrom(_)) {
            chosen.drain(..chosen.len().saturating_sub(1));
        }
        chosen
    }
}

/// The place of a version among those that exist.
pub fn rank(version: &str) -> usize {
    VERSIONS.iter().position(|one| *one == version).unwrap_or(0)
}

/// What a check is about.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Group {
    /// Environment, standard input, versions, errors.
    Protocol,
    /// What an ADD prints.
    Results,
    /// The commands one after the other.
    Lifecycle,
    /// Plugins one after the other.
    Chaining,
    /// Plugins that call plugins.
    Delegation,
    /// Real packets.
    Traffic,
    /// Many at once.
    Concurrency,
    /// Input that nobody sends on purpose.
    Hostile,
}

impl Group {
    /// All of them, in their order.
    pub const ALL: [Self; 8] = [
        Self::Protocol,
        Self::Results,
        Self::Lifecycle,
        Self::Chaining,
        Self::Delegation,
        Self::Traffic,
        Self::Concurrency,
        Self::Hostile,
    ];

    /// The name, which is the first part of the ids.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Results => "results",
            Self::Lifecycle => "lifecycle",
            Self::Chaining => "chaining",
            Self::Delegation => "delegation",
            Self::Traffic => "traffic",
            Self::Concurrency => "concurrency",
            Self::Hostile => "hostile",
        }
    }

    /// Whether plugins that the suite does not know are judged by it.
    #[must_use]
    pub fn is_generic(self) -> bool {
        matches!(
            self,
            Self::Protocol | Self::Results | Self::Lifecycle | Self::Hostile
        )
    }

    /// Whether its checks change nothing if the plugin is any good, so that they can share a sandbox.
    #[must_use]
    pub fn shares_sandbox(self) -> bool {
        matches!(self, Self::Protocol)
    }
}

impl Check {
    /// The group in which it is.
    #[must_use]
    pub fn group(&self) -> Group {
        let name = self.id.split('.').next().unwrap_or_default();
        Group::ALL
            .into_iter()
            .find(|group| group.name() == name)
            .unwrap_or(Group::Protocol)
    }
}

/// Every check, by group.
#[must_use]
pub fn all() -> Vec<&'static Check> {
    super::checks::tables()
        .iter()
        .flat_map(|table| table.iter())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_name_their_group() {
        let mut ids: Vec<&str> = all().iter().map(|check| check.id).collect();
        let number = ids.len();
        for id in &ids {
            let group = id.split('.').next().unwrap();
            assert!(
                Group::ALL.iter().any(|one| one.name() == group),
                "{id} names no group"
            );
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), number);
    }

    #[test]
    fn versions_are_chosen_among_the_supported() {
        let supported: Vec<String> = ["0.3.1", "0.4.0", "1.0.0"].map(str::to_owned).to_vec();
        let of = |versions: Versions, only| versions.of(&supported, only);
        assert_eq!(of(Versions::Newest, None), ["1.0.0"]);
        assert_eq!(of(Versions::Newest, Some("0.3.1")), ["0.3.1"]);
        assert_eq!(of(Versions::EachFrom("0.4.0"), None), ["0.4.0", "1.0.0"]);
        assert!(of(Versions::NewestFrom("1.1.0"), None).is_empty());
    }
}
