//! Reads steps: money (P1), the order of rulings (P2), limits, and that a fact taken twice changes nothing.

use search::Configuration;
use tuning::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::fold::fold;
use tuning::ruling::{EndReason, Launch, Ruling, TrialEnd};
use tuning::step::{Step, load};

use super::{Book, JobBook, Money, TrialBook};

impl Book {
    /// Takes a step and says what is wrong with it.
    pub(super) fn take(&mut self, step: &Step) -> Result<(), String> {
        if step.n != self.steps + 1 {
            return Err(format!("P5: it follows step {}", self.steps));
        }
        self.steps = step.n;
        if self.ended.is_some() && !step.rulings.is_empty() {
            return Err("P3: rulings after the end".to_owned());
        }
        for recorded in &step.facts {
            self.fact(recorded);
        }
        self.count_facts(step);
        for ruling in &step.rulings {
            let checked = self.ruling(ruling).and_then(|()| self.turned(ruling));
            let checked = checked.and_then(|()| self.within_bounds(ruling));
            checked.map_err(|wrong| format!("{wrong} ({})", super::rules::name(ruling)))?;
            // P1 holds at every recorded point, not only between steps.
            self.within_cap()?;
        }
        self.within_cap()?;
        load(&self.definition, &mut self.replica, step);
        self.idempotent(step)
    }

    fn fact(&mut self, recorded: &Recorded) {
        if let Fact::BudgetGranted { amount, .. } = &recorded.fact {
            self.granted += amount.0;
        }
        if recorded.fact == Fact::StopRequested {
            self.stop_requested();
        }
        self.pool_fact(recorded);
        self.time_told(recorded.at);
        self.limits_changed(recorded);
        let Some(key) = recorded.fact.job() else { return };
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.show(&recorded.fact);
        let keeping = job.keeping;
        let mut kept = None;
        match &recorded.fact {
            Fact::JobStateChanged { phase: JobPhase::Ended(end), .. } => job.end(*end),
            Fact::JobDescribed { end, billable_seconds, .. } => {
                job.end(*end);
                if job.money == Money::Reserved {
                    let seconds = i64::try_from(*billable_seconds).unwrap_or(i64::MAX);
                    let bill = self.case.cost(job.launch.instances, seconds);
                    job.money = Money::Spent(bill);
                    kept = (job.ran || seconds > 0).then(|| job.ended.unwrap_or(recorded.at));
                    self.overrun |= bill > job.reservation - kept.map_or(0, |_| keeping);
                }
            }
            // Facts without effect are not recorded, so these are what they say.
            Fact::StartRefused { .. } | Fact::JobNeverStarted { .. } if job.money == Money::Reserved => {
                job.money = Money::Released;
                job.end_seen = true;
                job.hopeless = true;
            }
            Fact::ActionDeferred { limited: true, .. } if !job.seen => {
                job.limited = true;
                let choice = job.launch.instances;
                self.lacking(choice);
            }
            Fact::TuningSubmitted
            | Fact::StopRequested
            | Fact::LimitsChanged { .. }
            | Fact::TimePassed
            | Fact::JobStateChanged { .. }
            | Fact::MetricsLogged { .. }
            | Fact::LogRead { .. }
            | Fact::SilenceSeen { .. }
            | Fact::BudgetGranted { .. }
            | Fact::GrantReturned { .. }
            | Fact::NoticeGiven { .. }
            | Fact::JobStarted { .. }
            | Fact::JobSeen { .. }
            | Fact::StartRefused { .. }
            | Fact::JobNeverStarted { .. }
            | Fact::StopAccepted { .. }
            | Fact::PoolSeen { .. }
            | Fact::PoolOver { .. }
            | Fact::ActionDeferred { .. } => {}
        }
        if let Some(ended) = kept {
            self.kept_after(key, ended);
        }
    }

    /// Spent and reserved, by these books.
    pub(crate) fn money(&self) -> (u64, u64) {
        self.jobs.values().fold(self.pools.money(), |(spent, reserved), job| match job.money {
            Money::Reserved => (spent, reserved + job.reservation),
            Money::Spent(amount) => (spent + amount, reserved),
            Money::Released => (spent, reserved),
        })
    }

