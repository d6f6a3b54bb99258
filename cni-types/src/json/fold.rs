//! Keys without regard to case.

use serde_json::{Map, Value};

/// Whether two keys are the same but for case (simple Unicode folding, which also makes `ſ` an
/// `s` and the Kelvin sign a `k`).
pub fn same_key(left: &str, right: &str) -> bool {
    left == right
        || left
            .chars()
            .flat_map(folded)
            .eq(right.chars().flat_map(folded))
}

fn folded(c: char) -> impl Iterator<Item = char> {
    let c = match c {
        'ſ' => 's',
        '\u{212a}' => 'k',
        other => other,
    };
    c.to_lowercase()
}

/// The last value in `object` whose key matches `key` without regard to case and is not `null`.
/// `None` also if `object` is no object.
pub fn get<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object
        .as_object()?
        .iter()
        .rfind(|(name, value)| !value.is_null() && same_key(name, key))
        .map(|(_, value)| value)
}

/// Removes every spelling of `key`.
pub fn remove(object: &mut Map<String, Value>, key: &str) {
    object.retain(|name, _| !same_key(name, key));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_match_without_case() {
        assert!(same_key("hostPort", "HOSTPORT"));
        assert!(same_key("\u{212a}ey\u{17f}", "keys"));
        assert!(!same_key("host", "hostPort"));
    }

    #[test]
    fn the_last_one_that_is_not_null_wins() {
        let value = json!({"name": 1, "NAME": 2, "Name": null});
        assert_eq!(get(&value, "name"), Some(&json!(2)));
        assert_eq!(get(&json!([1]), "name"), None);
    }
}
