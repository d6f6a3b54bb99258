//! Replies.

use std::net::{IpAddr, Ipv4Addr};

use cni_types::result::{CniResult, Ip, Route};
use ipnetwork::IpNetwork;

use crate::gob::{Fields, Value, message, uint};

/// The descriptions of a reply's header, of a result with all that is in it, and of nothing, as the reference set's
/// daemon sends them.
const RESPONSE_TYPE: &[u8] = b"\x39\x7f\x03\x01\x01\x08Response\x01\xff\x80\x00\x01\x03\x01\x0dServiceMethod\x01\x0c\x00\x01\x03Seq\x01\x06\x00\x01\x05Error\x01\x0c\x00\x00\x00";
const RESULT_TYPES: [&[u8]; 10] = [
    b"\x51\xff\x81\x03\x01\x01\x06Result\x01\xff\x82\x00\x01\x05\x01\x0aCNIVersion\x01\x0c\x00\x01\x0aInterfaces\x01\xff\x86\x00\x01\x03IPs\x01\xff\x8c\x00\x01\x06Routes\x01\xff\x90\x00\x01\x03DNS\x01\xff\x92\x00\x00\x00",
    b"\x24\xff\x85\x02\x01\x01\x15[]*types100.Interface\x01\xff\x86\x00\x01\xff\x84\x00\x00",
    b"\x4a\xff\x83\x03\x01\x02\xff\x84\x00\x01\x06\x01\x04Name\x01\x0c\x00\x01\x03Mac\x01\x0c\x00\x01\x03Mtu\x01\x04\x00\x01\x07Sandbox\x01\x0c\x00\x01\x0aSocketPath\x01\x0c\x00\x01\x05PciID\x01\x0c\x00\x00\x00",
    b"\x23\xff\x8b\x02\x01\x01\x14[]*types100.IPConfig\x01\xff\x8c\x00\x01\xff\x88\x00\x00",
    b"\x33\xff\x87\x03\x01\x02\xff\x88\x00\x01\x03\x01\x09Interface\x01\x04\x00\x01\x07Address\x01\xff\x8a\x00\x01\x07Gateway\x01\x0a\x00\x00\x00",
    b"\x23\xff\x89\x03\x01\x01\x05IPNet\x01\xff\x8a\x00\x01\x02\x01\x02IP\x01\x0a\x00\x01\x04Mask\x01\x0a\x00\x00\x00",
    b"\x1d\xff\x8f\x02\x01\x01\x0e[]*types.Route\x01\xff\x90\x00\x01\xff\x8e\x00\x00",
    b"\x50\xff\x8d\x03\x01\x02\xff\x8e\x00\x01\x07\x01\x03Dst\x01\xff\x8a\x00\x01\x02GW\x01\x0a\x00\x01\x03MTU\x01\x04\x00\x01\x06AdvMSS\x01\x04\x00\x01\x08Priority\x01\x04\x00\x01\x05Table\x01\x04\x00\x01\x05Scope\x01\x04\x00\x00\x00",
    b"\x46\xff\x91\x03\x01\x01\x03DNS\x01\xff\x92\x00\x01\x04\x01\x0bNameservers\x01\xff\x94\x00\x01\x06Domain\x01\x0c\x00\x01\x06Search\x01\xff\x94\x00\x01\x07Options\x01\xff\x94\x00\x00\x00",
    b"\x16\xff\x93\x02\x01\x01\x08[]string\x01\xff\x94\x00\x01\x0c\x00\x00",
];
const NOTHING_TYPE: &[u8] = b"\x0a\xff\x95\x03\x01\x02\xff\x96\x00\x00\x00";
/// What values of these types begin with.
const RESPONSE: [u8; 2] = [0xff, 0x80];
const RESULT: [u8; 2] = [0xff, 0x82];
const NOTHING: &[u8] = b"\x03\xff\x96\x00";

/// The header of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Why the call failed; empty if it did not.
    pub error: String,
}

impl Header {
    /// Reads a header that came.
    #[must_use]
    pub fn read(value: &Value) -> Self {
        Self {
            error: value.text("Error"),
        }
    }
}

fn header(method: &str, sequence: u64, error: &str) -> Vec<u8> {
    let mut header = RESPONSE.to_vec();
    Fields::new(&mut header)
        .text(1, method.as_bytes())
        .uint(2, sequence)
        .text(3, error.as_bytes())
        .end();
    [RESPONSE_TYPE, &message(&header)].concat()
}

/// The reply to a call that failed. As each of these, the only one of its connection: it begins with descriptions.
#[must_use]
pub fn failed(method: &str, sequence: u64, error: &str) -> Vec<u8> {
    [&header(method, sequence, error), NOTHING_TYPE, NOTHING].concat()
}

/// The reply to a call that has no result.
#[must_use]
pub fn released(method: &str, sequence: u64) -> Vec<u8> {
    failed(method, sequence, "")
}

