//! What a model is told before its first call.

/// Teaches the language and the use of results; hosts put it into the model's context, so every line has to earn it.
pub(crate) const INSTRUCTIONS: &str = "\
Shoal is a durable shell session with typed values. shoal_exec runs Shoal source; bindings, directory and environment stay.
Commands as in a shell: git status, ls ., cd src, cargo build. `^name` runs the program, never a builtin. Pipelines are method calls:
  (ls .).where(.size > 10kb).sort_by(.size).map(.name)     implicit item: .field
  let r = (^make check); r.ok; r.status; r.stderr; r.stdout  a command in ( ) is a value; r.out, its text, raises if it failed
  \"{name}\" interpolates, 'raw' does not; 5s 10kb are literals; [1,2] {a: 1} 1..10; x => x + 1; if c { } else { }; for x in xs { echo (x) }; fn f(x) { }
  sh { any posix | script }   for real shell syntax; > and >> redirect; env.NAME = \"v\"
  json.parse(path(\"data.json\").read()).items.first(); \"text\".lines(); x.json()
A failed command as the last expression is a result with ok:false, not an error.
Results have a ref (out:N). Never cap a first run: large values come as a preview with a ref; read more with shoal_get ref path slice (path out.items[3], slice [0,100]), no rerun.
status running: the run went on as task:N; read shoal://task/N or shoal://task/N/log?offset=0; shoal_cancel ends it. Use background:true for servers.
Interactive programs: shoal_pty_open, shoal_pty_send, shoal_pty_read with wait.
APPROVAL_REQUIRED: shoal_plan the same source, shoal_cap_request, then shoal_apply.
Resources under shoal:// are live and can be subscribed to. shoal_journal tells what ran.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_enough_for_every_context() {
        assert!(INSTRUCTIONS.len() < 1500, "{} bytes", INSTRUCTIONS.len());
    }
}
