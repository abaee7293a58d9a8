//! Draws the picture of `shoal top` in the README: a real kernel with real work, the command on a terminal, its screen as
//! SVG.
//!
//!     cargo build --workspace --bins && cargo run -p shoal-harness --example screenshot -- docs/images/top.svg
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "it starts processes and writes a file")]

use std::fmt::Write as _;

use serde_json::json;
use shoal_harness::{Kernel, Place, Terminal};

const SIZE: (u16, u16) = (140, 32);
/// Pixels of a cell, for a font of 14.
const CELL: (f32, f32) = (8.4, 18.0);
const GROUND: &str = "#16181d";
const INK: &str = "#d5d8de";
const POLICY: &str = include_str!("asking.toml");

fn main() {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: screenshot FILE.svg");
        return;
    };
    let place = Place::new();
    let policy = place.write("leash.toml", POLICY);
    let kernel = Kernel::start_with(&place, |command| {
        command.arg("--policy").arg(policy);
    });
    let work = |client: &mut shoal_harness::Client, src: &str| {
        client.ok("exec", json!({"src": src, "async": true}));
    };
    let mut build = kernel.attach("build");
    work(&mut build, "sh { for n in 1 2 3 4 5 6 7 8 9; do echo compiling part $n; done; sleep 600 }");
    work(&mut build, "^sleep 600");
    build.ok("exec", json!({"src": "1 + 1"}));
    build.ok("pty.open", json!({"cmd": "vim", "args": ["notes.md"]}));
    let mut human = kernel.attach("default");
    let token = human.ok("token.create", json!({"principal": "agent:docs"}));
    let mut agent = kernel.connect();
    agent.ok("session.attach", json!({"session": "docs", "token": token["token"], "client": {"kind": "mcp"}}));
    let plan = agent.ok("exec", json!({"src": "sh ./publish.sh --site staging", "mode": "plan"}));
    agent.ok("cap.request", json!({"plan_ref": plan["plan_ref"]}));
    let terminal = Terminal::start(&place, "shoal", &["top"], SIZE, &[]);
    terminal.see("approvals (1 wait)");
    for _ in 0..12 {
        human.ok("exec", json!({"src": "ls ."}));
    }
    while !terminal.screen().contains("tasks and terminals of build") {
        terminal.type_text("\x1b[B");
        if terminal.screen().contains("tasks and terminals of build") {
            break;
        }
        terminal.type_text("\x1b[A\x1b[A\x1b[A");
    }
    terminal.see("vim");
    terminal.see_that("a rate of the journal", |screen| screen.contains("events/s") && !screen.contains("journal 0.0"));
    let picture = terminal.with_screen(svg);
    if let Err(e) = std::fs::write(&path, picture) {
        eprintln!("{}: {e}", path.display());
    }
}

/// The screen as a picture.
fn svg(screen: &vt100::Screen) -> String {
    let (rows, cols) = screen.size();
    let (width, height) = (f32::from(cols.get()) * CELL.0 + 24.0, f32::from(rows.get()) * CELL.1 + 24.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, \
         Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n<title>shoal top</title>\n<rect width=\"100%\" \
         height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n"
    );
    for row in 0..rows.get() {
        let mut col = 0;
        while col < cols.get() {
            let (run, style) = run_at(screen, row, col);
            let count = u16::try_from(run.chars().count()).unwrap_or(1).max(1);
            draw(&mut out, row, col, &run, style);
            col += count;
        }
    }
    out.push_str("</svg>\n");
    out
}

#[derive(Clone, Copy, PartialEq)]
struct Style {
    ink: vt100::Color,
    bold: bool,
    inverse: bool,
}

/// The cells of one style from a place on.
fn run_at(screen: &vt100::Screen, row: u16, col: u16) -> (String, Style) {
    let look = |col: u16| {
        let cell = screen.cell(row, col)?;
        let style = Style { ink: cell.fgcolor(), bold: cell.bold(), inverse: cell.inverse() };
        Some((if cell.has_contents() { cell.contents().to_owned() } else { " ".to_owned() }, style))
    };
    let Some((mut text, style)) = look(col) else {
        return (" ".to_owned(), Style { ink: vt100::Color::Default, bold: false, inverse: false });
    };
    let mut next = col + 1;
    while let Some((more, other)) = look(next) {
        if other != style {
            break;
        }
        text.push_str(&more);
        next += 1;
    }
    (text, style)
}

fn draw(out: &mut String, row: u16, col: u16, text: &str, style: Style) {
    let (x, y) = (f32::from(col) * CELL.0 + 12.0, f32::from(row) * CELL.1 + 12.0);
    let width = text.chars().count() as f32 * CELL.0;
    let ink = ink(style.ink);
    if style.inverse {
        let _infallible = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{ink}\"/>",
            CELL.1
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let fill = if style.inverse { GROUND } else { ink };
    let weight = if style.bold { " font-weight=\"bold\"" } else { "" };
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _infallible = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{fill}\"{weight} xml:space=\"preserve\" textLength=\"{width:.1}\">{escaped}</text>",
        y + 13.5
    );
}

/// The sixteen colours of a terminal.
fn ink(color: vt100::Color) -> &'static str {
    const INKS: [&str; 16] = [
        "#16181d", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d5d8de", "#5c6370", "#e06c75",
        "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#ffffff",
    ];
    match color {
        vt100::Color::Idx(number) => INKS.get(usize::from(number)).copied().unwrap_or(INK),
        vt100::Color::Default | vt100::Color::Rgb(..) => INK,
    }
}
