//! What a lease file says: to whom an address belongs.
//!
//! Content: `<container id> CR LF <interface name>`, no newline at the end, mode 0600. Early releases of the reference
//! set wrote only the id. White space around the whole is ignored on reading.

use std::fmt;

/// Whose lease it is: a container and its interface in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    container_id: String,
    interface: String,
}

impl Owner {
    /// White space around both names is dropped, as the reference set does.
    #[must_use]
    pub fn new(container_id: &str, interface: &str) -> Self {
        Self {
            container_id: container_id.trim().to_owned(),
            interface: interface.trim().to_owned(),
        }
    }

    /// The container's id.
    #[must_use]
    pub fn container_id(&self) -> &str {
        &self.container_id
    }

    /// The interface's name in the container.
    #[must_use]
    pub fn interface(&self) -> &str {
        &self.interface
    }

    pub(crate) fn content(&self) -> String {
        format!("{}\r\n{}", self.container_id, self.interface)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container {} ({})", self.container_id, self.interface)
    }
}

/// What a file with an address for a name turned out to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A lease.
    Owner(Owner),
    /// A lease of an early release: the container's id only.
    IdOnly(String),
    /// Nothing, or zero bytes: left by a crash between creating and writing. Belongs to nobody.
    Torn,
    /// Something else that was put there to keep the address from being used.
    Foreign,
}

impl Holder {
    /// Reads a lease file's content; every sequence of bytes is accepted.
    pub(crate) fn parse(content: &[u8]) -> Self {
        if content.contains(&0) || content.trim_ascii().is_empty() {
            return Self::Torn;
        }
        let Ok(text) = std::str::from_utf8(content) else {
            return Self::Foreign;
        };
        let is_word = |s: &str| !s.is_empty() && !s.contains(char::is_whitespace);
        match text.trim().split_once("\r\n") {
            Some((id, name)) if is_word(id) && is_word(name) => Self::Owner(Owner::new(id, name)),
            None if is_word(text.trim()) => Self::IdOnly(text.trim().to_owned()),
            _ => Self::Foreign,
        }
    }

    /// Whether it is the owner's lease in the present format.
    pub(crate) fn is(&self, owner: &Owner) -> bool {
        matches!(self, Self::Owner(o) if o == owner)
    }

    /// Whether it is a lease of the owner's container in the early format.
    pub(crate) fn is_id_of(&self, owner: &Owner) -> bool {
        matches!(self, Self::IdOnly(id) if *id == owner.container_id)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(owner) => owner.fmt(f),
            Self::IdOnly(id) => write!(f, "container {id}"),
            Self::Torn => f.write_str("nobody (the lease file is empty)"),
            Self::Foreign => f.write_str("an unknown owner"),
        }
    }
}
