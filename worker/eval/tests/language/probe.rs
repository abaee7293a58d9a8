//! Runs the program in `SHOAL_SRC`, for a look at one behaviour by hand; without it there is nothing to check.

use crate::support::TestHost;
use crate::verdict::run;

#[test]
fn one_program() {
    let Ok(source) = std::env::var("SHOAL_SRC") else { return };
    println!("{:?}", run(&TestHost::new(), &source));
}
