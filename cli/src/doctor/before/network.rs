//! The VPC of training jobs: endpoints, and routes out of it.
//!
//! SageMaker itself pulls images and writes logs, outside the VPC. A job in the VPC needs S3 for its data, and the
//! services that its program calls. The functions of the stack run outside the VPC. The check lists the services of
//! these functions, for an operator who attaches the functions to the VPC.

use api_client::Service;
use serde_json::{Value, json};

use super::finding::{Check, Finding};
use crate::doctor::account::Answer;
use crate::doctor::verdict::Verdict;

const JOBS: Check = ("vpc-jobs", "training jobs in the VPC can reach S3");
const FUNCTIONS: Check = ("vpc-functions", "functions attached to the VPC can reach their services");
/// Services that the program of a job may call, with the reason.
const OF_PROGRAMS: [(&str, &str); 4] = [
    ("ecr.api", "images of a registry in the VPC"),
    ("ecr.dkr", "images of a registry in the VPC"),
    ("logs", "programs that write logs themselves"),
    ("sts", "programs that assume roles"),
];
const OF_FUNCTIONS: [&str; 6] = ["dynamodb", "sagemaker.api", "logs", "events", "lambda", "pricing.api"];
/// Regions with a VPC endpoint of the price list: those with the price list itself.
const PRICING_REGIONS: [&str; 4] = ["us-east-1", "eu-central-1", "ap-south-1", "cn-northwest-1"];

/// The answers about the VPC.
#[derive(Debug)]
pub(super) struct Network {
    /// The subnets of the jobs; empty with `--vpc`.
    pub(super) subnets: Vec<String>,
    pub(super) described: Option<Answer>,
    pub(super) vpc: Option<String>,
    pub(super) endpoints: Option<Answer>,
    pub(super) tables: Option<Answer>,
}

/// Describes the VPC, or the VPC of the subnets. `None` if there is neither.
pub(super) async fn find(service: &Service<'_>, vpc: Option<&str>, subnets: &[String]) -> Option<Network> {
    let mut network = Network {
        subnets: subnets.to_vec(),
        described: None,
        vpc: vpc.map(str::to_owned),
        endpoints: None,
        tables: None,
    };
    match vpc {
        Some(_) => {}
        None if subnets.is_empty() => return None,
        None => {
            let answer = service.read("DescribeSubnets", &json!({"SubnetId": subnets})).await;
            network.vpc = list(answer.as_ref().ok(), "subnetSet")
                .first()
                .and_then(|subnet| subnet["vpcId"].as_str())
                .map(str::to_owned);
            network.described = Some(answer);
        }
    }
    if let Some(vpc) = &network.vpc {
        let asked = json!({"Filter": [{"Name": "vpc-id", "Value": [vpc]}]});
        network.tables = Some(service.read("DescribeRouteTables", &asked).await);
        network.endpoints = Some(service.read("DescribeVpcEndpoints", &asked).await);
    }
    Some(network)
}

fn list<'a>(answer: Option<&'a Value>, member: &str) -> &'a [Value] {
    answer.and_then(|answer| answer[member].as_array()).map_or(&[], Vec::as_slice)
}

pub(super) fn judge(network: Option<&Network>, region: &str) -> Vec<Finding> {
    let same = |verdict: &Verdict, fix: Option<&str>| {
        let finding = |check| {
            let finding = Finding::new(check, verdict.clone());
            match fix {
                Some(fix) => finding.fix(fix),
                None => finding,
            }
        };
        vec![finding(JOBS), finding(FUNCTIONS)]
    };
    let Some(network) = network else {
        let verdict = Verdict::not_tried("the doctor ran without --vpc and --subnet");
        return same(&verdict, Some("repeat the command with one of them if training jobs run in a VPC"));
    };
    if let Some(Err(error)) = &network.described {
        if error.is("InvalidSubnetID.NotFound") || error.is("InvalidSubnetID.Malformed") {
            return same(&Verdict::No(error.to_string()), Some("correct --subnet"));
        }
        return [JOBS, FUNCTIONS]
            .map(|check| Finding::unanswered(check, "ec2:DescribeSubnets", error))
            .into();
    }
    let described = list(network.described.as_ref().and_then(|answer| answer.as_ref().ok()), "subnetSet");
    if described.iter().any(|subnet| subnet["vpcId"].as_str() != network.vpc.as_deref()) {
        let verdict = Verdict::No("the subnets are in different VPCs".to_owned());
        return same(&verdict, Some("use subnets of one VPC"));
    }
    let endpoints = match &network.endpoints {
        Some(Ok(endpoints)) => list(Some(endpoints), "vpcEndpointSet"),
        Some(Err(error)) => {
            return [JOBS, FUNCTIONS]
                .map(|check| Finding::unanswered(check, "ec2:DescribeVpcEndpoints", error))
                .into();
        }
        None => return same(&Verdict::not_tried("the subnets have no VPC"), None),
    };
    // Every VPC has a main route table.
    if matches!(&network.tables, Some(Ok(tables)) if list(Some(tables), "routeTableSet").is_empty()) {
        let seen = format!("{} does not exist in {region}", network.vpc.as_deref().unwrap_or_default());
        return same(&Verdict::No(seen), Some("correct --vpc or --region"));
    }
    let tables = tables(network);
    let reach = Reach { endpoints, way_out: tables.as_deref().map(has_way_out), tables, region };
    vec![reach.judge_jobs(network), reach.judge_functions()]
}

