"""Templates rendered by python3-jinja2, set up as transformers does, and by Brigade: what came out, or what kind of
failure it was."""
import datetime
import json
import re

import jinja2
import jinja2.ext
import jinja2.sandbox

# What Brigade tells every template of time.
NOW = datetime.datetime(2024, 7, 26)
KINDS = ("syntax", "undefined", "wrong type", "wrong value", "not allowed", "it refuses this conversation", "limit")


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what the model wrote; for the text it is nothing."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_inside"), [], [], body).set_lineno(line)

    def _inside(self, caller):
        return caller()


class Refused(Exception):
    pass


def raise_exception(message):
    raise Refused(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


ENVIRONMENT = environment()


def kind_of(error):
    if isinstance(error, (jinja2.TemplateSyntaxError, SyntaxError)):
        return "syntax"
    if isinstance(error, jinja2.UndefinedError):
        return "undefined"
    if isinstance(error, jinja2.sandbox.SecurityError):
        return "not allowed"
    if isinstance(error, Refused):
        return "it refuses this conversation"
    if isinstance(error, OverflowError) and "Range" in str(error) or isinstance(error, RecursionError):
        return "limit"
    if isinstance(error, (TypeError, AttributeError)):
        return "wrong type"
    return "wrong value"


def by_jinja2(template, context):
    """("text", what came out) or ("kind of failure", line or None, words or None)."""
    try:
        return ("text", ENVIRONMENT.from_string(template).render(**context))
    except Exception as error:  # whatever a template can bring about
        kind = kind_of(error)
        line = error.lineno if isinstance(error, jinja2.TemplateSyntaxError) else None
        return (kind, line, str(error))


def by_brigade(world, model, template, context):
    """The same; the template and the conversation are files."""
    source, given = world.folder / "template.jinja", world.folder / "given.json"
    source.write_bytes(template.encode("utf-8"))
    given.write_text(json.dumps(context))
    result = world.brigade("tokenize", model, "--messages", given, "--chat-template", source, "--text")
    if result.code == 0:
        assert result.err == "", result
        return ("text", result.raw.decode("utf-8"))
    assert result.code == 1 and result.raw == b"" and len(result.lines()) == 1, result
    found = re.match(r"brigade tokenize: \S+/template\.jinja: line (\d+): (%s): (.*)" % "|".join(KINDS), result.err)
    assert found, result
    return (found.group(2), int(found.group(1)), found.group(3))


def same(ours, theirs):
    if theirs[0] == "text" or ours[0] == "text":
        return ours == theirs
    return ours[0] == theirs[0] and (theirs[1] is None or ours[1] == theirs[1])
