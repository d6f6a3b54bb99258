//! A network card of the machine goes into a container and comes back, also when the container dies with it.
//!
//! The kernel gives hardware back to the very first network namespace, so this check is not in a sandbox.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use conformance::Result;
use conformance::chain::{Attachment, Network, Runtime};
use conformance::error::{Context, Error};
use conformance::net::{Link, Netns, Rtnl};
use conformance::probe::ping;
use serde_json::{Value, json};

use super::world::{equal, fails, holds};

/// The MAC addresses of the machine's cards, which are on one segment.
const CARD: &str = "02:00:00:00:ca:01";
const ROUTER: &str = "02:00:00:00:ca:02";

/// The card's name on the host.
const NAME: &str = "nic0";
/// Its name in the container.
const INSIDE: &str = "net1";

const AT_ONCE: Duration = Duration::from_millis(900);
const PATIENCE: Duration = Duration::from_secs(30);

struct Machine {
    host: Rtnl,
    runtime: Runtime,
}

fn ip(arguments: &str) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output();
    let output = output.doing(|| "start ip")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::unexpected(format!("ip {arguments} to work"), said))
}

fn with_mac(links: Vec<Link>, mac: &str) -> Option<Link> {
    links.into_iter().find(|link| link.facts.mac == mac)
}

impl Machine {
    fn new() -> Result<Self> {
        let machine = Self {
            host: Rtnl::here()?,
            runtime: Runtime::new(Path::new("/opt/cni/bin")),
        };
        machine.host.set_up("lo")?;
        let router = machine.card(ROUTER)?.name;
        for address in ["10.7.0.1/24", "fd00:7::1/64"] {
            ip(&format!("address replace {address} dev {router} nodad"))?;
        }
        machine.host.set_up(&router)?;
        let card = machine.card(CARD)?;
        if card.name != NAME {
            machine.host.set_down(&card.name)?;
            ip(&format!("link set {} name {NAME}", card.name))?;
        }
        Ok(machine)
    }

    fn card(&self, mac: &str) -> Result<Link> {
        with_mac(self.host.links()?, mac).ok_or_else(|| Error::Missing {
            what: format!("the card {mac}"),
        })
    }

    /// Where the card is in `/sys/devices`: the PCI device, and below it that of virtio.
    fn places(&self) -> Result<(PathBuf, PathBuf)> {
        let path = Path::new("/sys/class/net").join(NAME).join("device");
        let virtio = path
            .canonicalize()
            .doing(|| format!("follow {}", path.display()))?;
        let pci = virtio.parent().unwrap_or(Path::new("/")).to_owned();
        Ok((pci, virtio))
    }

    /// The card has its name, is down, and nobody's.
    fn is_home(&self) -> Result<()> {
        let card = self.card(CARD)?;
        equal("name", &card.name.as_str(), &NAME)?;
        equal("alias", &card.facts.alias.as_str(), &"")?;
        holds("it is down", !card.facts.up)
    }

