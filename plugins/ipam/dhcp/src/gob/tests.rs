use super::*;
use proptest::prelude::*;

fn numbers(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    uint(&mut out, value);
    out
}

#[test]
fn numbers_are_those_of_the_format() {
    assert_eq!(numbers(0), [0]);
    assert_eq!(numbers(7), [7]);
    assert_eq!(numbers(127), [127]);
    assert_eq!(numbers(128), [0xff, 128]);
    assert_eq!(numbers(256), [0xfe, 1, 0]);
    let mut out = Vec::new();
    for number in [253, -65, -1, 0] {
        int(&mut out, number);
    }
    assert_eq!(out, [0xfe, 0x01, 0xfa, 0xff, 0x81, 0x01, 0x00]);
}

proptest! {
    #[test]
    fn arbitrary_streams_are_survived(mut input in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut decoder = Decoder::default();
        while let Ok(Some(_)) = decoder.next(&mut input) {}
    }

    #[test]
    fn damaged_streams_are_survived(at in 0..600_usize, byte in any::<u8>()) {
        let mut input = crate::rpc::captured::allocated();
        if let Some(place) = input.get_mut(at) {
            *place = byte;
        }
        let mut decoder = Decoder::default();
        while let Ok(Some(_)) = decoder.next(&mut input) {}
    }
}