    fn ruling(&mut self, ruling: &Ruling) -> Result<(), String> {
        self.decisions.ruled(ruling);
        self.notices.extend(ruling.action().filter(|action| action.starts_with("notice-")));
        match ruling {
            Ruling::GrantOrdered { least, wanted, .. } => {
                let sound = self.definition.grants && least.0 > 0 && least <= wanted && self.may_ask();
                sound.then_some(()).ok_or_else(|| format!("P1: {least} to {wanted} are asked for"))
            }
            Ruling::ReturnOrdered { amount, .. } => {
                let left = self.granted.checked_sub(amount.0);
                self.granted = left.ok_or("P1: more is given back than was granted")?;
                Ok(())
            }
            Ruling::CapReached { .. } | Ruling::MonthCapReached { .. } => Ok(()),
            Ruling::StartOrdered { .. } => self.start(ruling),
            Ruling::StopOrdered { job, .. } => {
                let book = self.jobs.get_mut(job).ok_or("P2: of a job that was never ordered")?;
                if std::mem::replace(&mut book.stop_ordered, true) {
                    return Err(format!("P2: job {job} is stopped twice"));
                }
                (!book.end_seen).then_some(()).ok_or_else(|| format!("P2: job {job} is over"))
            }
            Ruling::BillOrdered { job } => {
                let book = self.jobs.get_mut(job).ok_or("P2: of a job that was never ordered")?;
                let twice = std::mem::replace(&mut book.bill_ordered, true);
                (!twice).then_some(()).ok_or_else(|| format!("P2: the bill of {job} is ordered twice"))
            }
            Ruling::SettledInFull { job, amount } => {
                let book = self.jobs.get_mut(job).ok_or("P2: of a job that was never ordered")?;
                if book.money != Money::Reserved || amount.0 != book.reservation {
                    return Err(format!("P1: job {job} is {:?}", book.money));
                }
                book.money = Money::Spent(amount.0);
                // It may be presumed to be over; whether it is, is checked against the training service.
                book.end_seen = true;
                book.in_full = true;
                Ok(())
            }
            Ruling::LogReadOrdered { job, .. } | Ruling::LookOrdered { job, .. } => self.known(*job),
            Ruling::PoolReadOrdered { .. }
            | Ruling::PoolReleaseOrdered { .. }
            | Ruling::PoolClosed { .. } => self.pool_ruling(ruling),
            Ruling::OverrunSeen => {
                let right = self.overrun && !std::mem::replace(&mut self.overrun_told, true);
                right
                    .then_some(())
                    .ok_or_else(|| "P1: no bill is above its reservation, or told twice".to_owned())
            }
            Ruling::AttemptAwaited { job, .. } => {
                self.promotions.tried_again = true;
                self.concluded(*job)
            }
            Ruling::TrialFinished { job, trial, how } => self.trial_finished(*job, *trial, how),
            Ruling::TrialJudged { .. } => self.judged(ruling),
            Ruling::RungReached { job, .. } => {
                job.map_or(Ok(()), |job| self.concluded(job))?;
                self.rung_reached(ruling)
            }
            Ruling::TrialPromoted { .. } => self.promoted(ruling),
            Ruling::ResourceRepeated { job, had, from } => self.repeated(*job, *had, *from),
            Ruling::TuningEnding { why } => {
                self.ending = Some(why.clone());
                match why {
                    EndReason::Failed(message) if message.contains("promise") => Err(message.clone()),
                    _ => Ok(()),
                }
            }
            Ruling::TuningEnded { why } => self.tuning_ended(why),
        }
    }

    fn known(&self, job: JobKey) -> Result<(), String> {
        let known = self.jobs.contains_key(&job);
        known.then_some(()).ok_or_else(|| format!("P2: job {job} was never ordered"))
    }

