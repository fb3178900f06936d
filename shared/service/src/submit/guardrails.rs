//! What the owner of a stack allows in requests, beyond what SageMaker allows: checked before anything is stored.
//!
//! Assumes a checked request. Each refusal names the field, what was asked and what is allowed, so that a user need not ask
//! the owner. Must never let a field pass that it cannot read: what is limited and not said is refused.

use wire::request::{Request, RequestError, Violation};

/// Most allowed values that a refusal lists.
const LISTED_MAX: usize = 10;

/// The limits of a stack. The default allows everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guardrails {
    /// `Controller.MaxCostUsd` must be given.
    pub require_cost_cap: bool,
    /// Instance types that jobs may run on.
    pub instance_types: AllowList,
    /// Training images, or names of algorithms.
    pub images: AllowList,
    /// Execution roles of jobs.
    pub role_arns: AllowList,
    /// `VpcConfig` must be given.
    pub require_vpc: bool,
    /// Prices in requests are refused: those of the price list count, so that no request can talk a cap away.
    pub listed_prices_only: bool,
}

/// Values that are allowed; a `*` at the end of one stands for any rest. Empty = any value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList(Vec<String>);

impl AllowList {
    /// Reads values separated by commas; space around them and empty ones do not count.
    ///
    /// ```
    /// use service::submit::AllowList;
    /// let types = AllowList::read("ml.m5.*, ml.g5.xlarge,");
    /// assert!(types.allows("ml.m5.large") && types.allows("ml.g5.xlarge") && !types.allows("ml.g5.2xlarge"));
    /// assert!(AllowList::read(" ").allows("anything"));
    /// ```
    pub fn read(text: &str) -> Self {
        let values = text.split(',').map(str::trim).filter(|value| !value.is_empty());
        Self(values.map(str::to_owned).collect())
    }

    /// Whether `value` is allowed.
    pub fn allows(&self, value: &str) -> bool {
        let matches = |allowed: &String| match allowed.strip_suffix('*') {
            Some(prefix) => value.starts_with(prefix),
            None => value == allowed,
        };
        self.0.is_empty() || self.0.iter().any(matches)
    }

    fn listed(&self) -> String {
        let shown: Vec<&str> = self.0.iter().take(LISTED_MAX).map(String::as_str).collect();
        let more = if self.0.len() > shown.len() { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    }
}

impl Guardrails {
    /// Refuses a request that this stack does not allow, with all that is wrong.
    pub fn check(&self, request: &Request) -> Result<(), RequestError> {
        let mut violations = Vec::new();
        let mut refuse = |path: &str, message: String| {
            violations.push(Violation { path: path.to_owned(), message: format!("{message} (at '{path}')") });
        };
        if self.require_cost_cap && request.at("Controller.MaxCostUsd").is_none() {
            let message = "this stack takes no tuning job without MaxCostUsd: give it in Controller or, where a client \
                           cannot send that, as the tag 'hyperband:MaxCostUsd'";
            refuse("Controller.MaxCostUsd", message.to_owned());
        }
        if self.listed_prices_only && request.at("Controller.InstancePricesUsdPerHour").is_some() {
            let message =
                "this stack takes prices from the price list only: leave InstancePricesUsdPerHour out";
            refuse("Controller.InstancePricesUsdPerHour", message.to_owned());
        }
        for (index, choice) in request.instance_choices().into_iter().enumerate() {
            if !self.instance_types.allows(choice.instance_type) {
                let path = request.instance_type_path(index);
                refuse(&path, refused("instance type", choice.instance_type, &self.instance_types));
            }
        }
        let text = |path: &str| request.at(path).and_then(|value| value.as_str()).unwrap_or_default();
        let algorithm = "TrainingJobDefinition.AlgorithmSpecification";
        let (image, name) = (format!("{algorithm}.TrainingImage"), format!("{algorithm}.AlgorithmName"));
        let (path, value) =
            if text(&image).is_empty() { (&name, text(&name)) } else { (&image, text(&image)) };
        if !self.images.allows(value) {
            refuse(path, refused("training image", value, &self.images));
        }
        let role = "TrainingJobDefinition.RoleArn";
        if !self.role_arns.allows(text(role)) {
            refuse(role, refused("execution role", text(role), &self.role_arns));
        }
        let subnets =
            request.at("TrainingJobDefinition.VpcConfig.Subnets").and_then(|value| value.as_array());
        if self.require_vpc && subnets.is_none_or(Vec::is_empty) {
            let message = "this stack takes no training job outside a VPC: give VpcConfig";
            refuse("TrainingJobDefinition.VpcConfig", message.to_owned());
        }
        if violations.is_empty() { Ok(()) } else { Err(RequestError::validation(violations)) }
    }
}

fn refused(what: &str, value: &str, allowed: &AllowList) -> String {
    let value: String = value.chars().take(200).collect();
    format!("this stack does not allow the {what} '{value}', only {}", allowed.listed())
}
