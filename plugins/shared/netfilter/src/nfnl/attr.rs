//! Netlink attributes (type, length, value), written and read.

/// Size of an attribute's header.
const HEADER: usize = 4;
/// NLA_F_NESTED.
const NESTED: u16 = 0x8000;
/// Without NLA_F_NESTED and NLA_F_NET_BYTEORDER.
const TYPE_MASK: u16 = 0x3fff;

/// Writes attributes into a growing buffer.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    buf: Vec<u8>,
    overflow: bool,
}

impl Writer {
    /// A writer that goes on after these bytes.
    pub fn after(buf: Vec<u8>) -> Self {
        Self {
            buf,
            overflow: false,
        }
    }

    /// Adds an attribute with these bytes as its value.
    pub fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        match u16::try_from(HEADER + value.len()) {
            Ok(len) => {
                self.header(kind, len);
                self.buf.extend_from_slice(value);
                self.pad();
            }
            Err(_) => self.overflow = true,
        }
        self
    }

    /// Adds a string with its terminating zero.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// Adds a 32 bit number.
    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Adds a 64 bit number.
    pub fn u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Adds a nest with what `fill` writes.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.buf.len();
        self.header(kind | NESTED, 0);
        fill(self);
        match u16::try_from(self.buf.len() - start) {
            Ok(len) => {
                if let Some(place) = self.buf.get_mut(start..start + 2) {
                    place.copy_from_slice(&len.to_ne_bytes());
                }
            }
            Err(_) => self.overflow = true,
        }
        self
    }

    /// Adds everything another writer holds.
    pub fn append(&mut self, other: &Self) -> &mut Self {
        self.buf.extend_from_slice(&other.buf);
        self.overflow |= other.overflow;
        self
    }

    /// The attributes written so far.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.buf)
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.buf.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// The bytes, or `None` if an attribute was longer than 65535 bytes.
    pub fn finish(self) -> Option<Vec<u8>> {
        (!self.overflow).then_some(self.buf)
    }

    fn header(&mut self, kind: u16, len: u16) {
        self.buf.extend_from_slice(&len.to_ne_bytes());
        self.buf.extend_from_slice(&kind.to_ne_bytes());
    }

    fn pad(&mut self) {
        self.buf.resize(self.buf.len().next_multiple_of(4), 0);
    }
}

/// One attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr<'a> {
    /// Its type without flags.
    pub kind: u16,
    /// Its value.
    pub value: &'a [u8],
    /// Whether it is marked as holding attributes. Not every kernel marks what it sends.
    pub nested: bool,
}

impl<'a> Attr<'a> {
    /// The value as a 32 bit number.
    pub fn u32(&self) -> Option<u32> {
        self.value.try_into().ok().map(u32::from_be_bytes)
    }

    /// The value as a 64 bit number.
    pub fn u64(&self) -> Option<u64> {
        self.value.try_into().ok().map(u64::from_be_bytes)
    }

    /// The value as text, without a terminating zero; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        let end = self
            .value
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(self.value.len());
        String::from_utf8_lossy(self.value.get(..end).unwrap_or_default()).into_owned()
    }

    /// The attributes inside the value.
    pub fn nested(&self) -> Reader<'a> {
        Reader::new(self.value)
    }
}

/// Iterates over attributes; stops at the first that does not fit.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads the attributes in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The first attribute of that type.
    pub fn get(mut self, kind: u16) -> Option<Attr<'a>> {
        self.find(|attr| attr.kind == kind)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Attr<'a>;

    fn next(&mut self) -> Option<Attr<'a>> {
        let (header, _) = self.rest.split_first_chunk::<HEADER>()?;
        let [len0, len1, kind0, kind1] = *header;
        let len = usize::from(u16::from_ne_bytes([len0, len1]));
        let value = self.rest.get(HEADER..len)?;
        self.rest = self.rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        let kind = u16::from_ne_bytes([kind0, kind1]);
        Some(Attr {
            kind: kind & TYPE_MASK,
            value,
            nested: kind & NESTED != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn written_attributes_read_back() {
        let mut writer = Writer::default();
        writer.text(1, "abc").nest(2, |w| {
            w.u32(3, 7).u64(4, 9).bytes(5, &[1, 2, 3, 4, 5]);
        });
        let bytes = writer.finish().unwrap();
        let outer: Vec<_> = Reader::new(&bytes).collect();
        assert_eq!(outer.len(), 2);
        assert_eq!(outer[0].text(), "abc");
        let inner: Vec<_> = outer[1].nested().collect();
        assert_eq!(
            (inner[0].u32(), inner[1].u64(), inner[2].value),
            (Some(7), Some(9), &[1, 2, 3, 4, 5][..])
        );
    }

    #[test]
    fn too_long_an_attribute_is_noticed() {
        let mut writer = Writer::default();
        writer.bytes(1, &vec![0; 70_000]);
        assert!(writer.finish().is_none());
        let mut writer = Writer::default();
        writer.nest(1, |w| {
            w.bytes(1, &[0; 40_000]).bytes(1, &[0; 40_000]);
        });
        assert!(writer.finish().is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let total: usize = Reader::new(&bytes).map(|attr| attr.value.len() + attr.nested().count()).sum();
            prop_assert!(total <= 2 * bytes.len());
        }
    }
}