    /// A job is ordered.
    fn start(&mut self, ruling: &Ruling) -> Result<(), String> {
        let Ruling::StartOrdered { job, bracket, configuration, limits, reservation, round, launch } = ruling
        else {
            return Ok(());
        };
        self.start_ordered(*job, (*bracket, configuration), reservation.0, *launch)?;
        let keeping = self.keeping_costs(launch.instances, limits.keep_alive_seconds);
        if let Some(book) = self.jobs.get_mut(job) {
            (book.keep_seconds, book.keeping) = (limits.keep_alive_seconds, keeping);
        }
        self.launched(*job, *launch, *limits, reservation.0)?;
        if launch.refit {
            return self.refit_told(*job, launch.resource);
        }
        self.leaves_one()?;
        self.started_for(*job, (*bracket, *round), launch.resource)
    }

    fn trial_finished(&mut self, job: Option<JobKey>, trial: u32, how: &TrialEnd) -> Result<(), String> {
        if let Some(job) = job {
            self.concluded(job)?;
        }
        let book = self.trials.get_mut(&trial).ok_or("P6: of a trial that never was")?;
        if std::mem::replace(&mut book.finished, true) {
            return Err(format!("P6: trial {trial} ends twice"));
        }
        self.ended_on_its_way(job, trial, how)?;
        let key = job.filter(|_| matches!(how, TrialEnd::NeverStarted));
        let exists = key.is_some_and(|key| self.jobs.get(&key).is_some_and(|job| job.created));
        (!exists).then_some(()).ok_or_else(|| format!("P1: trial {trial} had a job"))
    }

    fn start_ordered(
        &mut self,
        key: JobKey,
        (bracket, configuration): (u32, &Configuration),
        reservation: u64,
        launch: Launch,
    ) -> Result<(), String> {
        if self.overrun {
            return Err(format!("P1: job {key} is ordered after a bill above its reservation"));
        }
        if launch.refit {
            self.refit_ordered(key)?;
        } else if self.ending.is_some() {
            return Err(format!("P3: job {key} is ordered while the tuning ends"));
        }
        let trial = self.trials.entry(key.trial).or_insert_with(|| TrialBook {
            bracket,
            configuration: configuration.clone(),
            ..TrialBook::default()
        });
        if trial.configuration != *configuration {
            return Err(format!("P6: job {key} has not the configuration of its trial"));
        }
        if trial.finished || trial.out {
            return Err(format!("P6: trial {} is over, job {key} is ordered", key.trial));
        }
        if key.attempt != trial.attempts + 1 || trial.bracket != bracket {
            return Err(format!(
                "P2: job {key} follows attempt {} in bracket {}",
                trial.attempts, trial.bracket
            ));
        }
        trial.attempts = key.attempt;
        let mut jobs = self.jobs.iter();
        let former = jobs.find(|(job, _)| job.trial == key.trial && job.attempt + 1 == key.attempt);
        // One that was stopped for its interruptions goes on on demand, one that a quota kept back on other instances.
        let goes_on = |book: &JobBook| {
            (book.interrupted || book.elsewhere) && matches!(book.end, None | Some(JobEnd::Stopped))
        };
        let hopeless = |book: &JobBook| book.hopeless && !goes_on(book);
        if former.is_some_and(|(job, book)| (job.rung == key.rung && hopeless(book)) || !book.concluded) {
            return Err(format!("P6: job {key} continues a failure, or what is not over"));
        }
        let limits = (self.limits.cap, self.limits.max_parallel);
        let book = JobBook::ordered(self.jobs.len(), reservation, launch, limits);
        if self.jobs.insert(key, book).is_some() {
            return Err(format!("P2: the name of job {key} is used twice"));
        }
        // The last job trains to the epoch of the best, however few these are.
        if !launch.refit {
            self.least_reservation = Some(self.least_reservation.map_or(reservation, |r| r.min(reservation)));
        }
        self.allowed_to_start()?;
        let limits = &self.definition.limits;
        let launched = self.jobs.values().filter(|job| job.money != Money::Released).count();
        if launched > usize::try_from(limits.max_jobs).unwrap_or(usize::MAX) {
            return Err(format!("MaxJobs: {launched} jobs were launched"));
        }
        Ok(())
    }

