//! A result against what the kernel has.

use crate::chain::Attachment;
use crate::facts::{Assigned, Interface, addresses, interfaces};
use crate::net::{Link, Netns, Rtnl};
use crate::{Error, Result};
use serde_json::Value;

/// Whether a result of version 0.2.0 looks as that version says.
pub fn early_shape(result: &Value) -> Result<String> {
    if result.pointer("/ip4/ip").and_then(Value::as_str).is_none() {
        return Err(Error::unexpected("ip4.ip", result.to_string()));
    }
    if result.get("ips").is_some() || result.get("interfaces").is_some() {
        return Err(Error::unexpected(
            "no ips and no interfaces",
            result.to_string(),
        ));
    }
    Ok("ip4 with ip, gateway and routes".into())
}

/// Whether a task driver finds everything in the result, as the kernel has it.
pub fn complete(result: &Value, attachment: &Attachment, netns: &Netns) -> Result<String> {
    let (interfaces, assigned) = (interfaces(result), addresses(result));
    let rtnl = Rtnl::open(netns)?;
    let link = rtnl.link(&attachment.ifname)?;
    let real = rtnl.addresses_of(&attachment.ifname)?;
    for one in &assigned {
        belongs(one, &interfaces, &link)?;
        if !real.contains(&one.address) {
            return Err(Error::unexpected(
                format!("{} in the kernel", one.address),
                format!("{real:?}"),
            ));
        }
    }
    let count = |pointer: &str| {
        result
            .pointer(pointer)
            .and_then(Value::as_array)
            .map_or(0, Vec::len)
    };
    let (routes, servers) = (count("/routes"), count("/dns/nameservers"));
    if assigned.is_empty() || routes == 0 {
        return Err(Error::unexpected(
            "addresses and routes",
            result.to_string(),
        ));
    }
    Ok(format!(
        "interface, MAC, address, gateway, {routes} route(s), {servers} name server(s)"
    ))
}

/// An address points at the container's interface, as the kernel has it, and has a gateway.
fn belongs(one: &Assigned, interfaces: &[Interface], link: &Link) -> Result<()> {
    let index = one.interface.and_then(|index| usize::try_from(index).ok());
    let interface = index
        .and_then(|index| interfaces.get(index))
        .ok_or_else(|| {
            Error::unexpected(format!("an interface index for {}", one.address), "none")
        })?;
    if interface.sandbox.is_empty()
        || interface.name != link.name
        || interface.mac != link.facts.mac
    {
        let wanted = format!("{} with MAC {} in the sandbox", link.name, link.facts.mac);
        return Err(Error::unexpected(wanted, format!("{interface:?}")));
    }
    if one.gateway.is_none() {
        return Err(Error::unexpected(
            format!("a gateway for {}", one.address),
            "none",
        ));
    }
    Ok(())
}
