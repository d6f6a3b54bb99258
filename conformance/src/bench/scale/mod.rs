//! What grows with the number of containers that are there already, and what many commands at once cost.

mod charts;
mod count;
mod crowd;
mod cycle;
mod floor;
mod leases;
mod packets;
mod plan;
mod report;
mod svg;
mod worker;

pub(super) use count::started;
pub use count::{Count, Counts};
pub use crowd::{Crowd, Member, Rush};
pub use cycle::{Cost, Cycle};
pub use floor::Floor;
pub use leases::{Filling, leases};
pub use packets::PacketRates;
pub use plan::{Plan, run};
pub use svg::{Chart, Series};
pub use worker::{Order, Worker, work};
