//! Tests of what needs a process with one thread, so without the test harness.
#![allow(clippy::print_stdout, missing_docs)]

#[cfg(target_os = "linux")]
fn main() {
    // The test runner first asks for the list of tests, once more for the ignored ones.
    let args: Vec<String> = std::env::args().collect();
    if args.iter().any(|arg| arg == "--list") {
        if !args.iter().any(|arg| arg == "--ignored") {
            println!("fork: test");
        }
        return;
    }
    use shoal_sys::fork::{Namespaces, PANICKED, fork};
    use shoal_sys::process::{Exit, reap_pid};

    assert_eq!(shoal_sys::procfs::own_threads().unwrap(), 1);

    // The child's code comes back, and its handle is its own.
    let child = fork(Namespaces::default(), || 7).unwrap();
    assert_eq!(child.pidfd.pid().unwrap(), Some(child.pid));
    assert_eq!(reap_pid(child.pid).unwrap(), Exit::Code(7));

    // A panic ends the child alone.
    std::panic::set_hook(Box::new(|_info| {}));
    let child = fork(Namespaces::default(), || panic!("in the child")).unwrap();
    assert_eq!(reap_pid(child.pid).unwrap(), Exit::Code(PANICKED));

    // In namespaces of its own it is number 1 and holds every capability until it gives them up.
    let all = Namespaces { user: true, pid: true, mount: true, ipc: true, network: true };
    let child = fork(all, || {
        let before = shoal_sys::caps::effective().unwrap();
        shoal_sys::caps::drop_all().unwrap();
        let after = shoal_sys::caps::effective().unwrap();
        u8::from(shoal_sys::process::pid() == 1 && before != 0 && after == 0)
    });
    match child {
        Ok(child) => assert_eq!(reap_pid(child.pid).unwrap(), Exit::Code(1)),
        Err(e) => println!("user namespaces are not available here: {e}"),
    }

    // A second thread forbids it.
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || wait.recv().is_err());
    assert_eq!(fork(Namespaces::default(), || 0).unwrap_err().raw_os_error(), Some(16));
    drop(stop);
    assert!(thread.join().unwrap());
    println!("fork: ok");
}

#[cfg(not(target_os = "linux"))]
fn main() {}
