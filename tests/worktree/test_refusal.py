"""What a remote said, told apart: its answers as they come from git 2.39 and from GitHub."""

import pytest

from worktree.refusal import RefusalKind, read_refusal

_RULE = "push declined due to repository rule violations"
_PROTECTED = "protected branch hook declined"
_HOOK = "pre-receive hook declined"


def refused(reason: str, *remote: str, where: str = "remote rejected") -> tuple[str, str]:
    """Return the two outputs of a push of one ref that the remote refused, saying that."""
    said = "".join(f"remote: {line}        \n" for line in remote)
    stdout = f"To https://github.com/acme/secrets\n!\tabc:refs/heads/issue-7\t[{where}] ({reason})\nDone\n"
    return stdout, f"{said}error: failed to push some refs to 'https://github.com/acme/secrets'\n"


def broken(*lines: str) -> tuple[str, str]:
    """Return the outputs of a push that got no answer about its refs."""
    return "", "".join(f"{line}\n" for line in lines)


def rules(*bullets: str, code: str = "GH013: Repository rule violations found") -> list[str]:
    address = "https://github.com/acme/widget/rules?ref=refs%2Fheads%2Fissue-7"
    return [f"error: {code} for refs/heads/issue-7.", f"Review all repository rules at {address}", "", *bullets, ""]


