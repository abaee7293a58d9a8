//! Compiles the system call filters: each JSON file under `filters/` becomes the bytes of a BPF program.
//!
//! A rule may name the architecture it is for (`"arch"`); the others drop it. A program kills what enters through
//! another architecture's entry.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

fn main() {
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap();
    let out = std::env::var("OUT_DIR").unwrap();
    println!("cargo::rerun-if-changed=filters");
    println!("cargo::rerun-if-changed=build.rs");
    for entry in std::fs::read_dir("filters").unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let program = compile(&path, &arch);
        std::fs::write(Path::new(&out).join(format!("{name}.bpf")), program).unwrap();
    }
}

fn compile(path: &Path, arch: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    for filter in json.as_object_mut().unwrap().values_mut() {
        let rules = filter["filter"].as_array_mut().unwrap();
        rules.retain(|rule| rule.get("arch").is_none_or(|only| only == arch));
        for rule in rules {
            assert!(
                rule["comment"].as_str().is_some_and(|why| !why.is_empty()),
                "{}: a rule without a reason",
                path.display()
            );
            rule.as_object_mut().unwrap().remove("arch");
        }
    }
    let target = arch.try_into().unwrap_or_else(|e| panic!("{arch}: {e}"));
    let programs = seccompiler::compile_from_json(json.to_string().as_bytes(), target)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let program = programs.into_values().next().unwrap();
    program.iter().flat_map(|i| [&i.code.to_ne_bytes()[..], &[i.jt, i.jf], &i.k.to_ne_bytes()].concat()).collect()
}
