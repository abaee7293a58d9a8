//! The network of a section, as ports and namespaces.

use std::collections::BTreeSet;

use shoal_proto::List;
use shoal_proto::section::{Network, Section};
use shoal_proto::supervisor_broker::Lane;
use shoal_proto::supervisor_launcher::Ports;

/// Name service over TCP, which programs need to reach any granted host.
const DNS: u16 = 53;

/// The mode that holds for a session or lane.
pub(crate) fn mode(section: &Section, lane: Option<&Lane>) -> Network {
    if lane.is_some_and(|lane| lane.network) { Network::Open } else { section.network }
}

/// The TCP ports of a section whose network is `ports`.
pub(crate) fn ports(section: &Section) -> Ports {
    let port = |entry: &str| entry.rsplit_once(':').map(|(_, port)| port.to_owned());
    let wanted: Vec<String> = section.net_connect.as_slice().iter().filter_map(|entry| port(entry.as_str())).collect();
    let all = wanted.iter().any(|port| port == "*");
    let numbers: BTreeSet<u16> = wanted.iter().filter_map(|port| port.parse().ok()).chain([DNS]).collect();
    let listen: BTreeSet<u16> = section.net_listen.as_slice().iter().copied().collect();
    let list = |ports: BTreeSet<u16>| List::new(ports.into_iter().collect::<Vec<_>>()).unwrap_or_default();
    Ports { connect: (!all).then(|| list(numbers)), listen: list(listen) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_proto::Text;

    #[test]
    fn ports_of_hosts() {
        let entries = ["a.example:443", "b.example:80", "[::1]:443"].map(|e| Text::new(e).unwrap()).to_vec();
        let mut section = Section { net_connect: List::new(entries).unwrap(), ..Section::default() };
        section.net_listen = List::new(vec![8080]).unwrap();
        let got = ports(&section);
        assert_eq!(got.connect.unwrap().as_slice(), [53, 80, 443]);
        assert_eq!(got.listen.as_slice(), [8080]);
        section.net_connect = List::new(vec![Text::new("*:*").unwrap()]).unwrap();
        assert_eq!(ports(&section).connect, None);
    }

    #[test]
    fn an_approved_lane_opens_the_network() {
        let section = Section::default();
        assert_eq!(mode(&section, None), Network::None);
        assert_eq!(mode(&section, Some(&Lane { network: true, ..Lane::default() })), Network::Open);
    }
}
