//! Administration: tokens and shutdown.

use super::session::{Positive, Principal};
use super::{Int, Text, params};

params! {
    /// `token.create`.
    #[derive(Eq)]
    TokenCreate {
        /// Whom the token makes its bearer.
        req principal: Principal,
        /// Label.
        opt profile: Text<0, 128>,
        /// Labels echoed at attach.
        def caps: Vec<Text<0, 128>> = Vec::new(),
        /// Life in seconds; none is without end.
        opt ttl_s: Positive,
    }
}

params! {
    /// `token.revoke`.
    #[derive(Eq)]
    TokenRevoke {
        /// Id of the token.
        req id: String,
    }
}

params! {
    /// `kernel.shutdown`.
    #[derive(Eq)]
    KernelShutdown {
        /// Time running work gets.
        def grace_ms: Int<0, 60_000> = Int::clamped(10_000),
    }
}
