//! The report: one file, nothing from outside, nothing of the user's text taken for markup.

use crate::world::{ENDLESS, QUICK, World, ended, exists, signal, until};

#[test]
fn a_report_is_one_file_that_needs_nothing_else() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let written = world.hyperband(&["report", "t", "-o", "report.html"]).with_code(0);
    assert!(written.err.starts_with("wrote report.html ("), "{written:?}");
    let page = world.read("report.html");
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(!page.contains("<script>alert"), "a hyperparameter became markup");
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    assert_eq!(page.matches("<script>").count(), 1);
    for part in [
        "prefers-color-scheme: dark",
        "<h2 id=\"curves\">",
        "class=\"curve best",
        "class=\"rung\"",
        "aria-label=\"validation:auc by epoch",
        "class=\"sortable\"",
        "<details><summary>trial 0 (",
        "class=\"step spent\"",
        "<td class=\"n\">",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<tr").count() - page.matches("<tr class=\"best\">").count() + 1, {
        // A head and a row for each of 6 jobs, a head and a row for each of 6 rungs.
        1 + 6 + 1 + 6
    });
    assert_balanced(&page);
    let piped = world.hyperband(&["report", "t", "-o", "-"]).with_code(0);
    assert_eq!(piped.out, page);
}

#[test]
fn a_tuning_that_runs_has_a_report_too() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    until("it has a curve", || {
        world.hyperband(&["report", "t", "-o", "now.html"]).code == 0
            && world.read("now.html").contains("<circle class=\"curve")
    });
    assert!(world.read("now.html").contains("<span class=\"status inprogress\">InProgress</span>"));
    signal(&child, "INT");
    ended(child).with_code(130);
}

#[test]
fn a_place_that_cannot_be_written_is_told() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let told = world.hyperband(&["report", "t", "-o", "no/such/folder/r.html"]).with_code(2);
    assert!(told.err.starts_with("error: cannot write no/such/folder/r.html: "), "{told:?}");
    assert!(!exists(&world.path("no")));
}

/// Every element that was opened is closed.
fn assert_balanced(page: &str) {
    for element in [
        "table", "tr", "td", "th", "details", "ol", "li", "svg", "g", "section", "dl", "dt", "dd", "title",
        "code",
    ] {
        let opened =
            page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
}
