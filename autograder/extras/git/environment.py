"""The environment and the settings of every git process: nothing of this machine's or a repository's own applies.

Settings are passed in the environment, where other users of the machine cannot read the address of
a repository. Only what reaches the instructor's own keys is kept: the home folder (for `.netrc` and
`.ssh`) and the agent of ssh.
"""

import os

PROTOCOLS = ("https", "ssh", "file")
REMOTE = "forge"
NOWHERE = os.devnull
_KEPT = (
    "PATH",
    "HOME",
    "SSH_AUTH_SOCK",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "https_proxy",
    "no_proxy",
)
_SSH = "ssh"
# nothing of this machine is lent to a host: no keys, windows, ports or tickets
_SSH_OPTIONS = "".join(
    f" -o {option}"
    for option in (
        "BatchMode=yes",
        "ForwardAgent=no",
        "ForwardX11=no",
        "ClearAllForwardings=yes",
        "Tunnel=no",
        "PermitLocalCommand=no",
        "GSSAPIDelegateCredentials=no",
    )
)
_SETTINGS = {
    "core.hooksPath": NOWHERE,
    "core.fsmonitor": "false",
    "core.symlinks": "false",
    "core.attributesFile": NOWHERE,
    "core.askPass": "",
    "core.bigFileThreshold": "1m",  # larger files go to the disk, not into memory
    "credential.helper": "",
    "credential.interactive": "false",
    "http.followRedirects": "false",  # with the token of the place to which they lead
    "protocol.ext.allow": "never",
    "fetch.recurseSubmodules": "no",
    "submodule.recurse": "false",
    "push.recurseSubmodules": "no",
    "push.gpgSign": "false",
    "commit.gpgSign": "false",
    "transfer.fsckObjects": "true",
    "transfer.bundleURI": "false",
    "fetch.negotiationAlgorithm": "noop",
    # one file for all that a repository sends, which the limit of a file's size bounds
    "fetch.unpackLimit": "1",
    "fetch.writeCommitGraph": "false",
    "pack.threads": "1",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.bareRepository": "all",
}
# The settings of the repository itself, which may be a student's, do not apply where it is on this
# machine.
_ON_THIS_MACHINE = (
    f"git -c core.hooksPath={NOWHERE} -c core.fsmonitor=false -c core.alternateRefsCommand=true "
    "-c core.bare=true -c receive.denyCurrentBranch=refuse "  # nothing is checked out
    "-c receive.autoGC=false -c gc.auto=0 "
    "-c core.packedGitWindowSize=16m -c core.packedGitLimit=128m"  # within the limit of memory
)


def environment(url: str, store: str) -> dict[str, str]:
    """Return the whole environment of a git process that works in `store` and knows the repository at `url`."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    settings = {**_SETTINGS, "safe.directory": store, f"remote.{REMOTE}.url": url}
    if url.startswith("file:"):
        settings[f"remote.{REMOTE}.uploadpack"] = f"{_ON_THIS_MACHINE} upload-pack"
        settings[f"remote.{REMOTE}.receivepack"] = f"{_ON_THIS_MACHINE} receive-pack"
    numbered: dict[str, str] = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        numbered[f"GIT_CONFIG_KEY_{number}"] = name
        numbered[f"GIT_CONFIG_VALUE_{number}"] = value
    return {
        **kept,
        **numbered,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": NOWHERE,
        "GIT_CONFIG_SYSTEM": NOWHERE,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_SSH_COMMAND": (os.environ.get("GIT_SSH_COMMAND") or _SSH) + _SSH_OPTIONS,
        "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_TEMPLATE_DIR": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }
