"""The addresses that GitHub lists in users and repositories."""

_ACCOUNT = {
    "followers": "/followers",
    "following": "/following{/other_user}",
    "gists": "/gists{/gist_id}",
    "starred": "/starred{/owner}{/repo}",
    "subscriptions": "/subscriptions",
    "organizations": "/orgs",
    "repos": "/repos",
    "events": "/events{/privacy}",
    "received_events": "/received_events",
}

_REPOSITORY = {
    "archive": "/{archive_format}{/ref}",
    "assignees": "/assignees{/user}",
    "blobs": "/git/blobs{/sha}",
    "branches": "/branches{/branch}",
    "collaborators": "/collaborators{/collaborator}",
    "comments": "/comments{/number}",
    "commits": "/commits{/sha}",
    "compare": "/compare/{base}...{head}",
    "contents": "/contents/{+path}",
    "contributors": "/contributors",
    "deployments": "/deployments",
    "downloads": "/downloads",
    "events": "/events",
    "forks": "/forks",
    "git_commits": "/git/commits{/sha}",
    "git_refs": "/git/refs{/sha}",
    "git_tags": "/git/tags{/sha}",
    "hooks": "/hooks",
    "issue_comment": "/issues/comments{/number}",
    "issue_events": "/issues/events{/number}",
    "issues": "/issues{/number}",
    "keys": "/keys{/key_id}",
    "labels": "/labels{/name}",
    "languages": "/languages",
    "merges": "/merges",
    "milestones": "/milestones{/number}",
    "notifications": "/notifications{?since,all,participating}",
    "pulls": "/pulls{/number}",
    "releases": "/releases{/id}",
    "stargazers": "/stargazers",
    "statuses": "/statuses/{sha}",
    "subscribers": "/subscribers",
    "subscription": "/subscription",
    "tags": "/tags",
    "teams": "/teams",
    "trees": "/git/trees{/sha}",
}


def account_addresses(url: str, login: str) -> dict[str, str]:
    """Return the addresses of a user of the hub at `url`."""
    account = f"{url}/api/v3/users/{login}"
    below = {f"{name}_url": f"{account}{path}" for name, path in _ACCOUNT.items()}
    return {"url": account, "html_url": f"{url}/{login}", "avatar_url": f"{url}/avatars/{login}"} | below


def repository_addresses(url: str, api: str, full_name: str) -> dict[str, str]:
    """Return the addresses of the repository `full_name`, whose API address is `api`."""
    html_url = f"{url}/{full_name}"
    own = {
        "url": api,
        "html_url": html_url,
        "clone_url": f"{html_url}.git",
        # There is neither git's own protocol nor ssh here; what works stands in for them.
        "git_url": f"{html_url}.git",
        "ssh_url": f"{html_url}.git",
        "svn_url": html_url,
    }
    return own | {f"{name}_url": f"{api}{path}" for name, path in _REPOSITORY.items()}
