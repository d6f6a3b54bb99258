//! Calls.

use crate::gob::{Fields, Value, message};

/// The descriptions of the header of a call and of its argument, as the reference set's client sends them.
const REQUEST_TYPE: &[u8] = b"\x2e\x7f\x03\x01\x01\x07Request\x01\xff\x80\x00\x01\x02\x01\x0dServiceMethod\x01\x0c\x00\x01\x03Seq\x01\x06\x00\x00\x00";
const ARGUMENT_TYPE: &[u8] = b"\x6c\xff\x81\x03\x01\x01\x07CmdArgs\x01\xff\x82\x00\x01\x07\x01\x0bContainerID\x01\x0c\x00\x01\x05Netns\x01\x0c\x00\x01\x06IfName\x01\x0c\x00\x01\x04Args\x01\x0c\x00\x01\x04Path\x01\x0c\x00\x01\x0dNetnsOverride\x01\x0c\x00\x01\x09StdinData\x01\x0a\x00\x00\x00";
/// What values of these types begin with.
const REQUEST: [u8; 2] = [0xff, 0x80];
const ARGUMENT: [u8; 2] = [0xff, 0x82];

/// What can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Gives the attachment a lease, or the one it has.
    Allocate,
    /// Gives the attachment's lease back.
    Release,
    /// The attachment's lease, if it is alive.
    Check,
    /// Gives back what no valid attachment of the network has.
    Collect,
}

impl Method {
    /// The name in the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocate => "DHCP.Allocate",
            Self::Release => "DHCP.Release",
            Self::Check => "DHCP.Check",
            Self::Collect => "DHCP.Collect",
        }
    }

    /// The method of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Allocate, Self::Release, Self::Check, Self::Collect]
            .into_iter()
            .find(|method| method.name() == name)
    }
}

/// The argument of every method: what the plugin was called with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// `CNI_CONTAINERID`.
    pub container_id: String,
    /// `CNI_NETNS`, absolute.
    pub netns: String,
    /// `CNI_IFNAME`.
    pub ifname: String,
    /// `CNI_ARGS`.
    pub args: String,
    /// The network configuration.
    pub stdin: Vec<u8>,
}

impl Arguments {
    /// Reads an argument that came.
    #[must_use]
    pub fn read(value: &Value) -> Self {
        Self {
            container_id: value.text("ContainerID"),
            netns: value.text("Netns"),
            ifname: value.text("IfName"),
            args: value.text("Args"),
            stdin: value.bytes("StdinData").to_vec(),
        }
    }
}

/// The header of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The method's name.
    pub method: String,
    /// The number by which the reply is known.
    pub sequence: u64,
}

impl Call {
    /// Reads a header that came.
    #[must_use]
    pub fn read(value: &Value) -> Self {
        Self {
            method: value.text("ServiceMethod"),
            sequence: value
                .number("Seq")
                .and_then(|number| u64::try_from(number).ok())
                .unwrap_or(0),
        }
    }
}

/// The first call of a connection, with everything that describes it.
#[must_use]
pub fn call(method: Method, arguments: &Arguments) -> Vec<u8> {
    let mut header = REQUEST.to_vec();
    Fields::new(&mut header)
        .text(1, method.name().as_bytes())
        .end();
    let mut argument = ARGUMENT.to_vec();
    Fields::new(&mut argument)
        .text(1, arguments.container_id.as_bytes())
        .text(2, arguments.netns.as_bytes())
        .text(3, arguments.ifname.as_bytes())
        .text(4, arguments.args.as_bytes())
        .text(7, &arguments.stdin)
        .end();
    [
        REQUEST_TYPE,
        &message(&header),
        ARGUMENT_TYPE,
        &message(&argument),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gob::Decoder;

    #[test]
    fn what_is_written_can_be_read() {
        let arguments = Arguments {
            container_id: "c1".into(),
            netns: "/run/netns/c1".into(),
            ifname: "eth0".into(),
            args: String::new(),
            stdin: vec![b'x'; 300],
        };
        let mut bytes = call(Method::Release, &arguments);
        let mut decoder = Decoder::default();
        let header = Call::read(&decoder.next(&mut bytes).unwrap().unwrap());
        assert_eq!(
            (header.method.as_str(), header.sequence),
            ("DHCP.Release", 0)
        );
        let argument = decoder.next(&mut bytes).unwrap().unwrap();
        assert_eq!(Arguments::read(&argument), arguments);
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_call_of_the_reference_set_can_be_read() {
        let mut bytes = super::super::captured::release();
        let whole = bytes.clone();
        let mut decoder = Decoder::default();
        let header = Call::read(&decoder.next(&mut bytes).unwrap().unwrap());
        assert_eq!(header.method, "DHCP.Release");
        let argument = Arguments::read(&decoder.next(&mut bytes).unwrap().unwrap());
        assert_eq!(argument.container_id, "gobtest");
        assert_eq!(argument.netns, "/run/netns/imc2");
        assert_eq!(argument.ifname, "eth0");
        assert_eq!(argument.stdin, [b'j'; 128]);
        // It comes in pieces.
        let (mut decoder, mut input, mut found) = (Decoder::default(), Vec::new(), 0);
        for byte in whole {
            input.push(byte);
            found += usize::from(decoder.next(&mut input).unwrap().is_some());
        }
        assert_eq!(found, 2);
    }
}
