//! The HTTP API of a data directory, in this process.

use std::path::Path;
use std::sync::Arc;

use api_client::{ClientError, Exchange, Sending};
use dynamodb::DynamoTable;
use http_api::{Access, Answered, Api, Cause};
use local::host::{NoPrices, STACK, SystemClock, place_of};
use use_cases::describe::Place;
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use wire::events::http::HttpRequest;

/// The API over the table of a data directory.
#[derive(Debug)]
pub(crate) struct FolderApi {
    api: Api<DynamoTable, NoPrices, SystemClock>,
    place: Place,
}

impl FolderApi {
    pub(crate) fn new(store: Arc<Store<DynamoTable>>, folder: &Path) -> Self {
        let submit = Submit {
            other_tunings: None,
            store,
            prices: NoPrices,
            clock: SystemClock,
            monthly_cap: None,
            guardrails: Guardrails::default(),
        };
        let api = Api { submit, access: Access::default(), stack: STACK.to_owned() };
        Self { api, place: place_of(folder) }
    }

    pub(crate) fn store(&self) -> &Store<DynamoTable> {
        &self.api.submit.store
    }

    pub(crate) async fn handle(&self, request: &HttpRequest) -> Answered {
        self.api.handle(request, &self.place).await
    }
}

impl Exchange for FolderApi {
    fn send<'a>(&'a self, request: &'a HttpRequest) -> Sending<'a> {
        Box::pin(async {
            let answered = self.handle(request).await;
            match answered.error.and_then(|error| error.cause) {
                // The response of a server hides the cause, which here is for the user.
                Some(cause) => Err(ClientError::Host(text(*cause))),
                None => Ok(answered.response),
            }
        })
    }
}

fn text(cause: Cause) -> String {
    let error = match cause {
        Cause::Store(error) => anyhow::Error::new(error),
        Cause::Prices(error) => anyhow::Error::new(error),
        Cause::OtherTunings(error) => anyhow::Error::new(error),
        Cause::Time => anyhow::anyhow!("the request timed out"),
    };
    format!("{error:#}")
}
