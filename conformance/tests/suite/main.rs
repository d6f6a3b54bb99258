//! The plugins as a runtime meets them: executed, in a small machine of their own, with real
//! kernel objects and real packets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod guest;
mod status;
mod support;

mod args;
mod bandwidth;
mod bridge;
mod chains;
mod cnitool;
mod concurrency;
mod demo;
mod dhcp;
mod docs;
mod doctor;
mod exec;
mod faults;
mod findings;
mod firecracker;
mod firewall;
mod firewalld;
mod garbage;
mod host_device;
mod host_local;
mod interop;
mod judge;
mod kubernetes;
mod links;
mod logs;
mod loopback;
mod macvlan;
mod mesos;
mod messages;
mod nerdctl;
mod nomad;
mod portmap;
mod process;
mod property;
mod protocol;
mod ptp;
mod relied_on;
mod reload;
mod reports;
mod sandbox;
mod sbr;
mod static_ipam;
mod tap;
mod tc_redirect_tap;
mod transcripts;
mod tuning;
mod values;
mod vrf;
