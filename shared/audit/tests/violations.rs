//! Each promise that the audit checks, broken in the rows of a real tuning: the audit names it.
//!
//! `stop.jsonl` and `promote.jsonl` are the rows of two tunings on one machine, with 10 training jobs each. `faults.jsonl` has
//! seventeen tunings of the simulator, with most kinds of facts and rulings: grants, kept instances, lost capacity, changed limits.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use audit::{AuditError, Report, audit};
use serde_json::{Value, json};

const STOP: &str = include_str!("stop.jsonl");
const PROMOTE: &str = include_str!("promote.jsonl");
const FAULTS: &str = include_str!("faults.jsonl");

/// A change of a ruling, and a part of the violation that it causes.
type Case = (fn(&mut Value), &'static str);

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name]["S"].as_str().unwrap_or_default()
}

fn audited(rows: &[Value]) -> Result<Report, AuditError> {
    let head = rows.iter().find(|row| text(row, "sk") == "HEAD").unwrap();
    audit(text(head, "pk").strip_prefix("T#").unwrap(), rows)
}

/// Returns the first violation after a change of the rows.
fn violation(stored: &str, change: impl FnOnce(&mut Vec<Value>)) -> String {
    let mut rows = rows(stored);
    change(&mut rows);
    let report = audited(&rows).unwrap();
    report.violations.first().map(ToString::to_string).unwrap_or_default()
}

/// Changes the JSON document in an attribute of the rows whose sort key begins with `prefix`, until one changed.
fn edit(rows: &mut [Value], prefix: &str, attribute: &str, mut change: impl FnMut(&mut Value) -> bool) {
    for row in rows.iter_mut().filter(|row| text(row, "sk").starts_with(prefix)) {
        let Ok(mut document) = serde_json::from_str(text(row, attribute)) else { continue };
        if change(&mut document) {
            row[attribute]["S"] = json!(document.to_string());
            return;
        }
    }
    panic!("no row of {prefix} was changed");
}

/// Changes the `nth` ruling of a kind.
fn ruling(rows: &mut [Value], kind: &str, nth: usize, change: impl FnOnce(&mut Value)) {
    let mut change = Some(change);
    let mut before = 0;
    edit(rows, "STEP#", "data", |step| {
        let rulings = step["rulings"].as_array_mut().unwrap();
        for ruling in rulings.iter_mut().filter(|ruling| ruling.get(kind).is_some()) {
            if before == nth {
                (change.take().unwrap())(&mut ruling[kind]);
                return true;
            }
            before += 1;
        }
        false
    });
}

/// Changes the rulings of the first step that has one of a kind.
fn rulings_with(rows: &mut [Value], kind: &str, change: impl FnOnce(&mut Vec<Value>)) {
    let mut change = Some(change);
    edit(rows, "STEP#", "data", |step| {
        let rulings = step["rulings"].as_array_mut().unwrap();
        let has = rulings.iter().any(|ruling| ruling.get(kind).is_some());
        if has {
            (change.take().unwrap())(rulings);
        }
        has
    });
}

/// Adds a fact to the step with the `nth` ruling of a kind.
fn facts_before(rows: &mut [Value], kind: &str, nth: usize, fact: Value) {
    let mut before = 0;
    let mut fact = Some(fact);
    edit(rows, "STEP#", "data", |step| {
        let own = step["rulings"].as_array().unwrap().iter().filter(|ruling| ruling.get(kind).is_some());
        before += own.count();
        if before <= nth {
            return false;
        }
        let at = step["at"].clone();
        let fact = json!({"key": "added", "at": at, "fact": fact.take()});
        step["facts"].as_array_mut().unwrap().push(fact);
        true
    });
}

/// Removes the first ruling of a kind.
fn without(rows: &mut [Value], kind: &str) {
    edit(rows, "STEP#", "data", |step| {
        let rulings = step["rulings"].as_array_mut().unwrap();
        let found = rulings.iter().position(|ruling| ruling.get(kind).is_some());
        found.map(|index| rulings.remove(index)).is_some()
    });
}

#[test]
fn real_tunings_keep_their_promises() {
    for (stored, steps, jobs) in [(STOP, 132, 10), (PROMOTE, 89, 10)] {
        let report = audited(&rows(stored)).unwrap();
        assert_eq!(report.violations, []);
        assert_eq!((report.steps, report.jobs, report.without_bill), (steps, jobs, 0));
        assert!(report.facts > steps && report.spent > 0 && report.actions > Some(20), "{report:?}");
    }
}