    fn concluded(&mut self, key: JobKey) -> Result<(), String> {
        let job = self.jobs.get_mut(&key).ok_or("P2: of a job that was never ordered")?;
        if job.money == Money::Reserved || !job.end_seen {
            return Err(format!("P1: job {key} is concluded, its money is {:?}", job.money));
        }
        let twice = std::mem::replace(&mut job.concluded, true);
        (!twice).then_some(()).ok_or_else(|| format!("P2: job {key} is concluded twice"))
    }

    /// People were told of the levels of the cap that were reached.
    fn cap_was_told(&self, why: &EndReason) -> Result<(), String> {
        let Some(cap) = self.limits.cap else { return Ok(()) };
        let told = |percent: u32| self.notices.contains(&format!("notice-cap-{percent}"));
        let spent_at_least = |percent: u64| self.money().0 * 100 >= cap * percent;
        let used_up = *why == EndReason::CostCap && !self.definition.grants && !self.overrun;
        let untold = (used_up && !told(100))
            || (spent_at_least(80) && !told(80) && !told(100))
            || (spent_at_least(50) && !told(50) && !told(80) && !told(100));
        if untold { Err(format!("P1: nobody was told of the cap of {cap}")) } else { Ok(()) }
    }

    fn tuning_ended(&mut self, why: &EndReason) -> Result<(), String> {
        self.cap_was_told(why)?;
        let limited = self.limits.cap.is_some() || self.definition.grants || self.overrun;
        if *why == EndReason::CostCap && !limited {
            return Err("P3: it ends for want of money, which nothing limits".to_owned());
        }
        if self.overrun && !self.overrun_told {
            return Err("P1: nobody was told of a bill above its reservation".to_owned());
        }
        let open = self.jobs.values().filter(|job| !job.concluded).count();
        let alive = self.trials.values().filter(|trial| !trial.finished).count();
        self.ended = Some((why.clone(), 0));
        (open + alive == 0).then_some(()).ok_or_else(|| format!("P3: {open} jobs, {alive} trials are open"))
    }

    /// A fact that was taken changes nothing when it comes again.
    fn idempotent(&self, step: &Step) -> Result<(), String> {
        if !step.n.is_multiple_of(4) {
            return Ok(());
        }
        let mut state = self.replica.clone();
        for recorded in &step.facts {
            if fold(&self.definition, &mut state, recorded) || state != self.replica {
                return Err(format!("P3: {} taken again changes the state", recorded.key));
            }
        }
        Ok(())
    }
}

impl JobBook {
    /// What a fact shows of its existence and of its instances.
    fn show(&mut self, fact: &Fact) {
        self.seen |= matches!(
            fact,
            Fact::JobStateChanged { .. }
                | Fact::JobDescribed { .. }
                | Fact::JobStarted { .. }
                | Fact::StopAccepted { .. }
                | Fact::MetricsLogged { .. }
        );
        if let Fact::JobStateChanged { started, ended, .. } | Fact::JobDescribed { started, ended, .. } = fact
        {
            self.ran |= started.is_some();
            self.ended = self.ended.or(*ended);
        }
    }

    /// One that is ordered, the `order`th.
    fn ordered(order: usize, reservation: u64, launch: Launch, limits: (Option<u64>, u32)) -> Self {
        Self {
            order,
            reservation,
            launch,
            limits,
            end: None,
            interrupted: false,
            ran: false,
            ended: None,
            keep_seconds: 0,
            keeping: 0,
            seen: false,
            limited: false,
            elsewhere: false,
            money: Money::Reserved,
            stop_ordered: false,
            bill_ordered: false,
            end_seen: false,
            hopeless: false,
            failed: false,
            level: None,
            had: 0,
            repeats_from: None,
            in_full: false,
            created: false,
            concluded: false,
        }
    }

    fn end(&mut self, end: JobEnd) {
        if !self.end_seen {
            self.end_seen = true;
            self.end = Some(end);
            self.failed = end == JobEnd::AlgorithmError;
            self.hopeless = matches!(end, JobEnd::AlgorithmError | JobEnd::Completed | JobEnd::Stopped);
        }
    }
}
