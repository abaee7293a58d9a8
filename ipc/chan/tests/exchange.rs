//! Messages over both carriers: order, descriptors, large bodies, bounds, ends.
#![allow(missing_docs, clippy::disallowed_methods)]

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use shoal_chan::{Carrier, Chan, ChanError, pair_over};
use shoal_proto::broker_ptyd::{self, Input, Send, Tick};
use shoal_proto::launcher_worker::{Spawn, ToLauncher, ToWorker};
use shoal_proto::supervisor_launcher::Generation;
use shoal_proto::{Bytes, List, Text};

const CARRIERS: [Carrier; 2] = [Carrier::Packet, Carrier::Stream];

fn spawn(id: u64) -> ToLauncher {
    ToLauncher::Spawn(Spawn {
        id,
        run: 1,
        path: Bytes::new(*b"/bin/true").unwrap(),
        argv: List::new(vec![Bytes::new(*b"true").unwrap()]).unwrap(),
        env: List::default(),
        cwd: Bytes::new(*b"/").unwrap(),
        background: false,
    })
}

fn paste(len: usize) -> broker_ptyd::ToPtyd {
    let input = Input::Text(Text::new("x".repeat(len)).unwrap());
    broker_ptyd::ToPtyd::Send(Send { call: 1, id: 1, input: List::new(vec![input]).unwrap(), paste: false })
}

fn launcher_edge(carrier: Carrier) -> (Chan<ToLauncher, ToWorker>, Chan<ToWorker, ToLauncher>) {
    pair_over(carrier).unwrap()
}

#[test]
fn ten_thousand_messages_in_order() {
    for carrier in CARRIERS {
        let (mut worker, mut launcher) = launcher_edge(carrier);
        let sender = std::thread::spawn(move || {
            let null = shoal_sys::fd::null().unwrap();
            for id in 0..10_000 {
                worker.send(&spawn(id), &[null.as_fd(); 3]).unwrap();
            }
        });
        for id in 0..10_000 {
            let received = launcher.recv().unwrap();
            assert_eq!(received.msg, spawn(id));
            assert_eq!(received.fds.len(), 3);
        }
        sender.join().unwrap();
        assert!(matches!(launcher.recv(), Err(ChanError::Closed)));
    }
}

#[test]
fn descriptors_arrive_in_order_and_close_on_exec() {
    for carrier in CARRIERS {
        let (mut worker, mut launcher) = launcher_edge(carrier);
        let (read, write) = shoal_sys::fd::pipe().unwrap();
        let null = shoal_sys::fd::null().unwrap();
        worker.send(&spawn(1), &[read.as_fd(), write.as_fd(), null.as_fd()]).unwrap();
        let fds = launcher.recv().unwrap().fds;
        assert!(shoal_sys::fd::is_pipe_read(fds[0].as_fd()));
        assert!(!shoal_sys::fd::is_pipe_read(fds[1].as_fd()));
        let flags = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fds[2].as_raw_fd())).unwrap();
        let flags = flags.lines().find_map(|l| l.strip_prefix("flags:")).unwrap().trim().to_owned();
        assert_ne!(u32::from_str_radix(&flags, 8).unwrap() & 0o2_000_000, 0, "close-on-exec");
    }
}

#[test]
fn a_large_body_takes_the_memfd_path() {
    for carrier in CARRIERS {
        for len in [64 * 1024 - 64, 64 * 1024 + 1, 1024 * 1024] {
            let (mut broker, mut ptyd) = pair_over::<broker_ptyd::ToPtyd, broker_ptyd::ToBroker>(carrier).unwrap();
            let message = paste(len);
            let expected = message.clone();
            let sender = std::thread::spawn(move || broker.send(&message, &[]).map(|()| broker));
            let received = ptyd.recv().unwrap();
            assert!(received.msg == expected);
            assert!(received.fds.is_empty(), "the body's own memfd is not the message's");
            sender.join().unwrap().unwrap();
        }
    }
}

#[test]
fn a_wrong_number_of_descriptors_is_refused_before_sending() {
    let (mut worker, mut launcher) = launcher_edge(Carrier::Packet);
    let null = shoal_sys::fd::null().unwrap();
    assert!(matches!(worker.send(&spawn(1), &[null.as_fd()]), Err(ChanError::Violation(_))));
    assert!(launcher.try_recv().unwrap().is_none());
    worker.send(&spawn(1), &[null.as_fd(); 3]).unwrap();
    assert!(launcher.try_recv().unwrap().is_some());
}

