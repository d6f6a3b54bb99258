//! `list`: the attachments in the cache.

use cni_types::json;
use conformance::facts::addresses;
use conformance::libcni::Cached;
use serde_json::{Value, json};

use crate::Error;
use crate::cli::Cli;
use crate::output::{self, Verdict, table};
use crate::settings::runtime;

const HEAD: [&str; 7] = [
    "NETWORK",
    "CONTAINER",
    "INTERFACE",
    "ADDRESSES",
    "PORTS",
    "STATE",
    "NAMESPACE",
];

pub fn list(cli: &Cli, network: Option<&str>) -> Result<Verdict, Error> {
    let mut all = runtime(cli).cache().attachments()?;
    all.retain(|cached| network.is_none_or(|name| name == cached.network));
    all.retain(|cached| {
        cli.ifname
            .as_ref()
            .is_none_or(|name| *name == cached.ifname)
    });
    if cli.json {
        output::json(&all.iter().map(object).collect())?;
    } else {
        let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
        rows.extend(all.iter().map(row));
        output::text(&table(&rows))?;
    }
    Ok(Verdict::Fine)
}

fn row(cached: &Cached) -> Vec<String> {
    let or_dash = |text: String| if text.is_empty() { "-".into() } else { text };
    let ports: Vec<String> = ports(cached).iter().map(Port::to_string).collect();
    vec![
        cached.network.clone(),
        cached.container_id.clone(),
        cached.ifname.clone(),
        or_dash(address_texts(cached).join(" ")),
        or_dash(ports.join(" ")),
        state(cached).to_owned(),
        or_dash(cached.netns.display().to_string()),
    ]
}

/// The attachment as an object. The port mappings are as the runtime gave them.
pub fn object(cached: &Cached) -> Value {
    let ports: Vec<Value> = ports(cached).into_iter().map(|port| port.entry).collect();
    json!({
        "network": cached.network,
        "containerID": cached.container_id,
        "ifname": cached.ifname,
        "netns": cached.netns.display().to_string(),
        "state": state(cached),
        "addresses": address_texts(cached),
        "portMappings": ports,
    })
}

/// `live`, `gone`, or `unknown` where the runtime has not remembered the namespace.
pub fn state(cached: &Cached) -> &'static str {
    if cached.netns.as_os_str().is_empty() {
        "unknown"
    } else if cached.may_live() {
        "live"
    } else {
        "gone"
    }
}

fn address_texts(cached: &Cached) -> Vec<String> {
    let all = addresses(&cached.result);
    all.iter().map(|one| one.address.to_string()).collect()
}

/// A port mapping.
pub struct Port {
    /// On the host.
    pub host_port: u64,
    /// In the container.
    pub container_port: u64,
    /// `tcp` and the like.
    pub protocol: String,
    /// The host's address; empty for all.
    pub host_ip: String,
    /// As the runtime gave it.
    pub entry: Value,
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host_ip.as_str() {
            "" => {}
            v6 if v6.contains(':') => write!(f, "[{v6}]:")?,
            v4 => write!(f, "{v4}:")?,
        }
        write!(
            f,
            "{}->{}/{}",
            self.host_port, self.container_port, self.protocol
        )
    }
}

/// The ports that the attachment's plugins were asked to publish.
pub fn ports(cached: &Cached) -> Vec<Port> {
    let taken = cached.list().is_none_or(|list| {
        let mut all = list.plugins.iter().flat_map(|plugin| plugin.capabilities());
        all.any(|name| name == "portMappings")
    });
    let given = cached.capability_args.get("portMappings");
    let given = given.filter(|_| taken).and_then(Value::as_array);
    given.into_iter().flatten().filter_map(port).collect()
}

fn port(entry: &Value) -> Option<Port> {
    let number = |key| json::get(entry, key).and_then(Value::as_u64);
    let text = |key| json::get(entry, key).and_then(Value::as_str);
    let host_port = number("hostPort").filter(|port| *port != 0)?;
    Some(Port {
        host_port,
        container_port: number("containerPort")?,
        protocol: text("protocol")
            .filter(|protocol| !protocol.is_empty())
            .unwrap_or("tcp")
            .to_ascii_lowercase(),
        host_ip: text("hostIP").unwrap_or_default().to_owned(),
        entry: entry.clone(),
    })
}
