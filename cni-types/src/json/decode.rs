//! Typed views of a value: a serde deserializer with the reference set's rules.

use super::access::{Fields, Items, Pairs, Variant};
use super::kind;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::Value;
use std::fmt;

/// A value does not have the type that is wanted. The text begins with the path to it, as
/// `ipam.ranges[0].subnet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    path: String,
    message: String,
}

impl DecodeError {
    /// The path from the outermost value to the offending one; empty if that is the same.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong with it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error, seen from the object that holds the value under `key`.
    pub(crate) fn in_key(mut self, key: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{key}{joint}{}", self.path);
        self
    }

    /// The same error, seen from the array that holds the value at `index`.
    pub(crate) fn in_index(mut self, index: usize) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("[{index}]{joint}{}", self.path);
        self
    }

    /// A value that should have been an object.
    pub(crate) fn expected_object(value: &Value) -> Self {
        Self::unexpected(value, &"an object")
    }

    pub(super) fn unexpected(value: &Value, expected: &dyn fmt::Display) -> Self {
        de::Error::custom(format_args!("expected {expected}, found {}", kind(value)))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        DecodeError {
            path: String::new(),
            message: message.to_string(),
        }
    }
}

/// Decodes a typed view of `value` by the rules in the [module documentation](super).
///
/// # Errors
///
/// [`DecodeError`] with the path of the value that does not fit.
pub fn from_value<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, DecodeError> {
    T::deserialize(Decoder(value))
}

/// One value on its way into a type.
#[derive(Clone, Copy)]
pub(super) struct Decoder<'de>(pub(super) &'de Value);

impl<'de> Decoder<'de> {
    /// An integer literal. `1.0`, `1e3` and strings are none; `null` is 0, the default.
    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_u64(0),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(positive), _) => visitor.visit_u64(positive),
                (_, Some(negative)) => visitor.visit_i64(negative),
                _ => Err(de::Error::custom(format_args!(
                    "{number} is not an integer in range"
                ))),
            },
            other => Err(DecodeError::unexpected(other, &"an integer")),
        }
    }

    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_borrowed_str(""),
            Value::String(text) => visitor.visit_borrowed_str(text),
            other => Err(DecodeError::unexpected(other, &"a string")),
        }
    }
}

macro_rules! as_integer {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            self.integer(visitor)
        }
    )*};
}

macro_rules! as_text {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            self.text(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Decoder<'de> {
    type Error = DecodeError;

    as_integer! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    as_text! { deserialize_char deserialize_str deserialize_string deserialize_identifier }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => number.deserialize_any(visitor).map_err(de::Error::custom),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items::new(items)),
            Value::Object(map) => visitor.visit_map(Pairs::new(map)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_bool(false),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            other => Err(DecodeError::unexpected(other, &"a bool")),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_f64(0.0),
            Value::Number(number) => match number.as_f64() {
                Some(float) => visitor.visit_f64(float),
                None => Err(de::Error::custom(format_args!("{number} is out of range"))),
            },
            other => Err(DecodeError::unexpected(other, &"a number")),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_any(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            other => Err(DecodeError::unexpected(other, &"null")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_seq(Items::new(&[])),
            Value::Array(items) => visitor.visit_seq(Items::new(items)),
            other => Err(DecodeError::unexpected(other, &"an array")),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_map(Pairs::empty()),
            Value::Object(map) => visitor.visit_map(Pairs::new(map)),
            other => Err(DecodeError::unexpected(other, &"an object")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.0 {
            Value::Null => visitor.visit_map(Fields::default()),
            Value::Object(map) => visitor.visit_map(Fields::new(map, fields)),
            other => Err(DecodeError::unexpected(other, &"an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_enum(Variant::new(self.0)?)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }
}
