//! Who and what is attacked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything an attacker would have found out: nothing of it is a secret of the kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Targets {
    /// Host pid of the supervisor.
    pub supervisor: i32,
    /// Host pid of the broker.
    pub broker: i32,
    /// Host pid of the user's other program.
    pub human: i32,
    /// Where its secret is in its memory.
    pub address: usize,
    /// Its terminal.
    pub terminal: PathBuf,
    /// The name its private files have in shared places.
    pub mark: String,
    /// The key of its System V segment.
    pub key: i32,
    /// Its abstract socket, without the NUL.
    pub abstract_name: String,
    /// Its TCP ports on the loopback device, by protocol version.
    pub tcp: u16,
    /// The same for IPv6.
    pub tcp6: u16,
    /// Its UDP port.
    pub udp: u16,
    /// Its sockets that act for whoever connects, by the service they look like.
    pub services: BTreeMap<String, PathBuf>,
    /// Its datagram socket.
    pub notify: PathBuf,
    /// The kernel's state directory.
    pub state: PathBuf,
    /// The kernel's socket.
    pub socket: PathBuf,
    /// The user's home.
    pub home: PathBuf,
    /// A repository that the session works in.
    pub work: PathBuf,
    /// Where the kernel's programs are.
    pub programs: PathBuf,
    /// The kernel's control group.
    pub group: PathBuf,
    /// A program that says who it runs as and has the set-user-ID bit of root.
    pub setuid: PathBuf,
}

impl Targets {
    /// One line of JSON.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads that line.
    pub fn from_text(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
