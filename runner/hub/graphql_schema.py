"""The excerpt of GitHub's GraphQL schema that the hub answers: https://docs.github.com/graphql/reference."""

SCHEMA = """
scalar URI
scalar GitObjectID
scalar DateTime
interface Node { id: ID! }
enum PullRequestState { CLOSED MERGED OPEN }
enum MergeableState { CONFLICTING MERGEABLE UNKNOWN }
enum MergeStateStatus { BEHIND BLOCKED CLEAN DIRTY DRAFT HAS_HOOKS UNKNOWN UNSTABLE }
enum MergeQueueEntryState { AWAITING_CHECKS LOCKED MERGEABLE QUEUED UNMERGEABLE }
enum IssueState { CLOSED OPEN }
enum IssueOrderField { COMMENTS CREATED_AT UPDATED_AT }
enum OrderDirection { ASC DESC }
enum IssueTimelineItemsItemType {
  BLOCKED_BY_ADDED_EVENT
  BLOCKED_BY_REMOVED_EVENT
  LABELED_EVENT
  RENAMED_TITLE_EVENT
  SUB_ISSUE_ADDED_EVENT
  SUB_ISSUE_REMOVED_EVENT
  UNLABELED_EVENT
}
enum PullRequestTimelineItemsItemType { REMOVED_FROM_MERGE_QUEUE_EVENT }
interface Actor { login: String! }
type User implements Actor & Node { id: ID! login: String! }
type Bot implements Actor & Node { id: ID! login: String! }
type PageInfo { endCursor: String hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String }
type Label implements Node { id: ID! name: String! }
type LabelConnection { nodes: [Label] pageInfo: PageInfo! totalCount: Int! }
input IssueOrder { direction: OrderDirection! field: IssueOrderField! }
type IssueConnection { nodes: [Issue] pageInfo: PageInfo! totalCount: Int! }
type SubIssuesSummary { completed: Int! percentCompleted: Int! total: Int! }
type LabeledEvent implements Node { id: ID! actor: Actor createdAt: DateTime! label: Label! }
type UnlabeledEvent implements Node { id: ID! actor: Actor createdAt: DateTime! label: Label! }
type RenamedTitleEvent implements Node { id: ID! actor: Actor createdAt: DateTime! previousTitle: String! }
type SubIssueAddedEvent implements Node { id: ID! actor: Actor createdAt: DateTime! subIssue: Issue }
type SubIssueRemovedEvent implements Node { id: ID! actor: Actor createdAt: DateTime! subIssue: Issue }
type BlockedByAddedEvent implements Node { id: ID! actor: Actor createdAt: DateTime! blockingIssue: Issue }
type BlockedByRemovedEvent implements Node { id: ID! actor: Actor createdAt: DateTime! blockingIssue: Issue }
union IssueTimelineItems =
    BlockedByAddedEvent
  | BlockedByRemovedEvent
  | LabeledEvent
  | RenamedTitleEvent
  | SubIssueAddedEvent
  | SubIssueRemovedEvent
  | UnlabeledEvent
type IssueTimelineItemsConnection { nodes: [IssueTimelineItems] pageInfo: PageInfo! totalCount: Int! }
type Issue implements Node {
  id: ID!
  databaseId: Int
  number: Int!
  title: String!
  body: String!
  state: IssueState!
  url: URI!
  author: Actor
  createdAt: DateTime!
  editor: Actor
  lastEditedAt: DateTime
  repository: Repository!
  labels(after: String, first: Int, last: Int): LabelConnection
  parent: Issue
  subIssues(after: String, first: Int, last: Int): IssueConnection!
  subIssuesSummary: SubIssuesSummary!
  blockedBy(after: String, first: Int, last: Int): IssueConnection!
  timelineItems(
    after: String
    first: Int
    last: Int
    itemTypes: [IssueTimelineItemsItemType!]
  ): IssueTimelineItemsConnection!
}
type Commit implements Node { id: ID! oid: GitObjectID! }
type MergeQueueEntry implements Node {
  id: ID!
  position: Int!
  state: MergeQueueEntryState!
  enqueuedAt: DateTime!
  baseCommit: Commit
  headCommit: Commit
}
type RemovedFromMergeQueueEvent implements Node {
  id: ID!
  createdAt: DateTime!
  reason: String
  beforeCommit: Commit
}
union PullRequestTimelineItems = RemovedFromMergeQueueEvent
type PullRequestTimelineItemsConnection { totalCount: Int! nodes: [PullRequestTimelineItems] }
type PullRequest implements Node {
  id: ID!
  number: Int!
  title: String!
  body: String!
  isDraft: Boolean!
  closed: Boolean!
  merged: Boolean!
  state: PullRequestState!
  url: URI!
  headRefName: String!
  headRefOid: GitObjectID!
  baseRefName: String!
  baseRefOid: GitObjectID!
  mergeable: MergeableState!
  mergeStateStatus: MergeStateStatus!
  isMergeQueueEnabled: Boolean!
  isInMergeQueue: Boolean!
  mergeQueueEntry: MergeQueueEntry
  timelineItems(
    first: Int
    last: Int
    itemTypes: [PullRequestTimelineItemsItemType!]
  ): PullRequestTimelineItemsConnection!
}
type Repository implements Node {
  id: ID!
  nameWithOwner: String!
  pullRequest(number: Int!): PullRequest
  issue(number: Int!): Issue
  issues(
    after: String
    first: Int
    last: Int
    labels: [String!]
    orderBy: IssueOrder
    states: [IssueState!]
  ): IssueConnection!
}
type IssueComment implements Node { id: ID! body: String! viewerDidAuthor: Boolean! }
input ConvertPullRequestToDraftInput { clientMutationId: String pullRequestId: ID! }
type ConvertPullRequestToDraftPayload { clientMutationId: String pullRequest: PullRequest }
input MarkPullRequestReadyForReviewInput { clientMutationId: String pullRequestId: ID! }
type MarkPullRequestReadyForReviewPayload { clientMutationId: String pullRequest: PullRequest }
input EnqueuePullRequestInput {
  clientMutationId: String
  pullRequestId: ID!
  expectedHeadOid: GitObjectID
}
type EnqueuePullRequestPayload { clientMutationId: String mergeQueueEntry: MergeQueueEntry }
input DequeuePullRequestInput { clientMutationId: String id: ID! }
type DequeuePullRequestPayload { clientMutationId: String mergeQueueEntry: MergeQueueEntry }
type Query {
  node(id: ID!): Node
  repository(owner: String!, name: String!): Repository
  viewer: User!
}
type Mutation {
  enqueuePullRequest(input: EnqueuePullRequestInput!): EnqueuePullRequestPayload
  dequeuePullRequest(input: DequeuePullRequestInput!): DequeuePullRequestPayload
  convertPullRequestToDraft(input: ConvertPullRequestToDraftInput!): ConvertPullRequestToDraftPayload
  markPullRequestReadyForReview(input: MarkPullRequestReadyForReviewInput!): MarkPullRequestReadyForReviewPayload
}
"""
