# What the scripts in a machine share: a user, and checks that end the script with what went wrong.

fail() { printf 'FAILED: %s\n' "$*"; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1: expected $(printf %q "$3"), got $(printf %q "$2")"; }
holds() { case $2 in *"$3"*) ;; *) fail "$1: $(printf %q "$2") does not hold $(printf %q "$3")" ;; esac; }
lacks() { case $2 in *"$3"*) fail "$1: $(printf %q "$2") holds $(printf %q "$3")" ;; esac; }

# Waits until a command succeeds, for what has no event to wait for.
until_true() {
    for _ in $(seq 400); do "$@" >/dev/null 2>&1 && return 0; sleep 0.05; done
    fail "in vain: $*"
}

# An ordinary user with nothing but a home.
make_user() {
    useradd --create-home --shell /bin/bash "$1"
    uid=$(id -u "$1")
}

# Runs a command as the user, with nothing but what a login gives.
as_user() {
    setpriv --reuid "$uid" --regid "$uid" --init-groups env -i HOME="/home/$user" USER="$user" LOGNAME="$user" \
        PATH="${user_path:-/usr/local/bin:/usr/bin:/bin}" LANG=C.UTF-8 ${runtime:+XDG_RUNTIME_DIR="$runtime"} "$@"
}

gone() { ! pgrep -u "$uid" -f "$1" >/dev/null; }
