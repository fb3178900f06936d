//! The report: a self-contained file in which all text of the user is escaped.

use crate::world::{ENDLESS, QUICK, World, ended, exists, signal, until};

#[test]
fn a_report_is_one_self_contained_file() {
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
        // How configurations were chosen: the sixth is the first of the model.
        "<td>from the Sobol sequence, which spreads points evenly</td>",
        "<td>by the model, near trial ",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<tr").count() - page.matches("<tr class=\"best\">").count() + 1, {
        // A heading and 6 rows of jobs, a heading and 2 rows of rungs.
        1 + 6 + 1 + 2
    });
    assert_balanced(&page);
    let piped = world.hyperband(&["report", "t", "-o", "-"]).with_code(0);
    assert_eq!(piped.out, page);
}

#[test]
fn a_running_tuning_has_a_report() {
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
fn an_unwritable_path_is_an_error() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let shown = world.hyperband(&["report", "t", "-o", "no/such/folder/r.html"]).with_code(2);
    assert!(shown.err.starts_with("error: cannot write no/such/folder/r.html: "), "{shown:?}");
    assert!(!exists(&world.path("no")));
}

/// Asserts that every opened element is closed.
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
