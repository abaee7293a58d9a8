//! Watches that start again with their session.

use rusqlite::params;

use crate::error::JournalError;
use crate::store::Store;

/// A watch as it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedWatch {
    /// Its name within the session.
    pub name: String,
    /// What it watches.
    pub uri: String,
    /// Source of its filter.
    pub on_event: Option<String>,
    /// Language of the filter.
    pub lang: String,
}

impl Store {
    /// Saves a watch of a session, or replaces the one of its name.
    pub fn put_watch(&mut self, owner: &str, session: &str, watch: &SavedWatch) -> Result<(), JournalError> {
        self.db
            .prepare_cached(
                "INSERT OR REPLACE INTO watch (owner, session, name, uri, on_event, lang) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![owner, session, watch.name, watch.uri, watch.on_event, watch.lang])?;
        Ok(())
    }

    /// Forgets a watch of a session.
    pub fn delete_watch(&mut self, owner: &str, session: &str, name: &str) -> Result<(), JournalError> {
        self.db
            .prepare_cached("DELETE FROM watch WHERE owner = ?1 AND session = ?2 AND name = ?3")?
            .execute(params![owner, session, name])?;
        Ok(())
    }

    /// The watches of a session, by name.
    pub fn watches(&self, owner: &str, session: &str) -> Result<Vec<SavedWatch>, JournalError> {
        let mut statement = self.db.prepare_cached(
            "SELECT name, uri, on_event, lang FROM watch WHERE owner = ?1 AND session = ?2 ORDER BY name",
        )?;
        let found = statement.query_map(params![owner, session], |r| {
            Ok(SavedWatch { name: r.get(0)?, uri: r.get(1)?, on_event: r.get(2)?, lang: r.get(3)? })
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Journal, Settings};

    #[test]
    fn watches_are_saved_by_session_and_replaced_by_name() {
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let dir = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let journal = Journal::open(dir.path(), Settings { full: false, without_reserve: true }).unwrap();
        let watch = SavedWatch {
            name: "cm".into(),
            uri: "shoal://events/journal".into(),
            on_event: None,
            lang: "shoal".into(),
        };
        let other = SavedWatch { uri: "shoal://events/user.x".into(), ..watch.clone() };
        let left = journal
            .wait(move |store| {
                store.put_watch("a", "s", &watch)?;
                store.put_watch("b", "s", &watch)?;
                store.put_watch("a", "s", &other)?;
                store.delete_watch("b", "s", "cm")?;
                Ok((store.watches("a", "s")?, store.watches("b", "s")?))
            })
            .unwrap();
        assert_eq!(left.0.iter().map(|watch| watch.uri.as_str()).collect::<Vec<_>>(), ["shoal://events/user.x"]);
        assert_eq!(left.1, []);
    }
}
