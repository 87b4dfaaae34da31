#!/usr/bin/env python3
"""deploy/inkstone.service: sound for systemd where that is installed, and in any case hardened and in step with the program."""

import os
import re
import shutil
import subprocess

import cli

UNIT = os.path.join(cli.ROOT, "deploy", "inkstone.service")

KEYS = {
    "Unit": "Description Documentation After",
    "Service": "Type ExecStart EnvironmentFile Environment KillSignal TimeoutStopSec Restart RestartSec RestartPreventExitStatus "
               "DynamicUser StateDirectory CacheDirectory UMask ProtectSystem ProtectHome PrivateTmp PrivateDevices ProtectKernelTunables "
               "ProtectKernelModules ProtectKernelLogs ProtectControlGroups ProtectClock ProtectHostname ProtectProc NoNewPrivileges "
               "CapabilityBoundingSet AmbientCapabilities RestrictAddressFamilies RestrictNamespaces RestrictRealtime RestrictSUIDSGID "
               "LockPersonality MemoryDenyWriteExecute SystemCallArchitectures SystemCallFilter SystemCallErrorNumber MemoryHigh MemoryMax "
               "TasksMax LimitNOFILE",
    "Install": "WantedBy",
}


def parse(text):
    """{section: {key: value}}; anything that is no line of a unit is an error."""
    sections, section = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line[0] in "#;":
            continue
        head = re.fullmatch(r"\[(\w+)\]", line)
        pair = re.fullmatch(r"([A-Z]\w*)=(.*)", line)
        if head:
            section = sections.setdefault(head.group(1), {})
        elif pair and section is not None and pair.group(1) not in section:
            section[pair.group(1)] = pair.group(2)
        else:
            raise ValueError("line %d: %s" % (number, line))
    return sections


class Unit(cli.Case):
    def setUp(self):
        super().setUp()
        with open(UNIT, encoding="utf-8") as f:
            self.text = f.read()
        self.unit = parse(self.text)

    def test_every_key_is_known(self):
        self.assertEqual({name: sorted(keys) for name, keys in self.unit.items()}, {name: sorted(keys.split()) for name, keys in KEYS.items()})

    def test_it_is_hardened(self):
        service = self.unit["Service"]
        for key in ("DynamicUser", "NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectKernelTunables", "ProtectKernelModules",
                    "ProtectControlGroups", "RestrictNamespaces", "RestrictSUIDSGID", "LockPersonality", "MemoryDenyWriteExecute"):
            self.assertEqual(service[key], "yes", key)
        self.assertEqual(service["ProtectSystem"], "strict")
        self.assertEqual(service["CapabilityBoundingSet"], "")
        self.assertEqual(service["Restart"], "on-failure")
        self.assertEqual(service["RestrictAddressFamilies"], "AF_INET AF_INET6")
        self.assertRegex(service["MemoryMax"], r"^\d+G$")

    def test_it_is_in_step_with_the_program(self):
        service = self.unit["Service"]
        self.assertTrue(service["ExecStart"].startswith("/usr/bin/inkstone serve "), service["ExecStart"])
        drain = re.search(r"--drain-timeout .*default (\d+)\)", self.succeed("serve", "--help")).group(1)
        self.assertGreater(int(service["TimeoutStopSec"]), int(drain))
        self.assertEqual(service["KillSignal"], "SIGTERM")
        self.refused(int(service["RestartPreventExitStatus"]), "unknown option", "serve", "--no-such-option")

    def test_systemd_finds_nothing_wrong(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")

        def verify(text):
            # The program and its manual page need not be installed.
            with open(self.path("inkstone.service"), "w", encoding="utf-8") as f:
                f.write(text.replace("/usr/bin/inkstone", os.path.realpath(cli.PROGRAM)))
            return subprocess.run(["systemd-analyze", "verify", "--man=no", self.path("inkstone.service")], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        done = verify(self.text)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        for wrong in ("MemoryMax=4G", "DynamicUser=yes", "ExecStart="):
            self.assertNotEqual(verify(self.text.replace(wrong, "Nonsense=" + wrong)).stdout, "", wrong)

    def test_the_check_of_lines_can_fail(self):
        for text in ("Key=1", "[Unit]\nno pair", "[Unit]\nA=1\nA=2", "[Unit\n"):
            with self.assertRaises(ValueError):
                parse(text)


if __name__ == "__main__":
    cli.main()
