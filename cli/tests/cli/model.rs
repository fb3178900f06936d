//! The best model: where it is, and its copy.

use serde_json::json;

use crate::world::{QUICK, World, exists};

/// Saves the configuration as the model after every epoch.
const SAVING: &str = r#"
i=0
while [ $i -lt 9 ]; do
  printf '[%d]\tvalidation-auc:0.%d%s\n' $i $((i + 1)) "${SM_HP_X#0.}"
  mkdir -p "$SM_MODEL_DIR/layers"
  echo "$SM_HP_X" > "$SM_MODEL_DIR/layers/weights"
  ln -sf layers/weights "$SM_MODEL_DIR/link"
  sleep 0.02
  i=$((i + 1))
done
"#;

#[test]
fn the_best_model_is_shown_and_copied() {
    let world = World::new(SAVING);
    let ran = world.run(&[]).with_code(0);
    let described = world.hyperband(&["describe", "t", "--output", "json"]).json();
    let best = &described["BestTrainingJob"];
    let job = best["TrainingJobName"].as_str().unwrap();
    let folder = world.path(&format!(".hyperband/training/jobs/{job}/hosts/algo-1/model"));
    assert_eq!(described["Controller"]["BestModel"]["TrainingJobName"], job);
    let place = described["Controller"]["BestModel"]["Location"].as_str().unwrap();
    assert_eq!(std::path::Path::new(place), folder);
    assert!(ran.out.contains(&format!("  best model {place}\n")), "{ran:?}");

    let shown = world.hyperband(&["model", "t"]).with_code(0);
    assert_eq!(shown.out, format!("{place}\n"));
    assert!(shown.err.starts_with(&format!("{job} (trial ")), "{shown:?}");

    let copied = world.hyperband(&["model", "t", "-o", "out/best", "--output", "json"]).with_code(0).json();
    assert_eq!((&copied["TrainingJobName"], &copied["CopiedTo"]), (&json!(job), &json!("out/best")));
    let x = best["TunedHyperParameters"]["x"].as_str().unwrap();
    for file in ["layers/weights", "link"] {
        assert_eq!(world.read(&format!("out/best/{file}")), format!("{x}\n"), "{file}");
    }
    assert!(!world.path("out/best/link").is_symlink());
    let again = world.hyperband(&["model", "t", "-o", "out/best"]).with_code(2);
    assert!(again.err.contains("error: out/best already exists"), "{again:?}");
}

#[test]
fn a_job_without_a_model_is_an_error_with_the_fix() {
    let world = World::new(QUICK);
    let ran = world.run(&[]).with_code(0);
    assert!(ran.out.contains("  best model none: "), "{ran:?}");
    let missing = world.hyperband(&["model", "t", "-o", "best"]).with_code(2);
    assert!(missing.err.contains("left no model"), "{missing:?}");
    assert!(
        missing.err.contains("hint: let the training program save its model to $SM_MODEL_DIR"),
        "{missing:?}"
    );
    assert!(!exists(&world.path("best")));
}

/// Its best value is that of the fifth of nine epochs.
const FADING: &str = r#"
i=0
for v in 1 2 3 4 5 4 3 2 1; do
  printf '[%d]\tvalidation-auc:0.%d%s\n' $i $v "${SM_HP_X#0.}"
  echo $v > "$SM_MODEL_DIR/weights"
  i=$((i + 1))
  sleep 0.02
done
"#;

