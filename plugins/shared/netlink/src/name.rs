//! Interface names: what the kernel takes, and random ones.

use crate::error::{Error, Result};
use crate::sys;

/// The longest interface name in bytes (`IFNAMSIZ` less its NUL, linux/if.h).
pub const NAME_MAX: usize = 15;

/// The longest alternative name in bytes (`ALTIFNAMSIZ` less its NUL).
pub const ALT_NAME_MAX: usize = 127;

/// Checks a name a link is to be given, by the kernel's own rule (`dev_valid_name`), so that the error says what is wrong
/// instead of "numerical result out of range".
///
/// # Errors
/// [`Error::BadName`].
pub fn check_name(name: &str) -> Result<()> {
    check(name, NAME_MAX, "is longer than 15 bytes")?;
    let why = match name {
        "." | ".." => "is reserved",
        _ if name.contains(['/', ':']) => "contains / or :",
        _ if name.contains('%') => "contains %, which the kernel replaces by a number",
        _ if name.contains(|c: char| c.is_ascii_whitespace() || c == '\u{b}') => {
            "contains white space"
        }
        _ => return Ok(()),
    };
    Err(Error::BadName {
        name: name.to_owned(),
        why,
    })
}

/// Checks a name a link is looked up by, which may be an alternative name.
pub(crate) fn check_lookup(name: &str) -> Result<()> {
    check(name, ALT_NAME_MAX, "is longer than 127 bytes")
}

fn check(name: &str, max: usize, too_long: &'static str) -> Result<()> {
    let why = match name {
        "" => "is empty",
        _ if name.len() > max => too_long,
        _ if name.contains('\0') => "contains a zero byte",
        _ => return Ok(()),
    };
    Err(Error::BadName {
        name: name.to_owned(),
        why,
    })
}

/// A random name for the host end of a veth pair or for a link that is renamed later: `veth` and eight hexadecimal digits.
///
/// # Errors
/// If the kernel has no random bytes.
pub fn random_name() -> Result<String> {
    let bytes = sys::random::<4>().map_err(|source| Error::Io {
        what: "choose",
        object: "a random interface name".to_owned(),
        source,
    })?;
    Ok(format!("veth{:08x}", u32::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_the_kernel_takes() {
        for name in ["a", "eth0", "br0.100", "fifteen-bytes-x", "ünï", "a@b"] {
            check_name(name).unwrap();
        }
    }

    #[test]
    fn names_the_fault() {
        let faults = [
            ("", "is empty"),
            ("sixteen-bytes-xx", "longer than 15"),
            ("a/b", "contains /"),
            ("a:b", "contains /"),
            ("a b", "white space"),
            ("veth%d", "contains %"),
            ("a\0b", "zero byte"),
            ("..", "reserved"),
        ];
        for (name, why) in faults {
            let text = check_name(name).unwrap_err().to_string();
            assert!(text.contains(why), "{text}");
        }
    }

    #[test]
    fn random_names_have_the_known_form() {
        let name = random_name().unwrap();
        assert_eq!(name.len(), 12);
        assert!(
            name.strip_prefix("veth")
                .unwrap()
                .bytes()
                .all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
        );
        assert_ne!(name, random_name().unwrap());
    }
}
