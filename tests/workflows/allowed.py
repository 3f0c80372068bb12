"""Who may do what: the tables that a change of triggers, jobs or permissions has to change as well."""

from collections.abc import Mapping
from typing import Any

READ = {"contents": "read"}
WRITE = {"contents": "write"}

# What each job may do, and nothing else. A job that calls a workflow grants what that workflow's jobs may do.
PERMISSIONS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("check.yml", "check"): READ,
    ("ci.yml", "test"): READ,
    ("ci.yml", "plan"): READ,
    ("ci.yml", "module"): READ,
    ("ci.yml", "check"): READ,
    ("llvm-cache.yml", "plan"): READ,
    ("llvm-cache.yml", "llvm"): READ,
    ("llvm-cache.yml", "release"): {"contents": "write", "id-token": "write"},
    ("llvm.yml", "llvm"): READ,
    ("module.yml", "module"): READ,
    ("plan.yml", "plan"): READ,
    ("publish.yml", "publish"): WRITE,
    ("publish.yml", "verify"): READ,
    ("release.yml", "plan"): READ,
    ("release.yml", "llvm"): READ,
    ("release.yml", "module"): READ,
    ("release.yml", "check"): READ,
    ("release.yml", "sign"): {"contents": "read", "id-token": "write", "attestations": "write"},
    ("release.yml", "publish"): WRITE,
    ("try-pin.yml", "plan"): READ,
    ("try-pin.yml", "llvm"): READ,
    ("try-pin.yml", "module"): READ,
    ("try-pin.yml", "check"): READ,
    ("try-pin.yml", "propose"): {"contents": "write", "pull-requests": "write"},
    ("try-pin.yml", "report"): {"contents": "read", "issues": "write"},
    ("watch.yml", "watch"): {"contents": "write", "pull-requests": "write"},
}

# The jobs that sign, and those that publish.
SIGNING = {("release.yml", "sign"), ("llvm-cache.yml", "release")}
PUBLISHING = {("publish.yml", "publish"), ("llvm-cache.yml", "release")}

# The workflows whose older run a newer one may end.
CANCELLED = {"ci.yml"}

# The jobs whose word of a failure is read, beside all those of the workflows that are called.
READ_BY_A_REPORT = {("try-pin.yml", "propose")}

# What starts each workflow; of an input, whether it is required.
TRIGGERS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "check.yml": {"workflow_call": {"inputs": {"plan": True}}},
    "ci.yml": {"push": {"branches": ["main"]}, "pull_request": {}},
    "llvm-cache.yml": {
        "push": {"branches": ["main"], "paths": ["pins/**", "release/llvm/**"]},
        "schedule": {"cron": 1},
        "workflow_dispatch": {"inputs": {"pins": False}},
    },
    "llvm.yml": {"workflow_call": {"inputs": {"plan": True, "released-by": False, "trust-config": False}}},
    "module.yml": {"workflow_call": {"inputs": {"plan": True}}},
    "plan.yml": {
        "workflow_call": {
            "inputs": dict.fromkeys(("pins", "profile", "triton", "llvm", "pyodide", "dry-run", "runner"), False),
            "outputs": ["plan"],
        }
    },
    "publish.yml": {
        "workflow_call": {"inputs": {"plan": True, "workflow": True, "trust-config": False}, "outputs": ["url"]}
    },
    "release.yml": {
        "push": {"tags": ["v*"]},
        "workflow_dispatch": {"inputs": {"pins": False, "profile": False, "dry-run": False}},
    },
    "try-pin.yml": {
        "workflow_dispatch": {"inputs": dict.fromkeys(("triton", "llvm", "pyodide", "pins", "profile"), False)}
    },
    "watch.yml": {"schedule": {"cron": 1}, "workflow_dispatch": {}},
}
NEVER = {"pull_request_target", "workflow_run"}  # they run with the rights of this repository for whoever asks
