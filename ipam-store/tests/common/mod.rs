//! What the store's tests share.
#![allow(dead_code)]

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use ipam_store::{Options, Owner, RangeSet, RangeSpec, Store};

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub fn set(subnets: &[&str]) -> RangeSet {
    let specs = subnets
        .iter()
        .map(|s| RangeSpec::subnet(s.parse().unwrap()));
    RangeSet::new(specs.collect()).unwrap()
}

pub fn owner(id: &str) -> Owner {
    Owner::new(id, "eth0")
}

pub fn open(dir: &Path) -> Store {
    Store::open(dir, &Options::default()).unwrap()
}

/// One command: allocates with an own opening of the store.
pub fn allocate(dir: &Path, owner: &Owner, sets: &[RangeSet]) -> Vec<String> {
    let leases = open(dir).allocate(owner, sets, &[]).unwrap();
    leases.iter().map(|l| l.address.ip().to_string()).collect()
}

pub fn release(dir: &Path, owner: &Owner) -> Vec<IpAddr> {
    open(dir).release(owner).unwrap()
}

/// Names of the files with an address for a name, in order.
pub fn lease_files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = files(dir);
    names.retain(|n| n.parse::<IpAddr>().is_ok());
    names
}

pub fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}
