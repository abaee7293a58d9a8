//! The asynchronous ends against blocking ones.
#![cfg(feature = "aio")]
#![allow(missing_docs)]

use std::os::fd::AsFd;
use std::time::Duration;

use shoal_chan::aio::split;
use shoal_chan::{Carrier, ChanError, pair_over};
use shoal_proto::launcher_worker::{End, Rung, Started, Target, ToLauncher, ToWorker};

fn end(call: u64) -> ToLauncher {
    ToLauncher::End(End { call, target: Target::Run(1), rung: Rung::Int, rung_ms: 0 })
}

#[tokio::test(flavor = "current_thread")]
async fn ten_thousand_each_way() {
    for carrier in [Carrier::Packet, Carrier::Stream] {
        let (here, mut there) = pair_over::<ToLauncher, ToWorker>(carrier).unwrap();
        let (sender, mut receiver) = split(here).unwrap();
        let echo = std::thread::spawn(move || {
            while let Ok(received) = there.recv() {
                let ToLauncher::End(end) = received.msg else { panic!("another message") };
                there.send(&ToWorker::Started(Started { id: end.call, pid: 1 }), &[]).unwrap();
            }
        });
        let sending = tokio::spawn(async move {
            for call in 0..10_000 {
                sender.send(&end(call), &[]).await.unwrap();
            }
            sender
        });
        for id in 0..10_000 {
            assert_eq!(receiver.recv().await.unwrap().msg, ToWorker::Started(Started { id, pid: 1 }));
        }
        let sender = sending.await.unwrap();
        drop((sender, receiver));
        echo.join().unwrap();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_full_channel_waits_and_a_dropped_wait_sends_nothing() {
    let (here, mut there) = pair_over::<ToLauncher, ToWorker>(Carrier::Packet).unwrap();
    let (sender, mut receiver) = split(here).unwrap();
    let mut sent = 0;
    while sender.try_send(&end(sent), &[]).is_ok() {
        sent += 1;
    }
    let refused = tokio::time::timeout(Duration::from_millis(5), sender.send(&end(u64::MAX), &[])).await;
    assert!(refused.is_err(), "it waits");
    for call in 0..sent {
        assert_eq!(there.recv().unwrap().msg, end(call));
    }
    assert!(there.try_recv().unwrap().is_none());
    sender.send(&end(sent), &[]).await.unwrap();
    assert_eq!(there.recv().unwrap().msg, end(sent));
    drop(there);
    assert!(matches!(receiver.recv().await, Err(ChanError::Closed)));
    assert!(matches!(sender.send(&end(0), &[]).await, Err(ChanError::Closed)));
}

#[tokio::test(flavor = "current_thread")]
async fn descriptors_pass() {
    let (here, mut there) = pair_over::<ToWorker, ToLauncher>(Carrier::Packet).unwrap();
    let (sender, _receiver) = split(here).unwrap();
    let (end, _other) = shoal_sys::socket::pair(Carrier::Packet).unwrap();
    let adopt = ToWorker::Adopt(shoal_proto::supervisor_launcher::Generation { generation: 2 });
    sender.send(&adopt, &[end.as_fd()]).await.unwrap();
    assert_eq!(there.recv().unwrap().fds.len(), 1);
}
