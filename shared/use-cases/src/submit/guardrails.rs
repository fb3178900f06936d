//! The limits that the owner of a stack sets for requests, in addition to SageMaker's limits. They are checked before
//! anything is stored.
//!
//! Assumes a validated request. Each refusal names the field, the requested value and the allowed values, so that a
//! user need not ask the owner. A limited field that is missing or unreadable is refused.

use tuning::definition::Allowances;
use tuning::unit::money::MicroUsd;
use wire::change::LimitsChange;
use wire::request::{DefaultTags, Request, RequestError, Violation, usd};

/// Most allowed values that a refusal lists.
const LISTED_MAX: usize = 10;

/// The limits of a stack. The default allows everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guardrails {
    /// Whether `Controller.MaxCostUsd` is required.
    pub require_cost_cap: bool,
    /// The most that `MaxCostUsd` may be, now and after a change. With it, `MaxCostUsd` is required.
    pub max_tuning_cost: Option<MicroUsd>,
    /// Instance types that training jobs may use.
    pub instance_types: AllowList,
    /// Training images or algorithm names that training jobs may use.
    pub images: AllowList,
    /// Execution roles that training jobs may use.
    pub role_arns: AllowList,
    /// Whether `VpcConfig` is required.
    pub require_vpc: bool,
    /// Subnets that training jobs may use. With a value, `VpcConfig` is required.
    pub subnets: AllowList,
    /// Security groups that training jobs may use. With a value, `VpcConfig` is required.
    pub security_groups: AllowList,
    /// Tags that every training job gets. A request may not have other values of their keys.
    pub job_tags: DefaultTags,
    /// Keys of the tags that every training job must have.
    pub required_tags: Vec<String>,
    /// Which prices requests may set themselves.
    pub request_prices: RequestPrices,
    /// The least allowances that a reservation contains, also where a request sets none.
    pub least_allowances: Allowances,
}

/// Which prices (`InstancePricesUsdPerHour`) requests may set themselves. A price that is too low evades every cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestPrices {
    /// Any.
    #[default]
    Any,
    /// Prices that are not below the price list's. An instance type without a listed price needs one of the owner, unless
    /// no cap depends on it.
    NotBelowList,
    /// None: the price list alone counts.
    Refused,
}

/// Allowed values. A `*` at the end of a value matches any rest. An empty list allows any value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList(Vec<String>);

impl AllowList {
    /// Reads values separated by commas. Ignores empty values and surrounding whitespace.
    ///
    /// ```
    /// use use_cases::submit::AllowList;
    /// let types = AllowList::read("ml.m5.*, ml.g5.xlarge,");
    /// assert!(types.allows("ml.m5.large") && types.allows("ml.g5.xlarge") && !types.allows("ml.g5.2xlarge"));
    /// assert!(AllowList::read(" ").allows("anything"));
    /// ```
    pub fn read(text: &str) -> Self {
        let values = text.split(',').map(str::trim).filter(|value| !value.is_empty());
        Self(values.map(str::to_owned).collect())
    }

