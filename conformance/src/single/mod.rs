//! What every plugin that makes one link in the container must do, whatever the link is.
//!
//! Each scenario judges one plugin of such a kind in a sandbox of its own. Not every kernel has every kind, so the
//! scenarios are here, for the tests on this kernel and for those in the machine with another.

mod dad;
mod del;
mod failure;
mod kind;
mod lifecycle;
mod master;
mod refusal;
mod routers;
mod site;
mod status;
mod traffic;
mod truth;

pub use dad::{duplicates, no_waiting};
pub use del::{del_is_patient, foreign_links_stay};
pub use failure::failed_add_leaves_nothing;
pub use kind::{Kind, Segment};
pub use lifecycle::{dns, every_version, without_ipam};
pub use master::{in_container, of_default_route};
pub use refusal::refused_before_any_change;
pub use routers::router_advertisements;
pub use site::Site;
pub use status::status_says_what_add_meets;
pub use traffic::{many_at_once, siblings, stale_neighbours};
pub use truth::check_notices;