PROTECTED = "GH006: Protected branch update failed"
UNREACHABLE = "fatal: unable to access 'https://github.com/acme/secrets.git/': "
SECRET = [
    "error: GH013: Repository rule violations found for refs/heads/issue-7.",
    "",
    "- GITHUB PUSH PROTECTION",
    "  —————————————————————————————————————————",
    "    Resolve the following violations before pushing again",
    "",
    "    - Push cannot contain secrets",
    "",
    "     (?) Learn how to resolve a blocked push",
    "     https://docs.github.com/code-security/secret-scanning/pushing-a-branch-blocked-by-push-protection",
    "",
    "      —— GitHub Personal Access Token ——————————————————————",
    "       locations:",
    "         - commit: 5477a7dd26384ed3c8b3814ee677f755ad27a597",
    "           path: src/api/github.ts:34",
]
LARGE = [
    "error: Trace: 4d8e35248ebbf5e8e2ea71623e57e0b8fd5ffa09c0dff8db962e59d51823aad6",
    "error: See https://gh.io/lfs for more information.",
    "error: File abc/def.mov is 117.80 MB; this exceeds GitHub's file size limit of 100.00 MB",
    "error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.",
]
LFS = [
    "error: GH008: Your push referenced at least 1 unknown Git LFS object:",
    "    cd0e6edf7a48b6b12ca737319acdc0ec1e4ff8918a264499d7e60bfc558c4341",
    "Try to push them with 'git lfs push --all'.",
]
WORKFLOW = "refusing to allow {} to create or update workflow `.github/workflows/ci.yml` without `{}`"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refused("non-fast-forward", where="rejected"), "NON_FAST_FORWARD"),
        (refused("fetch first", where="rejected"), "NON_FAST_FORWARD"),
        (refused("stale info", where="rejected"), "STALE_LEASE"),
        (refused("shallow update not allowed"), "SHALLOW"),
        (refused(_PROTECTED, *rules("- Changes must be made through a pull request.", code=PROTECTED)), "BRANCH_RULE"),
        (refused(_PROTECTED, *rules("error: Cannot force-push to a protected branch", code=PROTECTED)), "BRANCH_RULE"),
        (refused(_PROTECTED, *rules('error: Required status check "DCO" is expected.', code=PROTECTED)), "BRANCH_RULE"),
        (
            refused(
                _PROTECTED,
                "Resolving deltas: 100% (1/1), completed with 1 local object.",
                "error: GH006: Protected branch update failed for refs/heads/issue-7.",
                'error: Changes must be made through a pull request. Required status check "Build" is expected.',
            ),
            "BRANCH_RULE",
        ),
        (
            refused(_PROTECTED, *rules("error: 2 of 2 required status checks are expected.", code=PROTECTED)),
            "BRANCH_RULE",
        ),
        (
            refused(_PROTECTED, *rules("error: At least one approved review is required.", code=PROTECTED)),
            "BRANCH_RULE",
        ),
        (refused(_RULE, *rules("- Changes must be made through a pull request.")), "BRANCH_RULE"),
        (
            refused(_RULE, *rules("- Cannot update this protected ref.", '- Required status check "ci" is expected.')),
            "BRANCH_RULE",
        ),
        (refused(_RULE, *rules("- Cannot create ref due to creations being restricted.")), "BRANCH_RULE"),
        # A rule on the commits is not one on the branch, and neither is one that says nothing.
        (
            refused(_RULE, *rules("- Commits must have verified signatures.", "  Found 1 violation:", "  881bbb3d")),
            "UNKNOWN",
        ),
        (refused(_RULE, *rules("- Changes must be made through a pull request.", "- Be quiet.")), "UNKNOWN"),
        (refused(_RULE, *rules()), "UNKNOWN"),
        (refused(_RULE), "UNKNOWN"),
        (refused(_HOOK, *rules("- Changes must be made through a pull request.")), "UNKNOWN"),
        (refused(_HOOK, "no"), "UNKNOWN"),
        (refused("hook declined", "error: hook declined to update refs/heads/issue-7"), "UNKNOWN"),
        (refused("unpacker error"), "UNKNOWN"),
        (refused(_RULE, *SECRET), "CONTENT"),
        (refused(_RULE, *rules("- Changes must be made through a pull request."), *SECRET[2:]), "CONTENT"),
        (refused(_RULE, *rules("- File path is restricted")), "CONTENT"),
        (refused(_HOOK, "PUSH BLOCKED: Secrets detected in code changes"), "CONTENT"),
        (refused(_HOOK, *LARGE), "CONTENT"),
        (refused(_HOOK, *LFS), "CONTENT"),
        (refused(_HOOK, "error: GH009: Git LFS object integrity could not be checked."), "CONTENT"),
        (refused(WORKFLOW.format("a GitHub App", "workflows` permission")), "CONTENT"),
        (refused(WORKFLOW.format("an OAuth App", "workflow` scope")), "CONTENT"),
        (refused(WORKFLOW.format("a Personal Access Token", "workflow` scope")), "CONTENT"),
        (refused("fetch first", *SECRET, where="rejected"), "CONTENT"),
        (broken(*(f"remote: {line}" for line in LARGE), "fatal: the remote end hung up unexpectedly"), "CONTENT"),
        (refused("failed to lock", "error: failed to lock refs/heads/issue-7"), "TRANSIENT"),
        (
            refused("failed to update ref", "error: cannot lock ref 'refs/heads/i': is at 1a2b but expected 3c4d"),
            "TRANSIENT",
        ),
        (
            refused("failed to update ref", "error: cannot lock ref 'refs/heads/i': 'refs/heads/i/part' exists"),
            "UNKNOWN",
        ),
        (broken(f"{UNREACHABLE}The requested URL returned error: 503"), "TRANSIENT"),
        (broken(f"{UNREACHABLE}The requested URL returned error: 429"), "TRANSIENT"),
        (broken(f"{UNREACHABLE}Failed to connect to x port 9 after 0 ms: Couldn't connect to server"), "TRANSIENT"),
        (broken(f"{UNREACHABLE}Could not resolve host: github.com"), "TRANSIENT"),
        (
            broken("error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502", "fatal: early EOF"),
            "TRANSIENT",
        ),
        (broken("send-pack: unexpected disconnect while reading sideband packet"), "TRANSIENT"),
        (broken("ssh: connect to host x port 22: Connection timed out", "fatal: Could not read"), "TRANSIENT"),
        (broken(f"{UNREACHABLE}The requested URL returned error: 401"), "UNAUTHORIZED"),
        (
            broken(
                "remote: Permission to acme/secrets.git denied to nightkeep.",
                f"{UNREACHABLE}The requested URL returned error: 403",
            ),
            "UNAUTHORIZED",
        ),
        (
            broken("remote: Invalid username or password.", "fatal: Authentication failed for 'https://x/y/'"),
            "UNAUTHORIZED",
        ),
        (broken("git@github.com: Permission denied (publickey).", "fatal: Could not read"), "UNAUTHORIZED"),
        (broken(f"{UNREACHABLE}The requested URL returned error: 404"), "UNKNOWN"),
        (broken("fatal: '/nowhere' does not appear to be a git repository"), "UNKNOWN"),
        (broken(), "UNKNOWN"),
    ],
)
def test_kinds(answer: tuple[str, str], kind: str) -> None:
    assert read_refusal(*answer).kind.name == kind


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("[rejected] (stale info)", RefusalKind.STALE_LEASE),
        ("[rejected] (non-fast-forward)", RefusalKind.NON_FAST_FORWARD),
        ("[remote rejected] (hook declined)", RefusalKind.UNKNOWN),
    ],
)
def test_of_several_refs_the_culprit_counts(reason: str, kind: RefusalKind) -> None:
    other = "!\tabc:refs/heads/issue-7\t[rejected] (atomic push failed)"
    stdout = f"To x\n{other}\n!\tdef:refs/nightkeep/claims/7\t{reason}\nDone\n"
    stderr = "error: atomic push failed for ref refs/x. status: 7\nfatal: the remote end hung up unexpectedly\n"
    refusal = read_refusal(stdout, stderr)
    assert (refusal.kind, f"({refusal.words})") == (kind, reason.partition("] ")[2])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            refused(_RULE, *rules("- Changes must be made through a pull request.")),
            (
                "GH013: Repository rule violations found for refs/heads/issue-7; Changes must be made through a pull "
                f"request ({_RULE})"
            ),
        ),
        (
            refused(_RULE, *SECRET),
            (
                "GH013: Repository rule violations found for refs/heads/issue-7; GITHUB PUSH PROTECTION; Push cannot "
                "contain secrets; GitHub Personal Access Token; commit: 5477a7dd26384ed3c8b3814ee677f755ad27a597; "
                f"path: src/api/github.ts:34 ({_RULE})"
            ),
        ),
        (
            refused(_HOOK, *LARGE),
            (
                "GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com; "
                f"File abc/def.mov is 117.80 MB; this exceeds GitHub's file size limit of 100.00 MB ({_HOOK})"
            ),
        ),
        (refused("fetch first", where="rejected"), "fetch first"),
        (
            broken("hint: Updates were rejected", "fatal: early EOF", "error: failed to push some refs to 'x'"),
            "early EOF",
        ),
        (refused(_HOOK, "x" * 900), "x" * 599 + f"… ({_HOOK})"),
        (broken(), ""),
    ],
)
def test_words_are_one_line_for_a_person(answer: tuple[str, str], words: str) -> None:
    assert read_refusal(*answer).words == words


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (refused(_HOOK, "we do not take this today"), f"we do not take this today ({_HOOK})"),
        (refused(_HOOK), _HOOK),
        (refused("fetch first", where="rejected"), "origin holds commits there that are not here: fetch first"),
        (broken(), "it did not say why"),
    ],
)
def test_one_cause_is_told_and_no_chain_of_them(answer: tuple[str, str], text: str) -> None:
    assert str(read_refusal(*answer)) == text
