//! Renders rulings as short texts, so that a test reads as a list of decisions.

use tuning::log::reasons::{StopWhy, TrialEnd};
use tuning::log::ruling::{
    AttemptRuling, Booking, GrantOrder, Launch, NoticeOrder, Order, PoolOrder, ReadOrder, Ruling,
    SearchRuling,
};

use super::build::CREATED;

/// Returns a ruling as a short text. Times are in seconds after submission.
pub(crate) fn render(ruling: &Ruling) -> String {
    match ruling {
        Ruling::Search(SearchRuling::TrialJudged { trial, bracket, rung, resource, verdict, .. }) => {
            let word = if verdict.continues { "continues" } else { "is out" };
            let place = format!("{} of {}", verdict.rank + 1, verdict.seen);
            format!("trial {trial} {word} at rung {bracket}.{rung}, epoch {resource}: {place}")
        }
        Ruling::Search(SearchRuling::TrialDrawn { trial, configuration, .. }) => {
            format!("trial {trial} is drawn: {:?}", configuration.get("InstanceCount").unwrap_or_default())
        }
        Ruling::Search(SearchRuling::RungReached { trial, bracket, rung, resource, .. }) => {
            format!("trial {trial} waits at rung {bracket}.{rung}, epoch {resource}")
        }
        Ruling::Search(SearchRuling::TrialPromoted { trial, bracket, rung, level, verdict, .. }) => {
            let place = format!("{} of {}, best {}", verdict.rank + 1, verdict.seen, verdict.allowed);
            format!("trial {trial} promoted from rung {bracket}.{rung} to {level}: {place}")
        }
        Ruling::Attempt(AttemptRuling::ResourceRepeated { job, had, from }) => {
            format!("{job} begins at {from} instead of {had}")
        }
        Ruling::Booking(Booking::PoolClosed { job, seconds, amount }) => {
            let seconds = seconds.map_or_else(|| "unknown".to_owned(), |seconds| format!("{seconds} s"));
            format!("pool of {job}: {seconds}, {}", amount.0)
        }
        Ruling::Booking(Booking::BillBooked { job, seconds, amount }) => {
            format!("bill of {job}: {seconds} s, {}", amount.0)
        }
        Ruling::Booking(Booking::ReservationExtended { job, seconds, amount }) => {
            format!("extend {job} to {seconds} s: {}", amount.0)
        }
        Ruling::Booking(Booking::SettledInFull { job, .. }) => format!("settle {job} in full"),
        Ruling::Attempt(AttemptRuling::AttemptAwaited { job, why, not_before }) => {
            format!("retry after {job}: {why:?}, from {}", (*not_before - CREATED).as_seconds())
        }
        Ruling::Attempt(AttemptRuling::TrialFinished { trial, how, .. }) => {
            format!("trial {trial} {}", end(how))
        }
        Ruling::TuningEnding { why } => format!("ending: {}", why.word()),
        Ruling::Order(order) => render_order(order),
    }
}

fn render_order(order: &Order) -> String {
    match order {
        Order::Start { job, launch, limits, .. } => {
            let Launch { resource, on_demand, instances, refit } = launch;
            let to = resource.map_or_else(String::new, |level| format!(" to {level}"));
            let how = if *on_demand { " on demand" } else { "" };
            let on = if instances.0 > 0 { format!(" on choice {instances}") } else { String::new() };
            let purpose = if *refit { " as refit" } else { "" };
            let pool = if limits.keep_alive_seconds > 0 { ", with pool" } else { "" };
            format!("start {job}{to}{how}{on}{purpose}{pool}")
        }
        Order::Stop { job, why, .. } => format!("stop {job}: {}", stop(*why)),
        Order::Read(ReadOrder::Bill { job }) => format!("bill {job}"),
        Order::Read(ReadOrder::Rest { job, .. }) => format!("read rest {job}"),
        Order::Read(ReadOrder::Log { job, .. }) => format!("read log {job}"),
        Order::Read(ReadOrder::Silence { job, since }) => {
            format!("look at {job}, silent since {}", (*since - CREATED).as_seconds())
        }
        Order::Pool(PoolOrder::Read { job, n, last }) => {
            format!("read pool of {job}: {n}{}", if *last { ", last" } else { "" })
        }
        Order::Pool(PoolOrder::Release { job }) => format!("release pool of {job}"),
        Order::Grant(GrantOrder::Request { n, least, wanted }) => {
            format!("ask {n}: {} to {}", least.0, wanted.0)
        }
        Order::Grant(GrantOrder::Return { n, month, amount, moved_to: None }) => {
            format!("return {n}: {} to {month}", amount.0)
        }
        Order::Grant(GrantOrder::Return { n, month, amount, moved_to: Some(to) }) => {
            format!("move {n}: {} from {month} to {to}", amount.0)
        }
        Order::Notice(NoticeOrder::CapReached { percent }) => {
            format!("notice: {percent} % of the cap")
        }
        Order::Notice(NoticeOrder::MonthCapReached { month, percent }) => {
            format!("notice: {percent} % of {month}")
        }
        Order::Notice(NoticeOrder::OverrunSeen) => "overrun notice".to_owned(),
        Order::Notice(NoticeOrder::CapacityLacking { .. }) => "capacity notice".to_owned(),
        Order::Notice(NoticeOrder::TuningEnded { why }) => format!("ended: {}", why.word()),
    }
}

fn stop(why: StopWhy) -> String {
    match why {
        StopWhy::Rung { rung } => format!("rung {rung}"),
        StopWhy::PastLevel { level } => format!("past level {level}"),
        StopWhy::NextInstances => "other instances".to_owned(),
        StopWhy::Quota => "quota".to_owned(),
        StopWhy::OutOfReach => "out of reach".to_owned(),
        StopWhy::Interruptions { count } => format!("{count} interruptions"),
        StopWhy::MaxResource => "max resource".to_owned(),
        StopWhy::Requested => "requested".to_owned(),
        StopWhy::TuningEnding => "tuning ending".to_owned(),
        StopWhy::TargetReached { trial } => format!("trial {trial} reached the target"),
        StopWhy::NoObjective { seconds } => format!("no objective for {seconds} s"),
        StopWhy::ReservationUsed { seconds } => format!("reservation used at {seconds} s"),
        StopWhy::CapExceeded { by } => format!("cap exceeded by {by}"),
        StopWhy::Diverged { epochs } => format!("diverged for {epochs} epochs"),
    }
}

fn end(how: &TrialEnd) -> String {
    match how {
        TrialEnd::Completed => "completed".to_owned(),
        TrialEnd::Stopped(why) => format!("stopped: {}", stop(*why)),
        TrialEnd::StoppedOutside => "stopped outside".to_owned(),
        TrialEnd::MaxRuntime => "ran out of time".to_owned(),
        TrialEnd::Failed(message) => format!("failed: {message}"),
        TrialEnd::NeverStarted => "never started".to_owned(),
    }
}
