//! The rows of the registry in one form, with their documentation taken apart.

use shoal_eval::registry::{Command, Function, Method, Need, Param, Types, standard};

/// A builtin.
pub(crate) struct Row {
    /// Heading it stands under.
    pub(crate) section: String,
    /// How it is written.
    pub(crate) usage: String,
    /// Its documentation.
    pub(crate) doc: Doc,
}

/// Documentation of a builtin.
pub(crate) struct Doc {
    /// Sentences.
    pub(crate) text: String,
    /// Transcript, line by line.
    pub(crate) examples: Vec<Example>,
}

/// A program and what it gives.
#[derive(Clone)]
pub(crate) struct Example {
    /// Source text.
    pub(crate) source: String,
    /// Inline form of its value, or `! CODE`.
    pub(crate) gives: String,
}

const PROMPT: &str = "shoal> ";

impl Doc {
    /// Takes the text of a table apart: sentences up to the first prompt, then prompts and results. Prompts without a result
    /// between them are one program.
    fn parse(doc: &str) -> Self {
        let lines: Vec<&str> = doc.lines().map(str::trim).collect();
        let first = lines.iter().position(|line| line.starts_with(PROMPT)).unwrap_or(lines.len());
        let text = lines[..first].join(" ").trim().to_owned();
        let mut examples: Vec<Example> = Vec::new();
        for line in &lines[first..] {
            match (line.strip_prefix(PROMPT), examples.last_mut()) {
                (Some(source), Some(open)) if open.gives.is_empty() => {
                    open.source = format!("{}\n{source}", open.source)
                }
                (Some(source), _) => examples.push(Example { source: source.to_owned(), gives: String::new() }),
                (None, Some(example)) => example.gives.push_str(line),
                (None, None) => {}
            }
        }
        Self { text, examples }
    }
}

/// All builtins, by section and name.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = commands();
    rows.extend(functions());
    rows.extend(namespaces());
    rows.extend(methods());
    rows
}

fn commands() -> Vec<Row> {
    let mut commands: Vec<&Command> = standard().commands().collect();
    commands.sort_by_key(|command| command.name);
    let row = |command: &Command| Row {
        section: "Commands".to_owned(),
        usage: command.synopsis.to_owned(),
        doc: Doc::parse(command.doc),
    };
    commands.into_iter().map(row).collect()
}

fn functions() -> Vec<Row> {
    let mut functions: Vec<&Function> = standard().functions().collect();
    functions.sort_by_key(|function| function.name);
    functions.into_iter().map(|function| function_row("Functions", "", function)).collect()
}

fn function_row(section: &str, prefix: &str, function: &Function) -> Row {
    Row {
        section: section.to_owned(),
        usage: call(&format!("{prefix}{}", function.name), function.params),
        doc: Doc::parse(function.doc),
    }
}

fn namespaces() -> Vec<Row> {
    let mut namespaces: Vec<_> = standard().namespaces().collect();
    namespaces.sort_by_key(|namespace| namespace.name);
    let rows = namespaces.into_iter().flat_map(|namespace| {
        let section = format!("Namespace `{}`", namespace.name);
        namespace.functions.iter().map(move |f| function_row(&section, &format!("{}.", namespace.name), f))
    });
    rows.collect()
}

fn methods() -> Vec<Row> {
    let registry = standard();
    let mut names: Vec<&str> = registry.method_names(Types::ANY).collect();
    names.sort_unstable();
    let mut methods: Vec<&'static Method> = Vec::new();
    for name in names {
        let row = registry.methods(name).expect("the name is from the registry");
        for method in (0..Types::COUNT).filter_map(|index| row.of(index)) {
            if !methods.iter().any(|known| std::ptr::eq(*known, method)) {
                methods.push(method);
            }
        }
    }
    methods.sort_by_key(|method| (receivers(method.on), method.name));
    let row = |method: &Method| Row {
        section: format!("Methods of {}", receivers(method.on)),
        usage: call(method.name, method.params),
        doc: Doc::parse(method.doc),
    };
    methods.into_iter().map(row).collect()
}

/// Receivers as a heading.
fn receivers(on: Types) -> String {
    // Sets of nearly all types are told by the types that are not in them, and these have a reason in the text.
    if on.names().count() > Types::COUNT / 2 { "any value".to_owned() } else { on.text() }
}

fn call(name: &str, params: &[Param]) -> String {
    let params: Vec<String> = params.iter().map(param).collect();
    format!("{name}({})", params.join(", "))
}

fn param(param: &Param) -> String {
    let (dots, mark) = match param.need {
        Need::Required(_) => ("", ""),
        Need::Optional => ("", "?"),
        Need::Rest => ("...", ""),
    };
    let callable = Types::CLOSURE.or(Types::COMMAND);
    if param.types == callable || param.types == Types::ANY {
        return format!("{dots}{}{mark}", param.name);
    }
    format!("{dots}{}{mark}: {}", param.name, param.types.text())
}
