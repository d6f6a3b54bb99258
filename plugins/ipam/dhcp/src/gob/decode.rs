//! Reading a stream.

use std::collections::HashMap;
use std::rc::Rc;

use super::Value;

/// The longest message that is read, in bytes.
const MESSAGE_LIMIT: usize = 4 << 20;
/// The deepest value that is read.
const DEPTH_LIMIT: u32 = 32;
/// The most types that a stream may describe.
const TYPE_LIMIT: usize = 256;

/// The numbers of the types that need no description.
const BOOL: i64 = 1;
const INT: i64 = 2;
const UINT: i64 = 3;
const FLOAT: i64 = 4;
const BYTES: i64 = 5;
const STRING: i64 = 6;
const COMPLEX: i64 = 7;
/// Those of the descriptions themselves.
const WIRE_TYPE: i64 = 16;
const ARRAY_TYPE: i64 = 17;
const COMMON_TYPE: i64 = 18;
const SLICE_TYPE: i64 = 19;
const STRUCT_TYPE: i64 = 20;
const FIELD_TYPE: i64 = 21;
const FIELD_TYPES: i64 = 22;
const MAP_TYPE: i64 = 23;

/// A stream that is no gob, or one with things that nobody sends us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GobError {
    /// A value ends before it should.
    #[error("message ends too early")]
    Short,
    /// A number that cannot be.
    #[error("invalid number")]
    Number,
    /// Longer, deeper or more than anybody needs.
    #[error("{0} is too large")]
    TooLarge(&'static str),
    /// A value of a type that was not described, or of a kind that is not understood.
    #[error("type {0} is not understood")]
    Type(i64),
    /// A field that its struct does not have.
    #[error("struct has no field {0}")]
    Field(u64),
}

#[derive(Debug, Clone)]
enum Type {
    Struct(Vec<(Rc<str>, i64)>),
    List(i64),
    Map { key: i64, value: i64 },
}

/// Reads the values of one stream.
#[derive(Debug)]
pub struct Decoder {
    types: HashMap<i64, Type>,
}

impl Default for Decoder {
    fn default() -> Self {
        let fields = |fields: &[(&str, i64)]| {
            Type::Struct(fields.iter().map(|(n, t)| (Rc::from(*n), *t)).collect())
        };
        let types = [
            (
                WIRE_TYPE,
                fields(&[
                    ("ArrayT", ARRAY_TYPE),
                    ("SliceT", SLICE_TYPE),
                    ("StructT", STRUCT_TYPE),
                    ("MapT", MAP_TYPE),
                ]),
            ),
            (
                ARRAY_TYPE,
                fields(&[("CommonType", COMMON_TYPE), ("Elem", INT), ("Len", INT)]),
            ),
            (COMMON_TYPE, fields(&[("Name", STRING), ("Id", INT)])),
            (
                SLICE_TYPE,
                fields(&[("CommonType", COMMON_TYPE), ("Elem", INT)]),
            ),
            (
                STRUCT_TYPE,
                fields(&[("CommonType", COMMON_TYPE), ("Field", FIELD_TYPES)]),
            ),
            (FIELD_TYPE, fields(&[("Name", STRING), ("Id", INT)])),
            (FIELD_TYPES, Type::List(FIELD_TYPE)),
            (
                MAP_TYPE,
                fields(&[("CommonType", COMMON_TYPE), ("Key", INT), ("Elem", INT)]),
            ),
        ];
        Self {
            types: types.into(),
        }
    }
}

impl Decoder {
    /// Takes the next value off the front of `input`, with the descriptions before it; `None` until all of it is there.
    ///
    /// # Errors
    /// [`GobError`]; the stream is of no use after that.
    pub fn next(&mut self, input: &mut Vec<u8>) -> Result<Option<Value>, GobError> {
        loop {
            let mut reader = Reader(input);
            let length = match reader.uint() {
                Err(GobError::Short) => return Ok(None),
                other => usize::try_from(other?).map_err(|_| GobError::TooLarge("message"))?,
            };
            if length > MESSAGE_LIMIT {
                return Err(GobError::TooLarge("message"));
            }
            let Some((message, rest)) = reader.0.split_at_checked(length) else {
                return Ok(None);
            };
            let (read, rest) = (self.message(message), rest.len());
            input.drain(..input.len() - rest);
            if let Some(value) = read? {
                return Ok(Some(value));
            }
        }
    }

