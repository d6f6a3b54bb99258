//! The word that somebody may have meant.

/// ` (did you mean "debug"?)`, or nothing where no word is near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        Some(nearest) => format!(" (did you mean {nearest:?}?)"),
        None => String::new(),
    }
}

/// The known word that takes the fewest changes to get to, if they are few for a word of that length.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).clamp(1, 4);
    let near = known
        .into_iter()
        .map(|one| (distance(word, one), one))
        .filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, one)| one)
}

/// Letters to put in, take out, replace, or exchange with the next, without regard to case.
pub fn distance(one: &str, other: &str) -> usize {
    let fold = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (one, other) = (fold(one), fold(other));
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX);
            let swapped =
                i > 0 && j > 0 && Some(a) == other.get(j - 1) && one.get(i - 1) == Some(b);
            let cost = [
                at(&above, j + 1).saturating_add(1),
                at(&row, j).saturating_add(1),
                at(&above, j).saturating_add(usize::from(a != b)),
                if swapped {
                    at(&before, j - 1).saturating_add(1)
                } else {
                    usize::MAX
                },
            ];
            row.push(cost.into_iter().min().unwrap_or(usize::MAX));
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words() {
        let keys = ["ipMasq", "isGateway", "isDefaultGateway", "mtu", "vlan"];
        for (word, expected) in [
            ("ipMask", Some("ipMasq")),
            ("isGatway", Some("isGateway")),
            ("isDefaultGatewya", Some("isDefaultGateway")),
            ("mut", Some("mtu")),
            ("bandwidth", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, keys), expected, "{word}");
        }
        assert_eq!(did_you_mean("zzz", keys), "");
    }
}
