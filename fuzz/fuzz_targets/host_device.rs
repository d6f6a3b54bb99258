//! The host-device plugin.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ferrule_fuzz::call::<host_device::HostDevice>(input));
