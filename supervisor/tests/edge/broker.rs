//! The broker's life.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;

use shoal_proto::supervisor_broker::{ToBroker, ToSupervisor};
use shoal_proto::supervisor_launcher::ToLauncher;

use crate::Test;
use crate::fake::{EXIT, HANG_UP};
use crate::rig::{Rig, hello, order, ping, variant};

pub(crate) const TESTS: &[Test] = &[
    ("a_dead_broker_is_replaced_and_adopts", a_dead_broker_is_replaced_and_adopts),
    ("clients_wait_and_then_are_told", clients_wait_and_then_are_told),
    ("a_silent_broker_is_aborted", a_silent_broker_is_aborted),
    ("an_order_before_hello_is_fatal", an_order_before_hello_is_fatal),
    ("a_broker_of_another_build_is_fatal", a_broker_of_another_build_is_fatal),
    ("a_broker_that_hangs_up_is_replaced", a_broker_that_hangs_up_is_replaced),
    ("orders_of_a_dead_broker_die_with_it", orders_of_a_dead_broker_die_with_it),
];

fn a_dead_broker_is_replaced_and_adopts() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (up, _ends, mut launcher, _theirs) = rig.session(&mut broker);
    for generation in 2..5 {
        broker.order(EXIT);
        broker = rig.broker();
        let (start, fds) = broker.expect(variant!(ToBroker::Start));
        assert_eq!((start.restarts, start.adopt, fds.len()), (generation - 1, 1, 2));
        let (adopted, ends) = broker.expect(variant!(ToBroker::Adopt));
        assert_eq!((adopted.session, adopted.generation, adopted.ptyd), (up.session, generation, false));
        let (told, theirs) = launcher.expect(variant!(ToLauncher::Adopt));
        assert_eq!((told.generation, ends.len(), theirs.len()), (generation, 2, 2));
        // The ends are two pairs, in the same order.
        for (end, theirs) in ends.iter().zip(&theirs) {
            shoal_sys::socket::send(end, &[std::io::IoSlice::new(b"ping")], &[], true).unwrap();
            assert_eq!(shoal_sys::socket::recv(theirs, &mut [0; 8], true).unwrap().len, 4);
        }
        broker.edge.send(&ToSupervisor::Hello(hello()), &[]).unwrap();
        broker.edge.send(&ToSupervisor::Ready(hello()), &[]).unwrap();
    }
}

fn clients_wait_and_then_are_told() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    broker.order(EXIT);
    // The next broker comes at once, but serves only later.
    let mut broker = rig.broker();
    let client = UnixStream::connect(rig.socket()).unwrap();
    let mut line = String::new();
    BufReader::new(client).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32053,"), "{line}");
    assert!(line.ends_with("}}}\n"));
    // Served again: the backlog is the broker's.
    rig.serve(&mut broker);
    broker.edge.send(&ToSupervisor::ListProcesses(ping(5)), &[]).unwrap();
    let (processes, _) = broker.expect(variant!(ToBroker::Processes));
    assert_eq!((processes.order, processes.broker.pid), (5, broker.pid()));
    let client = UnixStream::connect(rig.socket()).unwrap();
    client.set_nonblocking(true).unwrap();
    assert_eq!(BufReader::new(client).read_line(&mut line).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

fn a_silent_broker_is_aborted() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (first, _) = broker.expect(variant!(ToBroker::Ping));
    broker.edge.send(&ToSupervisor::Pong(first), &[]).unwrap();
    for n in 2..5 {
        assert_eq!(broker.expect(variant!(ToBroker::Ping)).0, ping(n));
    }
    broker.wait_end();
    rig.broker();
    rig.signal(libc::SIGKILL);
    let (_, _, stderr) = rig.wait();
    assert!(stderr.contains("does not answer: aborting") && stderr.contains("ended with signal 6"), "{stderr}");
}

fn an_order_before_hello_is_fatal() {
    let mut rig = Rig::new();
    let mut broker = rig.start();
    broker.edge.send(&ToSupervisor::CreateSession(order(1)), &[]).unwrap();
    broker.wait_end();
    rig.broker();
}

fn a_broker_of_another_build_is_fatal() {
    let mut rig = Rig::new();
    let mut broker = rig.start();
    let other = shoal_proto::Hello { build: shoal_proto::Text::cut("0.0.0+other"), ..hello() };
    broker.edge.send(&ToSupervisor::Hello(other), &[]).unwrap();
    broker.wait_end();
    rig.broker();
}

fn a_broker_that_hangs_up_is_replaced() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    broker.order(HANG_UP);
    // The test holds a copy of the edge; without it the edge is closed.
    let (edge, _) = shoal_chan::pair().unwrap();
    broker.edge = edge;
    broker.wait_end();
    rig.broker();
}

fn orders_of_a_dead_broker_die_with_it() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    broker.edge.send(&ToSupervisor::CreateSession(order(1)), &[]).unwrap();
    let mut launcher = rig.launcher();
    launcher.expect(variant!(ToLauncher::Birth));
    broker.order(EXIT);
    launcher.expect(variant!(ToLauncher::Kill));
    let mut broker = rig.broker();
    let (start, _) = broker.expect(variant!(ToBroker::Start));
    assert_eq!(start.adopt, 0);
}
