//! Fuzzer of target `decider`. Its checks are in the crate `fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("decider", input));
