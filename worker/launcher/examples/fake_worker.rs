//! Stands in for the worker in edge tests: hands its launcher edge to the test over descriptor 4, then waits for the end
//! of that descriptor. So the test speaks as the worker, and the launcher sees a real child that can be killed.
#![forbid(unsafe_code)]

use std::io::{self, IoSlice};
use std::os::fd::AsFd as _;

use shoal_sys::{fd, socket};

fn main() -> io::Result<()> {
    let (edge, test) = (fd::inherited(3)?, fd::inherited(4)?);
    socket::send(&test, &[IoSlice::new(b"edge")], &[edge.as_fd()], true)?;
    drop(edge);
    let mut buffer = [0; 16];
    while socket::recv(&test, &mut buffer, true)?.len > 0 {}
    Ok(())
}
