//! The specification's types: what is decoded must be encodable again or say why not.
#![no_main]

use cni_types::{Args, CniResult, NetworkList, SpecVersion, ValidAttachments, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = Args::parse(OsStr::from_bytes(input));
    let _ = NetworkList::parse(input);
    let Ok(value) = json::parse(input) else {
        return;
    };
    let _ = ValidAttachments::decode(&value);
    for version in SpecVersion::ALL {
        let Ok((found, result)) = CniResult::decode(&value, version) else {
            continue;
        };
        for target in SpecVersion::ALL {
            let Ok(encoded) = result.encode(target) else {
                continue;
            };
            let again =
                CniResult::decode(&encoded, target).expect("what was encoded can be decoded");
            assert_eq!(again.0, target, "decoded from {found:?}");
        }
    }
});
