//! `hyperband delete`: deletes an ended tuning from a data directory or a stack. Models, checkpoints and logs stay.

use serde_json::json;

use crate::arguments::Delete;
use crate::failure::{Exit, Failure};
use crate::output::{print_err, show};
use crate::question;
use crate::tunings::Tunings;

pub(crate) async fn delete(options: Delete) -> Result<Exit, Failure> {
    let tunings = Tunings::open_writable(&options.tuning.place).await?;
    let name = tunings.name(&options.tuning.name).await?;
    let plan = format!("this deletes the requests, decisions and values of {name}");
    let question = format!("{plan}; its models and checkpoints stay. continue?");
    if !options.yes && !question::confirmed(&plan, &question)? {
        print_err("nothing was deleted\n");
        return Ok(Exit::Done);
    }
    tunings.delete(&name).await?;
    let text = || format!("deleted {name}; its models and checkpoints stay\n");
    show(options.tuning.output, text, || json!({"HyperParameterTuningJobName": name, "Deleted": true}));
    Ok(Exit::Done)
}
