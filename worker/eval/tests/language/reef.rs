//! Manifests, locks and what they make of a name.

use crate::acceptance::check;

/// Scripts that stand where mise would have `ft` of three versions.
const INSTALLED: &str = r##"
env.MISE_DATA_DIR = pwd.str()
for v in ["1.9.0", "1.10.0", "2.0.0"] {
    mkdir -p ("installs/ft/{v}/bin")
    save("installs/ft/{v}/bin/ft", "#!/bin/sh\necho {v}\n")
    ^chmod +x ("installs/ft/{v}/bin/ft")
}
fn wants(version) { save(".reef.toml", "[tools]\nft = \"{version}\"\n") }
"##;

/// Checks programs that have the scripts.
fn check_installed(rows: &[(&str, &str)]) {
    let programs: Vec<String> = rows.iter().map(|(program, _)| format!("{INSTALLED}{program}")).collect();
    let wanted = rows.iter().map(|(_, wanted)| *wanted);
    check(&programs.iter().map(|program| &**program).zip(wanted).collect::<Vec<_>>());
}

#[test]
fn a_name_that_is_wanted_runs_what_is_locked() {
    check_installed(&[
        ("reef add ft@1; ft.out", r#""1.10.0""#),
        ("reef add ft@latest; ft.out", r#""2.0.0""#),
        ("reef add ft@1; reef add ft@2; ft.out", r#""2.0.0""#),
        ("reef add ft@1; cd sub; ft.out", r#""1.10.0""#),
        ("reef add ft@1.9; reef.map([.name, .version, .provider, .scope])", r#"[["ft", "1.9.0", "mise", "reef"]]"#),
        ("reef add ft@1; (which ft).version", r#""1.10.0""#),
        ("reef add ft@1; (which -a ft).map(.version)", r#"["1.10.0", "1.9.0"]"#),
        ("wants(2); ft", "! reef_unlocked reef lock"),
        ("wants(2); (reef lock).map(.version)", r#"["2.0.0"]"#),
        ("wants(3); reef lock", "! reef_not_found `ft` 3"),
        (r#"save(".tool-versions", "ft 1.9.0"); reef lock; ft.out"#, r#""1.9.0""#),
        (r#"save("mise.toml", "[tools]\nft = \"2\""); reef lock; ft.out"#, r#""2.0.0""#),
    ]);
}

#[test]
fn changed_bytes_are_drift() {
    check_installed(&[
        (r#"reef add ft@2; save("installs/ft/2.0.0/bin/ft", "new"); ft"#, "! reef_drift reef doctor"),
        (r#"reef add ft@2; save("installs/ft/2.0.0/bin/ft", "new"); (which ft).scope"#, r#""unresolved: reef_drift""#),
        (
            r#"reef add ft@2; save("installs/ft/2.0.0/bin/ft", "new"); (reef doctor).map([.check, .status])"#,
            r#"[["drift", "drift"]]"#,
        ),
        (
            r##"reef add ft@2; save("installs/ft/2.0.0/bin/ft", "#!/bin/sh\necho new"); reef lock --refresh; ft.out"##,
            r#""new""#,
        ),
        (
            r#"reef add ft@2; save(".reef.toml", ""); (reef doctor).map([.check, .status])"#,
            r#"[["drift", "ok"], ["orphan", "orphan"]]"#,
        ),
    ]);
}

#[test]
fn scopes_must_agree() {
    check(&[
        (r#"with reef: {ft: "1"} { with reef: {ft: "2"} { ft } }"#, "! reef_conflict"),
        (r#"with reef: {ft: "1"} { with reef: {ft: "1.2"} { (which ft).constraint } }"#, r#""1.2""#),
        (
            r#"save(".reef.toml", "[tools]\nft = \"18\""); with reef: {ft: "22"} { (which ft).scope }"#,
            r#""unresolved: reef_conflict""#,
        ),
        (r#"with reef: {ft: "1"} { ft }"#, "! reef_unlocked"),
        (r#"with reef: {ft: "1"} { let t = spawn { ft }; t.await() }"#, "! reef_unlocked"),
        (r#"with reef: {ft: "1"} { null }; ft"#, "! not_found"),
        ("with reef: {ft: 1} { null }", "! type_error"),
        ("with reef: {} { 2 }", "2"),
    ]);
}

#[test]
fn what_is_wrong_is_said() {
    check(&[
        (r#"save(".reef.toml", "x = ["); ^true"#, "! reef_provider parsing manifest"),
        (r#"save(".reef.toml", "[options]\nhermetic = true"); ^true"#, "! reef_provider hermetic"),
        (r#"save("mise.toml", "x = ["); ^true; 1"#, "1"),
        (
            r#"save(".reef.toml", "[tools]\nft = \"1\""); save("reef.lock", "x = ["); ft"#,
            "! reef_provider parsing lock",
        ),
        (
            r#"with env: {PATH: ""} { save(".reef.toml", "[tools]\nft = \"1\""); reef fetch ft }"#,
            "! reef_provider mise",
        ),
        ("reef fetch ft", "! reef_not_found"),
        ("reef add sh@^1", "! arg_error a range"),
        ("reef add sh@*", "! arg_error quote a `*`"),
        ("reef frob", "! arg_error usage"),
        ("reef --refresh", "! arg_error reef lock"),
    ]);
}

#[test]
fn manifests_name_runners() {
    check(&[
        (r#"save(".reef.toml", "[runners]\nzzz = \"cat\""); save("x.zzz", "text"); run("x.zzz").out"#, r#""text""#),
        (
            r#"save(".reef.toml", "[runners]\npy = \{tool = \"head\", args = [\"-n1\"]\}"); save("x.py", "a\nb"); run("x.py").out"#,
            r#""a""#,
        ),
    ]);
}
