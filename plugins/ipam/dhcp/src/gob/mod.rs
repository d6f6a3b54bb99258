//! The encoding of Go's `encoding/gob`, as far as the daemon's protocol needs it.
//!
//! A stream describes each type before the first value of it, so a reader goes by the names of fields and does not
//! care in which order or with which numbers the other side has them. What is written here always has the same
//! descriptions, which are in the stream of the reference set byte by byte.

use std::rc::Rc;

mod decode;
mod encode;

pub use decode::{Decoder, GobError};
pub use encode::{Fields, int, message, text, uint};

/// A value as it came.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `bool`.
    Bool(bool),
    /// `int` of any size.
    Int(i64),
    /// `uint` of any size.
    Uint(u64),
    /// `[]byte`, and `string`, which need not be UTF-8.
    Bytes(Vec<u8>),
    /// A slice or array.
    List(Vec<Value>),
    /// A struct: the fields that are not zero, by name.
    Struct(Vec<(Rc<str>, Value)>),
    /// A number of a kind that is not looked at.
    Other,
}

impl Value {
    /// A field of a struct; absent where it has its zero value.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Struct(fields) => fields
                .iter()
                .find(|(field, _)| **field == *name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// A field of bytes or text; empty where it is absent or something else.
    #[must_use]
    pub fn bytes(&self, name: &str) -> &[u8] {
        match self.field(name) {
            Some(Self::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }

    /// A field of text; what is not UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.bytes(name)).into_owned()
    }

    /// A field with a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.field(name) {
            Some(Self::Int(number)) => Some(*number),
            Some(Self::Uint(number)) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A field with a list; empty where it is absent or something else.
    #[must_use]
    pub fn list(&self, name: &str) -> &[Value] {
        match self.field(name) {
            Some(Self::List(items)) => items,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests;
