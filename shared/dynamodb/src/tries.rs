//! Counts the attempts that the SDK made for one call.
//!
//! The SDK returns only the last answer. After a retry, an earlier attempt may have caused a failed condition: DynamoDB
//! performed it, but its answer was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextRef;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;

/// The number of attempts of one call. Clones share the counter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries(Arc<AtomicU32>);

impl Tries {
    /// Returns whether the SDK sent the call more than once.
    pub(crate) fn was_retried(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

impl Intercept for Tries {
    fn name(&self) -> &'static str {
        "Tries"
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
