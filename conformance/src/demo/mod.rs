//! A container gets its network, shown with real packets: what `cargo demo` plays.

mod cycle;
mod iptables;
mod leavings;
mod report;
mod result;
mod scenes;
mod traffic;

pub use cycle::{Circumstances, play};
pub use report::Style;
pub use scenes::Scene;
