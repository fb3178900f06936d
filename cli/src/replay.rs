//! `hyperband replay`: repeats all decisions and compares them with the recorded ones.

use serde_json::{Value, json};
use use_cases::replay::{Replayed, replay as decide_again};

use crate::arguments::{Named, Output, Source};
use crate::failure::{Exit, Failure};
use crate::output::{print_json, print_out};
use crate::stored_tuning::StoredTuning;

pub(crate) async fn replay(options: Named<Source>) -> Result<Exit, Failure> {
    let tuning = StoredTuning::open(&options.place, &options.name).await?;
    let replayed = decide_again(&tuning.store, &tuning.row.id).await?.ok_or_else(|| tuning.deleted())?;
    let Replayed { steps, facts, rulings, difference, .. } = &replayed;
    match options.output {
        Output::Json => {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!(text));
            let difference = difference.as_ref().map(|(step, recorded, decided)| {
                json!({"Step": step, "Recorded": parsed(recorded), "Decided": parsed(decided)})
            });
            print_json(&json!({
                "Steps": steps,
                "Facts": facts,
                "Rulings": rulings,
                "Identical": difference.is_none(),
                "Difference": difference,
            }));
        }
        Output::Text => match difference {
            None => print_out(&format!("{steps} steps, {facts} facts, {rulings} rulings: identical\n")),
            Some((step, recorded, decided)) => print_out(&format!(
                "{steps} steps, {facts} facts, {rulings} rulings: step {step} differs\n  recorded {recorded}\n  \
                 decided  {decided}\n"
            )),
        },
    }
    Ok(if difference.is_none() { Exit::Done } else { Exit::Failed })
}
