"""Options of Java for servers that tests start: they live for minutes, and their bytecode is that of published jars."""

from __future__ import annotations

from deploy.pinot.cluster import QUICK_START

UNVERIFIED_BYTECODE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
QUICK_JAVA = (*QUICK_START, *UNVERIFIED_BYTECODE)
