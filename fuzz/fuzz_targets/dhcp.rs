//! The dhcp plugin, and what its daemon hears: calls, in an input that begins with `<`, and packets from servers, in one
//! that begins with `>`.
#![no_main]

use std::panic::{set_hook, take_hook};
use std::sync::Once;
use std::time::Duration;

use dhcp::gob::Decoder;
use dhcp::lease::Lease;
use dhcp::packet::{self, Client};
use dhcp::rpc::{self, Arguments, Call, Header};

/// The exchange that packets are taken to belong to.
const XID: u32 = 7;

libfuzzer_sys::fuzz_target!(|input: &[u8]| match input.split_first() {
    Some((b'<', stream)) => hear(stream),
    Some((b'>', packet)) => receive(packet),
    _ => ferrule_fuzz::call::<dhcp::Dhcp>(input),
});

/// A caller's stream, and the same taken for the daemon's.
fn hear(stream: &[u8]) {
    let _ = rpc::http_head(stream);
    let (mut decoder, mut input) = (Decoder::default(), stream.to_vec());
    while let Ok(Some(value)) = decoder.next(&mut input) {
        let _ = Call::read(&value);
        let _ = Arguments::read(&value);
        let _ = Header::read(&value);
        let result = rpc::read_result(&value);
        if result.ips.is_empty() {
            continue;
        }
        // What was understood can be said again.
        let mut again = rpc::leased("DHCP.Allocate", 0, &result);
        let mut decoder = Decoder::default();
        let header = decoder.next(&mut again).expect("a header");
        assert!(header.is_some());
        let body = decoder.next(&mut again).expect("a result");
        assert_eq!(rpc::read_result(&body.expect("all of it")).ips, result.ips);
    }
}

/// A panic of the decoder of packets is no finding: with its assertions on, as here, it panics at lengths it does not
/// foresee, and whoever reads a packet catches that.
fn forgive_the_decoder() {
    let found = take_hook();
    set_hook(Box::new(move |panic| {
        let place = panic.location().map_or("", |place| place.file());
        if !place.contains("/dhcproto-") {
            found(panic);
        }
    }));
}

fn receive(bytes: &[u8]) {
    static FORGIVEN: Once = Once::new();
    FORGIVEN.call_once(forgive_the_decoder);
    let client = Client {
        mac: [2, 0, 0, 0, 0, 1],
        id: b"\0id".to_vec(),
        provide: Vec::new(),
        request: vec![3, 1],
        broadcast: false,
    };
    let Some(answer) = packet::read(bytes, &client, XID) else {
        return;
    };
    if let Some(lease) = Lease::granted(&answer, [2; 6], Duration::from_secs(1000)) {
        let result = lease.result(5);
        assert_eq!(result.ips.len(), 1);
        assert!(lease.renew <= lease.rebind && lease.rebind <= lease.expire, "{lease:?}");
    }
}
