//! Writing a stream.

/// Writes an unsigned number.
pub fn uint(out: &mut Vec<u8>, number: u64) {
    match u8::try_from(number) {
        Ok(small) if small < 0x80 => out.push(small),
        _ => {
            let bytes = number.to_be_bytes();
            let zeroes = bytes.iter().take_while(|byte| **byte == 0).count();
            let used = bytes.get(zeroes..).unwrap_or_default();
            // At most eight.
            out.push((used.len() as u8).wrapping_neg());
            out.extend(used);
        }
    }
}

/// Writes a signed number.
pub fn int(out: &mut Vec<u8>, number: i64) {
    let shifted = (number as u64) << 1;
    uint(out, if number < 0 { !shifted } else { shifted });
}

/// Writes bytes or text.
pub fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    uint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// A whole message: its length, and its content.
#[must_use]
pub fn message(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 4);
    text(&mut out, content);
    out
}

/// The fields of a struct, which must be written in their order. Zero values are left out.
#[derive(Debug)]
pub struct Fields<'a> {
    out: &'a mut Vec<u8>,
    last: u64,
}

impl<'a> Fields<'a> {
    /// Begins a struct.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, last: 0 }
    }

    /// Announces field number `number`, from one, and gives the place to write its value to.
    pub fn at(&mut self, number: u64) -> &mut Vec<u8> {
        uint(self.out, number.saturating_sub(self.last));
        self.last = number;
        self.out
    }

    /// A field of bytes or text.
    pub fn text(&mut self, number: u64, value: &[u8]) -> &mut Self {
        if !value.is_empty() {
            text(self.at(number), value);
        }
        self
    }

    /// A signed field.
    pub fn int(&mut self, number: u64, value: i64) -> &mut Self {
        if value != 0 {
            int(self.at(number), value);
        }
        self
    }

    /// An unsigned field.
    pub fn uint(&mut self, number: u64, value: u64) -> &mut Self {
        if value != 0 {
            uint(self.at(number), value);
        }
        self
    }

    /// Ends the struct.
    pub fn end(&mut self) {
        self.out.push(0);
    }
}
