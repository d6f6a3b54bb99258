//! Netlink attributes of which only the nesting is known, as text.

/// The attributes of a buffer as pairs of kind and value; stops where they no longer parse.
pub(super) fn attributes(bytes: &[u8]) -> Attributes<'_> {
    Attributes { rest: bytes }
}

/// Iterator over attributes: length and kind of 16 bits each in the machine's byte order, value,
/// padding to 4 bytes (netlink(7)).
pub(super) struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, _) = self.rest.split_first_chunk::<4>()?;
        let [length_low, length_high, kind_low, kind_high] = *head;
        let length = usize::from(u16::from_ne_bytes([length_low, length_high]));
        // The two highest bits say "nested" and "network byte order".
        let kind = u16::from_ne_bytes([kind_low, kind_high]) & 0x3fff;
        let value = self.rest.get(4..length)?;
        self.rest = self
            .rest
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
        Some((kind, value))
    }
}

/// The value of the first attribute of this kind.
pub(super) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(one, _)| *one == kind)
        .map(|(_, value)| value)
}

/// The value of a text attribute.
pub(super) fn text(bytes: &[u8], kind: u16) -> String {
    find(bytes, kind).map_or_else(String::new, plain)
}

/// The value of a 32-bit attribute in network order.
pub(super) fn number(bytes: &[u8], kind: u16) -> Option<u32> {
    find(bytes, kind)?.try_into().ok().map(u32::from_be_bytes)
}

/// Bytes as text, up to the first NUL.
pub(super) fn plain(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// Any bytes in the shortest form a person can read: text, else hexadecimal with the zeros that
/// pad fixed-size structures left out.
pub(super) fn show(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    let body = bytes.get(..end).unwrap_or_default();
    let printable = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    if body.len() > 2 && body.iter().all(printable) {
        return format!("{:?}", String::from_utf8_lossy(body));
    }
    let mut text = String::new();
    for run in body.chunk_by(|one, other| (*one == 0) == (*other == 0)) {
        if run.len() > 8 && run.first() == Some(&0) {
            text.push_str("..");
        } else {
            text.extend(run.iter().map(|byte| format!("{byte:02x}")));
        }
    }
    text
}
