"""Of a file whose bytes git keeps in another form git must give the very bytes back, or it is kept."""

from tests.worktree.runs import create, gone, reasons, stored
from tests.world import World, git

_ATTRIBUTES = "*.txt eol=crlf\n*.loud filter=loud\n"
_LINE_ENDS = b"one\r\ntwo\r\n"


def test_many_files_are_asked_for_at_once_and_each_is_judged_alone(world: World) -> None:
    git(world.launch, "config", "filter.loud.clean", "tr a-z A-Z")
    git(world.launch, "config", "filter.loud.smudge", "false")
    git(world.launch, "config", "filter.loud.required", "true")
    given_back = dict.fromkeys(("c.txt", "new\nline.txt", "with blank .txt", "bytes \udcff.txt", "z.txt"), _LINE_ENDS)
    lost = {" blank.txt": _LINE_ENDS, "mixed.txt": b"one\r\ntwo\n", "x.loud": b"whispered\n", "y.loud": b"whispered\n"}
    with create(world) as wt:
        (wt.path / ".gitattributes").write_text(_ATTRIBUTES)
        for path, content in (given_back | lost).items():
            (wt.path / path).write_bytes(content)
        wt.settle("Convert files")
        wt.push()
    assert gone(wt, world)
    assert reasons(world, wt) == dict.fromkeys(lost, "bytes that git has in another form only")
    assert {path.name: path.read_bytes() for path in stored(world, wt).iterdir()} == lost
