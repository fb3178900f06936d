//! Tests of the parsers of what AWS delivers: the samples in `events/`, each format, and arbitrary input.

mod arbitrary;
mod http;
mod job_state;
mod logs;
mod metric;
mod samples;
mod stream;
