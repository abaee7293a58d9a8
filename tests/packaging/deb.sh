# In a clean root: the package is installed, works for an ordinary user, and goes.
set -u
. ./lib.sh
. ./main-job.sh
dpkg -i ./*.deb > install.log 2>&1 || { cat install.log; fail "dpkg -i"; }
holds "what the package says" "$(cat install.log)" "systemctl --user enable --now shoal.socket"
for file in bin/shoal bin/shoal-kernel bin/shoal-mcp libexec/shoal/shoal-broker bin/shoal-doctor \
    share/man/man1/shoal.1.gz share/man/man8/shoal-kernel.8.gz share/bash-completion/completions/shoal \
    share/zsh/vendor-completions/_shoal share/fish/vendor_completions.d/shoal.fish lib/systemd/user/shoal.socket \
    share/doc/shoal/copyright; do
    [ -e "/usr/$file" ] || fail "/usr/$file is missing"
done
strangers=$(dpkg -L shoal | while read -r path; do [ -e "$path" ] && find "$path" -maxdepth 0 ! -user root; done)
same "owners" "$strangers" ""
user=dev
make_user "$user"
main_job
# The doctor knows that nothing was set up, and finds nothing wrong but what this root has not.
as_user shoal-doctor > doctor.log; code=$?
[ "$code" -le 1 ] || { cat doctor.log; fail "the doctor's worst is $code"; }
as_user shoal kernel stop >/dev/null
dpkg -P shoal > purge.log 2>&1 || { cat purge.log; fail "dpkg -P"; }
same "what is left" "$(find /usr -name '*shoal*' | head -n 3)" ""
[ -d /home/dev/.local/state/shoal ] || fail "the journal went with the package"
echo passed
