//! The IPAM plugin `host-local`: addresses out of ranges, leases in files.

mod config;
mod resolv;
