"""URI templates: the RFC's own examples, what a URI gives back, which template is meant, hostile input."""

from __future__ import annotations

import time

import pytest

from fastrpc.errors import DefinitionError
from fastrpc.protocol.uri_template import LONGEST, Template, normal, without_dots

# The variables and the examples of levels 1 to 3 of RFC 6570, sections 1.2 and 3.2, as (template, URI).
VALUES = {
    "var": "value",
    "hello": "Hello World!",
    "half": "50%",
    "empty": "",
    "path": "/foo/bar",
    "base": "http://example.com/home/",
    "x": "1024",
    "y": "768",
    "who": "fred",
    "v": "6",
    "undef": None,
}
EXAMPLES = [
    ("{var}", "value"),
    ("{hello}", "Hello%20World%21"),
    ("{half}", "50%25"),
    ("O{empty}X", "OX"),
    ("O{undef}X", "OX"),
    ("{x,y}", "1024,768"),
    ("{x,hello,y}", "1024,Hello%20World%21,768"),
    ("?{x,empty}", "?1024,"),
    ("?{x,undef}", "?1024"),
    ("?{undef,y}", "?768"),
    ("map?{x,y}", "map?1024,768"),
    ("{+var}", "value"),
    ("{+hello}", "Hello%20World!"),
    ("{+half}", "50%25"),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
    ("{+base}index", "http://example.com/home/index"),
    ("O{+empty}X", "OX"),
    ("O{+undef}X", "OX"),
    ("{+path}/here", "/foo/bar/here"),
    ("here?ref={+path}", "here?ref=/foo/bar"),
    ("up{+path}{var}/here", "up/foo/barvalue/here"),
    ("{+x,hello,y}", "1024,Hello%20World!,768"),
    ("{+path,x}/here", "/foo/bar,1024/here"),
    ("{#var}", "#value"),
    ("{#hello}", "#Hello%20World!"),
    ("{#half}", "#50%25"),
    ("foo{#empty}", "foo#"),
    ("foo{#undef}", "foo"),
    ("{#x,hello,y}", "#1024,Hello%20World!,768"),
    ("{#path,x}/here", "#/foo/bar,1024/here"),
    ("X{#var}", "X#value"),
    ("{.who}", ".fred"),
    ("X{.var}", "X.value"),
    ("X{.x,y}", "X.1024.768"),
    ("X{.empty}", "X."),
    ("X{.undef}", "X"),
    ("{/who}", "/fred"),
    ("{/var,x}/here", "/value/1024/here"),
    ("{/var,empty}", "/value/"),
    ("{/var,undef}", "/value"),
    ("{;who}", ";who=fred"),
    ("{;half}", ";half=50%25"),
    ("{;empty}", ";empty"),
    ("{;v,empty,who}", ";v=6;empty;who=fred"),
    ("{;v,undef,who}", ";v=6;who=fred"),
    ("{;x,y}", ";x=1024;y=768"),
    ("{?who}", "?who=fred"),
    ("{?half}", "?half=50%25"),
    ("{?x,y}", "?x=1024&y=768"),
    ("{?x,y,empty}", "?x=1024&y=768&empty="),
    ("{?x,y,undef}", "?x=1024&y=768"),
    ("{&who}", "&who=fred"),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ("{&x,y,empty}", "&x=1024&y=768&empty="),
    ("{&var,y,undef}", "&var=value&y=768"),
]

# What RFC 6570 makes of these cannot be read back: nothing is there to tell where a value ends, or whose
# it is, or it begins with what begins something else.
ONE_WAY = {"O{empty}X", "O{+empty}X", "O{undef}X", "O{+undef}X", "?{undef,y}", "up{+path}{var}/here"}


@pytest.mark.parametrize(("template", "uri"), EXAMPLES)
def test_the_rfcs_examples_expand_as_it_says(template: str, uri: str) -> None:
    assert Template(template).expand(VALUES) == uri


@pytest.mark.parametrize(("template", "uri"), [pair for pair in EXAMPLES if pair[0] not in ONE_WAY])
def test_the_rfcs_examples_give_their_values_back(template: str, uri: str) -> None:
    made = Template(template)
    values = {name: VALUES[name] for name in made.variables if VALUES[name] is not None}
    assert made.match(uri) == values


