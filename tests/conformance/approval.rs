//! Approval: by the person at the client where policy says so, by the local user for clients without forms.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use shoal_harness::{Kernel, Place};

use crate::drive::{node, passes, python, server};

/// A kernel whose user is asked about what is opaque, at the client.
pub(crate) fn asking(place: &Place) -> Kernel {
    let section = "fs.read = [\"/**\"]\nfs.write = [\"/**\"]\nproc_spawn = []\nopaque = \"ask\"\n\
                   auto_apply = \"in-grant\"\nsession_write = true\ntime = true\napprove = \"client\"\n";
    let policy = place.path("home").join("leash.toml");
    std::fs::write(&policy, format!("[principal.\"uid:{}\"]\n{section}", place.uid())).expect("written");
    Kernel::start_with(place, |command| {
        command.arg("--policy").arg(&policy);
    })
}

#[test]
fn a_form_decides_and_without_forms_the_local_user() {
    let place = Place::new();
    let kernel = asking(&place);
    let mut command = python(&place, "python2", "approval2.py");
    command.args(server(&place)).env("SHOAL_SOCKET", kernel.socket());
    let mut driver =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("python starts");
    let mut said = String::new();
    let mut lines = BufReader::new(driver.stdout.take().expect("piped"));
    let pending = loop {
        let start = said.len();
        let read = lines.read_line(&mut said).expect("the driver speaks");
        if let Some(plan) = said[start..].trim().strip_prefix("PENDING ") {
            break Some(plan.to_owned());
        }
        if read == 0 {
            break None;
        }
    };
    if let Some(plan) = &pending {
        let approved = place
            .shoal("shoal")
            .args(["--socket", kernel.socket().to_str().expect("UTF-8"), "approvals", "approve", plan])
            .output()
            .expect("shoal runs");
        assert!(approved.status.success(), "{approved:?}");
        driver.stdin.take().expect("piped").write_all(b"\n").expect("the driver waits");
    }
    lines.read_to_string(&mut said).expect("the driver speaks");
    let end = driver.wait_with_output().expect("it ends");
    assert!(end.status.success() && pending.is_some(), "{said}\n{}", String::from_utf8_lossy(&end.stderr));
    let mut client = kernel.attach("default");
    let rows = client.ok("journal.query", serde_json::json!({"kinds": ["approval"]}));
    let decided = rows.as_array().expect("rows").iter().filter_map(|row| row["detail"]["decided_by"].as_str());
    let decided: Vec<&str> = decided.collect();
    assert!(decided.iter().any(|by| by.starts_with("client:")), "{rows}");
    assert!(decided.contains(&&*format!("uid:{}", place.uid())), "{rows}");
}

#[test]
fn forms_of_the_typescript_client() {
    let place = Place::new();
    let kernel = asking(&place);
    let mut command = node(&place, "typescript2", "approval_ts2.mjs");
    command.args(server(&place)).env("SHOAL_SOCKET", kernel.socket());
    passes(command);
}