#[test]
fn tunings_under_faults_keep_their_promises() {
    let rows = rows(FAULTS);
    let heads = rows.iter().filter(|row| text(row, "sk") == "HEAD");
    let reports: Vec<Report> = heads
        .map(|head| audit(text(head, "pk").strip_prefix("T#").unwrap(), &rows).unwrap())
        .inspect(|report| assert_eq!(report.violations, []))
        .collect();
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    let counts = [
        sum(|report| report.steps),
        sum(|report| report.facts),
        sum(|report| report.rulings),
        sum(|report| report.jobs),
        sum(|report| report.without_bill),
        sum(|report| report.actions.unwrap_or(0)),
        sum(|report| report.spent),
    ];
    assert_eq!(counts, [480, 551, 283, 54, 1, 188, 4_305_786]);
}

#[test]
fn rows_may_have_any_order_and_belong_to_several_tunings() {
    let mut all = rows(PROMOTE);
    all.extend(rows(STOP));
    all.reverse();
    for of in [STOP, PROMOTE] {
        let own = rows(of);
        let head = own.iter().find(|row| text(row, "sk") == "HEAD").unwrap();
        let id = text(head, "pk").strip_prefix("T#").unwrap();
        assert_eq!(audit(id, &all), audited(&own));
    }
}

/// P1: spent + reserved <= cap at every step.
#[test]
fn money_beyond_the_cap_is_found() {
    let found =
        violation(STOP, |rows| ruling(rows, "Start", 3, |start| start["reservation"] = json!(499_999)));
    assert!(found.starts_with("P1, step") && found.contains("reserved, above the cap of 500000"), "{found}");
    let found = violation(STOP, |rows| {
        edit(rows, "META", "definition", |definition| {
            definition["cap"] = json!(5_000);
            true
        });
    });
    assert!(found.contains("above the cap of 5000 (micro-dollars)"), "{found}");
    let found = violation(STOP, |rows| {
        edit(rows, "META", "definition", |definition| {
            definition["grants"] = json!(true);
            true
        });
    });
    assert!(found.contains("above the grants of 0"), "{found}");
}

/// P1: the bills are those of the service, at the price of the request.
#[test]
fn a_wrong_bill_is_found() {
    let found = violation(PROMOTE, |rows| ruling(rows, "BillBooked", 0, |bill| bill["amount"] = json!(1)));
    assert!(found.contains("is booked with 1;"), "{found}");
    let found = violation(PROMOTE, |rows| ruling(rows, "BillBooked", 0, |bill| bill["seconds"] = json!(900)));
    assert!(found.contains("is booked with 900 s; the service billed"), "{found}");
    let found = violation(STOP, |rows| {
        edit(rows, "JOB#", "data", |summary| {
            summary["cost"] = json!(7);
            true
        });
    });
    assert!(
        found.starts_with("P1: the summary of job") && found.contains("has the cost 7, the steps have 64"),
        "{found}"
    );
    let found = violation(STOP, |rows| {
        edit(rows, "STEP#", "data", |step| {
            let facts = step["facts"].as_array_mut().unwrap();
            let bill = facts.iter().position(|fact| fact["fact"].get("JobDescribed").is_some());
            bill.map(|index| facts.remove(index)).is_some()
        });
    });
    assert!(found.contains("the tuning has ended with") && found.contains("reserved"), "{found}");
}

/// P1: the limits of the request hold as well.
#[test]
fn more_jobs_than_the_limits_allow_are_found() {
    for (limit, most, name) in
        [("max_jobs", 9, "MaxNumberOfTrainingJobs"), ("max_parallel", 1, "MaxParallelTrainingJobs")]
    {
        let found = violation(STOP, |rows| {
            edit(rows, "META", "definition", |definition| {
                definition["limits"][limit] = json!(most);
                true
            });
        });
        assert!(found.contains(&format!("{name} allows {most}")), "{found}");
    }
}

/// P2: no decision is performed twice with effect, none is lost.
#[test]
fn a_repeated_or_lost_decision_is_found() {
    let found = violation(STOP, |rows| {
        ruling(rows, "Start", 1, |start| start["job"]["trial"] = json!(0));
    });
    assert!(found.contains("the action start-0-0-1 is ordered twice"), "{found}");
    let found = violation(STOP, |rows| ruling(rows, "Stop", 0, |stop| stop["job"]["attempt"] = json!(7)));
    assert!(found.contains("is stopped, but it does not run"), "{found}");
    let found = violation(STOP, |rows| {
        edit(rows, "STEP#", "data", |step| {
            let facts = step["facts"].as_array_mut().unwrap();
            let again = facts.first().cloned();
            facts.extend(again);
            facts.len() > 1
        });
    });
    assert!(found.contains("had an effect before"), "{found}");
    let found = violation(STOP, |rows| without(rows, "TrialFinished"));
    assert!(found.contains("the tuning ends, and no step concludes"), "{found}");
    let found = violation(STOP, |rows| rows.retain(|row| !text(row, "sk").starts_with("stop-")));
    assert!(found.contains("has no row in the outbox: it is lost"), "{found}");
    let found = violation(STOP, |rows| {
        let row = rows.iter_mut().find(|row| text(row, "sk").starts_with("start-")).unwrap();
        row["sk"]["S"] = json!("start-99-0-1");
    });
    assert!(found.contains("no step orders the action start-99-0-1"), "{found}");
}