    /// Returns whether `value` is allowed.
    pub fn allows(&self, value: &str) -> bool {
        let matches = |allowed: &String| match allowed.strip_suffix('*') {
            Some(prefix) => value.starts_with(prefix),
            None => value == allowed,
        };
        self.0.is_empty() || self.0.iter().any(matches)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn listed(&self) -> String {
        let shown: Vec<&str> = self.0.iter().take(LISTED_MAX).map(String::as_str).collect();
        let more = if self.0.len() > shown.len() { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    }
}

impl Guardrails {
    /// Refuses a request that violates the limits. The error lists all violations.
    pub fn check(&self, request: &Request) -> Result<(), RequestError> {
        let mut violations = Vec::new();
        let mut refuse = |path: &str, message: String| {
            violations.push(Violation { path: path.to_owned(), message: format!("{message} (at '{path}')") });
        };
        let is_required = self.require_cost_cap || self.max_tuning_cost.is_some();
        if is_required && !request.is_capped() {
            let message = "this stack requires MaxCostUsd: set Controller.MaxCostUsd or, if your client cannot \
                           send it, the tag 'hyperband:MaxCostUsd'";
            refuse("Controller.MaxCostUsd", message.to_owned());
        }
        // An unreadable cap is refused later.
        if let Some(message) = request.cap().ok().flatten().and_then(|cap| self.excess(cap)) {
            refuse("Controller.MaxCostUsd", message);
        }
        if self.request_prices == RequestPrices::Refused && request.given_prices().is_some() {
            let message =
                "this stack accepts prices from the price list only: remove InstancePricesUsdPerHour";
            refuse("Controller.InstancePricesUsdPerHour", message.to_owned());
        }
        for (index, one) in request.definitions().enumerate() {
            let mut refuse = |path: &str, message| refuse(&request.path_of(path, index), message);
            for (index, choice) in one.own_choices().into_iter().enumerate() {
                if !self.instance_types.allows(choice.instance_type) {
                    let path = one.instance_type_path(index);
                    refuse(&path, refused("instance type", choice.instance_type, &self.instance_types));
                }
            }
            let (path, image) = one.image();
            if !self.images.allows(image) {
                refuse(path, refused("training image", image, &self.images));
            }
            let role = one.role_arn();
            if !self.role_arns.allows(role) {
                refuse("TrainingJobDefinition.RoleArn", refused("execution role", role, &self.role_arns));
            }
            self.check_network(one, &mut refuse);
        }
        for key in &self.required_tags {
            if !request.job_tags().any(|(given, _)| given == key) {
                refuse("Tags", format!("this stack requires the tag '{key}': add it to Tags"));
            }
        }
        for (key, given) in request.job_tags() {
            if let Some(own) = self.job_tags.get(key).filter(|own| *own != given) {
                refuse("Tags", format!("this stack sets the tag '{key}' to '{own}': remove it from Tags"));
            }
        }
        self.check_allowances(request, &mut refuse);
        if violations.is_empty() { Ok(()) } else { Err(RequestError::validation(violations)) }
    }

    fn check_allowances(&self, request: &Request, refuse: &mut impl FnMut(&str, String)) {
        let least = [self.least_allowances.startup_seconds, self.least_allowances.upload_seconds];
        for ((path, given), least) in request.given_allowances().into_iter().zip(least) {
            let Some(given) = given.filter(|given| *given < least) else { continue };
            let field = path.trim_start_matches("Controller.");
            refuse(
                path,
                format!("invalid {field} {given}: this stack requires at least {least}; raise or remove it"),
            );
        }
    }

    fn check_network(&self, request: &Request, refuse: &mut impl FnMut(&str, String)) {
        let required = self.require_vpc || !self.subnets.is_empty() || !self.security_groups.is_empty();
        if required && !request.is_in_vpc() {
            let message = "this stack requires training jobs in a VPC: set VpcConfig";
            refuse("TrainingJobDefinition.VpcConfig", message.to_owned());
        }
        let path = |field: &str, index: usize| format!("TrainingJobDefinition.VpcConfig.{field}[{index}]");
        for (index, subnet) in request.subnets().enumerate() {
            if !self.subnets.allows(subnet) {
                refuse(&path("Subnets", index), refused("subnet", subnet, &self.subnets));
            }
        }
        for (index, group) in request.security_groups().enumerate() {
            if !self.security_groups.allows(group) {
                refuse(
                    &path("SecurityGroupIds", index),
                    refused("security group", group, &self.security_groups),
                );
            }
        }
    }

    /// Refuses a change of limits that violates the limits of the stack.
    pub fn check_change(&self, change: &LimitsChange) -> Result<(), RequestError> {
        let excess = change.cap.and_then(|cap| self.excess(cap));
        excess.map_or(Ok(()), |message| Err(RequestError::field("MaxCostUsd", &message)))
    }

    /// Returns the refusal of a cap above the maximum.
    fn excess(&self, cap: MicroUsd) -> Option<String> {
        let most = self.max_tuning_cost.filter(|most| cap > *most)?;
        Some(format!(
            "this stack allows a MaxCostUsd of at most {}, not {}: lower it, or ask the owner of the stack to raise \
             MaxTuningCostUsd",
            usd(most),
            usd(cap),
        ))
    }
}

/// Returns the refusal of a price below the listed one, both in micro-dollars per hour.
pub(super) fn below_list(instance_type: &str, given: u64, listed: u64) -> Violation {
    let path = "Controller.InstancePricesUsdPerHour";
    let message = format!(
        "the price {} USD per hour of {instance_type} is below the list price of {} USD: remove it, set at least the \
         list price, or ask the owner of the stack to allow any price (PricesInRequests) (at '{path}')",
        usd(MicroUsd(given)),
        usd(MicroUsd(listed)),
    );
    Violation { path: path.to_owned(), message }
}

/// Returns the refusal of a price for an instance type that the price list lacks.
pub(super) fn not_listed(instance_type: &str) -> Violation {
    let path = "Controller.InstancePricesUsdPerHour";
    let message = format!(
        "the price list has no {instance_type}, so this stack cannot verify the price on which a cap depends: use a listed \
         instance type, or ask the owner of the stack to set its price (InstancePrices={instance_type}=<USD per hour>) \
         (at '{path}')"
    );
    Violation { path: path.to_owned(), message }
}

fn refused(what: &str, value: &str, allowed: &AllowList) -> String {
    let value: String = value.chars().take(200).collect();
    format!("this stack does not allow the {what} '{value}': allowed are {}", allowed.listed())
}
