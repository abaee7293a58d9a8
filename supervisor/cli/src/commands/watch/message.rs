//! What a command is told of notices, and what its answer means.

use serde_json::Value;

/// Closes every message.
const ENDING: &str = "This is a watch notification, not a user message. Answer only if the change matters to what was asked; \
                      otherwise reply exactly NO_REPLY.\n";

/// A notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    /// Name of the watch.
    pub(super) name: String,
    /// Its resource.
    pub(super) uri: String,
    /// Its lines as one text.
    pub(super) text: String,
}

impl Notice {
    /// The notice of an event on `watch.NAME`; markers of lost history are none.
    pub(super) fn of(payload: &Value) -> Option<Notice> {
        let payload = shoal_wire::value::plain(payload);
        let member = |name: &str| payload[name].as_str().map(str::to_owned);
        Some(Notice { name: member("name")?, uri: member("uri")?, text: member("text")? })
    }
}

/// One message for notices that came together: an element per watch, in order of its first notice.
pub(super) fn message(notices: &[Notice]) -> String {
    let mut watches: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for notice in notices {
        match watches.iter_mut().find(|(name, ..)| *name == notice.name) {
            Some((.., texts)) => texts.push(&notice.text),
            None => watches.push((&notice.name, &notice.uri, vec![&notice.text])),
        }
    }
    let mut message = String::new();
    for (name, uri, texts) in watches {
        let (name, uri, text) = (attribute(name), attribute(uri), texts.join("\n"));
        message.push_str(&format!("<watch-event name=\"{name}\" uri=\"{uri}\">\n{text}\n</watch-event>\n"));
    }
    message + ENDING
}

fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Whether an answer is to be shown.
pub(super) fn is_reply(answer: &str) -> bool {
    !answer.trim().is_empty() && !answer.lines().any(|line| line.trim() == "NO_REPLY")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(name: &str, text: &str) -> Notice {
        Notice { name: name.into(), uri: "kube://x?a=<b>&c=\"d\"".into(), text: text.into() }
    }

    #[test]
    fn notices_of_one_watch_stand_together() {
        let text = message(&[notice("a", "one"), notice("b", "two"), notice("a", "three")]);
        let uri = "kube://x?a=&lt;b&gt;&amp;c=&quot;d&quot;";
        let expected = format!(
            "<watch-event name=\"a\" uri=\"{uri}\">\none\nthree\n</watch-event>\n\
             <watch-event name=\"b\" uri=\"{uri}\">\ntwo\n</watch-event>\n{ENDING}"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn replies() {
        assert!(is_reply("done\n") && is_reply("about NO_REPLY"));
        assert!(!is_reply(" \n") && !is_reply("NO_REPLY") && !is_reply("well\n NO_REPLY \n"));
    }
}
