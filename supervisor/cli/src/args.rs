//! The command line, as `shoal --help` and the man pages show it.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

const SCRIPTS: &str = "\
Scripts, without a kernel:
  shoal FILE [ARGS]       Run a file (a name with a slash, or one that ends in .shl)
  shoal -c SOURCE [ARGS]  Run a source text
  shoal - [ARGS]          Run standard input";

/// Durable, structured shell sessions for agents and the person beside them.
#[derive(Debug, Parser)]
#[command(name = "shoal", version, max_term_width = 100, after_help = SCRIPTS)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where the kernel is and who asks.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct Common {
    /// Socket of the kernel
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Session to work in
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Bearer token; better given in SHOAL_TOKEN
    #[arg(long, global = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// State directory of the kernel
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a source text in a session and print what it gives
    Exec(Exec),
    /// Open an interactive prompt in a session
    Attach(AttachTo),
    /// Evaluate without a kernel
    Eval(Eval),
    /// Show the processes of the kernel
    Status,
    /// Watch processes, sessions, tasks, terminals and approvals, full screen
    Top,
    /// List, kill, freeze or thaw sessions
    #[command(subcommand)]
    Session(Session),
    /// Decide what agents may do
    #[command(subcommand)]
    Approvals(Approvals),
    /// Follow events
    #[command(subcommand)]
    Events(Events),
    /// Look into the journal
    History(History),
    /// Make, list and revoke bearer tokens
    #[command(subcommand)]
    Token(Token),
    /// Look at terminals, or take one over
    #[command(subcommand)]
    Pty(Pty),
    /// Start and stop watches, and act on their notices
    #[command(subcommand)]
    Watch(Watch),
    /// Check and explain the policy
    #[command(subcommand)]
    Policy(Policy),
    /// Try the real path and say what is wrong
    Doctor,
    /// Set up the service or an MCP client
    #[command(subcommand)]
    Setup(Setup),
    /// Start, stop or reload the kernel
    #[command(subcommand)]
    Kernel(Kernel),
    /// Serve MCP over stdio (runs shoal-mcp)
    Mcp,
    /// Print a completion script
    Completions {
        /// Shell to complete in
        shell: clap_complete::Shell,
    },
    /// Print a man page, or write all of them into a folder
    Man(Man),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Exec {
    /// Evaluate the last statement as a value: a failed command is a result
    #[arg(long)]
    pub(crate) value: bool,
    /// Milliseconds to wait; then the run goes on as a task
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
    /// Milliseconds after which the run is ended
    #[arg(long, value_name = "MS")]
    pub(crate) deadline: Option<u64>,
    /// Idempotency key
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Answer at once with a task
    #[arg(long)]
    pub(crate) background: bool,
    /// The source; `-` reads it from stdin
    pub(crate) src: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AttachTo {
    /// Session name; that of --session when absent
    pub(crate) name: Option<String>,
    /// Owner, when it is not you
    #[arg(long)]
    pub(crate) owner: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    /// Write every page into this folder
    #[arg(long, value_name = "PATH", conflicts_with = "page")]
    pub(crate) dir: Option<PathBuf>,
    /// Page, for example `shoal-session`
    #[arg(default_value = "shoal")]
    pub(crate) page: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Eval {
    /// Read one program from stdin and print one JSON line
    #[arg(long, required = true)]
    pub(crate) verdict: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    /// List sessions
    List,
    /// End every process of a session
    Kill {
        /// Session name
        name: String,
        /// Owner, when it is not you
        #[arg(long)]
        owner: Option<String>,
        /// Why, for the record
        #[arg(long)]
        reason: Option<String>,
    },
    /// Stop every process of a session
    Freeze(Owned),
    /// Let a frozen session go on
    Thaw(Owned),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Owned {
    /// Session name
    pub(crate) name: String,
    /// Owner, when it is not you
    #[arg(long)]
    pub(crate) owner: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List plans that wait for a decision
    List {
        /// Decided ones too
        #[arg(long)]
        all: bool,
    },
    /// Show one plan in full
    Show {
        /// `plan:…`
        plan: String,
    },
    /// Allow a plan
    Approve {
        /// `plan:…`
        plan: String,
        /// Effect kinds, all when absent
        #[arg(long, value_delimiter = ',')]
        effects: Vec<String>,
        /// Note for the record
        #[arg(long)]
        note: Option<String>,
    },
    /// Refuse a plan
    Deny {
        /// `plan:…`
        plan: String,
        /// Note for the record
        #[arg(long)]
        note: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Events {
    /// Print events as they come, one JSON object each
    Tail {
        /// Channel: journal, approval, session, kernel, task.N, pty.N, user.NAME
        channel: String,
        /// Owner, when it is not you
        #[arg(long)]
        owner: Option<String>,
        /// Begin after this sequence number
        #[arg(long)]
        since: Option<u64>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct History {
    #[command(subcommand)]
    pub(crate) action: Option<HistoryAction>,
    #[command(flatten)]
    pub(crate) query: HistoryQuery,
}

#[derive(Debug, Default, Clone, ClapArgs)]
pub(crate) struct HistoryFilter {
    /// Rows from this time on, nanoseconds since the epoch
    #[arg(long, value_name = "NS")]
    pub(crate) since: Option<i64>,
    /// Rows up to this time
    #[arg(long, value_name = "NS")]
    pub(crate) until: Option<i64>,
    /// Rows of this principal
    #[arg(long)]
    pub(crate) principal: Option<String>,
    /// Rows with these effects, comma separated
    #[arg(long, value_delimiter = ',')]
    pub(crate) effects: Vec<String>,
    /// Rows of these kinds, comma separated: exec, statement, plan, approval, denial, pty, session, admin, kernel
    #[arg(long, value_delimiter = ',')]
    pub(crate) kinds: Vec<String>,
    /// Rows whose source begins with this word
    #[arg(long)]
    pub(crate) head: Option<String>,
    /// Rows that ended so
    #[arg(long)]
    pub(crate) status: Option<RowStatus>,
}

#[derive(Debug, Default, Clone, ClapArgs)]
pub(crate) struct HistoryQuery {
    #[command(flatten)]
    pub(crate) filter: HistoryFilter,
    /// Rows at most
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: u64,
    /// Rows of every kind: also each statement of a run, sessions, administration, the kernel
    #[arg(long, conflicts_with = "kinds")]
    pub(crate) all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowStatus {
    Ok,
    Failed,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryAction {
    /// List rows, newest first
    Query(HistoryQuery),
    /// Show one row in full
    Show {
        /// Row id
        id: i64,
    },
    /// Print rows as they close, until interrupted
    Follow {
        /// Owner, when it is not you
        #[arg(long)]
        owner: Option<String>,
    },
    /// Print every row that matches, one JSON document a line
    Export(HistoryFilter),
    /// Take the file changes of a row back, in the row's session
    Undo {
        /// Row id
        id: i64,
        /// Nothing is undone unless all of it lies below this directory
        #[arg(long, value_name = "PATH")]
        root: PathBuf,
    },
    /// Recompute the chain
    Verify {
        /// A digest noted earlier
        #[arg(long, value_name = "HEX")]
        head: Option<String>,
    },
    /// Protect a blob from collection
    Pin {
        /// Hash
        hash: String,
    },
    /// Lift a protection
    Unpin {
        /// Hash
        hash: String,
    },
    /// Collect old blobs; a dry run unless --apply
    Gc {
        /// Seconds since the last read
        #[arg(long, value_name = "S")]
        ttl: Option<i64>,
        /// Bytes to keep at most
        #[arg(long, value_name = "BYTES")]
        budget: Option<i64>,
        /// Really delete
        #[arg(long)]
        apply: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token; the secret is printed once, alone on stdout
    Create {
        /// Principal it proves
        principal: String,
        /// Profile label
        #[arg(default_value = "default")]
        profile: String,
        /// Capability label, repeatable
        #[arg(long)]
        cap: Vec<String>,
        /// Seconds it lives
        #[arg(long, value_name = "SECONDS")]
        ttl: Option<u64>,
    },
    /// List tokens
    List,
    /// Make a token void
    Revoke {
        /// Token id
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pty {
    /// List terminals of the session
    List {
        /// Owner of the session, when it is not you
        #[arg(long, value_name = "P")]
        owner: Option<String>,
    },
    /// Print a terminal's screen
    Show {
        /// `pty:N`
        id: String,
        /// Owner of the session, when it is not you
        #[arg(long, value_name = "P")]
        owner: Option<String>,
        /// Print so many of the lines above the screen too, from the oldest kept
        #[arg(long, value_name = "LINES")]
        scrollback: Option<u32>,
    },
    /// Watch a terminal live in your own; Ctrl-] detaches
    Attach {
        /// `pty:N`
        id: String,
        /// Owner of the session, when it is not you
        #[arg(long, value_name = "P")]
        owner: Option<String>,
        /// Type into it; until you detach nobody else can
        #[arg(long)]
        take: bool,
        /// Let the journal keep what you type
        #[arg(long, requires = "take")]
        record: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Compile policy files and say what is wrong
    Check {
        /// leash.toml, and shoal.toml when there is one
        #[arg(num_args = 0..=2)]
        files: Vec<PathBuf>,
    },
    /// Say what the policy makes of a source text
    Explain {
        /// The source
        src: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Watch {
    /// List the session's watches
    List,
    /// Start a watch of a resource
    Start {
        /// Its name
        name: String,
        /// The resource, for example shoal://events/journal
        uri: String,
        /// Filter: source that is run for each event; its value is the line
        #[arg(long, value_name = "SRC")]
        on_event: Option<String>,
        /// Language of the filter
        #[arg(long, default_value = "shoal")]
        lang: String,
        /// Do not start it again after a restart
        #[arg(long)]
        once: bool,
    },
    /// Stop a watch
    Stop {
        /// Its name
        name: String,
    },
    /// Run a command for each notice
    Run(WatchRun),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WatchRun {
    /// Watch to follow; all of the session, also later ones, when absent
    #[arg(long, value_name = "NAME")]
    pub(crate) watch: Vec<String>,
    /// Say on stderr when an answer is not shown
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Command; it reads the message on its stdin, and what it prints is shown unless it is NO_REPLY
    #[arg(long, value_name = "CMD")]
    pub(crate) on_notice: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Setup {
    /// Install the user service (systemd or launchd)
    Service {
        /// Keep it running without a login
        #[arg(long)]
        linger: bool,
        /// Only print what would be written
        #[arg(long)]
        print: bool,
        /// Stop the service and take its files away again
        #[arg(long, conflicts_with_all = ["linger", "print"])]
        remove: bool,
    },
    /// Enter shoal-mcp into the configuration of an MCP client
    Mcp(SetupMcp),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SetupMcp {
    /// Client
    pub(crate) client: McpClient,
    /// Write the configuration (a backup is kept); without it the text is printed
    #[arg(long, conflicts_with = "print")]
    pub(crate) write: bool,
    /// Only print, which is the default
    #[arg(long)]
    pub(crate) print: bool,
    /// Make a token for this agent and enter it, so that the client works under a policy section of its own
    #[arg(long, value_name = "AGENT")]
    pub(crate) principal: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClient {
    Claude,
    Codex,
    Cursor,
    Vscode,
    Gemini,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Kernel {
    /// Start a kernel unless one runs
    Start,
    /// Stop the kernel and wait for its end
    Stop,
    /// Read the policy again
    Reload,
}