/// P2: a trial runs in one job at a time, and an ended tuning decides nothing.
#[test]
fn a_decision_that_may_not_occur_is_found() {
    let found = violation(STOP, |rows| {
        ruling(rows, "Start", 1, |start| {
            start["job"]["trial"] = json!(0);
            start["job"]["attempt"] = json!(2);
        });
    });
    assert!(found.contains("job 0-0-2 starts while job 0-0-1 of its trial runs"), "{found}");
    let found = violation(STOP, |rows| {
        ruling(rows, "Start", 9, |start| start["job"] = json!({"trial": 0, "rung": 0, "attempt": 2}));
    });
    assert!(found.contains("job 0-0-2 starts, although its trial is finished"), "{found}");
    let found = violation(STOP, |rows| {
        rulings_with(rows, "TuningEnded", |rulings| {
            rulings.push(json!({"ReadBill": {"job": {"trial": 0, "rung": 0, "attempt": 9}}}));
        });
    });
    assert!(found.contains("a decision after the end of the tuning: ReadBill"), "{found}");
    let found = violation(STOP, |rows| {
        rulings_with(rows, "TrialFinished", |rulings| {
            let again = rulings.iter().find(|ruling| ruling.get("TrialFinished").is_some()).cloned();
            let mut again = again.unwrap();
            again["TrialFinished"]["job"] = Value::Null;
            rulings.push(again);
        });
    });
    assert!(found.contains("trial 0 finishes twice"), "{found}");
    let found = violation(STOP, |rows| {
        facts_before(rows, "Start", 4, json!({"LimitsChanged": {"paused": true}}));
    });
    assert!(found.contains("job 4-0-1 starts while the tuning is paused"), "{found}");
}

/// P1: money that the steps reserve, grant, return or settle counts at each start.
#[test]
fn money_that_moves_counts_for_the_cap() {
    let extended =
        json!({"ReservationExtended": {"job": {"trial": 0, "rung": 0, "attempt": 1}, "amount": 490_000}});
    let found = violation(STOP, |rows| rulings_with(rows, "Start", |rulings| rulings.push(extended)));
    assert!(found.contains("above the cap of 500000"), "{found}");

    let granted = |returned: u64, moved_to: Value| {
        violation(STOP, |rows| {
            edit(rows, "META", "definition", |definition| {
                definition["grants"] = json!(true);
                true
            });
            facts_before(rows, "Start", 0, json!({"BudgetGranted": {"amount": 400_000}}));
            rulings_with(rows, "TrialFinished", |rulings| {
                let returned = json!({"amount": returned, "month": "2026-12", "moved_to": moved_to});
                rulings.push(json!({"ReturnGrant": returned}));
            });
        })
    };
    assert_eq!(granted(1, Value::Null), "");
    assert_eq!(granted(399_990, json!("2027-01")), "");
    let found = granted(399_990, Value::Null);
    assert!(found.contains("above the grants of 10 "), "{found}");

    let settled = |amount: u64| {
        violation(STOP, |rows| {
            rulings_with(rows, "Start", |rulings| {
                let job = json!({"trial": 0, "rung": 0, "attempt": 1});
                rulings.push(json!({"SettledInFull": {"job": job, "amount": amount}}));
            });
        })
    };
    let found = settled(1);
    assert!(found.contains("job 0-0-1 is settled in full at 1; its limits cost 1917"), "{found}");
    let found = settled(11_500);
    assert!(!found.contains("is settled in full at"), "{found}");
}

/// P5: the steps are one chain, to the head.
#[test]
fn a_missing_step_is_found() {
    let found = violation(STOP, |rows| rows.retain(|row| !text(row, "sk").contains("40")));
    assert!(found.starts_with("P5, step 41: it follows step 39 of "), "{found}");
    let found = violation(STOP, |rows| {
        let last = rows.iter().rposition(|row| text(row, "sk").starts_with("STEP#")).unwrap();
        rows.remove(last);
    });
    assert!(found.contains("P5: the last step is 131, and the head has 132"), "{found}");
    let found = violation(STOP, |rows| rows.retain(|row| !text(row, "sk").starts_with("JOB#000003")));
    assert!(found.contains("differ in whether these jobs are concluded: 3-0-1"), "{found}");
}

