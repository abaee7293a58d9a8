"""Attacks on a kernel's processes and places, one line of result each: NAME ok | NAME errno.

Arguments: victim pid, state directory, public socket, host directory, abstract socket, port, terminal.
An attack that succeeds prints ok. None does harm: it reads, asks, or writes what is there.
"""
import ctypes, errno, os, socket, sys

victim, state, sock, host, abstract, port, terminal = sys.argv[1:8]
victim, port = int(victim), int(port)
libc = ctypes.CDLL(None, use_errno=True)


def syscall(*args):
    result = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def attack(name, act):
    try:
        act()
        print(name, "ok", flush=True)
    except OSError as e:
        print(name, errno.errorcode.get(e.errno, e.errno), flush=True)


def read_memory():
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    start = int(open(f"/proc/{victim}/maps").read(12), 16)
    remote = (ctypes.c_size_t * 2)(start, 8)
    syscall(310, victim, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)


def seize():
    syscall(101, 0x4206, victim, 0, 0)


def connect(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)


def read(path):
    with open(path, "rb") as f:
        f.read(1)


def write(path):
    with open(path, "ab"):
        pass


def pidfd_signal():
    fd = os.pidfd_open(victim)
    syscall(424, fd, 0, 0, 0)


def steal_fd():
    fd = os.pidfd_open(victim)
    syscall(438, fd, 0, 0)


def limit():
    old = (ctypes.c_ulong * 2)()
    syscall(302, victim, 7, 0, ctypes.byref(old))
    syscall(302, victim, 7, ctypes.byref(old), 0)


def swap_ancestor():
    parent = os.path.dirname(state)
    os.rename(parent, parent + ".away")
    os.rename(parent + ".away", parent)


def link():
    target = os.path.join(host, "stolen")
    os.link(os.path.join(state, "lock"), target)
    os.unlink(target)


def uring():
    params = ctypes.create_string_buffer(120)
    os.close(syscall(425, 1, ctypes.byref(params)))


def inject():
    with open(terminal, "r+b", buffering=0) as t:
        import fcntl
        fcntl.ioctl(t, 0x5412, b"x")


def namespaces():
    pid = os.fork()
    if pid == 0:
        try:
            syscall(272, 0x10000000)
            os._exit(0)
        except OSError as e:
            os._exit(e.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "")


def tcp():
    socket.create_connection(("127.0.0.1", port), 2).close()


def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", port))
        # A port where nobody is answers the first datagram, which the second call tells.
        s.send(b"x")
        s.send(b"x")


def fast_open():
    with socket.socket() as s:
        s.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", port))


attack("A01-read-memory", read_memory)
attack("A01-seize", seize)
attack("A02-mem", lambda: open(f"/proc/{victim}/mem", "rb").close())
for name in ("environ", "maps"):
    attack(f"A02-{name}", lambda: read(f"/proc/{victim}/{name}"))
attack("A02-fd", lambda: os.readlink(f"/proc/{victim}/fd/0"))
attack("A03-kill", lambda: os.kill(victim, 0))
attack("A03-tgkill", lambda: syscall(234, victim, victim, 0))
attack("A03-pidfd", pidfd_signal)
attack("A05-getfd", steal_fd)
attack("A07-prlimit", limit)
attack("A08-nice", lambda: os.setpriority(os.PRIO_PROCESS, victim, os.getpriority(os.PRIO_PROCESS, 0)))
attack("A08-affinity", lambda: os.sched_setaffinity(victim, os.sched_getaffinity(0)))
attack("A09-oom", lambda: open(f"/proc/{victim}/oom_score_adj", "w").write("500"))
attack("A20-open", lambda: read(os.path.join(state, "lock")))
attack("A20-create", lambda: write(os.path.join(state, "new")))
attack("A20-list", lambda: os.listdir(state))
attack("A20-through-root", lambda: read("/proc/self/root" + os.path.join(state, "lock")))
attack("A21-chmod", lambda: os.chmod(state, 0o700))
attack("A21-utime", lambda: os.utime(state))
attack("A22-swap-ancestor", swap_ancestor)
attack("A27-tmp", lambda: read(os.path.join("/tmp", f"shoal-attack-{victim}")))
attack("A28-rc", lambda: write(os.path.join(host, ".bashrc")))
attack("A32-proc", lambda: os.stat(f"/proc/{victim}"))
attack("A33-link", link)
attack("A40-connect", lambda: connect(sock))
attack("A41-abstract", lambda: connect("\0" + abstract))
attack("A46-inject", inject)
attack("A49-uring", uring)
attack("A50-keyctl", lambda: syscall(250, 0, -4, 1))
attack("A52-userns", namespaces)
attack("A54-fast-open", fast_open)
attack("A54-tcp", tcp)
attack("A54-udp", udp)
attack("A71-terminal", lambda: open(terminal, "wb").close())
