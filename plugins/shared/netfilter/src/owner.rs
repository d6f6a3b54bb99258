//! Whose a rule is: the attachment's three names and their form inside rule comments.

use std::fmt;

use sha2::{Digest, Sha512};

/// Longest rule comment nftables takes, in bytes.
const COMMENT_MAX: usize = 128;

/// Hex digits kept of a hash, as the reference set's nftables masquerade keeps them.
const HASH_DIGITS: usize = 16;

/// One attachment: a container's interface on a network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Name of the network (`name` of the configuration).
    pub network: String,
    /// CNI_CONTAINERID.
    pub container_id: String,
    /// CNI_IFNAME.
    pub ifname: String,
}

impl Owner {
    /// The attachment with these three names.
    pub fn new(
        network: impl Into<String>,
        container_id: impl Into<String>,
        ifname: impl Into<String>,
    ) -> Self {
        Self {
            network: network.into(),
            container_id: container_id.into(),
            ifname: ifname.into(),
        }
    }

    /// First 16 hex digits of SHA-512 over the network's name.
    pub fn network_hash(&self) -> String {
        network_hash(&self.network)
    }

    /// `H16(network)-H16(ifname:containerID)`: 33 characters that stand for this attachment.
    pub fn instance_hash(&self) -> String {
        let instance = format!("{}:{}", self.ifname, self.container_id);
        format!(
            "{}-{}",
            self.network_hash(),
            hex_digest(&instance, HASH_DIGITS)
        )
    }

    /// The comment every object of this attachment carries. It is what the reference set's nftables
    /// masquerade writes: the instance hash, then the three names without double quotes, cut at 128 bytes.
    pub fn comment(&self) -> String {
        let clean = |text: &str| text.replace('"', "");
        let mut comment = format!(
            "{}, net: {}, if: {}, id: {}",
            self.instance_hash(),
            clean(&self.network),
            clean(&self.ifname),
            clean(&self.container_id)
        );
        let mut end = comment.len().min(COMMENT_MAX);
        while !comment.is_char_boundary(end) {
            end -= 1;
        }
        comment.truncate(end);
        comment
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "container {} ({}) of network {}",
            self.container_id, self.ifname, self.network
        )
    }
}

/// First 16 hex digits of SHA-512 over a network's name: the start of every comment of that network.
pub fn network_hash(network: &str) -> String {
    hex_digest(network, HASH_DIGITS)
}

/// The first `digits` lower-case hex digits of SHA-512 over `text`.
pub fn hex_digest(text: &str, digits: usize) -> String {
    let digest = Sha512::digest(text.as_bytes());
    digest
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|nibble| char::from_digit(nibble.into(), 16))
        .take(digits)
        .collect()
}

/// Who holds an object, as far as its comment tells.
///
/// Comments are cut at 128 bytes and lose double quotes, so the names may be incomplete; the hashes are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// `H16(network)-H16(ifname:containerID)`, 33 characters.
    pub instance_hash: String,
    /// Network name, empty if the comment has none.
    pub network: String,
    /// Interface name in the container, empty if the comment has none.
    pub ifname: String,
    /// Container id, perhaps cut.
    pub container_id: String,
    /// True when the comment filled all 128 bytes, so the container id may be only a beginning.
    pub cut: bool,
}

impl Holder {
    /// Reads a comment made by [`Owner::comment`]; `None` for any other text.
    pub fn parse(comment: &str) -> Option<Self> {
        let hash = comment.get(..2 * HASH_DIGITS + 1)?;
        let (network_hash, instance) = hash.split_once('-')?;
        let is_hash = |part: &str| {
            part.len() == HASH_DIGITS
                && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        if !is_hash(network_hash) || !is_hash(instance) {
            return None;
        }
        let names = comment.get(hash.len()..).unwrap_or_default();
        let names = names.strip_prefix(", net: ").unwrap_or(names);
        let (network, rest) = names.split_once(", if: ").unwrap_or((names, ""));
        let (ifname, container_id) = rest.split_once(", id: ").unwrap_or((rest, ""));
        Some(Self {
            instance_hash: hash.to_owned(),
            network: network.to_owned(),
            ifname: ifname.to_owned(),
            container_id: container_id.to_owned(),
            cut: comment.len() + 3 >= COMMENT_MAX,
        })
    }

    /// Whether this is exactly the given attachment.
    pub fn is(&self, owner: &Owner) -> bool {
        self.instance_hash == owner.instance_hash()
    }

    /// Whether this is an attachment of the owner's container, as far as the comment tells.
    pub fn is_of_container(&self, owner: &Owner) -> bool {
        let id = owner.container_id.replace('"', "");
        id == self.container_id || self.cut && id.starts_with(&self.container_id)
    }

    /// Whether this attachment belongs to the network of that name.
    pub fn of_network(&self, network: &str) -> bool {
        self.instance_hash.starts_with(&network_hash(network))
    }
}

impl From<&Owner> for Holder {
    fn from(owner: &Owner) -> Self {
        Self {
            instance_hash: owner.instance_hash(),
            network: owner.network.clone(),
            ifname: owner.ifname.clone(),
            container_id: owner.container_id.clone(),
            cut: false,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.cut { "…" } else { "" };
        write!(
            f,
            "container {}{more} ({}) of network {}",
            self.container_id, self.ifname, self.network
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(network: &str, ifname: &str, id: &str) -> Owner {
        Owner {
            network: network.into(),
            container_id: id.into(),
            ifname: ifname.into(),
        }
    }

    #[test]
    fn hashes_match_the_reference_set() {
        assert_eq!(
            owner("unit-test", "eth0", "one").instance_hash(),
            "6fd94d501e58f0aa-287fc69eff0574a2"
        );
        assert_eq!(
            owner("alternate", "net1", "three").instance_hash(),
            "82783ef24bdc7036-acb19d111858e348"
        );
        assert_eq!(
            owner("net1", "eth0", "c2").instance_hash(),
            "8e48f37d5de60467-8c6ebb285a95686c"
        );
    }

    #[test]
    fn comment_reads_back() {
        let owner = owner("net1", "eth0", "c2");
        assert_eq!(
            owner.comment(),
            "8e48f37d5de60467-8c6ebb285a95686c, net: net1, if: eth0, id: c2"
        );
        let holder = Holder::parse(&owner.comment()).unwrap();
        assert_eq!(holder, Holder::from(&owner));
        assert!(holder.is(&owner) && holder.of_network("net1") && !holder.of_network("net2"));
    }

    #[test]
    fn long_comment_is_cut_between_characters() {
        let owner = owner("n", "eth0", &"é".repeat(200));
        let comment = owner.comment();
        assert!(comment.len() <= 128 && comment.len() >= 127);
        let holder = Holder::parse(&comment).unwrap();
        assert!(holder.cut && holder.is(&owner));
    }

    #[test]
    fn foreign_comments_are_no_holder() {
        for text in [
            "",
            "ctrA",
            "6fd94d501e58f0aa_287fc69eff0574a2",
            "6fd94d501e58f0aG-287fc69eff0574a2",
            "é".repeat(40).as_str(),
        ] {
            assert_eq!(Holder::parse(text), None, "{text}");
        }
    }
}