#[test]
fn all_violations_are_counted_and_the_first_hundred_are_listed() {
    let mut rows = rows(STOP);
    for row in rows.iter_mut().filter(|row| text(row, "sk").starts_with("STEP#")) {
        let mut step: Value = serde_json::from_str(text(row, "data")).unwrap();
        step["at"] = json!(-step["n"].as_i64().unwrap());
        row["data"]["S"] = json!(step.to_string());
    }
    let report = audited(&rows).unwrap();
    // Each of the 132 steps but the first is before the one that it follows.
    assert_eq!((report.violations.len(), report.violation_count), (100, 131));
}

/// P6: a rung never promotes more than it may, never a failure.
#[test]
fn a_wrong_comparison_is_found() {
    let judged = |change: fn(&mut Value)| violation(STOP, |rows| ruling(rows, "TrialJudged", 6, change));
    let cases: [Case; 6] = [
        (|judged| judged["verdict"]["rank"] = json!(40), "(rank, seen, allowed, continues) is (40,"),
        (|judged| judged["verdict"]["seen"] = json!(41), "the values in the steps give"),
        (|judged| judged["verdict"]["allowed"] = json!(42), "the values in the steps give"),
        (|judged| judged["level"] = json!(3), "is compared at 3 epochs as rung"),
        (|judged| judged["value"] = json!(0.123), "is compared with 0.123, which its log never showed"),
        (|judged| judged["value"] = Value::Null, "the values in the steps give"),
    ];
    for (change, expected) in cases {
        let found = judged(change);
        assert!(found.starts_with("P6, step") && found.contains(expected), "{expected}: {found}");
    }
    let found = violation(STOP, |rows| without(rows, "Stop"));
    assert!(found.contains("epochs, and its job is not stopped"), "{found}");
    let found = violation(STOP, |rows| ruling(rows, "Stop", 0, |stop| stop["because"]["level"] = json!(77)));
    assert!(found.contains("is stopped at 77 epochs, where it lost no comparison"), "{found}");
}

/// P6: a rung never promotes more than it may, never a failure.
#[test]
fn a_wrong_promotion_is_found() {
    let promoted =
        |change: fn(&mut Value)| violation(PROMOTE, |rows| ruling(rows, "TrialPromoted", 1, change));
    let cases: [Case; 4] = [
        (|promoted| promoted["verdict"]["rank"] = json!(30), "with rank 30; the values give"),
        (|promoted| promoted["verdict"]["allowed"] = json!(40), "of 40 allowed and 2 seen;"),
        (|promoted| promoted["value"] = json!(0.5), "is promoted with 0.5; it waited with"),
        (|promoted| promoted["value"] = Value::Null, "is promoted with no value; it waited with"),
    ];
    for (change, expected) in cases {
        let found = promoted(change);
        assert!(found.starts_with("P6, step") && found.contains(expected), "{expected}: {found}");
    }
    let found = violation(PROMOTE, |rows| without(rows, "TrialPromoted"));
    assert!(found.contains("starts, although its trial was not promoted"), "{found}");
    let found =
        violation(PROMOTE, |rows| ruling(rows, "RungReached", 0, |reached| reached["level"] = json!(9)));
    assert!(found.contains("waits at 9 epochs as rung 0, which is at "), "{found}");
    let found =
        violation(PROMOTE, |rows| ruling(rows, "RungReached", 0, |reached| reached["value"] = json!(0.5)));
    assert!(found.contains("waits with 0.5, which its log never showed"), "{found}");
}

#[test]
fn incomplete_and_newer_rows_are_errors() {
    let error = |change: fn(&mut Vec<Value>)| {
        let mut rows = rows(STOP);
        change(&mut rows);
        audited(&rows).unwrap_err().to_string()
    };
    let missing = error(|rows| rows.retain(|row| text(row, "sk") != "META"));
    assert!(missing.contains("no definition of the tuning"), "{missing}");
    let newer = error(|rows| ruling(rows, "Stop", 0, |stop| *stop = json!({"job": "3"})));
    assert!(newer.contains("unreadable row T#"), "{newer}");
    let unknown = error(|rows| {
        edit(rows, "STEP#", "data", |step| {
            step["rulings"] = json!([{"TrialMoved": {}}]);
            true
        });
    });
    assert!(unknown.contains("unknown variant `TrialMoved`"), "{unknown}");
}