    /// A description, which is remembered, or a value.
    fn message(&mut self, message: &[u8]) -> Result<Option<Value>, GobError> {
        let mut reader = Reader(message);
        let id = reader.int()?;
        if id >= 0 {
            // What is no struct has a zero before it at the top.
            if !matches!(self.types.get(&id), Some(Type::Struct(_))) && reader.uint()? != 0 {
                return Err(GobError::Type(id));
            }
            return self.value(&mut reader, id, 0).map(Some);
        }
        let described = id.checked_neg().ok_or(GobError::Number)?;
        let description = self.value(&mut reader, WIRE_TYPE, 0)?;
        if self.types.len() >= TYPE_LIMIT {
            return Err(GobError::TooLarge("number of types"));
        }
        let described_as = read_type(&description).ok_or(GobError::Type(described))?;
        if described <= MAP_TYPE {
            return Err(GobError::Type(described));
        }
        self.types.insert(described, described_as);
        Ok(None)
    }

    fn value(&self, reader: &mut Reader<'_>, id: i64, depth: u32) -> Result<Value, GobError> {
        if depth > DEPTH_LIMIT {
            return Err(GobError::TooLarge("depth"));
        }
        Ok(match id {
            BOOL => Value::Bool(reader.uint()? != 0),
            INT => Value::Int(reader.int()?),
            UINT => Value::Uint(reader.uint()?),
            FLOAT => {
                reader.uint()?;
                Value::Other
            }
            COMPLEX => {
                reader.uint()?;
                reader.uint()?;
                Value::Other
            }
            BYTES | STRING => Value::Bytes(reader.bytes()?.to_vec()),
            _ => match self.types.get(&id).ok_or(GobError::Type(id))? {
                Type::Struct(fields) => self.fields(reader, fields, depth)?,
                Type::List(element) => Value::List(self.elements(reader, *element, depth)?),
                Type::Map { key, value } => {
                    for _ in 0..reader.count()? {
                        self.value(reader, *key, depth + 1)?;
                        self.value(reader, *value, depth + 1)?;
                    }
                    Value::Other
                }
            },
        })
    }

    fn fields(
        &self,
        reader: &mut Reader<'_>,
        fields: &[(Rc<str>, i64)],
        depth: u32,
    ) -> Result<Value, GobError> {
        let mut values = Vec::new();
        // Fields are counted from one; the number before each is the step from the one before.
        let mut number = 0_u64;
        loop {
            let step = reader.uint()?;
            if step == 0 {
                return Ok(Value::Struct(values));
            }
            number = number.checked_add(step).ok_or(GobError::Number)?;
            let field = usize::try_from(number - 1)
                .ok()
                .and_then(|index| fields.get(index));
            let (name, id) = field.ok_or(GobError::Field(number))?;
            values.push((Rc::clone(name), self.value(reader, *id, depth + 1)?));
        }
    }

    fn elements(
        &self,
        reader: &mut Reader<'_>,
        element: i64,
        depth: u32,
    ) -> Result<Vec<Value>, GobError> {
        let mut values = Vec::new();
        for _ in 0..reader.count()? {
            values.push(self.value(reader, element, depth + 1)?);
        }
        Ok(values)
    }
}

fn read_type(description: &Value) -> Option<Type> {
    if let Some(described) = description.field("StructT") {
        let fields = described.list("Field").iter();
        return Some(Type::Struct(
            fields
                .map(|field| (field.text("Name").into(), field.number("Id").unwrap_or(0)))
                .collect(),
        ));
    }
    let list = description
        .field("SliceT")
        .or_else(|| description.field("ArrayT"));
    if let Some(described) = list {
        return Some(Type::List(described.number("Elem")?));
    }
    let map = description.field("MapT")?;
    Some(Type::Map {
        key: map.number("Key")?,
        value: map.number("Elem")?,
    })
}

/// The rest of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], GobError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(GobError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Below 128 one byte; else the negated number of bytes, and those with the highest first.
    fn uint(&mut self) -> Result<u64, GobError> {
        let first = *self.take(1)?.first().ok_or(GobError::Short)?;
        if first < 0x80 {
            return Ok(first.into());
        }
        let count = usize::from(first.wrapping_neg());
        if count > 8 {
            return Err(GobError::Number);
        }
        let bytes = self.take(count)?;
        Ok(bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The lowest bit tells whether the others are to be inverted.
    fn int(&mut self) -> Result<i64, GobError> {
        let number = self.uint()?;
        let half = (number >> 1) as i64;
        Ok(if number & 1 == 0 { half } else { !half })
    }

    fn bytes(&mut self) -> Result<&'a [u8], GobError> {
        let length = usize::try_from(self.uint()?).map_err(|_| GobError::Short)?;
        self.take(length)
    }

    /// A number of elements; each takes a byte at least.
    fn count(&mut self) -> Result<usize, GobError> {
        let count = usize::try_from(self.uint()?).map_err(|_| GobError::Short)?;
        if count > self.0.len() {
            return Err(GobError::Short);
        }
        Ok(count)
    }
}
