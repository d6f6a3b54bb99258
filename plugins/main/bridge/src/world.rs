//! What an ADD works on, and the names that its objects carry.

use netfilter::Owner;

use crate::config::Config;

/// The handles of one call.
pub type World = interface::World<Notes>;

/// What one step of an ADD tells a later one.
#[derive(Debug, Default)]
pub struct Notes {
    /// Whether the bridge was made in this call.
    pub bridge_is_new: bool,
}

/// Marks a host veth whose owner asked, by name, for hairpin mode off.
const NO_HAIRPIN: &str = ", hairpin: off";

/// The alias of a container's host veth: whose it is, in the form of a rule comment.
///
/// It lets a DEL or GC find the pair when the container's namespace cannot be reached, and lets `portmap`
/// see who the port belongs to and whether it may set hairpin mode.
pub fn alias(owner: &Owner, config: &Config) -> String {
    let mut alias = owner.comment();
    if config.hairpin_mode == Some(false) {
        alias.push_str(NO_HAIRPIN);
    }
    alias
}
