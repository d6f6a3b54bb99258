//! A container's own published port, on a host that filters bridged frames as routed ones.

use std::net::SocketAddr;

use conformance::Result;
use conformance::chain::{Attachment, Network};
use conformance::net::{HOST_V4, HOST_V6};
use conformance::probe::{PATIENCE, Server, Transport, ask};
use serde_json::json;
use std::path::Path;

use super::world::{World, equal};

/// With `bridge-nf-call-iptables` the rewritten frame has to leave by the port it came in on.
pub fn own_published_port() -> Result<()> {
    let world = World::new()?;
    for key in ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables"] {
        world.host.sysctl(&format!("net/bridge/{key}"), "1")?;
    }
    let list = json!({"cniVersion": "1.0.0", "name": "both", "plugins": [
        {"type": "bridge", "bridge": "br0", "isDefaultGateway": true, "ipMasq": true,
         "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]]}},
        {"type": "portmap", "capabilities": {"portMappings": true}}]});
    let network = Network::parse(&list.to_string())?;
    let ports = json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]);
    let attachment = Attachment::new("c1", Path::new("")).capability("portMappings", ports);
    let container = world.attach_as(&network, world.host.container("c1")?, attachment)?;
    for (own, host) in conformance::facts::addresses(&container.result)
        .into_iter()
        .zip([HOST_V4, HOST_V6])
    {
        let own = SocketAddr::new(own.address.ip(), 80);
        let _server = Server::start(&container.netns, Transport::Tcp, own, "c1")?;
        let seen = ask(
            &container.netns,
            Transport::Tcp,
            SocketAddr::new(host, 8080),
            PATIENCE,
        )?;
        equal("server", &seen.server.as_str(), &"c1")?;
    }
    Ok(())
}