/// Returns the route tables of the subnets, or with `--vpc` all of the VPC. `None` if they are unknown.
fn tables(network: &Network) -> Option<Vec<&Value>> {
    let tables = list(network.tables.as_ref()?.as_ref().ok(), "routeTableSet");
    if network.tables.as_ref()?.is_err() {
        return None;
    }
    if network.subnets.is_empty() {
        return Some(tables.iter().collect());
    }
    let with = |member: &str, value: &str| {
        tables.iter().find(|table| {
            list(Some(table), "associationSet").iter().any(|one| one[member].as_str() == Some(value))
        })
    };
    network.subnets.iter().map(|subnet| with("subnetId", subnet).or_else(|| with("main", "true"))).collect()
}

/// Returns whether each table has a default route that a private address can use. An internet gateway needs a public
/// address, which network interfaces of jobs and functions do not have.
fn has_way_out(tables: &[&Value]) -> bool {
    let leads_out = |route: &Value| {
        let is_default = route["destinationCidrBlock"].as_str() == Some("0.0.0.0/0");
        let is_internet_gateway = route["gatewayId"].as_str().is_some_and(|id| id.starts_with("igw-"));
        is_default && !is_internet_gateway && route["state"].as_str() != Some("blackhole")
    };
    tables.iter().all(|table| list(Some(table), "routeSet").iter().any(leads_out))
}

struct Reach<'a> {
    endpoints: &'a [Value],
    tables: Option<Vec<&'a Value>>,
    way_out: Option<bool>,
    region: &'a str,
}

impl Reach<'_> {
    /// Returns whether the VPC has a usable endpoint of `service`.
    fn has(&self, service: &str) -> bool {
        self.endpoints.iter().any(|endpoint| {
            // com.amazonaws.<region>.<service>, with a longer prefix in China.
            let name = endpoint["serviceName"].as_str().unwrap_or_default();
            let own = name.split_once(&format!(".{}.", self.region)).map(|(_, own)| own);
            let is_usable = endpoint["state"].as_str() == Some("available");
            own == Some(service) && is_usable && self.is_routed(endpoint)
        })
    }

    /// Returns whether the route tables lead to a gateway endpoint. An interface endpoint needs no route.
    fn is_routed(&self, endpoint: &Value) -> bool {
        if endpoint["vpcEndpointType"].as_str() != Some("Gateway") {
            return true;
        }
        let routed = list(Some(endpoint), "routeTableIdSet");
        self.tables.iter().flatten().all(|table| routed.contains(&table["routeTableId"]))
    }

    fn missing<'s>(&self, services: impl IntoIterator<Item = &'s str>) -> Vec<&'s str> {
        services.into_iter().filter(|service| !self.has(service)).collect()
    }

    fn routes(&self) -> &'static str {
        match self.way_out {
            Some(true) => "every route table has a default route, for example to a NAT gateway",
            Some(false) => "a route table has no default route for private addresses",
            None => "routes are unknown (ec2:DescribeRouteTables failed)",
        }
    }

    fn judge_jobs(&self, network: &Network) -> Finding {
        let optional: Vec<String> = OF_PROGRAMS
            .iter()
            .filter(|(service, _)| !self.has(service))
            .map(|(service, why)| format!("{service} ({why})"))
            .collect();
        let also = if optional.is_empty() || self.way_out == Some(true) {
            String::new()
        } else {
            format!("; also without an endpoint: {}", optional.join(", "))
        };
        if self.way_out == Some(true) || self.has("s3") {
            let s3 = if self.has("s3") { "S3 has an endpoint" } else { "S3 has no endpoint" };
            return Finding::new(JOBS, Verdict::Yes(format!("{s3}; {}{also}", self.routes())));
        }
        let tables = if network.subnets.is_empty() { " (name the subnets with --subnet)" } else { "" };
        let fix = format!(
            "create a gateway endpoint of S3, which costs nothing, for the route tables of the jobs{tables}; or add a \
             NAT gateway"
        );
        let seen = format!("the route tables have no endpoint of S3; {}{also}", self.routes());
        Finding::new(JOBS, Verdict::Warning(seen)).fix(fix)
    }

    fn judge_functions(&self) -> Finding {
        let missing = self.missing(OF_FUNCTIONS);
        let place = "the template runs the functions outside your VPC, where they need no endpoint";
        if missing.is_empty() || self.way_out == Some(true) {
            let seen = if missing.is_empty() { "every service has an endpoint" } else { self.routes() };
            return Finding::new(FUNCTIONS, Verdict::Yes(format!("{seen}; {place}")));
        }
        let seen = format!("no endpoint of: {}; {}; {place}", missing.join(", "), self.routes());
        let fix = "only if you attach the functions to the VPC: create these endpoints, or a NAT gateway";
        if !missing.contains(&"pricing.api") || PRICING_REGIONS.contains(&self.region) {
            return Finding::new(FUNCTIONS, Verdict::Warning(seen)).fix(fix);
        }
        let fix = format!(
            "{fix}. The price list has VPC endpoints only in {}: without a NAT gateway, deploy with PricesInRequests=Any \
             and set Controller.InstancePricesUsdPerHour in each request",
            PRICING_REGIONS.join(", ")
        );
        Finding::new(FUNCTIONS, Verdict::Warning(seen)).fix(fix)
    }
}
