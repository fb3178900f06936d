//! `hyperband replay`: repeats all decisions and compares them with the recorded ones.

use serde_json::{Value, json};
use use_cases::replay::{Replayed, replay as decide_again};

use crate::arguments::{Named, Source};
use crate::failure::{Exit, Failure};
use crate::output::show;
use crate::stored_tuning::StoredTuning;

pub(crate) async fn replay(options: Named<Source>) -> Result<Exit, Failure> {
    let tuning = StoredTuning::open(&options.place, &options.name).await?;
    let replayed = decide_again(&tuning.store, &tuning.row.id).await?.ok_or_else(|| tuning.deleted())?;
    let Replayed { steps, facts, rulings, difference, .. } = &replayed;
    let text = || {
        let result = match difference {
            None => "identical".to_owned(),
            Some((step, recorded, decided)) => {
                format!("step {step} differs\n  recorded {recorded}\n  decided  {decided}")
            }
        };
        format!("{steps} steps, {facts} facts, {rulings} rulings: {result}\n")
    };
    let json = || {
        let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!(text));
        let difference = difference.as_ref().map(|(step, recorded, decided)| {
            json!({"Step": step, "Recorded": parsed(recorded), "Decided": parsed(decided)})
        });
        json!({
            "Steps": steps,
            "Facts": facts,
            "Rulings": rulings,
            "Identical": difference.is_none(),
            "Difference": difference,
        })
    };
    show(options.output, text, json);
    Ok(if difference.is_none() { Exit::Done } else { Exit::Failed })
}
