//! The access rules of the API: which callers may perform which operations.
//!
//! IAM admits a caller to the API. It sees neither the operation behind `POST /` nor the body of a `PATCH`. The API
//! itself therefore distinguishes readers, users and owners, by the principal that IAM authenticated.

use use_cases::submit::Submitter;
use wire::events::direct;

use crate::error::ApiError;
use crate::operation::{Operation, Right};

/// The rights of callers. The default gives every right to everyone, also to unauthenticated callers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Who may submit, change and stop tunings; empty = everyone who is not only a reader.
    pub users: Principals,
    /// Who may only read, unless another list has them too.
    pub readers: Principals,
    /// Who may raise the cap of a tuning and delete a tuning, besides all that users may; empty = every user.
    pub owners: Principals,
    /// Whether users see and change only the tunings that they submitted. Readers and owners see all.
    pub own_tunings_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// ARN of the principal; `None` = unauthenticated.
    pub(crate) principal: Option<String>,
    pub(crate) right: Right,
    /// Whether only tunings of this caller exist for it.
    pub(crate) sees_own_only: bool,
}

impl Access {
    /// Returns the rights of direct invocations, whose callers only Lambda's permissions distinguish. All of them together
    /// are one user, and never an owner.
    pub fn of_direct_calls(own_tunings_only: bool) -> Self {
        Self {
            users: Principals(vec![direct::CALLER.to_owned()]),
            readers: Principals::default(),
            owners: Principals::none(),
            own_tunings_only,
        }
    }

    /// Returns the rights of `principal`, an ARN from IAM. Refuses a principal that no list admits.
    pub(crate) fn caller(&self, principal: Option<&str>) -> Result<Caller, ApiError> {
        let listed = |list: &Principals| principal.is_some_and(|arn| list.has(arn));
        let is_open = self.users.is_empty() && (principal.is_some() || *self == Self::default());
        let right = if listed(&self.owners) {
            Right::Own
        } else if listed(&self.users) || is_open && !listed(&self.readers) {
            if self.owners.is_empty() { Right::Own } else { Right::Use }
        } else if listed(&self.readers) {
            Right::Read
        } else {
            return Err(ApiError::access_denied(format!(
                "{} may not use this API: ask the owner of the stack to add the principal to AllowedPrincipals or \
                 ReadOnlyPrincipals",
                principal.unwrap_or("an unauthenticated caller")
            )));
        };
        let is_owner = listed(&self.owners);
        let sees_own_only = self.own_tunings_only && !is_owner && right != Right::Read;
        Ok(Caller { principal: principal.map(str::to_owned), right, sees_own_only })
    }
}

impl Caller {
    /// Refuses `operation` without the right to it.
    pub(crate) fn check(&self, operation: &Operation) -> Result<(), ApiError> {
        if self.right >= operation.right() {
            return Ok(());
        }
        let list = if operation.right() == Right::Own { "OwnerPrincipals" } else { "AllowedPrincipals" };
        Err(ApiError::access_denied(format!(
            "{} may not perform {}: ask the owner of the stack to add the principal to {list}",
            self.principal.as_deref().unwrap_or("this caller"),
            operation.name(),
        )))
    }

    /// Returns whether a tuning of `submitter` exists for this caller.
    pub(crate) fn sees(&self, submitter: Option<&str>) -> bool {
        self.submitter().sees(submitter)
    }

    /// Returns the caller as the submitter of a request.
    pub(crate) fn submitter(&self) -> Submitter<'_> {
        Submitter { arn: self.principal.as_deref(), sees_own_only: self.sees_own_only }
    }
}

/// A list of IAM principals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Principals(Vec<String>);

