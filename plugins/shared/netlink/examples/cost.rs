//! What the choices made in this crate cost and save, on the machine it runs on:
//!
//! `cargo build --release -p netlink --example cost && unshare --map-root-user --net --mount target/*/release/examples/cost`
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use netlink::{Handle, LinkChange, MacAddr, Netns, NewAddress, NewBridge, NewVeth, sysctl};
use nix::sched::{CloneFlags, unshare};
use rtnetlink::{LinkUnspec, LinkVeth};

const ROUNDS: u32 = 200;

fn main() {
    let netns = other_netns();
    let host = Handle::host().unwrap();
    let container = Handle::open(&netns).unwrap();
    let bridge = NewBridge {
        name: "cni0".into(),
        mac: MacAddr::random().unwrap(),
        mtu: None,
        vlan_filtering: false,
        up: true,
    };
    let bridge = host.create_bridge(&bridge).unwrap();
    let link = container.link("lo").unwrap();

    report("open a handle on another namespace", || {
        drop(Handle::open(&netns).unwrap())
    });
    report("enter a namespace and come back", || {
        netns.run(|| ()).unwrap()
    });
    report("find a link", || drop(host.link("cni0").unwrap()));
    let forward = sysctl::path(&["net", "ipv4", "ip_forward"]).unwrap();
    report("write a sysctl elsewhere", || {
        container.write_sysctl(&forward, "1").unwrap()
    });

    let addresses: Vec<_> = (1..=8)
        .map(|n| NewAddress::new(format!("10.0.{n}.1/24").parse().unwrap()))
        .collect();
    let requests: Vec<_> = addresses.iter().map(|a| a.request(&link)).collect();
    let clear = || {
        addresses
            .iter()
            .for_each(|a| container.delete_address(&link, a.ip).unwrap())
    };
    measure(
        "8 addresses, one call each",
        || requests.iter().for_each(|r| container.execute(r).unwrap()),
        clear,
    );
    measure(
        "8 addresses, one call",
        || container.execute_all(&requests).unwrap(),
        clear,
    );

    let born = NewVeth {
        master: Some(bridge.index),
        host_up: true,
        ..NewVeth::new("eth0").unwrap()
    };
    let delete = || {
        container
            .delete_link(&container.link("eth0").unwrap())
            .unwrap()
    };
    measure(
        "veth pair born in place",
        || drop(host.create_veth(&born, &container).unwrap()),
        delete,
    );
    measure(
        "veth pair made here and moved",
        || moved(&host, &container, &netns, bridge.index),
        delete,
    );

    let setup = || {
        let veth = host.create_veth(&born, &container).unwrap();
        container.set_up(&veth.container).unwrap();
        host.wait_running(&veth.host, Instant::now() + Duration::from_secs(5))
            .unwrap();
    };
    measure("... and up, until it carries traffic", setup, delete);

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    report("asynchronous: runtime, connection, set a link up", || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(up_async(bridge.index));
    });
    report("blocking: socket, set a link up", || {
        Handle::host().unwrap().set_up(&bridge).unwrap()
    });
    let handle = runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection().unwrap();
        tokio::spawn(connection);
        handle
    });
    report("asynchronous: set a link up", || {
        runtime
            .block_on(
                handle
                    .link()
                    .set(LinkUnspec::new_with_index(bridge.index).up().build())
                    .execute(),
            )
            .unwrap();
    });
    report("blocking: set a link up", || host.set_up(&bridge).unwrap());
}

async fn up_async(index: u32) {
    let (connection, handle, _) = rtnetlink::new_connection().unwrap();
    tokio::spawn(connection);
    handle
        .link()
        .set(LinkUnspec::new_with_index(index).up().build())
        .execute()
        .await
        .unwrap();
}

/// The way of `ip link add; ip link set netns; ip link set name`.
fn moved(host: &Handle, container: &Handle, netns: &Netns, bridge: u32) {
    use std::os::fd::AsFd;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection().unwrap();
        tokio::spawn(connection);
        handle
            .link()
            .add(LinkVeth::new("near", "far").build())
            .execute()
            .await
            .unwrap();
        let far = LinkUnspec::new_with_name("far")
            .setns_by_fd(netns.as_fd().as_raw_fd())
            .build();
        handle.link().set(far).execute().await.unwrap();
    });
    host.change_link(
        &host.link("near").unwrap(),
        &LinkChange::new().master(bridge).up(true),
    )
    .unwrap();
    container
        .change_link(
            &container.link("far").unwrap(),
            &LinkChange::new().name("eth0"),
        )
        .unwrap();
}

fn other_netns() -> Netns {
    let file = thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        File::open("/proc/thread-self/ns/net").unwrap()
    });
    let file = file.join().unwrap();
    Netns::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap()
}

fn report(what: &str, action: impl FnMut()) {
    measure(what, action, || ());
}

/// The median over the rounds, without the cleaning in between.
fn measure(what: &str, mut action: impl FnMut(), mut clean: impl FnMut()) {
    let mut times: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            action();
            let took = started.elapsed();
            clean();
            took
        })
        .collect();
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    println!("{:>10.1} us  {what}", median.as_secs_f64() * 1e6);
}
