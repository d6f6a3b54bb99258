//! Does nothing: the yardstick for what starting a static program costs.

fn main() {}
