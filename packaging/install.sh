#!/bin/sh
# Installs Shoal from an unpacked tarball, or removes what it installed.
#
#     ./install.sh [--prefix PATH]          default: ~/.local; again over an older one is fine
#     ./install.sh --uninstall [--prefix PATH]
#
# A list of the installed files is kept in PREFIX/share/shoal/installed; removing goes by that list. The journal, the
# tokens and the configuration stay in any case.
set -eu

say() { printf '%s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit "${code:-1}"; }

prefix=${HOME:+$HOME/.local}
uninstall=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -gt 1 ] || { code=2; fail "--prefix needs a path"; }; prefix=$2; shift ;;
        --prefix=*) prefix=${1#--prefix=} ;;
        --uninstall) uninstall=1 ;;
        -h|--help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) code=2; fail "unknown argument $1; try --help" ;;
    esac
    shift
done
[ -n "$prefix" ] || { code=2; fail "HOME is not set; say where with --prefix PATH"; }
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
list=$prefix/share/shoal/installed

if [ -n "$uninstall" ]; then
    [ -f "$list" ] || fail "nothing to remove: $list is not there; name the prefix of the installation with --prefix"
    # Without the programs nobody could end them.
    unit=${XDG_CONFIG_HOME:-${HOME:-}/.config}/systemd/user/shoal.service
    [ ! -f "$unit" ] || ! grep -q "$prefix/bin/shoal-kernel" "$unit" ||
        fail "its service is set up; take that away first: shoal setup service --remove"
    [ ! -x "$prefix/bin/shoal" ] || ! "$prefix/bin/shoal" status >/dev/null 2>&1 ||
        fail "a kernel runs; end it and its sessions first: shoal kernel stop"
    while IFS= read -r file; do
        rm -f "$prefix/$file"
        dir=$(dirname "$file")
        # Folders that nothing else is in go too.
        while [ "$dir" != . ] && rmdir "$prefix/$dir" 2>/dev/null; do dir=$(dirname "$dir"); done
    done < "$list"
    rm -f "$list"
    rmdir "$prefix/share/shoal" "$prefix/share" 2>/dev/null || true
    say "removed Shoal from $prefix; state and configuration are kept"
    exit 0
fi

here=$(cd "$(dirname "$0")" && pwd)
[ -x "$here/bin/shoal" ] || fail "$here/bin/shoal is not there; run this script inside the unpacked tarball"
"$here/bin/shoal" --version >/dev/null 2>&1 || fail "the programs do not run on this machine; take the tarball for $(uname -m)"
mkdir -p "$prefix/share/shoal" 2>/dev/null || fail "cannot write to $prefix; choose another with --prefix PATH"

(cd "$here" && find bin libexec share \( -type f -o -type l \) | sort) > "$list.new"
while IFS= read -r file; do
    mkdir -p "$prefix/$(dirname "$file")"
    # Beside the old file and renamed over it: a program that runs keeps its own.
    if [ -L "$here/$file" ]; then
        ln -sfn "$(readlink "$here/$file")" "$prefix/$file"
    else
        cp -p "$here/$file" "$prefix/$file.new"
        mv -f "$prefix/$file.new" "$prefix/$file"
    fi
done < "$list.new"
# The units name the programs of this prefix.
for unit in "$prefix"/share/systemd/user/shoal.*; do
    if grep -q /usr/bin/shoal-kernel "$unit"; then
        sed "s#/usr/bin/shoal-kernel#$prefix/bin/shoal-kernel#" "$unit" > "$unit.new"
        mv -f "$unit.new" "$unit"
    fi
done
mv -f "$list.new" "$list"

say "installed $("$prefix/bin/shoal" --version) in $prefix"
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) say "put it into your PATH:   export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
say "try it:                  shoal exec '6 * 7'"
say "as a service:            shoal setup service"
say "for an agent:            shoal setup mcp claude   (or codex, cursor, vscode, gemini, json)"