    /// Waits until the kernel has given the card back.
    fn wait_for_card(&self) -> Result<Link> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.card(CARD) {
                Ok(card) => return Ok(card),
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

fn network(device: &Value) -> Result<Network> {
    let mut plugin = json!({"type": "host-device", "capabilities": {"deviceID": true}, "ipam": {"type": "host-local",
        "ranges": [[{"subnet": "10.7.0.0/24", "rangeStart": "10.7.0.100"}], [{"subnet": "fd00:7::/64", "rangeStart": "fd00:7::100"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}});
    if let (Some(plugin), Some(device)) = (plugin.as_object_mut(), device.as_object()) {
        plugin.extend(device.clone());
    }
    let list = json!({"cniVersion": "1.1.0", "name": "hardware", "plugins": [plugin]});
    Network::parse(&list.to_string())
}

/// A namespace of that name, made as an administrator makes one.
fn container(name: &str) -> Result<(Netns, Attachment)> {
    ip(&format!("netns add {name}"))?;
    let path = Path::new("/run/netns").join(name);
    let attachment = Attachment::new(name, &path).ifname(INSIDE);
    Ok((Netns::open(&path)?, attachment))
}

fn reaches_the_router(netns: &Netns) -> Result<()> {
    for address in ["10.7.0.1", "fd00:7::1"] {
        let address: IpAddr = address.parse().map_err(|error| Error::Missing {
            what: format!("an address: {error}"),
        })?;
        ping(netns, address, AT_ONCE)?;
    }
    Ok(())
}

/// In and out again, however the card is named.
pub fn goes_in_and_comes_back() -> Result<()> {
    let machine = Machine::new()?;
    let (pci, virtio) = machine.places()?;
    let id = pci.file_name().unwrap_or_default().to_string_lossy();
    let none = Value::Null;
    for (number, (way, chosen)) in [
        (json!({"device": NAME}), &none),
        (json!({"hwaddr": CARD}), &none),
        (json!({"kernelpath": virtio}), &none),
        (json!({"pciBusID": id}), &none),
        (json!({}), &json!(id)),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("c{number}");
        let (netns, mut attachment) = container(&name)?;
        if chosen.is_string() {
            attachment = attachment.capability("deviceID", chosen.clone());
        }
        let network = network(&way)?;
        machine.runtime.add(&network, &mut attachment)?;
        fails("finding the card on the host", machine.card(CARD))?;
        reaches_the_router(&netns)?;
        machine.runtime.check(&network, &attachment)?;
        machine.runtime.del(&network, &attachment)?;
        machine.is_home()?;
        machine.runtime.del(&network, &attachment)?;
        machine.is_home()?;
        ip(&format!("netns delete {name}"))?;
    }
    Ok(())
}

/// The container dies: the card comes back by itself, and whatever runs next gives it its name again.
pub fn outlives_its_container() -> Result<()> {
    let machine = Machine::new()?;
    let (pci, _) = machine.places()?;
    let by_name = json!({"device": NAME});
    let by_pci = json!({"pciBusID": pci.file_name().unwrap_or_default().to_string_lossy()});
    for (number, (way, taken)) in [
        (&by_name, false),
        (&by_name, true),
        (&by_pci, false),
        (&by_pci, true),
    ]
    .into_iter()
    .enumerate()
    {
        let network = network(way)?;
        for next in ["DEL", "GC", "ADD"] {
            if next != "DEL" && !taken && way == &by_pci {
                // Nothing says then that it is not what an administrator called it.
                continue;
            }
            let name = format!("d{number}{next}");
            if taken {
                // The kernel makes a name up where the one in the container is taken.
                ip(&format!("link add {INSIDE} type dummy"))?;
            }
            let (netns, mut attachment) = container(&name)?;
            machine.runtime.add(&network, &mut attachment)?;
            drop(netns);
            ip(&format!("netns delete {name}"))?;
            let card = machine.wait_for_card()?;
            equal("alias", &card.facts.alias.as_str(), &NAME)?;
            holds("it has another name", card.name != NAME)?;
            match next {
                "DEL" => machine.runtime.del(&network, &attachment)?,
                "GC" => machine.runtime.gc(&network, Some(&[]))?,
                _ => {
                    let (netns, mut attachment) = container(&format!("{name}again"))?;
                    machine.runtime.add(&network, &mut attachment)?;
                    reaches_the_router(&netns)?;
                    machine.runtime.del(&network, &attachment)?;
                    ip(&format!("netns delete {name}again"))?;
                }
            }
            machine.is_home()?;
            machine.runtime.del(&network, &attachment)?;
            machine.is_home()?;
            if taken {
                machine.host.delete_link(INSIDE)?;
            }
        }
    }
    Ok(())
}

/// A failed ADD leaves the card as it was.
pub fn failed_add_gives_it_back() -> Result<()> {
    let machine = Machine::new()?;
    machine.host.set_up(NAME)?;
    ip(&format!("address replace 10.7.0.7/24 dev {NAME}"))?;
    let (_netns, mut attachment) = container("failing")?;
    let broken = network(&json!({"device": NAME, "ipam": {"type": "nobody"}}))?;
    fails("ADD", machine.runtime.add(&broken, &mut attachment))?;
    let card = machine.card(CARD)?;
    equal("name", &card.name.as_str(), &NAME)?;
    holds("it is up", card.facts.up)?;
    let addresses = machine.host.addresses_of(NAME)?;
    let has = addresses.iter().any(|one| one.to_string() == "10.7.0.7/24");
    holds("it has its address", has)?;
    machine.host.flush_addresses(NAME)?;
    machine.host.set_down(NAME)?;
    ip("netns delete failing")
}
