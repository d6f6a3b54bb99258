//! Elements in the packet filter: as many, of the same sizes and with comments as long as an ADD makes, in sets
//! of a table of its own. Numbers are those of `linux/netfilter/nf_tables.h`.

use std::error::Error;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEWTABLE: u16 = 10 << 8;
const NEWSET: u16 = (10 << 8) | 9;
const NEWSETELEM: u16 = (10 << 8) | 12;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const CREATE: u16 = 0x400;
const INET: u8 = 1;
const TABLE: &str = "floor";

/// Name, key length in bytes and elements per container: masquerade, admission, two claims on a port, two
/// translations, two hairpins and three records of what there is.
const SETS: [(&str, u32, u8); 6] = [
    ("masquerade", 4, 1),
    ("admit", 4, 1),
    ("publish", 8, 2),
    ("published", 12, 2),
    ("hairpin", 12, 2),
    ("owners", 48, 3),
];

/// Opens the packet filter of the thread's namespace.
pub fn open() -> Result<Socket, Box<dyn Error>> {
    Ok(Socket::new(NETLINK_NETFILTER)?)
}

/// Adds the container's elements in one transaction. The first container makes the sets.
pub fn add(socket: &Socket, number: u32) -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::default();
    batch.push(BATCH_BEGIN, 0, 0, 10, &[]);
    if number == 0 {
        batch.push(NEWTABLE, CREATE, INET, 0, &attribute(1, &name(TABLE)));
        for (id, (set, key, _)) in (1_u32..).zip(SETS) {
            let body = [
                attribute(1, &name(TABLE)),
                attribute(2, &name(set)),
                attribute(3, &0_u32.to_be_bytes()),
                attribute(5, &key.to_be_bytes()),
                attribute(10, &id.to_be_bytes()),
            ];
            batch.push(NEWSET, CREATE, INET, 0, &body.concat());
        }
    }
    // What nft takes for a comment: type 0, length, text with its NUL.
    let text = format!(
        "{:0<33}, net: nomad, if: eth0, id: 5d3c0ff3-crowd-{number}\0",
        number
    );
    let comment = [&[0, u8::try_from(text.len())?], text.as_bytes()].concat();
    for (set, key, count) in SETS {
        let mut elements = Vec::new();
        for part in 0..count {
            let mut bytes = vec![part; usize::try_from(key)?];
            for (place, byte) in bytes.iter_mut().zip(number.to_be_bytes()) {
                *place = byte;
            }
            let element = [
                attribute(1 | NESTED, &attribute(1, &bytes)),
                attribute(6, &comment),
            ];
            elements.extend(attribute(1 | NESTED, &element.concat()));
        }
        let body = [
            attribute(1, &name(TABLE)),
            attribute(2, &name(set)),
            attribute(3 | NESTED, &elements),
        ];
        batch.push(NEWSETELEM, CREATE | ACK, INET, 0, &body.concat());
    }
    batch.push(BATCH_END, 0, 0, 10, &[]);
    batch.commit(socket)
}

const NESTED: u16 = 0x8000;

fn name(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// Length, kind, value, padding.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    answers: usize,
}

impl Batch {
    /// Adds a message: netlink header, then family, version 0 and resource.
    fn push(&mut self, kind: u16, flags: u16, family: u8, resource: u16, body: &[u8]) {
        let length = u32::try_from(body.len() + 20).unwrap_or(u32::MAX);
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags | REQUEST).to_ne_bytes());
        self.bytes.extend([0; 8]);
        self.bytes.extend([family, 0]);
        self.bytes.extend(resource.to_be_bytes());
        self.bytes.extend(body);
        self.answers += usize::from(flags & ACK != 0);
    }

    fn commit(self, socket: &Socket) -> Result<(), Box<dyn Error>> {
        socket.send_to(&self.bytes, &SocketAddr::new(0, 0), 0)?;
        let mut answer = Vec::with_capacity(16 * 1024);
        let mut waiting = self.answers;
        while waiting > 0 {
            answer.clear();
            socket.recv(&mut answer, 0)?;
            let mut rest = answer.as_slice();
            while let Some(head) = rest.first_chunk::<20>() {
                let [l0, l1, l2, l3, .., e0, e1, e2, e3] = *head;
                let errno = i32::from_ne_bytes([e0, e1, e2, e3]);
                if errno != 0 {
                    return Err(std::io::Error::from_raw_os_error(errno.saturating_neg()).into());
                }
                waiting = waiting.saturating_sub(1);
                let length = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3]))?;
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
        Ok(())
    }
}
