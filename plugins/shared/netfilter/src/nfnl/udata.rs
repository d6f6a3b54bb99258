//! Comments inside userdata attributes: type, length, value, one byte each for the first two, as `nft` writes them.

/// Comment's type in a rule (NFTNL_UDATA_RULE_COMMENT), an element, a chain and a table alike.
const COMMENT: u8 = 0;

/// The entries of a userdata attribute.
pub fn entries(userdata: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = userdata;
    std::iter::from_fn(move || {
        let (&[kind, len], after) = rest.split_first_chunk::<2>()?;
        let (value, after) = after.split_at_checked(len.into())?;
        rest = after;
        Some((kind, value))
    })
}

/// One entry, added to a userdata attribute. Values over 255 bytes are cut.
pub fn push(userdata: &mut Vec<u8>, kind: u8, value: &[u8]) {
    let len = u8::try_from(value.len()).unwrap_or(u8::MAX);
    userdata.extend_from_slice(&[kind, len]);
    userdata.extend(value.iter().take(len.into()));
}

/// The comment in the userdata of a rule, element, chain or table.
pub fn comment(userdata: &[u8]) -> Option<String> {
    let (_, value) = entries(userdata).find(|(kind, _)| *kind == COMMENT)?;
    let end = value
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(value.len());
    Some(String::from_utf8_lossy(value.get(..end)?).into_owned())
}

/// Userdata with a comment.
pub fn with_comment(comment: &str) -> Vec<u8> {
    let mut value = comment.as_bytes().to_vec();
    value.push(0);
    let mut userdata = Vec::new();
    push(&mut userdata, COMMENT, &value);
    userdata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_reads_back() {
        assert_eq!(comment(&with_comment("a b")).as_deref(), Some("a b"));
        assert_eq!(comment(&[]), None);
        assert_eq!(comment(&[0, 9, b'x']), None, "length beyond the end");
        assert_eq!(
            comment(&[7, 1, 0, 0, 2, b'h', b'i']).as_deref(),
            Some("hi"),
            "after another entry, unterminated"
        );
    }
}