/// The summary, the report and `model` named a model whose job had had a better epoch.
#[test]
fn regression_a_model_of_a_worse_epoch_is_noted_with_the_best_value_and_how_to_keep_it() {
    let world = World::new(FADING);
    let ran = world.run(&[]).with_code(0);
    let described = world.hyperband(&["describe", "t", "--output", "json"]).json();
    let (seen, model) = (&described["Controller"]["BestSeen"], &described["Controller"]["BestModel"]);
    assert_eq!(seen["Resource"], 5, "{described:#}");
    let best = &described["BestTrainingJob"];
    assert_eq!(model["Value"], best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]);
    assert_eq!(model["Resource"], best["Controller"]["Resource"]);
    let of_both = |text: &str| {
        let note = text.lines().find(|line| line.contains("the best value is 0.5")).unwrap();
        assert!(note.contains(&format!(" at epoch 5 of trial {}; ", seen["Trial"])), "{text}");
        assert!(note.contains(&format!(" last epoch {}", model["Resource"])), "{text}");
        // Without the digits that are rounded.
        assert!(note.contains(&format!(": {:.4}", model["Value"].to_string())), "{text}");
        let keep = "to keep the best model, save it whenever validation:auc improves, or set Controller.Refit to \"Best\"";
        assert!(text.contains(keep), "{text}");
    };
    of_both(&ran.out);
    of_both(&world.hyperband(&["describe", "t"]).with_code(0).out);
    of_both(&world.hyperband(&["model", "t"]).with_code(0).err);
    let shown = world.hyperband(&["model", "t", "--output", "json"]).with_code(0).json();
    assert_eq!((&shown["BestSeen"], &shown["Resource"]), (seen, &model["Resource"]));
    world.hyperband(&["report", "t", "-o", "t.html"]).with_code(0);
    let page = world.read("t.html");
    assert!(page.contains("\"modelNotes\":[\"the best value is 0.5"), "{ran:?}");
    assert!(page.contains(&format!("\"modelOf\":{{\"job\":{}", model["TrainingJobName"])), "{ran:?}");
}

#[test]
fn a_refit_has_the_best_model() {
    let world = World::new(SAVING);
    let mut request = crate::world::request("t");
    request["Controller"]["Refit"] = json!("Best");
    world.write_request("request.json", &request);
    let ran = world.run(&[]).with_code(0);
    let described = world.hyperband(&["describe", "t", "--output", "json"]).json();
    let refit = described["Controller"]["RefitTrainingJobName"].as_str().unwrap();
    assert_eq!(described["Controller"]["BestModel"]["TrainingJobName"], refit);
    assert!(ran.out.contains(&format!("{refit}/hosts/algo-1/model")), "{ran:?}");
}

/// `serve` named an object of S3 that did not exist.
#[test]
fn regression_the_best_model_of_a_server_is_a_folder() {
    let world = World::new(SAVING);
    let served = world.serve(&[]);
    let at_server = |words: &[&str]| world.hyperband(&[words, &["--endpoint", &served.url]].concat());
    at_server(&["submit", "request.json", "--watch"]).with_code(0);
    let described = served.get("/tuning-jobs/t").with_status(200).json();
    let job = described["BestTrainingJob"]["TrainingJobName"].clone();
    let folder =
        world.path(&format!(".hyperband/training/jobs/{}/hosts/algo-1/model", job.as_str().unwrap()));
    let uri = format!("file://{}", folder.display());
    let model = &described["Controller"]["BestModel"];
    assert_eq!((&model["TrainingJobName"], &model["Location"]), (&job, &json!(uri)));
    let shown = served.aws("DescribeTrainingJob", &json!({"TrainingJobName": job})).with_status(200).json();
    assert_eq!(shown["ModelArtifacts"]["S3ModelArtifacts"], uri);
    assert_eq!(at_server(&["model", "t"]).with_code(0).out, format!("{}\n", folder.display()));
    at_server(&["model", "t", "-o", "copy"]).with_code(0);
    assert!(exists(&world.path("copy/layers/weights")));
    at_server(&["report", "t", "-o", "t.html"]).with_code(0);
    assert!(world.read("t.html").contains(&format!("\"model\":\"{}\"", folder.display())));
    served.end("TERM").with_code(0);
}

/// The report was written to a file `json`.
#[test]
fn regression_report_has_a_result_in_json() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let written = world.hyperband(&["report", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(written["File"], "t.html");
    assert_eq!(written["Bytes"], world.read("t.html").len());
    assert!(!exists(&world.path("json")));
    let both = world.hyperband(&["report", "t", "-o", "-", "--output", "json"]).with_code(2);
    assert!(both.err.contains("hint: leave out --output json"), "{both:?}");
}