impl Principals {
    /// Reads ARNs separated by commas. A `*` at the end of an ARN matches any rest. The ARN of a role matches every
    /// session of the role. A session's ARN has no path, so a pattern of a path alone would match all roles: then the
    /// result is `None`.
    ///
    /// ```
    /// use http_api::Principals;
    /// let team = "arn:aws:iam::111122223333:role/teams/search, arn:aws:iam::111122223333:user/ci";
    /// let team = Principals::parse(team).unwrap();
    /// assert_eq!(Principals::parse("arn:aws:iam::111122223333:role/teams/*"), None);
    /// assert!(team.has("arn:aws:sts::111122223333:assumed-role/search/alice"));
    /// assert!(team.has("arn:aws:iam::111122223333:user/ci"));
    /// assert!(!team.has("arn:aws:sts::111122223333:assumed-role/search-admin/alice"));
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let arns = text.split(',').map(str::trim).filter(|arn| !arn.is_empty());
        let read = arns.map(|arn| match arn.split_once(":role/") {
            Some((account, path)) => sessions(account, path),
            None => Some(arn.to_owned()).filter(|arn| !arn.ends_with("/*")),
        });
        read.collect::<Option<_>>().map(Self)
    }

    /// Returns whether the list has `arn`, the ARN of a user, of a role's session, or of an account's root.
    pub fn has(&self, arn: &str) -> bool {
        self.0.iter().any(|listed| match listed.strip_suffix('*') {
            Some(prefix) => arn.starts_with(prefix),
            None => arn == listed,
        })
    }

    /// Returns a list that has no principal. An empty list would admit everyone.
    fn none() -> Self {
        Self(vec!["no ARN".to_owned()])
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the pattern of the sessions of a role. Their ARNs have the role's name but not its path. `None` = the pattern
/// names no role.
fn sessions(account: &str, path: &str) -> Option<String> {
    let name = path.rsplit('/').next().filter(|name| !["", "*"].contains(name))?;
    let account = account.replacen(":iam:", ":sts:", 1);
    // A pattern of roles, such as `role/team-*`, matches sessions of all of them.
    let rest = if name.ends_with('*') { "" } else { "/*" };
    Some(format!("{account}:assumed-role/{name}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "arn:aws:sts::111122223333:assumed-role/platform/olga";
    const USER: &str = "arn:aws:sts::111122223333:assumed-role/science/uma";
    const READER: &str = "arn:aws:sts::111122223333:assumed-role/audit/rob";
    const OTHER: &str = "arn:aws:iam::111122223333:user/eve";

    fn role(name: &str) -> Principals {
        Principals::parse(&format!("arn:aws:iam::111122223333:role/{name}")).unwrap()
    }

    fn right(access: &Access, principal: &str) -> Option<Right> {
        access.caller(Some(principal)).ok().map(|caller| caller.right)
    }

    #[test]
    fn without_lists_everyone_has_every_right() {
        let access = Access::default();
        assert_eq!(right(&access, OTHER), Some(Right::Own));
        assert_eq!(access.caller(None).unwrap().right, Right::Own);
    }

    #[test]
    fn lists_distinguish_owners_users_and_readers_and_refuse_all_others() {
        let access = Access {
            users: role("science"),
            readers: role("audit"),
            owners: role("plat*"),
            own_tunings_only: false,
        };
        let rights = [OWNER, USER, READER, OTHER].map(|principal| right(&access, principal));
        assert_eq!(rights, [Some(Right::Own), Some(Right::Use), Some(Right::Read), None]);
        assert!(access.caller(None).is_err(), "a list admits only principals that IAM authenticated");
    }

    #[test]
    fn a_list_of_readers_or_owners_alone_keeps_the_api_open_for_users() {
        let readers = Access { readers: role("audit"), ..Access::default() };
        assert_eq!((right(&readers, READER), right(&readers, OTHER)), (Some(Right::Read), Some(Right::Own)));
        let owners = Access { owners: role("platform"), ..Access::default() };
        assert_eq!((right(&owners, OWNER), right(&owners, OTHER)), (Some(Right::Own), Some(Right::Use)));
        assert!(owners.caller(None).is_err());
    }

    #[test]
    fn a_direct_caller_is_a_user_and_never_an_owner() {
        let access = Access::of_direct_calls(false);
        assert_eq!(right(&access, direct::CALLER), Some(Right::Use));
        assert_eq!(
            [OWNER, USER, "", "lambda:invoke-2"].map(|principal| right(&access, principal)),
            [None; 4]
        );
        assert!(access.caller(None).is_err());
        let own_only = Access::of_direct_calls(true).caller(Some(direct::CALLER)).unwrap();
        assert!(own_only.sees(Some(direct::CALLER)) && !own_only.sees(Some(USER)));
        // No pattern of ARNs in a list for API Gateway has the direct caller.
        assert!(!Principals::parse("arn:*").unwrap().has(direct::CALLER));
    }

    #[test]
    fn users_see_their_own_tunings_only_where_the_owner_wants_it() {
        let access = Access {
            own_tunings_only: true,
            readers: role("audit"),
            owners: role("platform"),
            ..Access::default()
        };
        let sees = |principal, submitter| access.caller(Some(principal)).unwrap().sees(submitter);
        assert!(sees(USER, Some(USER)) && !sees(USER, Some(OTHER)) && !sees(USER, None));
        assert!(sees(READER, Some(USER)) && sees(OWNER, Some(USER)) && sees(OWNER, None));
        // Without owners, every user may raise caps, but still sees its own tunings only.
        let access = Access { own_tunings_only: true, ..Access::default() };
        assert!(!access.caller(Some(USER)).unwrap().sees(Some(OTHER)));
    }

    #[test]
    fn a_role_matches_its_sessions_but_no_role_that_begins_with_its_name() {
        let team = role("path/science");
        assert!(team.has(USER));
        assert!(!team.has("arn:aws:sts::111122223333:assumed-role/science-2/uma"));
        assert!(!team.has("arn:aws:sts::444455556666:assumed-role/science/uma"));
        assert!(role("sci*").has(USER));
    }

    /// A session's ARN lacks the path of its role, so such a pattern would admit every role of the account.
    #[test]
    fn regression_a_pattern_of_a_path_alone_is_refused() {
        let account = "arn:aws:iam::111122223333";
        for pattern in
            ["role/teams/*", "role/*", "role/aws-reserved/sso.amazonaws.com/*", "user/*", "role/teams/"]
        {
            assert_eq!(Principals::parse(&format!("{account}:{pattern}")), None, "{pattern}");
        }
        assert!(
            Principals::parse(&format!("{account}:role/aws-reserved/AWSReservedSSO_science_*")).is_some()
        );
    }
}
