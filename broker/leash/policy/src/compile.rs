//! Both files to the compiled sections.

use shoal_proto::List;
use shoal_proto::section::{Section, Sections};
use toml::de::DeValue;

use crate::args::Args;
use crate::source::Source;
use crate::{built_in, section, settings};

/// Compiles `leash.toml` (or the built-in policy) and `shoal.toml`.
pub(crate) fn compile(args: &Args, leash: &str, shoal: &str) -> Result<Sections, String> {
    let mut sections = if args.built_in { Vec::new() } else { leash_sections(leash, &args.home)? };
    let own = format!("uid:{}", args.uid);
    // Who writes down what an agent may do does not lock himself out with it.
    if !sections.iter().any(|section| [&own, "default"].contains(&section.principal.as_str())) {
        sections.push(built_in::section(args.uid));
    }
    Ok(Sections {
        sections: List::new(sections).map_err(|e| format!("leash.toml: {e} sections"))?,
        settings: settings::compile(shoal)?,
        built_in: args.built_in,
    })
}

fn leash_sections(text: &str, home: &str) -> Result<Vec<Section>, String> {
    let source = Source::new("leash.toml", text);
    let mut sections = Vec::new();
    for (name, node) in &source.table()? {
        match (name.get_ref().as_ref(), node.get_ref()) {
            ("principal", DeValue::Table(principals)) => {
                for (principal, table) in principals {
                    let named = principal.get_ref();
                    if named.is_empty() || named.chars().any(char::is_control) || named == "default" {
                        let what = "a principal's name is 1 to 128 bytes without control characters, and not `default`";
                        return Err(source.at(principal.span(), what));
                    }
                    sections.push(section::compile(&source, named, table, home)?);
                }
            }
            ("default", _) => sections.push(section::compile(&source, "default", node, home)?),
            ("principal", _) => return Err(source.wrong_type(node, "principal", "tables: [principal.\"NAME\"]")),
            (other, _) => return Err(source.unknown(name.span(), "section", other, &["principal", "default"])),
        }
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_proto::section::{Approve, Network, Opaque};

    fn leash(text: &str) -> Result<Sections, String> {
        compile(&Args { uid: 7, home: "/home/me".into(), ..Args::default() }, text, "")
    }

    #[test]
    fn a_glob_that_no_jail_can_enforce_is_refused() {
        let error = leash("[default]\nfs.read = [\"~/src/**/*.rs\"]").unwrap_err();
        assert!(error.contains("2:12") && error.contains("write \"/home/me/src/**\""), "{error}");
        for fine in ["/**", "~/src/**", "/srv/*/data/**", "/etc/hosts"] {
            leash(&format!("[default]\nfs.read = [\"{fine}\"]")).expect(fine);
        }
        for bad in ["/a**", "/**/b/**", "/a/**b"] {
            leash(&format!("[default]\nfs.write = [\"{bad}\"]")).expect_err(bad);
        }
    }

    #[test]
    fn compiles_every_key() {
        let text = r#"
            [principal."agent:docs"]
            opaque = "ask"
            auto_apply = "reversible"
            approve = "client"
            session_write = true
            env.read = ["PATH"]
            fs.read = ["~/site/**", "/usr/**"]
            fs.write = ["/srv/**"]
            net_connect = ["*.example.org:443"]
            proc.spawn = ["git"]
            unix_sockets = ["/run/x.sock"]
            git = "off"
            require = ["C1", "C12"]
            limits = { memory = "2gib", pids = 256 }
            idle_ttl = 60
            [default]
            time = true
        "#;
        let compiled = leash(text).expect("compiles");
        let docs = compiled.serving("agent:docs").expect("there");
        assert_eq!(docs.fs_read.as_slice()[0].as_str(), "/home/me/site/**");
        assert_eq!((docs.opaque, docs.approve, docs.network), (Opaque::Ask, Approve::Client, Network::Ports));
        assert_eq!(docs.require, 0b1000_0000_0001);
        assert_eq!(
            (docs.limits.memory, docs.limits.pids, docs.limits.output),
            (Some(2 << 30), Some(256), Some(1 << 30))
        );
        assert!(!docs.git_safe);
        assert_eq!(compiled.serving("agent:other").expect("default").principal.as_str(), "default");
        let bytes = compiled.encode().expect("encodes");
        assert_eq!(Sections::decode(&bytes).expect("decodes"), compiled);
    }

    #[test]
    fn errors_say_where_and_what_is_near() {
        for (text, expect) in [
            ("[default]\nopaqe = 1", "leash.toml:2:1: unknown key `opaqe`; did you mean `opaque`?"),
            ("[defalt]\n", "unknown section `defalt`; did you mean `default`?"),
            ("[default]\nopaque = \"maybe\"", "leash.toml:2:10: unknown value of `opaque`: `maybe`"),
            ("[default]\nfs.read = [\"rel/**\"]", "leash.toml:2:12: `fs.read`: \"rel/**\" is not absolute"),
            ("[default]\nfs.read = \"/**\"", "`fs.read` takes an array of strings, got string"),
            ("[default]\nspawn = [\"a\"]\nproc_spawn = [\"b\"]", "`proc_spawn` is given twice"),
            ("[default]\nnet_listen = [70000]", "70000 is no port"),
            ("[default]\nnet = [\"host\"]", "is not \"host:port\""),
            ("[default]\nrequire = [\"C13\"]", "\"C13\" is no claim"),
            ("[default]\nlimits = { memry = 1 }", "unknown limit `memry`; did you mean `memory`?"),
            ("[default\n", "leash.toml:1:"),
        ] {
            let error = leash(text).expect_err(text);
            assert!(error.contains(expect), "{error}\nexpected {expect}");
            assert!(!error.contains('\n'), "one line: {error:?}");
        }
    }

    #[test]
    fn without_a_file_the_local_user_may_do_everything() {
        let compiled = compile(&Args { uid: 7, built_in: true, ..Args::default() }, "", "").expect("compiles");
        let section = compiled.serving("uid:7").expect("there");
        assert!(section.is_whole_filesystem());
        assert!(compiled.serving("agent:x").is_none());
    }

    #[test]
    fn a_file_about_others_leaves_the_local_user_what_it_had() {
        let own = |text: &str| leash(text).expect(text).serving("uid:7").map(Section::is_whole_filesystem);
        assert_eq!(own(""), Some(true));
        assert_eq!(own("[principal.\"agent:x\"]\nfs.read = [\"/a/**\"]"), Some(true));
        assert_eq!(own("[principal.\"uid:7\"]\nfs.read = [\"/a/**\"]"), Some(false));
        assert_eq!(own("[default]\nfs.read = [\"/a/**\"]"), Some(false), "it serves everybody who has none");
    }
}
