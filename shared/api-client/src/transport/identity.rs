//! The caller's identity: credentials and Region, from the sources that every AWS tool uses.
//!
//! Secrets never leave this module; messages contain at most the last characters of a key's ID. For an endpoint on this
//! machine the chain skips the instance role, because a machine without one waits seconds for it.

use std::time::{Duration, SystemTime};

use aws_config::environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider};
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::meta::region::ProvideRegion;
use aws_config::profile::{ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use tokio::sync::Mutex;

use super::because;
use crate::error::ClientError;

/// Credentials are renewed this long before they expire.
const BEFORE_EXPIRY: Duration = Duration::from_mins(5);
/// Default Region of signatures for an endpoint on this machine, which ignores it.
const LOOPBACK_REGION: &str = "us-east-1";

/// The credentials and the Region for signatures.
#[derive(Debug)]
pub(super) struct Signatory {
    pub(super) region: String,
    provider: SharedCredentialsProvider,
    optional: bool,
    kept: Mutex<Option<Credentials>>,
}

impl Signatory {
    /// Returns the credential chain for an endpoint in `region`. On this machine (`loopback`) credentials are optional.
    pub(super) async fn find(
        region: Option<&str>,
        loopback: bool,
        https: SharedHttpClient,
    ) -> Result<Self, ClientError> {
        let (region, provider) =
            if loopback { local(region, https).await } else { chain(region, https).await? };
        Ok(Self { region, provider, optional: loopback, kept: Mutex::default() })
    }

    /// Uses these credentials and ignores the environment.
    pub(super) fn given(credentials: Credentials, region: &str) -> Self {
        let provider = SharedCredentialsProvider::new(credentials);
        Self { region: region.to_owned(), provider, optional: false, kept: Mutex::default() }
    }

    /// Returns credentials that are valid now. `None`: there are none, and the endpoint needs none.
    pub(super) async fn credentials(&self, now: SystemTime) -> Result<Option<Credentials>, ClientError> {
        let mut kept = self.kept.lock().await;
        let fresh = |found: &&Credentials| found.expiry().is_none_or(|end| now + BEFORE_EXPIRY < end);
        if let Some(found) = kept.as_ref().filter(fresh) {
            return Ok(Some(found.clone()));
        }
        match self.provider.provide_credentials().await {
            Ok(found) => Ok(kept.insert(found).clone().into()),
            Err(CredentialsError::CredentialsNotLoaded(_)) if self.optional => Ok(None),
            Err(error) => Err(ClientError::Credentials(because(&error))),
        }
    }
}

/// Returns the end of an access key's ID, which identifies the key for its owner and is no secret.
pub(super) fn key_suffix(credentials: &Credentials) -> String {
    let id: Vec<char> = credentials.access_key_id().chars().collect();
    id[id.len().saturating_sub(4)..].iter().collect()
}

/// Returns the chain without the instance role: environment and profiles.
async fn local(region: Option<&str>, https: SharedHttpClient) -> (String, SharedCredentialsProvider) {
    let config = ProviderConfig::without_region().with_http_client(https);
    let named = match region {
        Some(region) => Some(Region::new(region.to_owned())),
        None => EnvironmentVariableRegionProvider::new().region().await,
    };
    let region = match named {
        Some(region) => Some(region),
        None => ProfileFileRegionProvider::builder().configure(&config).build().region().await,
    };
    let region = region.unwrap_or(Region::from_static(LOOPBACK_REGION));
    let config = config.with_region(Some(region.clone()));
    let profile = ProfileFileCredentialsProvider::builder().configure(&config).build();
    let environment = EnvironmentVariableCredentialsProvider::new();
    let chain = CredentialsProviderChain::first_try("Environment", environment).or_else("Profile", profile);
    (region.to_string(), SharedCredentialsProvider::new(chain))
}

/// Returns the whole chain: environment, profiles, SSO, web identity, container, instance.
async fn chain(
    region: Option<&str>,
    https: SharedHttpClient,
) -> Result<(String, SharedCredentialsProvider), ClientError> {
    let loader = aws_config::defaults(BehaviorVersion::latest()).http_client(https);
    let loader = match region {
        Some(region) => loader.region(Region::new(region.to_owned())),
        None => loader,
    };
    let config = loader.load().await;
    let region = config.region().map(ToString::to_string).ok_or(ClientError::NoRegion)?;
    let provider = config.credentials_provider();
    let provider = provider.ok_or_else(|| {
        ClientError::Credentials("the AWS configuration has no credentials provider".to_owned())
    })?;
    Ok((region, provider))
}
