//! Watch methods.

use super::{Text, WatchName, params, words};
use crate::limits;

words! {
    /// Language of a filter.
    Lang {
        /// Shoal itself.
        Shoal = "shoal",
        /// The embedded Python.
        Python = "python",
    }
}

params! {
    /// `watch.start`.
    #[derive(Eq)]
    WatchStart {
        /// Its name.
        req name: WatchName,
        /// The resource.
        req uri: Text<1, { limits::URI_BYTES }>,
        /// Source of the filter.
        opt on_event: String,
        /// Language of the filter.
        def lang: Lang = Lang::Shoal,
        /// Whether it is started again with the session's worker.
        def persist: bool = true,
    }
}

params! {
    /// `watch.stop` and `watch.get`.
    #[derive(Eq)]
    WatchPick {
        /// Its name.
        req name: String,
    }
}
