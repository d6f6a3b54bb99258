//! Bytes in files: hexadecimal digits, for `#[serde(with = "hex")]`.

use serde::{Deserialize, Deserializer, Serializer, de};

pub fn serialize<T: AsRef<[u8]>, S: Serializer>(bytes: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&encode(bytes.as_ref()))
}

pub fn deserialize<'de, T: TryFrom<Vec<u8>>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let bytes = decode(&String::deserialize(from)?);
    bytes
        .and_then(|bytes| T::try_from(bytes).ok())
        .ok_or_else(|| de::Error::custom("expected hexadecimal digits"))
}

pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| Some(pair.first()? << 4 | pair.get(1)?))
        .collect()
}

/// The same for a list of options: a code, and its value in digits.
pub mod options {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(options: &[(u8, Vec<u8>)], to: S) -> Result<S::Ok, S::Error> {
        let texts = options.iter();
        let texts: Vec<(u8, String)> = texts
            .map(|(code, value)| (*code, super::encode(value)))
            .collect();
        texts.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u8, Vec<u8>)>, D::Error> {
        let texts = Vec::<(u8, String)>::deserialize(from)?.into_iter();
        texts
            .map(|(code, text)| Some((code, super::decode(&text)?)))
            .collect::<Option<_>>()
            .ok_or_else(|| de::Error::custom("expected hexadecimal digits"))
    }
}
