//! File patterns: finding what matches.

use std::sync::Arc;

use globset::{Candidate, GlobBuilder, GlobMatcher};
use shoal_value::{ErrorValue, Glob, PathValue};

use crate::Ctx;
use crate::ctx::join_path;
use crate::host::{At, Dir, FileErrorKind, FileKind};
use crate::unwind::Eval;

/// Directories below `**` are walked at most this deep, so that a loop of followed links ends.
const MAX_WALK: usize = 256;

/// Whether the text holds a wildcard.
pub(crate) fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The text as a pattern that matches only itself.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' => escaped.extend(['[', c, ']']),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Longest leading part without wildcards, ending before its last `/`; `.` if there is none.
pub(crate) fn base(pattern: &str) -> &str {
    let plain = pattern.find(['*', '?', '[']).map_or(pattern, |at| &pattern[..at]);
    match plain.rfind('/') {
        Some(0) => "/",
        Some(at) => &plain[..at],
        None => ".",
    }
}

/// Paths that match `glob`, sorted by their bytes.
pub(crate) fn expand(ctx: &mut Ctx<'_>, glob: &Glob) -> Eval<Vec<PathValue>> {
    let here = *glob.cwd() == *ctx.cwd().path();
    let (absolute, pattern) = match glob.pattern().strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (false, &**glob.pattern()),
    };
    let segments =
        pattern.split('/').filter(|s| !s.is_empty()).map(|s| Segment::new(s, glob)).collect::<Result<Vec<_>, _>>()?;
    let mut walk = Walk { dir: ctx.cwd().clone(), found: Vec::new(), follow: glob.follow() };
    let (prefix, shown_from) = match (absolute, here) {
        (true, _) => (b"/".to_vec(), 0),
        (false, true) => (Vec::new(), 0),
        (false, false) => ([glob.cwd().as_bytes(), b"/"].concat(), 0),
    };
    walk.step(ctx, prefix, &segments, 0)?;
    let mut found: Vec<PathValue> = walk.found.into_iter().map(|p| PathValue::from(&p[shown_from..])).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

enum Segment {
    Plain(Vec<u8>),
    Any { hidden: bool },
    Match { matcher: GlobMatcher, hidden: bool },
}

impl Segment {
    fn new(text: &str, glob: &Glob) -> Result<Self, ErrorValue> {
        let hidden = glob.hidden() || text.starts_with('.');
        if text == "**" {
            return Ok(Self::Any { hidden: glob.hidden() });
        }
        if !has_wildcard(text) {
            return Ok(Self::Plain(text.as_bytes().to_vec()));
        }
        // Braces and backslashes are ordinary characters here.
        let quoted = text.replace('{', "[{]").replace('}', "[}]");
        let glob = GlobBuilder::new(&quoted).literal_separator(true).backslash_escape(false).build();
        let glob = glob.map_err(|e| ErrorValue::arg_error(format!("invalid glob \"{text}\": {}", e.kind())))?;
        Ok(Self::Match { matcher: glob.compile_matcher(), hidden })
    }
}

struct Walk {
    dir: Arc<dyn Dir>,
    found: Vec<Vec<u8>>,
    follow: bool,
}

impl Walk {
    fn step(&mut self, ctx: &mut Ctx<'_>, path: Vec<u8>, segments: &[Segment], depth: usize) -> Eval<()> {
        let Some((segment, rest)) = segments.split_first() else {
            self.found.push(path);
            return Ok(());
        };
        match segment {
            Segment::Plain(name) => {
                let next = child(&path, name);
                if !rest.is_empty() || ctx.files().meta(self.at(&next), false).is_ok() {
                    self.step(ctx, next, rest, depth)?;
                }
            }
            Segment::Match { matcher, hidden } => {
                for (name, _) in self.names(ctx, &path)? {
                    let dotted = name.starts_with(b".");
                    if (!dotted || *hidden) && matcher.is_match_candidate(&Candidate::from_bytes(&name)) {
                        self.step(ctx, child(&path, &name), rest, depth)?;
                    }
                }
            }
            Segment::Any { hidden } => {
                if !rest.is_empty() {
                    self.step(ctx, path.clone(), rest, depth)?;
                }
                for (name, kind) in self.names(ctx, &path)? {
                    if name.starts_with(b".") && !hidden {
                        continue;
                    }
                    let next = child(&path, &name);
                    if rest.is_empty() {
                        self.found.push(next.clone());
                    }
                    if depth < MAX_WALK && self.is_walked(ctx, &next, kind) {
                        self.step(ctx, next, segments, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_walked(&self, ctx: &Ctx<'_>, path: &[u8], kind: FileKind) -> bool {
        kind == FileKind::Dir
            || self.follow
                && kind == FileKind::Symlink
                && ctx.files().meta(self.at(path), true).is_ok_and(|meta| meta.kind == FileKind::Dir)
    }

    /// Names in a directory; what cannot be listed has none, so that one closed directory does not spoil a search.
    fn names(&self, ctx: &mut Ctx<'_>, path: &[u8]) -> Eval<Vec<(Vec<u8>, FileKind)>> {
        ctx.step(1)?;
        let place: &[u8] = if path.is_empty() { b"." } else { path };
        match ctx.files().list(self.at(place), ctx.cancel()) {
            Ok(entries) => Ok(entries.into_iter().map(|e| (e.name, e.kind)).collect()),
            Err(e)
                if matches!(
                    e.kind,
                    FileErrorKind::Cancelled | FileErrorKind::CwdGone | FileErrorKind::NotPermitted
                ) =>
            {
                Err(ctx.file_error(&e, &PathValue::from(place)))
            }
            Err(_) => Ok(Vec::new()),
        }
    }

    fn at<'a>(&'a self, path: &'a [u8]) -> At<'a> {
        At { dir: &self.dir, path }
    }
}

fn child(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        return name.to_vec();
    }
    join_path(&PathValue::from(path), &PathValue::from(name)).as_bytes().to_vec()
}
