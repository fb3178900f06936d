//! Describe and its relatives against the sample responses.
