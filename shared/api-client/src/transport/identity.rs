//! The caller's identity: credentials and Region, from the sources that every AWS tool uses.
//!
//! Secrets never leave this module; messages contain at most the last characters of a key's ID. For an endpoint on this
//! machine, the chain skips the instance role, because a machine without one waits seconds for it.

use std::sync::{Mutex, PoisonError};
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
use tokio::sync::Mutex as Turn;
use tokio::time::timeout;

use super::because;
use crate::error::ClientError;

/// Credentials are renewed this long before they expire.
const BEFORE_EXPIRY: Duration = Duration::from_mins(5);
/// Maximum time of a renewal. A `credential_process` may ask its user for a code.
const RENEWAL_TIMEOUT: Duration = Duration::from_mins(2);
/// Default Region of signatures for an endpoint on this machine, which ignores it.
const LOOPBACK_REGION: &str = "us-east-1";

/// The credentials and the Region for signatures.
#[derive(Debug)]
pub(super) struct Signatory {
    pub(super) region: String,
    provider: SharedCredentialsProvider,
    optional: bool,
    kept: Mutex<Option<Credentials>>,
    /// Held by the request that renews the credentials.
    renewing: Turn<()>,
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
        Ok(Self { region, provider, optional: loopback, kept: Mutex::default(), renewing: Turn::default() })
    }

    /// Uses these credentials and ignores the environment.
    pub(super) fn given(credentials: Credentials, region: &str) -> Self {
        let provider = SharedCredentialsProvider::new(credentials);
        let region = region.to_owned();
        Self { region, provider, optional: false, kept: Mutex::default(), renewing: Turn::default() }
    }

    /// Returns credentials that are valid now. `None`: there are none, and the endpoint needs none. One request at a time
    /// renews them. Meanwhile, and if it fails, the kept ones are used until they expire.
    pub(super) async fn credentials(&self, now: SystemTime) -> Result<Option<Credentials>, ClientError> {
        if let Some(found) = self.kept(now + BEFORE_EXPIRY) {
            return Ok(Some(found));
        }
        let _turn = match (self.renewing.try_lock(), self.kept(now)) {
            (Ok(turn), _) => turn,
            (Err(_), Some(valid)) => return Ok(Some(valid)),
            (Err(_), None) => self.renewing.lock().await,
        };
        // The request before this one may have renewed them.
        if let Some(found) = self.kept(now + BEFORE_EXPIRY) {
            return Ok(Some(found));
        }
        let renewed = timeout(RENEWAL_TIMEOUT, self.provider.provide_credentials()).await;
        let failed = match renewed {
            Ok(Ok(found)) => {
                *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
                return Ok(Some(found));
            }
            Ok(Err(CredentialsError::CredentialsNotLoaded(_))) if self.optional => return Ok(None),
            Ok(Err(error)) => because(&error),
            Err(_) => format!("no credentials within {} s", RENEWAL_TIMEOUT.as_secs()),
        };
        self.kept(now).map(Some).ok_or(ClientError::Credentials(failed))
    }

    /// Returns the kept credentials if they are valid at `time`.
    fn kept(&self, time: SystemTime) -> Option<Credentials> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone().filter(|found| found.expiry().is_none_or(|end| time < end))
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

#[cfg(test)]
mod tests {
    use std::future::pending;

    use aws_credential_types::provider::future;

    use super::*;

    /// A provider that fails, or never answers.
    #[derive(Debug)]
    struct Broken {
        hangs: bool,
    }

    impl ProvideCredentials for Broken {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            let hangs = self.hangs;
            future::ProvideCredentials::new(async move {
                if hangs {
                    pending::<()>().await;
                }
                Err(CredentialsError::provider_error("the session has ended"))
            })
        }
    }

    fn expiring(hangs: bool, end: SystemTime) -> Signatory {
        let kept = Credentials::new("AKIDEXAMPLE", "secret", None, Some(end), "test");
        let signatory = Signatory::given(kept.clone(), "eu-west-1");
        let provider = SharedCredentialsProvider::new(Broken { hangs });
        Signatory { provider, kept: Mutex::new(Some(kept)), ..signatory }
    }

    #[tokio::test]
    async fn valid_credentials_are_used_while_another_request_renews_them() {
        let now = SystemTime::now();
        let signatory = expiring(true, now + BEFORE_EXPIRY - Duration::from_secs(1));
        tokio::select! {
            biased;
            _ = signatory.credentials(now) => panic!("the renewal hangs"),
            other = signatory.credentials(now) => assert!(other.unwrap().is_some()),
        }
    }

    #[tokio::test]
    async fn valid_credentials_are_used_after_a_failed_renewal() {
        let now = SystemTime::now();
        let end = now + BEFORE_EXPIRY - Duration::from_secs(1);
        let signatory = expiring(false, end);
        assert!(signatory.credentials(now).await.unwrap().is_some());
        let error = signatory.credentials(end).await.unwrap_err();
        assert!(error.to_string().contains("the session has ended"), "{error}");
    }
}