#[test]
fn a_deadline_passes_and_a_dead_peer_is_closed() {
    for carrier in CARRIERS {
        let (mut worker, mut launcher) = launcher_edge(carrier);
        assert!(matches!(launcher.recv_deadline(Duration::from_millis(1)), Err(ChanError::TimedOut)));
        let null = shoal_sys::fd::null().unwrap();
        launcher.send(&ToWorker::Adopt(Generation { generation: 1 }), &[worker.as_fd()]).unwrap();
        drop(launcher);
        // What was sent before the end is still received.
        assert_eq!(worker.recv().unwrap().fds.len(), 1);
        assert!(matches!(worker.recv_deadline(Duration::from_secs(5)), Err(ChanError::Closed)));
        assert!(matches!(worker.send(&spawn(1), &[null.as_fd(); 3]), Err(ChanError::Closed)));
    }
}

#[test]
fn a_peer_that_dies_with_unread_data_is_closed_too() {
    let (mut worker, mut launcher) = launcher_edge(Carrier::Packet);
    let null = shoal_sys::fd::null().unwrap();
    worker.send(&spawn(1), &[null.as_fd(); 3]).unwrap();
    drop(launcher.try_recv());
    worker.send(&spawn(2), &[null.as_fd(); 3]).unwrap();
    drop(launcher);
    assert!(matches!(worker.recv(), Err(ChanError::Closed)));
}

#[test]
fn control_overtakes_events_and_each_class_has_its_bound() {
    use broker_ptyd::{Sent, ToBroker};
    let (mut ptyd, mut broker) = pair_over::<ToBroker, broker_ptyd::ToPtyd>(Carrier::Packet).unwrap();
    ptyd.set_nonblocking(true);
    let tick = ToBroker::Tick(tick());
    // Fill the system's buffer, then the event queue; further ones are dropped.
    let mut ticks = 0;
    while !ptyd.has_queued() {
        ptyd.send(&tick, &[]).unwrap();
        ticks += 1;
    }
    for _ in 0..100 {
        ptyd.send(&tick, &[]).unwrap();
    }
    assert_eq!(ptyd.dropped_events(), 37, "64 fit, one was there");
    for call in 0..32 {
        ptyd.send(&ToBroker::Sent(Sent { call, sent: 0, complete: true }), &[]).unwrap();
    }
    let one_more = ptyd.send(&ToBroker::Sent(Sent { call: 32, sent: 0, complete: true }), &[]);
    assert!(matches!(one_more, Err(ChanError::WouldBlock)));

    let mut order = Vec::new();
    loop {
        let done = ptyd.flush().unwrap();
        while let Some(received) = broker.try_recv().unwrap() {
            order.push(matches!(received.msg, ToBroker::Sent(_)));
        }
        if done {
            break;
        }
    }
    let expected: Vec<bool> = std::iter::repeat_n(false, ticks - 1).chain([true; 32]).chain([false; 64]).collect();
    assert_eq!(order, expected);
}

fn tick() -> Tick {
    Tick { id: 1, output: 1 }
}

#[test]
fn a_split_sender_works_from_threads_and_shutdown_wakes_the_receiver() {
    let (worker, mut launcher) = launcher_edge(Carrier::Packet);
    let (sender, mut receiver) = worker.split();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let null = shoal_sys::fd::null().unwrap();
                for id in 0..100 {
                    sender.send(&spawn(n * 100 + id), &[null.as_fd(); 3]).unwrap();
                }
            })
        })
        .collect();
    let mut ids = Vec::new();
    for _ in 0..400 {
        let ToLauncher::Spawn(spawn) = launcher.recv().unwrap().msg else { panic!("another message") };
        ids.push(spawn.id);
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..400).collect::<Vec<_>>());
    for thread in threads {
        thread.join().unwrap();
    }
    let waiting = std::thread::spawn(move || receiver.recv().map(|r| r.msg));
    sender.shutdown().unwrap();
    assert!(matches!(waiting.join().unwrap(), Err(ChanError::Closed)));
}

#[test]
fn an_end_made_from_a_descriptor_knows_its_carrier() {
    for carrier in CARRIERS {
        let (a, b): (OwnedFd, OwnedFd) = shoal_sys::socket::pair(carrier).unwrap();
        let mut a = Chan::<ToLauncher, ToWorker>::from_fd(a).unwrap();
        let mut b = Chan::<ToWorker, ToLauncher>::from_fd(b).unwrap();
        let null = shoal_sys::fd::null().unwrap();
        a.send(&spawn(1), &[null.as_fd(); 3]).unwrap();
        assert_eq!(b.recv().unwrap().msg, spawn(1));
    }
    assert!(Chan::<ToLauncher, ToWorker>::from_fd(shoal_sys::fd::null().unwrap()).is_err());
}
