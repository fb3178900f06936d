//! The report: a self-contained file whose document has the data of the tuning, and in which no text of the user is
//! markup. `tests/page` tests the report in a browser.

use serde_json::Value;

use crate::world::{ENDLESS, QUICK, World, ended, exists, signal, until};

/// Returns the document of a page.
pub(crate) fn document(page: &str) -> Value {
    let from = page.split_once("<script type=\"application/json\" id=\"document\">").unwrap().1;
    serde_json::from_str(from.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_report_is_one_self_contained_file() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let written = world.hyperband(&["report", "t", "-o", "report.html"]).with_code(0);
    assert!(written.err.starts_with("wrote report.html ("), "{written:?}");
    let page = world.read("report.html");
    for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"));
    assert!(!page.contains("<script>alert"), "a hyperparameter became markup");
    assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (2, 2));
    let piped = world.hyperband(&["report", "t", "-o", "-"]).with_code(0);
    assert_eq!(piped.out, page);
}

#[test]
fn the_document_of_a_report_has_the_numbers_of_describe() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let shown = document(&world.hyperband(&["report", "t", "-o", "-"]).with_code(0).out);
    let (head, own) = (&shown["head"], &described["Controller"]);
    assert_eq!(head["status"], described["HyperParameterTuningJobStatus"]);
    assert_eq!(head["jobsLaunched"], own["TrainingJobsLaunched"]);
    assert_eq!(head["brackets"], own["Brackets"]);
    assert_eq!(head["best"]["job"], described["BestTrainingJob"]["TrainingJobName"]);
    assert_eq!(head["bestSeen"]["value"], own["BestSeen"]["Value"]);
    assert_eq!(head["model"], "none: the training program saved none in $SM_MODEL_DIR");
    let spent = own["SpentUsd"].as_f64().unwrap() * 1e6;
    assert!((head["spent"].as_f64().unwrap() - spent).abs() < 0.5, "{head:#}");
    assert_eq!(Some(shown["trials"].as_array().unwrap().len() as u64), own["TrialsStarted"].as_u64());
    // How configurations were chosen: the sixth is the first of the model.
    let chosen: Vec<&str> =
        shown["trials"].as_array().unwrap().iter().map(|trial| trial["chosen"].as_str().unwrap()).collect();
    assert_eq!(chosen[0], "from the Sobol sequence, which spreads points evenly");
    assert!(chosen[5].starts_with("by the model, near trial "), "{chosen:?}");
    assert!(shown.to_string().contains("<script>alert('x')</script>"), "the value of a hyperparameter");
}

#[test]
fn a_running_tuning_has_a_report() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    let mut shown = Value::Null;
    until("it has a curve", || {
        let written = world.hyperband(&["report", "t", "-o", "-"]);
        if written.code == 0 {
            shown = document(&written.out);
        }
        shown["trials"][0]["curve"]["values"].as_array().is_some_and(|values| !values.is_empty())
    });
    assert_eq!(
        (&shown["head"]["status"], &shown["head"]["interrupted"]),
        (&"InProgress".into(), &Value::Null)
    );
    assert_eq!(shown["trials"][0]["outcome"], "running");
    signal(&child, "INT");
    ended(child).with_code(130);
    let after = document(&world.hyperband(&["report", "t", "-o", "-"]).with_code(0).out);
    assert!(after["head"]["interrupted"].as_str().unwrap().starts_with("hyperband resume t"), "{after:#}");
}

#[test]
fn an_unwritable_path_is_an_error() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let shown = world.hyperband(&["report", "t", "-o", "no/such/folder/r.html"]).with_code(2);
    assert!(shown.err.starts_with("error: cannot write no/such/folder/r.html: "), "{shown:?}");
    assert!(!exists(&world.path("no")));
}
