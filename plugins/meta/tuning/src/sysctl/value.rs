//! Whether two texts mean the same value of a kernel setting.

/// Whether they do: field by field, whatever stands between the fields, since the kernel separates by tabs what people
/// write with blanks. A number counts by its value, and a list of ports by the ports in it.
pub fn same_value(wanted: &str, found: &str) -> bool {
    let mut wanted = wanted.split_whitespace();
    let mut found = found.split_whitespace();
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if same_field(one, other) => {}
            _ => return false,
        }
    }
}

fn same_field(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        _ => matches!((ranges(one), ranges(other)), (Some(one), Some(other)) if one == other),
    }
}

/// As the kernel reads one: decimal, hexadecimal after `0x`, octal after `0`.
fn number(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (radix, digits) = match digits.strip_prefix('0') {
        Some(rest) if rest.starts_with(['x', 'X']) => (16, rest.get(1..)?),
        Some(rest) if !rest.is_empty() => (8, rest),
        _ => (10, digits),
    };
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    i128::from_str_radix(digits, radix).ok().map(|n| sign * n)
}

/// `80,8080-8090` as ranges that neither touch nor overlap, in order.
fn ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.push((first.parse().ok()?, last.parse().ok()?));
    }
    all.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::new();
    for (first, last) in all {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::same_value;

    #[test]
    fn the_same() {
        for (wanted, found) in [
            ("", ""),
            ("1", "1"),
            (" 1 \n", "1"),
            ("1024 65535", "1024\t65535"),
            ("4096  87380\t6291456", "4096\t87380\t6291456"),
            ("0x10", "16"),
            ("010", "8"),
            ("-0x1", "-1"),
            ("cubic", "cubic"),
            ("8080,9148,8081", "8080-8081,9148"),
            ("80-90,85-100,101", "80-101"),
        ] {
            assert!(same_value(wanted, found), "{wanted:?} {found:?}");
        }
    }

    #[test]
    fn not_the_same() {
        for (wanted, found) in [
            ("1", "0"),
            ("1", ""),
            ("", "1"),
            ("1 2", "1"),
            ("1", "1 2"),
            ("12", "1 2"),
            ("1.0", "1"),
            ("Cubic", "cubic"),
            ("80,81", "80,82"),
            ("80-", "80"),
            ("a,b", "b,a"),
            ("0xg", "0"),
        ] {
            assert!(!same_value(wanted, found), "{wanted:?} {found:?}");
        }
    }
}
