//! `shoal man`: the man pages, made from the command line's own definition.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::args::{self, Args};
use crate::fail::Fail;
use crate::out;

/// Prints one page, or writes all of them.
pub(crate) fn run(man: &args::Man) -> Result<ExitCode, Fail> {
    let pages = pages();
    match &man.dir {
        Some(dir) => write_all(dir, &pages)?,
        None => {
            let wanted = man.page.strip_suffix(".1").unwrap_or(&man.page);
            let Some(page) = pages.iter().find(|page| page.name == wanted) else {
                let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
                return Err(Fail::Usage(format!("no page {wanted}; there are: {}", names.join(", "))));
            };
            out::text(&page.roff()?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

struct Page {
    name: String,
    command: clap::Command,
}

impl Page {
    fn roff(&self) -> Result<String, Fail> {
        let mut roff = Vec::new();
        let failed = |e: std::io::Error| Fail::Said(format!("{}: {e}", self.name));
        Man::new(self.command.clone()).manual("Shoal").render(&mut roff).map_err(failed)?;
        Ok(String::from_utf8_lossy(&roff).into_owned())
    }
}

/// One page for the command and one for each of its subcommands.
fn pages() -> Vec<Page> {
    let mut root = Args::command();
    root.build();
    let mut pages = Vec::new();
    collect(&root, "", &mut pages);
    pages
}

fn collect(command: &clap::Command, above: &str, pages: &mut Vec<Page>) {
    let name = if above.is_empty() { command.get_name().to_owned() } else { format!("{above}-{}", command.get_name()) };
    let page = command.clone().disable_help_subcommand(true).display_name(name.clone());
    pages.push(Page { name: name.clone(), command: page });
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        collect(sub, &name, pages);
    }
}

fn write_all(dir: &Path, pages: &[Page]) -> Result<(), Fail> {
    let failed = |path: &Path, e: std::io::Error| Fail::Said(format!("{}: {e}", path.display()));
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    for page in pages {
        let path = dir.join(format!("{}.1", page.name));
        std::fs::write(&path, page.roff()?).map_err(|e| failed(&path, e))?;
    }
    out::line(&format!("wrote {} pages into {}", pages.len(), dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_help_has_none() {
        let pages = pages();
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        for name in ["shoal", "shoal-exec", "shoal-session", "shoal-session-kill", "shoal-doctor"] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("help")), "{names:?}");
        let kill = pages.iter().find(|page| page.name == "shoal-session-kill").expect("there").roff().expect("roff");
        assert!(kill.contains("End every process of a session"), "{kill}");
    }
}
