"""The state document's parts that a live box rarely shows."""

import orjson
from jsonschema import Draft202012Validator

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Group
from edgebox.web.state_document import group_documents
from edgebox.web.state_types import Group as GroupDocument
from edgebox.web.typed_schemas import schema_of


def test_executors_that_work_apart() -> None:
    tight = Group((ExecutorId("gpu/0"),), (VariantName("street-256"),), 12_345_678)
    rest = Group((ExecutorId("gpu/1"), ExecutorId("gpu/2")), (VariantName("street-608"),), 0)
    documents = group_documents((tight, rest))
    assert documents[0] == {
        "executors": ("gpu/0",),
        "variants": ("street-256",),
        "steal_budget_ms": 12.35,
    }
    for document in orjson.loads(orjson.dumps(documents)):
        Draft202012Validator(schema_of(GroupDocument).definition).validate(document)
