//! The inside of arrays, objects and enums, as serde walks through it.

use super::decode::{DecodeError, Decoder};
use super::fold::same_key;
use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde_json::{Map, Value, map};

/// The elements of an array.
pub(super) struct Items<'de> {
    items: std::iter::Enumerate<std::slice::Iter<'de, Value>>,
}

impl<'de> Items<'de> {
    pub(super) fn new(items: &'de [Value]) -> Self {
        Items {
            items: items.iter().enumerate(),
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        self.items
            .next()
            .map(|(index, item)| {
                seed.deserialize(Decoder(item))
                    .map_err(|e| e.in_index(index))
            })
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The pairs of an object that becomes a map: every key as it is written.
pub(super) struct Pairs<'de> {
    pairs: Option<map::Iter<'de>>,
    next: Option<(&'de str, &'de Value)>,
}

impl<'de> Pairs<'de> {
    pub(super) fn new(map: &'de Map<String, Value>) -> Self {
        Pairs {
            pairs: Some(map.iter()),
            next: None,
        }
    }

    pub(super) fn empty() -> Self {
        Pairs {
            pairs: None,
            next: None,
        }
    }
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        self.next = self
            .pairs
            .as_mut()
            .and_then(Iterator::next)
            .map(|(k, v)| (k.as_str(), v));
        self.next
            .map(|(key, _)| seed.deserialize(BorrowedStrDeserializer::new(key)))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        value_of(self.next.take(), seed)
    }
}

/// The pairs of an object that becomes a struct: each key replaced by the name of the field it
/// belongs to, at most one per field, without unknown keys and `null`.
#[derive(Default)]
pub(super) struct Fields<'de> {
    fields: std::vec::IntoIter<(&'static str, &'de Value)>,
    next: Option<(&'static str, &'de Value)>,
}

impl<'de> Fields<'de> {
    pub(super) fn new(map: &'de Map<String, Value>, names: &'static [&'static str]) -> Self {
        let mut found: Vec<(&'static str, &'de Value)> = Vec::with_capacity(names.len());
        for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
            let Some(name) = field_for(key, names) else {
                continue;
            };
            match found.iter_mut().find(|(known, _)| *known == name) {
                Some(earlier) => earlier.1 = value,
                None => found.push((name, value)),
            }
        }
        Fields {
            fields: found.into_iter(),
            next: None,
        }
    }
}

fn field_for(key: &str, names: &'static [&'static str]) -> Option<&'static str> {
    names
        .iter()
        .find(|name| **name == key)
        .or_else(|| names.iter().find(|name| same_key(name, key)))
        .copied()
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        self.next = self.fields.next();
        self.next
            .map(|(key, _)| seed.deserialize(StrDeserializer::new(key)))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        value_of(self.next.take(), seed)
    }
}

fn value_of<'de, V: DeserializeSeed<'de>>(
    pair: Option<(&str, &'de Value)>,
    seed: V,
) -> Result<V::Value, DecodeError> {
    let (key, value) = pair.ok_or_else(|| de::Error::custom("value asked for before its key"))?;
    seed.deserialize(Decoder(value)).map_err(|e| e.in_key(key))
}

/// An enum: a string for a unit variant, or an object with one key.
pub(super) struct Variant<'de> {
    name: &'de str,
    content: Option<&'de Value>,
}

impl<'de> Variant<'de> {
    pub(super) fn new(value: &'de Value) -> Result<Self, DecodeError> {
        match value {
            Value::Null => Ok(Variant {
                name: "",
                content: None,
            }),
            Value::String(name) => Ok(Variant {
                name,
                content: None,
            }),
            Value::Object(map) if map.len() == 1 => map
                .iter()
                .next()
                .map(|(name, content)| Variant {
                    name,
                    content: Some(content),
                })
                .ok_or_else(|| DecodeError::unexpected(value, &"a string")),
            other => Err(DecodeError::unexpected(other, &"a string")),
        }
    }

    fn content(&self) -> Decoder<'de> {
        Decoder(self.content.unwrap_or(&Value::Null))
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = DecodeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), DecodeError> {
        let variant = seed.deserialize(BorrowedStrDeserializer::<DecodeError>::new(self.name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        match self.content {
            None => Ok(()),
            Some(content) => Err(DecodeError::unexpected(content, &"nothing")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, DecodeError> {
        seed.deserialize(self.content())
            .map_err(|e| e.in_key(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        de::Deserializer::deserialize_tuple(self.content(), len, visitor)
            .map_err(|e| e.in_key(self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        de::Deserializer::deserialize_struct(self.content(), "", fields, visitor)
            .map_err(|e| e.in_key(self.name))
    }
}
