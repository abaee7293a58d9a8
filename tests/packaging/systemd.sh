# Under a real systemd, with the package installed: the user service from the first connection to the last process.
set -u
. ./lib.sh
dpkg -i ./*.deb > install.log 2>&1 || { cat install.log; fail "dpkg -i"; }
user=dev
make_user "$user"
runtime=/run/user/$uid
loginctl enable-linger "$user"
until_true test -S "$runtime/bus"
socket=$runtime/shoal/default.sock
user_systemctl() { as_user systemctl --user "$@"; }
show() { user_systemctl show shoal.service -p "$1" --value; }
state() { user_systemctl is-active "$1"; }
is_state() { [ "$(state "$1")" = "$2" ]; }

# --- the units are clean
verified=$(cd /usr/lib/systemd/user && as_user systemd-analyze --user verify --recursive-errors=one shoal.socket shoal.service 2>&1)
same "systemd-analyze verify" "$verified" ""

# --- the first connection starts it
user_systemctl enable --now shoal.socket >/dev/null 2>&1 || fail "enable"
same "the socket's modes" "$(stat -c %a "$runtime/shoal" "$socket" | tr '\n' ' ')" "700 600 "
is_state shoal.service inactive || fail "the service runs before anybody came"
same "the first connection" "$(as_user shoal exec '6 * 7')" 42
is_state shoal.service active || fail "the service is $(state shoal.service)"
same "the service's word" "$(show StatusText)" serving
kernel=$(show MainPID)

# --- nothing of the service manager's reaches a child
leaked=$(as_user shoal exec --value 'os.env().keys().filter(x => x.starts_with("LISTEN") or x.starts_with("NOTIFY") or x.starts_with("WATCHDOG"))' 2>/dev/null || true)
environment=$(as_user shoal exec "^env")
for name in LISTEN_ NOTIFY_ WATCHDOG_ MAINPID; do lacks "a command's environment" "$environment" "$name"; done
for child in $(pgrep -u "$uid" -f '^/?.*shoal-(broker|launcher|worker|ptyd)'); do
    [ "$child" = "$kernel" ] && continue
    inherited=$(tr '\0' '\n' < "/proc/$child/environ" 2>/dev/null | grep -cE '^(LISTEN_|NOTIFY_|WATCHDOG_)')
    same "the environment of $(cat "/proc/$child/comm")" "$inherited" 0
done
descriptors=$(as_user shoal exec 'sh { ls -l /proc/self/fd | grep -c socket: || true }')
same "sockets of a command" "$descriptors" 0

# --- a restart refuses nobody
for n in 1 2 3; do
    ( for _ in $(seq 20); do as_user shoal exec "$n"; done ) > "during.$n" 2>&1 &
done
user_systemctl restart shoal.service || fail "restart"
wait
# What was running when the kernel drained has no answer; whoever came after it has one.
same "calls during a restart" "$(grep -vxE '[123]|shoal: .*(lost before the answer|has ended \(shutdown\)).*' during.*)" ""
lost=$(grep -c shoal: during.* | cut -d: -f2 | sort -n | tail -n 1)
[ "$lost" -le 1 ] || fail "one client lost $lost calls: $(cat during.*)"
[ "$(show MainPID)" != "$kernel" ] || fail "it was not restarted"

# --- a kernel that hangs is replaced by the watchdog
mkdir -p "/home/$user/.config/systemd/user/shoal.service.d"
printf '[Service]\nWatchdogSec=2\n' > "/home/$user/.config/systemd/user/shoal.service.d/watchdog.conf"
chown -R "$user:$user" "/home/$user/.config"
user_systemctl daemon-reload
user_systemctl restart shoal.service
same "before it hangs" "$(as_user shoal exec '1 + 1')" 2
restarts=$(show NRestarts)
hung=$(show MainPID)
kill -STOP "$hung"
until_true eval '[ "$(show NRestarts)" -gt "$restarts" ]'
until_true is_state shoal.service active
same "after the watchdog" "$(as_user shoal exec '2 + 2')" 4
[ "$(show MainPID)" != "$hung" ] || fail "the hung kernel is still the main process"

# --- a crash of the supervisor
as_user shoal exec --background 'sh { sleep 4343 }' >/dev/null
until_true pgrep -u "$uid" -f 'sleep 4343'
crashed=$(show MainPID)
kill -KILL "$crashed"
until_true eval '[ "$(show MainPID)" != "$crashed" ]'
same "after a crash" "$(as_user shoal exec '3 + 3')" 6
until_true gone 'sleep 4343'

# --- a stop leaves nothing but the socket, and the next connection starts it again
as_user shoal exec --background 'sh { trap "" TERM; sleep 4444 }' >/dev/null
until_true pgrep -u "$uid" -f 'sleep 4444'
user_systemctl stop shoal.service || fail "stop"
same "processes after a stop" "$(pgrep -u "$uid" -lf 'shoal-|sleep 4' | grep -v systemd)" ""
[ -S "$socket" ] || fail "the socket went with the service"
same "after the stop" "$(as_user shoal exec '4 + 4')" 8

# --- the command's own stop under the service manager, and the doctor
same "shoal kernel stop" "$(as_user shoal kernel stop)" stopped
as_user shoal doctor > doctor.log; code=$?
[ "$code" -le 1 ] || { cat doctor.log; fail "the doctor's worst is $code"; }
holds "the doctor about the service" "$(cat doctor.log)" "/usr/bin/shoal-kernel"
holds "the doctor about linger" "$(cat doctor.log)" "outlives your logins"

# --- everything goes
user_systemctl disable --now shoal.socket >/dev/null 2>&1
user_systemctl stop shoal.service
[ ! -e "$socket" ] || fail "the socket is still there"
same "processes at the end" "$(pgrep -u "$uid" -lf 'shoal-' | grep -v systemd)" ""

# --- without a socket unit the kernel's own listener lies in the store: neither crash nor restart refuses anybody
own=$runtime/own.sock
own_shoal() { as_user env SHOAL_SOCKET="$own" SHOAL_NO_AUTOSTART=1 shoal "$@"; }
show_own() { user_systemctl show own.service -p "$1" --value; }
user_systemd_run() { as_user systemd-run --user --quiet --unit=own "$@"; }
user_systemd_run -p Type=notify -p Restart=on-failure -p RestartSec=1 -p FileDescriptorStoreMax=4 -p KillMode=mixed \
    /usr/bin/shoal-kernel --socket "$own" --state-dir "/home/$user/own" || fail "systemd-run"
same "stored" "$(show_own NFileDescriptorStore)" 1
same "before the crash" "$(own_shoal exec '5 + 5')" 10
same "sockets of a command beside a store" "$(own_shoal exec 'sh { ls -l /proc/self/fd | grep -c socket: || true }')" 0
crashed=$(show_own MainPID)
kill -KILL "$crashed"
same "while nobody runs" "$(own_shoal exec '6 + 6')" 12
[ "$(show_own MainPID)" != "$crashed" ] || fail "the crashed kernel is still the main process"
same "stored again" "$(show_own NFileDescriptorStore)" 1
for child in $(pgrep -P "$(show_own MainPID)"); do
    inherited=$(tr '\0' '\n' < "/proc/$child/environ" | grep -cE '^(LISTEN_|NOTIFY_|WATCHDOG_)')
    same "the environment of $(cat "/proc/$child/comm") beside a store" "$inherited" 0
done
( for _ in $(seq 20); do own_shoal exec 7; done ) > during.own 2>&1 &
user_systemctl restart own.service || fail "restart of a kernel with its own listener"
wait
same "calls during its restart" "$(grep -vxE '7|shoal: .*(lost before the answer|has ended \(shutdown\)).*' during.own)" ""
same "its stop" "$(own_shoal kernel stop)" stopped
until_true eval '[ "$(user_systemctl is-active own.service)" = inactive ]'
same "stored after the stop" "$(show_own NFileDescriptorStore)" 0
[ ! -e "$own" ] || fail "its socket is still there"

# --- a set-up of one's own: refused beside the package, fine without it
refused=$(as_user shoal setup service 2>&1)
holds "setup beside the package" "$refused" "systemctl --user enable --now shoal.socket"
rm /usr/lib/systemd/user/shoal.*
holds "a set-up" "$(as_user shoal setup service)" "ran systemctl --user enable --now shoal.socket"
same "in its kernel" "$(as_user shoal exec '7 + 7')" 14
is_state shoal.service active || fail "its service is $(state shoal.service)"
holds "its removal" "$(as_user shoal setup service --remove)" "removed /home/$user/.config/systemd/user/shoal.socket"
same "processes after its removal" "$(pgrep -u "$uid" -lf 'shoal-' | grep -v systemd)" ""
same "units after its removal" "$(find "/home/$user/.config/systemd/user" -name 'shoal.socket' -o -name 'shoal.service')" ""
same "a second removal" "$(as_user shoal setup service --remove)" "no service was set up here"
echo passed