def test_the_rest_of_a_path_keeps_its_slashes() -> None:
    assert Template("files://{path*}").expand({"path": "a/b c"}) == "files://a/b%20c"
    assert Template("files://x{/path*}").expand({"path": "a/b?"}) == "files://x/a/b%3F"


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("docs://{id}", "docs://guide", {"id": "guide"}),
        ("docs://{id}", "docs://a%2Fb%20c", {"id": "a/b c"}),
        ("docs://{id}", "docs://übung", {"id": "übung"}),
        ("docs://{id}", "docs://%C3%BCbung", {"id": "übung"}),
        ("docs://ü/{id}", "docs://%C3%BC/1", {"id": "1"}),
        ("docs://{id}", "docs://a:b@c,d", {"id": "a:b@c,d"}),
        ("docs://{id}", "docs://", None),
        ("docs://{id}", "docs://a/b", None),
        ("docs://{id}", "docs://a?b", None),
        ("docs://{id}", "docs://a#b", None),
        ("docs://{id}", "other://a", None),
        ("docs://{id}", "docs://%FF", None),
        ("docs://{id}", "docs://100%zz", {"id": "100%zz"}),
        ("docs://{id}/{path*}", "docs://7/a/b/c.md", {"id": "7", "path": "a/b/c.md"}),
        ("docs://{id}/{path*}", "docs://7/", None),
        ("docs://{id}{/path*}", "docs://7/a/b", {"id": "7", "path": "a/b"}),
        ("docs://{id}{/path*}", "docs://7", {"id": "7"}),
        ("files://{path*}.md", "files://a/b.md.md", {"path": "a/b.md"}),
        ("files://{name}{.ext}", "files://archive.tar.gz", {"name": "archive.tar", "ext": "gz"}),
        ("files://{name}{.ext}", "files://readme", {"name": "readme"}),
        ("files://{name}{.ext}", "files://.profile", {"name": ".profile"}),
        ("files://{a}-{b}", "files://x-y-z", {"a": "x-y", "b": "z"}),
        ("files://{+path}{?page}", "files://a/b?page=2", {"path": "a/b", "page": "2"}),
        ("files://{+path}{.ext}{?page}", "files://a/b?page=2", {"path": "a/b", "page": "2"}),
        (
            "db://{table}{?limit,offset}",
            "db://t?offset=5&limit=10",
            {"table": "t", "limit": "10", "offset": "5"},
        ),
        ("db://{table}{?limit,offset}", "db://t?offset=5", {"table": "t", "offset": "5"}),
        ("db://{table}{?limit,offset}", "db://t", {"table": "t"}),
        ("db://{table}{?limit}", "db://t?other=1&limit=2&limit=3", {"table": "t", "limit": "2"}),
        ("db://{table}{?limit}", "db://t?limit=2#top", None),
        ("db://{table}{?x}{&y}", "db://t?x=1&y=2", {"table": "t", "x": "1", "y": "2"}),
        ("db://{table}{?x}{&y}", "db://t&y=2", {"table": "t", "y": "2"}),
        ("a:{;x,xy}", "a:;xy=5", {"xy": "5"}),
        ("a:{p*}-{b}", "a:a-b/c-d", {"p": "a-b/c", "b": "d"}),
        ("a:plain", "a:plain", {}),
        ("a:plain", "a:plain/", None),
        ("a:{x}", "a:\ud800", None),
        ("x://h/{/p}", "x://h//v", {"p": "v"}),  # what begins a value occurs twice in a row
        ("x://{p}a", "x://aaaa", {"p": "aaa"}),
    ],
)
def test_a_uri_gives_its_values(template: str, uri: str, values: dict[str, str] | None) -> None:
    assert Template(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("docs://{id", "without its '}'"),
        ("docs://id}", "without its '{'"),
        ("docs://{}", "no expression"),
        ("docs://{id:3}", "no expression"),
        ("docs://{=id}", "no expression"),
        ("docs://{a b}", "no expression"),
        ("docs://{a,}", "no expression"),
        ("docs://{?list*}", "not how the rest of a path"),
        ("docs://{a,path*}", "must be alone"),
        ("docs://{id}/{id}", "twice"),
    ],
)
def test_what_is_no_template_is_said_so(template: str, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem) as caught:
        Template(template)
    assert template in str(caught.value)


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("docs://a/{id}", "docs://{x}/{id}"),
        ("docs://{id}", "docs://{path*}"),
        ("docs://{id}", "docs://{+path}"),
        ("docs://{id}", "docs://{id}{?page}"),
        ("docs://{path*}.md", "docs://{a}/{b}"),
        ("docs://{a}/{b*}", "docs://{a*}/{b*}"),
        ("docs://{id}{?page}", "docs://{id}{/sub}{?page}"),
    ],
)
def test_the_more_specific_template_ranks_higher(more: str, less: str) -> None:
    assert Template(more).rank > Template(less).rank


def test_it_is_known_which_variables_may_be_left_out() -> None:
    template = Template("a://{id}{/sub}{?page,size}")
    assert template.variables == ("id", "sub", "page", "size")
    assert template.optional == {"sub", "page", "size"}


