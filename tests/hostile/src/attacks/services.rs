//! On sockets: the kernel's own, the user's services, the network.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixStream};
use std::path::Path;
use std::time::Duration;

use shoal_sys::attack as sys;

use crate::{Attack, Targets, attack};

/// A connection that is let through is made at once on this machine.
const SOON: Duration = Duration::from_secs(2);

pub(super) const ATTACKS: &[Attack] = &[
    attack("A40-attach", attach),
    attack("A40-beside", beside),
    attack("A40-connect", |t| connect(&t.socket)),
    attack("A40-link", by_link),
    attack("A40-through-root", through_root),
    attack("A41-abstract", abstract_socket),
    attack("A42-bus", |t| service(t, "bus")),
    attack("A42-manager", |t| service(t, "manager")),
    attack("A43-emacs", |t| service(t, "emacs")),
    attack("A43-tmux", |t| service(t, "tmux")),
    attack("A44-containers", |t| service(t, "containers")),
    attack("A44-gpg-agent", |t| service(t, "gpg-agent")),
    attack("A44-gpg-agent-in-home", |t| service(t, "gpg-agent-in-home")),
    attack("A44-ssh-agent", |t| service(t, "ssh-agent")),
    attack("A44-ssh-agent-in-home", |t| service(t, "ssh-agent-in-home")),
    attack("A45-notify", |t| UnixDatagram::unbound()?.send_to(b"STATUS=x", &t.notify).map(drop)),
    attack("A54-netlink", |_| sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC)),
    attack("A54-packet", |_| sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)),
    attack("A54-raw", |_| sys::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)),
    attack("A54-tcp", |t| tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, t.tcp)))),
    attack("A54-tcp6", |t| tcp(SocketAddr::from((Ipv6Addr::LOCALHOST, t.tcp6)))),
    attack("A54-udp", udp),
    attack("A54-vsock", |_| sys::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)),
    attack("A55-mapped", |t| tcp(SocketAddr::from((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), t.tcp)))),
];

fn connect(path: &Path) -> io::Result<()> {
    UnixStream::connect(path).map(drop)
}

fn service(targets: &Targets, name: &str) -> io::Result<()> {
    connect(targets.services.get(name).map_or(Path::new(""), |path| path))
}

fn by_link(targets: &Targets) -> io::Result<()> {
    let name = targets.work.join(format!("socket-{}", shoal_sys::process::pid()));
    std::os::unix::fs::symlink(&targets.socket, &name)?;
    let result = connect(&name);
    std::fs::remove_file(&name)?;
    result
}

/// From a descriptor of the directory it is in.
fn beside(targets: &Targets) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let dir = targets.socket.parent().unwrap_or(Path::new("/"));
    let dir = rustix::fs::open(dir, flags, rustix::fs::Mode::empty())?;
    let name = targets.socket.file_name().unwrap_or_default();
    connect(&Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name))
}

fn through_root(targets: &Targets) -> io::Result<()> {
    connect(&Path::new("/proc/self/root").join(targets.socket.strip_prefix("/").unwrap_or(&targets.socket)))
}

/// As the user in person, without a token.
fn attach(targets: &Targets) -> io::Result<()> {
    let mut stream = UnixStream::connect(&targets.socket)?;
    stream.set_read_timeout(Some(SOON))?;
    stream.write_all(
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.attach\",\"params\":{\"session\":\"stolen\",\"client\":{\"kind\":\"attacker\"}}}\n",
    )?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let answer: serde_json::Value = serde_json::from_str(&line)?;
    match answer["error"]["data"]["reason"].as_str() {
        None if answer["result"].is_object() => Ok(()),
        reason => Err(io::Error::other(reason.unwrap_or("refused").to_owned())),
    }
}

fn abstract_socket(targets: &Targets) -> io::Result<()> {
    let address = UnixAddr::from_abstract_name(&targets.abstract_name)?;
    UnixStream::connect_addr(&address).map(drop)
}

fn tcp(address: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&address, SOON).map(drop)
}

/// A port where nobody is answers the first datagram, which the second send tells.
fn udp(targets: &Targets) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect((Ipv4Addr::LOCALHOST, targets.udp))?;
    socket.send(b"x")?;
    socket.send(b"x").map(drop)
}
