"""Shows what a program tries to reach over the network, on a bare machine and without rights of any kind.

The guard is a seccomp filter, set between fork and exec, so a program and all that it starts run under it until they
end. What needs a connection to somewhere dies on the spot with SIGSYS, whatever it would do about an error:

  connect                                 to anything at all
  socket   of AF_INET, AF_INET6           other than TCP, as a name look-up or a datagram would need
  socket   of another family              but for AF_UNIX
  sendto                                  with an address of its own
  io_uring_setup                          which could do these unseen

Listening and answering, all that a server needs, stay allowed. The namespace is the other half: with nothing but a
loopback device there is nowhere to connect to, so what works in it works offline.
"""

import ctypes
import fcntl
import os
import platform
import socket
import struct
import subprocess
import sys

# Architecture as seccomp sees it, then the numbers of the system calls.
MACHINES = {
    "x86_64": (0xC000003E, {"socket": 41, "connect": 42, "sendto": 44, "io_uring_setup": 425}),
    "aarch64": (0xC00000B7, {"socket": 198, "connect": 203, "sendto": 206, "io_uring_setup": 425}),
}

LOAD, EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06      # of the 32-bit words of struct seccomp_data
KILL, ALLOW = 0x80000000, 0x7FFF0000
NUMBER, ARCH = 0, 4
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2


def argument(i, high=False):
    return 16 + 8 * i + (4 if high else 0)


def program():
    """The filter as bytes. Written as labels and lines, so that nobody has to count jumps."""
    arch, calls = MACHINES[platform.machine()]
    lines = [
        (LOAD, ARCH), (EQUAL, arch, None, "kill"),
        (LOAD, NUMBER),
        (EQUAL, calls["connect"], "kill", None),
        (EQUAL, calls["io_uring_setup"], "kill", None),
        (EQUAL, calls["sendto"], "sendto", None),
        (EQUAL, calls["socket"], "socket", "allow"),
        "sendto", (LOAD, argument(4)), (EQUAL, 0, None, "kill"), (LOAD, argument(4, True)), (EQUAL, 0, "allow", "kill"),
        "socket", (LOAD, argument(0)), (EQUAL, socket.AF_UNIX, "allow", None), (EQUAL, socket.AF_INET, "kind", None),
        (EQUAL, socket.AF_INET6, "kind", "kill"),
        "kind", (LOAD, argument(1)), (AND, 0xF), (EQUAL, socket.SOCK_STREAM, "allow", "kill"),
        "allow", (RETURN, ALLOW),
        "kill", (RETURN, KILL),
    ]
    at, code = {}, []
    for line in lines:
        if isinstance(line, str):
            at[line] = len(code)
        else:
            code.append(line)
    out = b""
    for i, (operation, k, *jumps) in enumerate(code):
        yes, no = ((at[j] - i - 1 if j else 0) for j in jumps) if jumps else (0, 0)
        out += struct.pack("=HBBI", operation, yes, no, k)
    return out


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


_libc = ctypes.CDLL(None, use_errno=True)


def guard():
    """Puts this process under the filter: for preexec_fn."""
    code = ctypes.create_string_buffer(program())
    filter = _Filter((len(code) - 1) // 8, ctypes.cast(code, ctypes.c_void_p))
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter), 0, 0):
        raise OSError(ctypes.get_errno(), "no seccomp filter: " + os.strerror(ctypes.get_errno()))


def why_no_guard():
    """None when the guard works here, else the reason."""
    if platform.machine() not in MACHINES:
        return "the guard does not know the system calls of " + platform.machine()
    try:
        subprocess.run(["true"], preexec_fn=guard, check=True)
    except (OSError, subprocess.SubprocessError) as e:
        return "the guard cannot be set: %s" % e
    return None


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sH22x", b"lo", 0)
        flags, = struct.unpack("16xH22x", fcntl.ioctl(s, 0x8913, request))                 # SIOCGIFFLAGS
        fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", b"lo", flags | 1))                   # SIOCSIFFLAGS, IFF_UP


def interfaces():
    with open("/proc/net/dev", encoding="ascii") as f:
        return sorted(line.split(":")[0].strip() for line in f.readlines()[2:])


def namespace_command():
    """What to put before a command to run it in a network namespace of its own: (command, None), or (None, why not)."""
    reasons = []
    for command in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        try:
            done = subprocess.run([*command, "true"], stderr=subprocess.PIPE, text=True)
        except OSError as e:
            return None, str(e)
        if done.returncode == 0:
            return command, None
        reasons.append(done.stderr.strip())
    return None, "; ".join(reasons)


def enter_namespace():
    """Runs this script again in a namespace with loopback only and ends with its status; returns the reason when that
    is not permitted, None inside."""
    if os.environ.get("INKSTONE_NETNS"):
        loopback_up()
        return None
    command, why = namespace_command()
    if command is None:
        return why
    env = dict(os.environ, INKSTONE_NETNS="1")
    sys.exit(subprocess.call([*command, sys.executable, *sys.argv], env=env))