@pytest.mark.alone
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("template", "character"),
    [
        ("a:{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}x", "-"),
        ("a:{+a}{+b}{+c}{+d}{+e}{+f}{+g}{+h}/x", "a"),
        ("a:{a*}/{b*}/{c*}/{d*}/{e*}/x", "/"),
        ("a:{.a,b,c,d,e,f,g,h}/x", "."),
        ("a:{;a,b,c,d,e,f,g,h}/x", ";"),
    ],
)
def test_no_uri_takes_more_than_linear_time(template: str, character: str) -> None:
    made = Template(template)

    def seconds(count: int) -> float:
        best = 9.0
        for _ in range(3):
            began = time.process_time()
            made.match("a:" + character * count)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(16_000) < 20 * max(seconds(2_000), 0.0005)  # 8 times is linear, 64 times is square


def test_a_uri_beyond_the_limit_fits_nothing() -> None:
    template = Template("a:{x}")
    assert template.match("a:" + "x" * (LONGEST - 2)) is not None
    assert template.match("a:" + "x" * (LONGEST - 1)) is None


@pytest.mark.parametrize("uri", ["docs://a%2F", "docs://a%20b"])
def test_an_escape_stays_as_it_is_at_the_end_too(uri: str) -> None:
    assert normal(uri) == uri


@pytest.mark.parametrize(
    ("uri", "inside"), [("a%4", "a%4"), ("a%4z", "a%4z"), ("a%z4", "a%z4"), ("%41", "A")]
)
def test_what_only_looks_like_an_escape_is_text(uri: str, inside: str) -> None:
    assert Template("docs://{id}").match(f"docs://{uri}") == {"id": inside}


@pytest.mark.parametrize(
    ("value", "expanded"), [("a%2F", "a%2F"), ("%41b", "%41b"), ("a%2", "a%252"), ("%zz", "%25zz")]
)
def test_only_what_is_an_escape_is_kept_as_one(value: str, expanded: str) -> None:
    assert Template("{+x}").expand({"x": value}) == expanded


# --- one spelling for all that are the same (RFC 3986, 6.2.2) ---------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("x://caf%c3%a9", "x://caf%C3%A9"),
        ("x://café", "x://caf%C3%A9"),
        ("X://a", "x://a"),
        ("x://%41%2d%7E%5f%2e", "x://A-~_."),
        ("x://a%2fb", "x://a%2Fb"),
        ("x://Alice/B", "x://Alice/B"),
        ("HTTPS://User@EXAMPLE.com:80/A?B#C", "https://User@example.com:80/A?B#C"),
        ("http://%C3%89X.org/A", "http://%C3%89x.org/A"),
        ("http:///A", "http:///A"),
        ("x://100%", "x://100%25"),
        ("x://%%34%31", "x://%2541"),
        ("x://a?q=%C3", "x://a?q=%C3"),
        ("urn:A", "urn:A"),
        ("no scheme", "no%20scheme"),
        ("", ""),
    ],
)
def test_spellings_of_a_uri_have_one_normal_form(spelled: str, meant: str) -> None:
    assert normal(spelled) == meant
    assert normal(meant) == meant


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("x://h/a/../b", "x://h/b"),
        ("x://h/a/./b/..", "x://h/a/"),
        ("x://h/../../etc", "x://h/etc"),
        ("x://h/a/..b/.c", "x://h/a/..b/.c"),
        ("x://h/a?../b", "x://h/a?../b"),
        ("x://?a/../b", "x://?a/../b"),
        ("urn:a/../b", "urn:a/../b"),
    ],
)
def test_segments_of_dots_lead_somewhere(uri: str, found: str) -> None:
    assert without_dots(uri) == found


def test_a_template_matches_every_spelling_of_its_literals() -> None:
    template = Template("X://caf%c3%a9/%41/{v}")
    for uri in ("x://caf%C3%A9/A/1", "X://café/%41/1", "x://caf%c3%A9/A/%31"):
        assert template.match(uri) == {"v": "1"}
    assert Template("x://{name}/a").match("x://Alice/a") == {"name": "Alice"}


def test_a_template_whose_literals_a_uri_does_not_hold_is_not_looked_at_closely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look(template: Template, uri: str) -> None:
        raise AssertionError(f"{template} is compared with {uri:.20}")

    monkeypatch.setattr(Template, "_places", look)
    long = "x" * 1000
    for text in ("a://{x}/end", "a://{x}/b/{y}", "a://{x}/c/{y}/b/{z}", "b://{x}"):
        assert Template(text).match(f"a://{long}/c/{long}") is None
    assert Template("a://{x}").match(f"b://{long}/a://x") is None, "not at the beginning"
    assert Template("a://{x}/end").match(f"a://{long}/end/") is None, "not at the end"


def test_a_template_of_an_upstream_server_is_bounded_in_length_and_in_variables() -> None:
    variables = "".join(f"{{a{number}}}" for number in range(65))
    assert len(Template(f"x://{variables.removesuffix('{a64}')}").variables) == 64
    with pytest.raises(DefinitionError, match="expected at most 64 variables, got 65"):
        Template(f"x://{variables}")
    with pytest.raises(DefinitionError, match=f"expected at most {LONGEST} characters, got {LONGEST + 1}"):
        Template("x://".ljust(LONGEST + 1, "a"))
