# In a clean root: the tarball is installed for one user, twice, works, and goes.
set -u
. ./lib.sh
. ./main-job.sh
user=dev
make_user "$user"
sha256sum --quiet -c ./*.sha256 || fail "the checksum"
tar -xzf ./*.tar.gz -C /home/dev
chown -R dev:dev /home/dev
unpacked=$(echo /home/dev/shoal-*/)
said=$(as_user "$unpacked/install.sh")
holds "the installer" "$said" "shoal exec '6 * 7'"
holds "the installer about PATH" "$said" "export PATH="
holds "the installer again" "$(as_user "$unpacked/install.sh")" "installed shoal"
as_user "$unpacked/install.sh" --nonsense > wrong.log 2>&1
same "a wrong argument" "$?" 2
user_path=/home/dev/.local/bin:/usr/bin:/bin
main_job
holds "the unit's program" "$(cat /home/dev/.local/share/systemd/user/shoal.service)" "/home/dev/.local/bin/shoal-kernel"
as_user shoal kernel start > start.log 2>&1 || fail "a start: $(cat start.log)"
as_user "$unpacked/install.sh" --uninstall > running.log 2>&1 && fail "a removal below a running kernel"
holds "a removal below a running kernel" "$(cat running.log)" "shoal kernel stop"
same "its end" "$(as_user shoal kernel stop)" stopped
holds "the removal" "$(as_user "$unpacked/install.sh" --uninstall)" "state and configuration are kept"
same "what is left" "$(find /home/dev/.local/bin /home/dev/.local/libexec /home/dev/.local/share 2>/dev/null)" ""
[ -d /home/dev/.local/state/shoal ] || fail "the journal went with the programs"
as_user "$unpacked/install.sh" --uninstall > again.log 2>&1 && fail "a second removal"
holds "a second removal" "$(cat again.log)" "nothing to remove"
echo passed