/// The reply with a lease.
#[must_use]
pub fn leased(method: &str, sequence: u64, result: &CniResult) -> Vec<u8> {
    let mut value = RESULT.to_vec();
    let mut fields = Fields::new(&mut value);
    if !result.ips.is_empty() {
        let out = fields.at(3);
        uint(out, result.ips.len() as u64);
        result.ips.iter().for_each(|ip| write_ip(out, ip));
    }
    if !result.routes.is_empty() {
        let out = fields.at(4);
        uint(out, result.routes.len() as u64);
        result
            .routes
            .iter()
            .for_each(|route| write_route(out, route));
    }
    // The last field is a struct and written even if there is nothing in it.
    fields.at(5).push(0);
    fields.end();
    let mut reply = header(method, sequence, "");
    reply.extend(RESULT_TYPES.concat());
    reply.extend(message(&value));
    reply
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn write_network(out: &mut Vec<u8>, network: IpNetwork) {
    Fields::new(out)
        .text(1, &octets(network.ip()))
        .text(2, &octets(network.mask()))
        .end();
}

fn write_ip(out: &mut Vec<u8>, ip: &Ip) {
    let mut fields = Fields::new(out);
    write_network(fields.at(2), ip.address);
    fields.text(3, &ip.gateway.map(octets).unwrap_or_default());
    fields.end();
}

fn write_route(out: &mut Vec<u8>, route: &Route) {
    let mut fields = Fields::new(out);
    write_network(fields.at(1), route.dst);
    fields
        .text(2, &route.gw.map(octets).unwrap_or_default())
        .int(3, route.mtu)
        .int(4, route.advmss)
        .int(5, route.priority)
        .int(6, route.table.unwrap_or(0))
        .int(7, route.scope.unwrap_or(0));
    fields.end();
}

/// Reads a result that came. Addresses that make no sense are left out.
#[must_use]
pub fn read_result(value: &Value) -> CniResult {
    let ips = value.list("IPs").iter().filter_map(read_ip);
    let routes = value.list("Routes").iter().filter_map(read_route);
    CniResult {
        ips: ips.collect(),
        routes: routes.collect(),
        ..CniResult::default()
    }
}

fn read_ip(value: &Value) -> Option<Ip> {
    Some(Ip {
        address: read_network(value.field("Address")?)?,
        gateway: address(value.bytes("Gateway")),
        interface: None,
    })
}

fn read_route(value: &Value) -> Option<Route> {
    let number = |name: &str| value.number(name);
    Some(Route {
        mtu: number("MTU").unwrap_or(0),
        advmss: number("AdvMSS").unwrap_or(0),
        priority: number("Priority").unwrap_or(0),
        table: number("Table"),
        scope: number("Scope"),
        ..Route::new(
            read_network(value.field("Dst")?)?,
            address(value.bytes("GW")),
        )
    })
}

/// An address of four or sixteen bytes.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(v4).into());
    }
    let v6 = <[u8; 16]>::try_from(bytes).ok()?;
    Some(IpAddr::from(v6).to_canonical())
}

fn read_network(value: &Value) -> Option<IpNetwork> {
    let address = address(value.bytes("IP"))?;
    let mask = value.bytes("Mask");
    // An IPv4 mask may have sixteen bytes, too.
    let mask = match address {
        IpAddr::V4(_) => mask.get(mask.len().checked_sub(4)?..)?,
        IpAddr::V6(_) => mask,
    };
    let ones: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    IpNetwork::new(address, u8::try_from(ones).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::captured;
    use super::*;
    use crate::gob::Decoder;

    fn read(mut bytes: Vec<u8>) -> (Header, Value) {
        let mut decoder = Decoder::default();
        let header = Header::read(&decoder.next(&mut bytes).unwrap().unwrap());
        let body = decoder.next(&mut bytes).unwrap().unwrap();
        assert!(bytes.is_empty());
        (header, body)
    }

    fn sample() -> CniResult {
        let net = |text: &str| text.parse().unwrap();
        let gw = |text: &str| Some(text.parse().unwrap());
        let route = |dst: &str, via: &str, scope: Option<i64>| Route {
            priority: 5,
            scope,
            ..Route::new(net(dst), gw(via))
        };
        CniResult {
            ips: vec![Ip {
                gateway: gw("10.50.0.1"),
                ..Ip::new(net("10.50.0.2/24"))
            }],
            routes: vec![
                route("0.0.0.0/0", "10.50.0.5", None),
                route("10.88.1.0/24", "10.50.0.6", None),
                route("10.88.2.0/24", "0.0.0.0", Some(253)),
            ],
            ..CniResult::default()
        }
    }

    #[test]
    fn results_are_those_of_the_reference_set_byte_by_byte() {
        let ours = leased("DHCP.Allocate", 0, &sample());
        let theirs = captured::allocated();
        assert!(ours.ends_with(&theirs), "{ours:02x?}\n{theirs:02x?}");
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut result = sample();
        result.routes[0].priority = 70_000;
        result.routes[1].table = Some(-5);
        let (header, body) = read(leased("DHCP.Allocate", 300, &result));
        assert_eq!(header.error, "");
        assert_eq!(read_result(&body), result);
        let (header, _) = read(failed("DHCP.Allocate", 0, "no server"));
        assert_eq!(header.error, "no server");
        let (header, body) = read(released("DHCP.Release", 0));
        assert_eq!(header.error, "");
        assert_eq!(body, Value::Struct(Vec::new()));
    }
}
