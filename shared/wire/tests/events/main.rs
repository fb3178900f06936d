//! Tests of the event parsers on the samples in `events/`, on each format, and on arbitrary input.

mod arbitrary;
mod direct;
mod http;
mod job_state;
mod logs;
mod metric;
mod samples;
mod stream;
