"""What an agent is not told of an issue: as tables."""

import pytest

from delivery.hidden import visible_characters, visible_markdown

PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Plain *text*.", "Plain *text*."),
        ("", ""),
        ("a<!-- hidden -->b", "ab"),
        ("a\n<!--\nhidden\n\nmore\n-->\nb", "a\n\nb"),
        ("a <!-- one --> b <!-- two --> c", "a  b  c"),
        ("a <!-- never ends\nhidden", "a "),
        ("<!-- one <!-- two --> three", " three"),
        ("a\n```html\n<!-- in code, too -->\n<b>\n```", "a\n```html\n\n<b>\n```"),
        ("<!--\n```\nhidden\n```\n-->\nb", "b"),
        ("> ```\nnot quoted <!-- hidden -->", "> ```\nnot quoted "),
        ("a <?php hidden ?> b", "a  b"),
        ("a <!DOCTYPE hidden> b", "a  b"),
        ("a <![CDATA[hidden]]> b", "a  b"),
        ("a < b and b > c, <3", "a < b and b > c, <3"),
        ("[//]: # (hidden)\nb", "b"),
        ("[comment]: <> (hidden)\nb", "b"),
        ('[x]: https://example.com "hidden"\nb [X]', "b [X](https://example.com)"),
        ("[x]: https://example.com\n'hidden\nmore'\nb [c][x]", "b [c](https://example.com)"),
        ("[x]: https://example.com\nb", "b"),
        ("> [x]: /hidden\n\n- [y]: /hidden\n\nb", "b"),
        ("a\n[12:00]: started", "a\n[12:00]: started"),
        ("b [c][Hidden words]\n\n[hidden  words]: /d", "b [c](/d)"),
        ("b [c][shown] [d]", "b [c][shown] [d]"),
        ("b [c](/d 'hidden') ![e](/f(g(h)) \"hidden\")", "b [c](/d) ![e](/f(g(h)))"),
        ("b [](hidden) [ &#8203;](hidden) [c](<d.md>) [e](<hidden words, too>)", "b   [c](d.md) [e]()"),
        ("b[^1]\n\n[^1]: shown\n\n[^2]: hidden\nmore\n\n    and more\n\nc", "b[^1]\n\n[^1]: shown\n\n\nc"),
        (
            '<p title="hidden" data-x=hidden>b</p><hidden-too/><a href="/c" title=\'>\'>d</a>',
            '<p>b</p><a href="/c">d</a>',
        ),
        ('b <img alt="c" src="/d" title="hidden"> e <kbd\nhidden>f</kbd>', 'b <img alt="c" src="/d"> e <kbd>f</kbd>'),
        (
            'b <a href="/hidden"></a> Map<K, V> `<p title="shown">` \\<p title="shown">',
            'b  Map<K, V> `<p title="shown">` \\<p title="shown">',
        ),
        ('b <i title="`"> ` hidden="`">', 'b <i> ` hidden="`">'),
        ('<div>\n`<p title="hidden">`', "<div>\n`<p>`"),
        (
            'b\n```py hidden words\n<p title="shown">\n[x]: /shown\n```\nc',
            'b\n```py\n<p title="shown">\n[x]: /shown\n```\nc',
        ),
        ("b ```shown words```", "b ```shown words```"),
        ('<pre>\n\n```\n<p title="hidden">\n```', "<pre>\n\n```\n<p>\n```"),
        ('<div>\n```\n<p title="hidden">\n```', "<div>\n```\n<p>\n```"),
        ('- ```\n\n```\n<p title="hidden">\n```', "- ```\n\n```\n<p>\n```"),
        ('```\n<!--\n```\n-->\n<p title="hidden">\n```', "```\n\n<p>\n```"),
        ("```mermaid\ngraph\n  %% hidden\n A-->B\n```", "```mermaid\ngraph\n A-->B\n```"),
        ("b $x \\phantom{hid{d}en} \\hphantom{h}y$", "b $x  y$"),
        ("```math\nx \\vphantom{hidden}\n```", "```math\nx \n```"),
        ("|a|b|\n|-|-|\n|c|d|hidden|\n|e|\n\n|f|g|h|", "|a|b|\n|-|-|\n|c|d|\n|e|\n\n|f|g|h|"),
        ("a | b\n--|--\nc | d | hidden | more", "a | b\n--|--\nc | d |"),
        ("- [ ] a task: do it\n- [x] done: # (shown)", "- [ ] a task: do it\n- [x] done: # (shown)"),
        (
            "<details><summary>More</summary>\n\nfolded\n</details>",
            "<details><summary>More</summary>\n\nfolded\n</details>",
        ),
        ("![a lamp](lamp.png)", "![a lamp](lamp.png)"),
        ('<img src="lamp.png" alt="a lamp">', '<img src="lamp.png" alt="a lamp">'),
        ("a\r\nb\rc", "a\nb\nc"),
        ("<!-" + "\u200b" + "- made one by what was hidden -->b", "b"),
        ("&lt;!-- shown as text --&gt;", "&lt;!-- shown as text --&gt;"),
    ],
)
def test_only_what_github_shows_is_left(text: str, shown: str) -> None:
    assert visible_markdown(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200bb\u2060c\ufeffd", "abcd"),
        ("soft\u00adhyphen", "softhyphen"),
        ("left \u202eto right\u202c \u2066x\u2069", "left to right x"),
        ("tags \U000e0041\U000e0042\U000e007f", "tags "),
        ("bytes \U000e0100\U000e0101\ufe00\ufe01", "bytes "),
        ("fillers \u3164\u115f\uffa0\u2800", "fillers "),
        ("escape \x1b[2K\x07bell\x00", "escape [2Kbell"),
        ("private \ue000\U0010fffd", "private "),
        ("lines\u2028and\u2029more", "linesandmore"),
        ("a\tb\nc", "a\tb\nc"),
        ("👩\u200d💻 ❤\ufe0f", "👩\u200d💻 ❤\ufe0f"),
        (PERSIAN, PERSIAN),
        ("a\u200cb\u200d\u200cc", "abc"),
        ("é\u200d\u200d\u200dé", "éé"),
        ("x\ufe0f", "x"),
        ("Grüße, 日本, ñ", "Grüße, 日本, ñ"),
    ],
)
def test_characters_without_a_picture_go(text: str, shown: str) -> None:
    assert visible_characters(text) == shown


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["\\[", '["\\', "\\``` ", ";-\\[", "&x=y\\``` ", "[^-"])
def test_brackets_and_ticks_that_nothing_ends_take_no_time(piece: str) -> None:
    assert visible_markdown(f"<b title='hidden'>{piece * (65_000 // len(piece))}").startswith("<b>")


@pytest.mark.timeout(10)
@pytest.mark.parametrize("tag", ["<img {}>", "<div>\n<img {}", "<a x='y'{}>"])
def test_a_long_word_in_a_tag_takes_no_time(tag: str) -> None:
    assert "xxx" not in visible_markdown(tag.format("x" * 65_000))
