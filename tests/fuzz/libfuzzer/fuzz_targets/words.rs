//! Fuzzer of target `words`; what it checks is in `tests/fuzz/targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_targets::run("words", input));
