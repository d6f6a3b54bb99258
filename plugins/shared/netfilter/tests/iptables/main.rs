//! The iptables backend against real kernel tables, real tools and the reference set's plugins.
//!
//! Each test runs in a child process with namespaces of its own, as root and as an ordinary user alike. They need
//! iptables (both variants), conntrack, iproute2, util-linux and the reference set in /usr/lib/cni; on Debian:
//! `apt-get install iptables conntrack iproute2 nftables containernetworking-plugins dbus-daemon firewalld`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[macro_use]
mod sandbox;
mod confine;
mod conntrack;
mod filter;
mod firewalld;
mod masquerade;
mod parallel;
mod publish;
mod reference;
mod traffic;
mod unfinished;
mod variants;
