//! The vrf plugin.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ferrule_fuzz::call::<vrf::Vrf>(input));
