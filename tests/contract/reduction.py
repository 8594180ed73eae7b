"""Cutting a GraphQL schema down to what delivery asks."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from graphql import (
    DefinitionNode,
    DocumentNode,
    EnumTypeDefinitionNode,
    FieldDefinitionNode,
    InputObjectTypeDefinitionNode,
    InputValueDefinitionNode,
    InterfaceTypeDefinitionNode,
    ListTypeNode,
    NamedTypeNode,
    Node,
    NonNullTypeNode,
    ObjectTypeDefinitionNode,
    ScalarTypeDefinitionNode,
    TypeNode,
    UnionTypeDefinitionNode,
    Visitor,
    visit,
)

_ENTRANCES = {
    "Query": {"id", "node", "repository", "viewer"},
    "Mutation": {
        "convertPullRequestToDraft",
        "dequeuePullRequest",
        "enqueuePullRequest",
        "markPullRequestReadyForReview",
    },
}
_KEPT = {
    "Actor",
    "Bot",
    "Commit",
    "ConvertPullRequestToDraftInput",
    "ConvertPullRequestToDraftPayload",
    "DequeuePullRequestInput",
    "DequeuePullRequestPayload",
    "EnqueuePullRequestInput",
    "EnqueuePullRequestPayload",
    "Issue",
    "IssueComment",
    "IssueConnection",
    "IssueOrder",
    "IssueTimelineItems",
    "IssueTimelineItemsConnection",
    "Label",
    "LabelConnection",
    "LabeledEvent",
    "MarkPullRequestReadyForReviewInput",
    "MarkPullRequestReadyForReviewPayload",
    "MergeQueueEntry",
    "Node",
    "PageInfo",
    "PullRequest",
    "PullRequestTimelineItems",
    "PullRequestTimelineItemsConnection",
    "RemovedFromMergeQueueEvent",
    "RenamedTitleEvent",
    "Repository",
    "SubIssueAddedEvent",
    "SubIssueRemovedEvent",
    "SubIssuesSummary",
    "UnlabeledEvent",
    "User",
}
_BUILT_IN = {"Boolean", "Float", "ID", "Int", "String"}
_Leaf = (EnumTypeDefinitionNode, ScalarTypeDefinitionNode)
_Composite = (ObjectTypeDefinitionNode, InterfaceTypeDefinitionNode)


def reduced(schema: DocumentNode) -> DocumentNode:
    """Return the entrances, the kept types with their fields of kept and leaf types, and the leaf types they name."""
    leaves = {one.name.value for one in schema.definitions if isinstance(one, _Leaf)} | _BUILT_IN
    kept = [_fewer(one, leaves | _KEPT) for one in schema.definitions if _name(one) in _KEPT | set(_ENTRANCES)]
    used = {name for one in kept for name in _names(one)}
    named = [one for one in schema.definitions if isinstance(one, _Leaf) and one.name.value in used]
    quiet: DocumentNode = visit(DocumentNode(definitions=(*kept, *named)), _Quiet())
    return quiet


class _Quiet(Visitor):
    """Takes descriptions and directives away."""

    def leave(self, node: Node, *_arguments: object) -> Node | None:
        empty: dict[str, Any] = {"description": None, "directives": ()}
        said = {name: nothing for name, nothing in empty.items() if getattr(node, name, None)}
        return replace(node, **said) if said else None


def _fewer(definition: DefinitionNode, types: set[str]) -> DefinitionNode:
    if isinstance(definition, UnionTypeDefinitionNode):
        return replace(definition, types=tuple(one for one in definition.types or () if one.name.value in _KEPT))
    if not isinstance(definition, _Composite):
        return definition
    entrances = _ENTRANCES.get(definition.name.value)
    fields = [one for one in definition.fields or () if _named_type(one.type) in types]
    wanted = [one for one in fields if entrances is None or one.name.value in entrances]
    interfaces = tuple(one for one in definition.interfaces or () if one.name.value in _KEPT)
    return replace(definition, fields=tuple(_with_fewer_arguments(one, types) for one in wanted), interfaces=interfaces)


def _with_fewer_arguments(field: FieldDefinitionNode, types: set[str]) -> FieldDefinitionNode:
    return replace(field, arguments=tuple(one for one in field.arguments or () if _named_type(one.type) in types))


def _name(definition: DefinitionNode) -> str:
    name = getattr(definition, "name", None)
    return name.value if name else ""


def _names(definition: DefinitionNode) -> Iterable[str]:
    """Return the names of the types that a definition mentions."""
    if not isinstance(definition, (*_Composite, InputObjectTypeDefinitionNode)):
        return
    for field in definition.fields or ():
        yield _named_type(field.type)
        if not isinstance(field, InputValueDefinitionNode):
            yield from (_named_type(argument.type) for argument in field.arguments or ())


def _named_type(node: TypeNode) -> str:
    while isinstance(node, ListTypeNode | NonNullTypeNode):
        node = node.type
    return node.name.value if isinstance(node, NamedTypeNode) else ""
