//! The api function: handles the requests that API Gateway forwards, or those of direct invocations.
//!
//! Wiring only; the API is `http_api`. API Gateway or Lambda has authenticated the caller by IAM.

mod calls;
mod gateway;
mod outcome;
mod settings;

use std::process::ExitCode;
use std::sync::Arc;

use aws::account;
use aws::prices::PriceList;
use http_api::{Answered, Api, ApiError};
use lambda::{Call, Program, SystemClock};
use sagemaker::SageMaker;
use settings::Settings;
use use_cases::prices::{KeptPrices, WithOwnerPrices};
use use_cases::store::Store;
use use_cases::submit::Submit;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("api");
    let Settings { table: named, calls, place, monthly_cap, guardrails, access, owner_prices: owner } =
        match Settings::read(|name| std::env::var(name).ok()) {
            Ok(settings) => settings,
            Err(error) => return program.cannot_start(&error),
        };
    let account = account().await;
    let table = Arc::new(dynamodb::aws::table_of(&account, &named.table_name, named.fact_days));
    let list = KeptPrices { table: Arc::clone(&table), list: PriceList::new(&account), clock: SystemClock };
    let prices = WithOwnerPrices { owner, list };
    let store = Arc::new(Store::new(table));
    let other_tunings = Some(Arc::new(SageMaker::new(&account)) as _);
    let submit = Submit { store, other_tunings, prices, clock: SystemClock, monthly_cap, guardrails };
    let api = Api { submit, access, stack: named.stack_name.clone() };
    let handle = async |call: &mut Call| {
        let answered = match calls.request(&call.event) {
            Ok(request) => {
                let answered = call.deadline.within(api.handle(&request, &place)).await;
                answered.unwrap_or_else(|| Answered::error(ApiError::timed_out()))
            }
            Err(error) => Answered::error(error),
        };
        outcome::answered(&answered, &calls, &mut call.report);
        Ok(calls.result(&answered.response))
    };
    program.run(&named.stack_name, handle).await
}
