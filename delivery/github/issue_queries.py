"""What GraphQL is asked about issues. Abstract types are asked for `__typename`, which tells bots from users."""

# An Issue has at most 50 blockers and 100 sub-issues on GitHub; more is asked for all the same, should there be more.
_LINKED = """fragment Linked on Issue {
  number title state url repository { nameWithOwner } labels(first: 100) { nodes { name } }
  parent { number repository { nameWithOwner } }
}"""
_WHOLE = (
    _LINKED
    + """
fragment Whole on Issue {
  number title body state url createdAt lastEditedAt
  author { __typename login } editor { __typename login }
  labels(first: 100) { nodes { name } }
  parent { ...Linked }
  subIssuesSummary { total completed }
  blockedBy(first: 50) { totalCount pageInfo { hasNextPage endCursor } nodes { ...Linked } }
  words: timelineItems(last: 50, itemTypes: [LABELED_EVENT, UNLABELED_EVENT, RENAMED_TITLE_EVENT]) {
    nodes {
      __typename
      ... on LabeledEvent { createdAt actor { __typename login } label { name } }
      ... on UnlabeledEvent { createdAt actor { __typename login } label { name } }
      ... on RenamedTitleEvent { createdAt actor { __typename login } }
    }
  }
  links: timelineItems(
    last: 1
    itemTypes: [SUB_ISSUE_ADDED_EVENT, SUB_ISSUE_REMOVED_EVENT, BLOCKED_BY_ADDED_EVENT, BLOCKED_BY_REMOVED_EVENT]
  ) {
    nodes {
      __typename
      ... on SubIssueAddedEvent { createdAt }
      ... on SubIssueRemovedEvent { createdAt }
      ... on BlockedByAddedEvent { createdAt }
      ... on BlockedByRemovedEvent { createdAt }
    }
  }
}"""
)
QUEUE = (
    _WHOLE
    + """
query($owner: String!, $name: String!, $ready: [String!]!, $working: [String!]!, $after: String) {
  viewer { login }
  repository(owner: $owner, name: $name) {
    nameWithOwner
    working: issues(first: 100, states: [OPEN], labels: $working) { totalCount nodes { number title url } }
    done: issues(first: 100, states: [CLOSED], labels: $working) {
      nodes { number labels(first: 100) { nodes { name } } }
    }
    ready: issues(
      first: 100, after: $after, states: [OPEN], labels: $ready, orderBy: {field: CREATED_AT, direction: ASC}
    ) { pageInfo { hasNextPage endCursor } nodes { ...Whole } }
  }
}"""
)
ONE = (
    _WHOLE
    + """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { issue(number: $number) { ...Whole } }
}"""
)
BLOCKERS = (
    _LINKED
    + """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { issue(number: $number) {
    found: blockedBy(first: 50, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes { ...Linked } }
  } }
}"""
)
# Of blockers no labels are asked for: with those, GitHub would not let a page have 100 sub-issues.
TICKETS = (
    _LINKED
    + """
fragment Ticket on Issue {
  ...Linked
  createdAt lastEditedAt
  author { __typename login } editor { __typename login }
  renames: timelineItems(last: 1, itemTypes: [RENAMED_TITLE_EVENT]) {
    nodes { __typename ... on RenamedTitleEvent { createdAt actor { __typename login } } }
  }
  subIssuesSummary { total completed }
  blockedBy(first: 50) {
    totalCount pageInfo { hasNextPage endCursor }
    nodes { number title state url repository { nameWithOwner } }
  }
}
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { issue(number: $number) {
    found: subIssues(first: 100, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes { ...Ticket } }
  } }
}"""
)
