//! Finding rows by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Command, Field, Function, Gives, Method, Namespace, Types};
use crate::{builtins, methods};

/// Method rows of one name by type.
pub struct MethodRow {
    by_type: [Option<&'static Method>; Types::COUNT],
}

impl MethodRow {
    /// The method for the type with this number.
    #[inline]
    pub fn of(&self, type_index: usize) -> Option<&'static Method> {
        self.by_type[type_index]
    }

    /// Whether what they give is an int for every type.
    pub(crate) fn gives_int(&self) -> bool {
        self.by_type.iter().flatten().all(|method| method.gives == Gives::Plain(Types::INT))
    }
}

/// All builtins by name.
pub struct Registry {
    methods: HashMap<&'static str, MethodRow>,
    fields: HashMap<&'static str, Vec<&'static Field>>,
    functions: HashMap<&'static str, &'static Function>,
    namespaces: HashMap<&'static str, &'static Namespace>,
    commands: HashMap<&'static str, &'static Command>,
}

/// The builtins of this build. It is a constant that is computed on first use.
pub fn standard() -> &'static Registry {
    static STANDARD: LazyLock<Registry> = LazyLock::new(Registry::build);
    &STANDARD
}

impl Registry {
    fn build() -> Self {
        let mut methods: HashMap<_, MethodRow> = HashMap::new();
        for method in methods::TABLES.iter().chain(crate::native::METHODS).flat_map(|table| table.iter()) {
            let row = methods.entry(method.name).or_insert_with(|| MethodRow { by_type: [None; Types::COUNT] });
            for (index, slot) in row.by_type.iter_mut().enumerate().filter(|(index, _)| method.on.has_index(*index)) {
                assert!(slot.is_none(), "method {} is registered twice for type {index}", method.name);
                *slot = Some(method);
            }
        }
        let mut fields: HashMap<_, Vec<_>> = HashMap::new();
        for field in methods::FIELDS.iter().flat_map(|table| table.iter()) {
            fields.entry(field.name).or_default().push(field);
        }
        let functions = builtins::FUNCTIONS.iter().chain(crate::native::FUNCTIONS).flat_map(|table| table.iter());
        let commands = builtins::COMMANDS.iter().chain(crate::native::COMMANDS).flat_map(|table| table.iter());
        Self {
            methods,
            fields,
            functions: functions.map(|f| (f.name, f)).collect(),
            namespaces: builtins::NAMESPACES.iter().map(|n| (n.name, *n)).collect(),
            commands: commands.map(|c| (c.name, c)).collect(),
        }
    }

    /// Methods of this name by type.
    pub fn methods(&self, name: &str) -> Option<&MethodRow> {
        self.methods.get(name)
    }

    /// Names of all methods that some type in `types` has, in any order.
    pub fn method_names(&self, types: Types) -> impl Iterator<Item = &'static str> {
        self.methods
            .iter()
            .filter(move |(_, row)| row.by_type.iter().flatten().any(|m| m.on.meets(types)))
            .map(|(name, _)| *name)
    }

    /// The field `name` of the type of a value.
    pub fn field(&self, name: &str, type_index: usize) -> Option<&'static Field> {
        self.fields.get(name)?.iter().copied().find(|f| f.on.has_index(type_index))
    }

    /// A builtin function.
    pub fn function(&self, name: &str) -> Option<&'static Function> {
        self.functions.get(name).copied()
    }

    /// A namespace.
    pub fn namespace(&self, name: &str) -> Option<&'static Namespace> {
        self.namespaces.get(name).copied()
    }

    /// A builtin command.
    pub fn command(&self, name: &str) -> Option<&'static Command> {
        self.commands.get(name).copied()
    }

    /// Names of all builtin commands, in any order.
    pub fn command_names(&self) -> impl Iterator<Item = &'static str> {
        self.commands.keys().copied()
    }

    /// All functions, in any order.
    pub fn functions(&self) -> impl Iterator<Item = &'static Function> {
        self.functions.values().copied()
    }

    /// All namespaces, in any order.
    pub fn namespaces(&self) -> impl Iterator<Item = &'static Namespace> {
        self.namespaces.values().copied()
    }

    /// All commands, in any order.
    pub fn commands(&self) -> impl Iterator<Item = &'static Command> {
        self.commands.values().copied()
    }
}
