"""Small templates, each for one trait of the language. What is right is decided by jinja2, not here."""

CONTEXT = {
    "messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi\nthere"},
                 {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "It's \"f\" <b>", "parameters":
               {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": ["string", "null"]}},
                "required": ["x"]}}}],
    "add_generation_prompt": True,
    "bos_token": "<s>",
    "eos_token": "</s>",
    "n": 7, "z": 0, "f": 2.5, "neg": -3, "big": 9007199254740993, "yes": True, "no": False, "nil": None, "s": "Grüße, Welt",
    "empty": "", "words": "the quick  brown\tfox", "lines": "a\nb\n\n c\n", "nested": [[1, 2], [3, [4, "five"]], []],
    "d": {"b": 1, "a": "x", "items": "key", "C": None, "c": [1]}, "nums": [3, 1, 2, 3, 1], "strs": ["b", "A", "c", "a", "B"],
    "people": [{"name": "Ann", "age": 30, "pet": {"kind": "cat"}}, {"name": "bob", "age": 25}, {"name": "Cid", "age": 30}],
    "mixed": [0, "", None, False, 1, "x", [], [0], {}, 0.0, 1.5], "emoji": "a😀é", "zoo": [True, 1, 1.0, "1"],
}

WHITESPACE = r"""
a{{ 1 }}b
x {%- if true -%} y {%- endif -%} z
x {%+ if true +%} y {%+ endif +%} z
  {% if true %}
  y
  {% endif %}
  z\n
\t {# comment #}\nq
\t {#- comment -#} \n q
{# a comment\nof two lines #}\n{{ 1 }}
  {{ 1 }}\n
  {{- 1 -}}  \n x
{% set x = 1 %}\n\n{{ x }}
{% set x = 1 -%}\n\n  {{ x }}
{% for i in [1,2] %}\n {{ i }}\n{% endfor %}\n
{% for i in [1,2] %}\n {{ i }}\n{% endfor -%}\n \nend
{% raw %}{{ x }} {% if %}{% endraw %}
a {%- raw -%}  {{ x }}  {%- endraw -%} b
  {% raw %}\n{{x}}\n  {% endraw %}\nb
line1\r\nline2\rline3\n
\n\n
trailing\n\n
{{ 'a\r\nb' }}|{{ "c\n" }}
 {% if true %} a {% endif %} b
x\n    {% if true %}y{% endif %}\n    z
x\n    {{ 1 }} {% if true %}y{% endif %}\n
{{ '{{' }}{{ '{%' }}{{ "}}" }}
{{ {'a': {'b': 1}}['a']['b'] }}{{ {} }}
{ { } } {x} #} %}
a{#b#}c{#-d-#} e
{%if true%}a{%endif%}
{{1}}{{2}}{{-3-}}
"""

EXPRESSIONS = r"""
{{ 1 + 2 * 3 - 4 // 3 % 2 ** 3 }}
{{ 7 / 2 }} {{ 8 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 // -2 }}
{{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}
{{ 1 + 1.0 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789.125 }} {{ 0.1 + 0.2 }} {{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1e22 }} {{ 1.0 }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ undefd ~ [1] }}
{{ 'a' + 'b' 'c' "d" }}
{{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ 'ab' * -1 }} {{ [1, 'x'] * 2 }} {{ (1,) * 2 }} {{ true * 3 }}
{{ [1] + [2, 3] }} {{ (1, 2) + (3,) }} {{ true + true }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ (1, 'a') >= (1, 'B') }} {{ 'a' == 1 }} {{ none == none }} {{ 1 != 2 != 1 }}
{{ 1 in [1, 2] }} {{ 3 not in [1, 2] }} {{ 'ell' in 'hello' }} {{ 'a' in d }} {{ 'x' in d }} {{ 1 in (1,) }} {{ 2 in range(5) }} {{ 'a' in undefd }}
{{ not true }} {{ not 0 }} {{ not not 'x' }} {{ true and 'x' or 'y' }} {{ 0 or '' or none }} {{ 1 and 2 }} {{ not 1 == 2 }}
{{ 'yes' if n > 5 else 'no' }} {{ 'x' if false }}| {{ 1 if 0 else 2 if 0 else 3 }} {{ (1 if yes) + 1 }}
{{ -n }} {{ +n }} {{ -f }} {{ - -n }} {{ -neg|abs }} {{ -1|abs }} {{ -yes }} {{ +yes }}
{{ d.a }} {{ d['a'] }} {{ d['items'] }} {{ d.missing }}| {{ d['missing'] }}| {{ nums[0] }} {{ nums[-1] }} {{ nums[10] }}| {{ nums.0 }} {{ s[0] }} {{ s[2] }} {{ emoji[1] }} {{ emoji[-1] }}
{{ nums[1:3] }} {{ nums[:-1] }} {{ nums[::2] }} {{ nums[::-1] }} {{ nums[-2:] }} {{ nums[5:1] }} {{ nums[1:4:-1] }} {{ nums[4:1:-1] }} {{ s[1:4] }} {{ s[::-1] }} {{ emoji[::-1] }} {{ (1,2,3)[1:] }} {{ range(10)[2:8:3]|list }} {{ range(5)[::-1] }} {{ s[:100] }} {{ nums[-100:100] }}
{{ [1, 'two', 3.0, none, true, [4], {'k': 'v'}, (5,), ()] }}
{{ {'a': 1, 2: 'b', none: [], 'it''s': "q\"q" } }}
{{ ["it's", 'say "hi"', 'both \' and "', 'tab\t nl\n bs\\ nul\x00 \x7f \xe9 \u2028 \u200b 😀'] }}
{{ (1, 2) }} {{ 1, 2 }} {{ (1) }} {{ () }} {{ (1,) }}
{{ '\x41\u0042\103\n\t\q\\' }} {{ '\U0001F600' }}
{{ true }} {{ True }} {{ false }} {{ none }} {{ None }} {{ nil }}
{{ undefd }}|{{ undefd is defined }}|{{ undefd == undefd2 }}|{{ undefd == none }}|{{ not undefd }}|{{ undefd|length }}|{{ undefd|default('x') }}|{{ undefd or 'y' }}
{{ messages[0].content.strip() }} {{ messages[0]['role'].upper()[0:3] }} {{ messages|length }} {{ messages[-1].tool_calls[0].function.arguments.x }}
{{ n|string + 'x' }} {{ n ~ 'x'|upper }} {{ ('x' ~ n)|upper }} {{ 'a' + 'b'|upper }}
{{ big }} {{ big + 1 }} {{ big / 3 }} {{ 9223372036854775807 }} {{ -9223372036854775807 }}
{{ {'a': 1}.get('b', 'dflt') }} {{ d.get('a') }} {{ d.get('zz') }}
{{ d.keys() }} {{ d.values()|list }} {{ d.items()|list }} {{ d.keys()|join(',') }} {{ d.items()|length }} {{ d.copy() == d }} {{ d|length }}
{{ dict(a=1, b=2) }} {{ dict([('x', 1)]) }} {{ dict(d, a=9).a }} {{ dict() }}
{{ range(5)|list }} {{ range(2, 8, 3)|list }} {{ range(5, 0, -2)|list }} {{ range(3) }} {{ range(1, 9, 2) }} {{ range(0)|list }} {{ range(5)|sum }} {{ range(4)[2] }}
{{ 'a,b,,c'.split(',') }} {{ words.split() }} {{ words.split(' ') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b '.rsplit() }} {{ ' a  b c '.split(none, 1) }} {{ ' a  b c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'abc'.split('abc') }}
{{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ 'a\r\nb\x0bc'.splitlines() }}
{{ '  x '.strip() }}|{{ '  x '.lstrip() }}|{{ '  x '.rstrip() }}|{{ 'xxyxx'.strip('x') }}|{{ 'abcba'.strip('ab') }}|{{ '\u3000x\u00a0'.strip() }}|{{ 'éxé'.strip('é') }}
{{ 'hello'.startswith('he') }} {{ 'hello'.endswith(('x', 'lo')) }} {{ 'hello'.find('l') }} {{ 'hello'.rfind('l') }} {{ 'hello'.find('z') }} {{ 'hello'.index('e') }} {{ 'hello'.count('l') }} {{ 'héllo'.find('l') }} {{ 'aaa'.count('aa') }} {{ 'ab'.count('') }}
{{ 'hello'.replace('l', 'L') }} {{ 'hello'.replace('l', 'L', 1) }} {{ 'ab'.replace('', '-') }} {{ 'ab'.replace('', '-', 2) }} {{ 'aaa'.replace('aa', 'b') }}
{{ s.upper() }} {{ s.lower() }} {{ 'straße'.upper() }} {{ "they're BILL's".title() }} {{ 'hELLO wORLD'.capitalize() }} {{ 'aBc'.swapcase() }} {{ 'ÉCOLE'.lower() }} {{ 'ab1cd é'.title() }}
{{ 'a-b'.join(['x', 'y', 'z']) }} {{ ''.join([]) }} {{ ', '.join(d) }} {{ '-'.join('abc') }}
{{ '123'.isdigit() }} {{ 'abc'.isalpha() }} {{ 'ab1'.isalnum() }} {{ ' '.isspace() }} {{ 'ABC'.isupper() }} {{ 'abc1'.islower() }} {{ ''.isdigit() }} {{ '½'.isnumeric() }} {{ 'é'.isalpha() }}
{{ '7'.zfill(3) }} {{ '-7'.zfill(4) }} {{ 'x'.ljust(3) }}| {{ 'x'.rjust(3, '.') }} {{ 'x'.center(4) }}| {{ 'xy'.center(5, '*') }}
{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }} {{ 'TestHook'.removeprefix('Test') }} {{ 'TestHook'.removesuffix('Hook') }}
{{ '%s-%d-%5.2f|%-4s|%04d|%x|%%' % ('a', 5, 3.14159, 'ab', 42, 255) }} {{ '%s' % 'x' }} {{ '%(a)s' % {'a': 1} }} {{ '%r' % ['x'] }} {{ '%e' % 12345.678 }} {{ '%g' % 0.0001 }} {{ '%+d' % 5 }} {{ '%5s|' % 'é' }} {{ '%.2s' % 'abc' }} {{ '%d' % 3.7 }}
{{ '{} {}'.format(1, 'b') }} {{ '{1}{0}'.format('a', 'b') }} {{ '{x}'.format(x=5) }} {{ '{{}}'.format() }} {{ '{!r}'.format('q') }}
{{ nums.index(2) }} {{ nums.count(3) }} {{ (1, 2, 1).count(1) }}
{{ namespace(a=1).a }} {{ namespace(a=1).b }}|
{{ true if true else undefd.x }} {{ false and undefd.x }}
{{ [1, 2,] }} {{ {'a': 1,} }} {{ dict(a=1,) }}
{{ n is number and not s is number }} {{ 1 if n is defined and n > 3 else 2 }}
{{ (1, 2) == (1, 2) }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }} {{ [[]] == [[]] }}
{{ nested }} {{ nested[1][1][1] }} {{ tools[0].function.parameters.properties.y.type }}
{{ 1.0|int }} {{ '1' ~ 2|string }} {{ 10 % 3 == 1 }} {{ 'x' in ['x'] and 'y' not in ['x'] }}
{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d %H:%M:%S') }} {{ strftime_now is defined }}
{{ "é" < "z" }} {{ "a" ~ "é" }} {{ "日本語"[1:] }} {{ "日本語"|length }}
{{ d == {} }} {{ nil is none }} {{ [] is none }}
{{ loop is defined }} {{ loop }}|
{{ ''.__class__ }}| {{ nums.append }}| {{ d.pop }}|
{{ 5 .real is defined if false else 'ok' }}
{{ n.x }}| {{ f['y'] }}| {{ nil.x }}| {{ yes.x }}|
{{ '  ' ~ '\n' }}|
{{ (n, f)[1] }} {{ [n][0] }} {{ {'k': n}.k }} {{ "abc"[1] }}
{{ n * f }} {{ n - f }} {{ n / 2 }} {{ z / n }} {{ -z }} {{ -0.0 }}
{{ 1e400 }} {{ -1e400 }} {{ 1e400 - 1e400 }}
{{ 0.1 }} {{ 1/3 }} {{ 100.0 }} {{ 1e-5 }} {{ 12345678901234567890.0 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}
"""

FILTERS = r"""
{{ 'x'|upper }} {{ 'X'|lower }} {{ 'hello wORLD-foo (bar)'|title }} {{ 'hELLO'|capitalize }} {{ 5|upper }} {{ none|lower }}
{{ '  a '|trim }}| {{ 'xax'|trim('x') }} {{ undefd|trim }}| {{ 5|trim }}
{{ nums|length }} {{ s|length }} {{ d|count }} {{ ''|length }} {{ range(3)|length }} {{ d.items()|length }}
{{ nums|join }} {{ nums|join(', ') }} {{ people|join(', ', attribute='name') }} {{ [1, none, 'x', undefd]|join('-') }} {{ 'abc'|join('.') }} {{ d|join(',') }} {{ undefd|join }}|
{{ undefd|default }}| {{ undefd|default('x') }} {{ ''|default('x') }}| {{ ''|default('x', true) }} {{ none|default('x') }} {{ none|d('x', boolean=true) }} {{ d.zz|default(5) }} {{ 0|default(1) }}
{{ d|tojson }} {{ tools|tojson }} {{ s|tojson }} {{ 'a"b\\\n\t\x01\x7f/<>&\'é😀'|tojson }} {{ none|tojson }} {{ true|tojson }} {{ 1.0|tojson }} {{ 1e20|tojson }} {{ (1, 2)|tojson }} {{ []|tojson }} {{ {}|tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}
{{ tools|tojson(indent=2) }} {{ d|tojson(indent=4) }} {{ []|tojson(indent=2) }} {{ {'a': {}, 'b': [[]]}|tojson(indent=1) }} {{ [1]|tojson(indent=0) }}
{{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ 'é😀\x7f'|tojson(ensure_ascii=true) }} {{ [1, 2]|tojson(separators=(',', ':')) }} {{ {'a': [1, 2]}|tojson(indent=2, separators=(',', ' : ')) }} {{ {'a': 1}|tojson(indent='--') }}
{{ nums|list }} {{ 'abc'|list }} {{ d|list }} {{ range(3)|list }} {{ undefd|list }} {{ d.items()|list }}
{{ nums|first }} {{ nums|last }} {{ 'abc'|first }} {{ 'abc'|last }} {{ []|first }}| {{ []|last }}| {{ d|first }} {{ range(3)|last }} {{ undefd|first }}|
{{ people|map(attribute='name')|list }} {{ people|map(attribute='pet.kind')|list if false }} {{ people|map(attribute='zz')|list|length }} {{ people|map(attribute='zz', default='q')|list }} {{ strs|map('upper')|join }} {{ nums|map('string')|list }} {{ nested|map(attribute=0)|list if false }} {{ ['a=b']|map('replace', '=', ':')|list }} {{ nums|map('float')|list }} {{ 0|map('upper')|list }} {{ nil|map('x')|list }}
{{ mixed|select|list }} {{ nums|select('odd')|list }} {{ nums|select('gt', 1)|list }} {{ mixed|reject|list }} {{ nums|reject('equalto', 3)|list }} {{ mixed|select('string')|list }} {{ nums|select('in', [1, 2])|list }} {{ nums|select('divisibleby', 3)|list }} {{ mixed|reject('none')|list|length }}
{{ people|selectattr('age', 'equalto', 30)|map(attribute='name')|join(',') }} {{ people|selectattr('pet')|list|length }} {{ people|rejectattr('age', 'gt', 26)|list }} {{ people|selectattr('name', 'in', ['bob'])|list }} {{ people|rejectattr('pet', 'defined')|map(attribute='name')|list }} {{ messages|selectattr('role', 'eq', 'user')|list|length }} {{ people|selectattr('pet.kind', 'equalto', 'cat')|list|length if false }}
{{ d|items|list }} {{ undefd|items|list }} {% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}
{{ 'aXbX'|replace('X', 'y') }} {{ 'aXbX'|replace('X', 'y', 1) }} {{ 'a1'|replace(1, 2) }} {{ 15|replace(5, 6) }}
{{ '42'|int }} {{ '42.7'|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ 3.9|int }} {{ -3.9|int }} {{ '0x1f'|int(0, 16) }} {{ 'ff'|int(base=16) }} {{ ' 7 '|int }} {{ true|int }} {{ none|int }} {{ '1e3'|int }} {{ [1]|int }} {{ '1_000'|int }} {{ ''|int }} {{ '-5'|int }} {{ '+5'|int }} {{ '0b11'|int(base=2) }} {{ '7'|int(base='x') }} {{ '7.5'|int(base=99) }}
{{ '1.5'|float }} {{ 'x'|float }} {{ 'x'|float(2.5) }} {{ 3|float }} {{ '1e3'|float }} {{ none|float }} {{ ' 2 '|float }} {{ 'inf'|float }} {{ 'nan'|float }} {{ '0x10'|float }}
{{ 5|string }} {{ none|string }} {{ [1, 'a']|string }} {{ 'x'|safe }} {{ 5|safe }}
{{ lines|indent }} | {{ lines|indent(2) }} | {{ lines|indent(2, true) }} | {{ lines|indent(2, blank=true) }} | {{ lines|indent('> ', first=true) }} | {{ ''|indent }} | {{ 'a\nb'|indent(width=1) }}
{{ nums|unique|list }} {{ strs|unique|list }} {{ strs|unique(true)|list }} {{ people|unique(attribute='age')|map(attribute='name')|list }} {{ [1, 1.0, true]|unique|list }}
{{ nums|sort }} {{ nums|sort(reverse=true) }} {{ strs|sort }} {{ strs|sort(case_sensitive=true) }} {{ people|sort(attribute='age')|map(attribute='name')|list }} {{ people|sort(attribute='age,name', reverse=true)|map(attribute='name')|list }} {{ 'hello'|sort }} {{ d|sort }} {{ [[2, 1], [1, 2]]|sort }} {{ []|sort }}
{{ nums|reverse|list }} {{ 'abc'|reverse }} {{ emoji|reverse }} {{ d|reverse|list }} {{ range(3)|reverse|list }} {{ (nums|map('int'))|reverse|list }}
{{ -5|abs }} {{ -2.5|abs }} {{ true|abs }}
{{ d|dictsort }} {{ {'b': 2, 'A': 3, 'c': 1}|dictsort }} {{ {'b': 2, 'A': 3, 'c': 1}|dictsort(true) }} {{ {'b': 2, 'A': 3}|dictsort(by='value') }} {{ {'b': 2, 'A': 3}|dictsort(reverse=true) }}
{{ nums|sum }} {{ people|sum(attribute='age') }} {{ [1.5, 2]|sum }} {{ []|sum }} {{ nums|sum(start=10) }} {{ [[1], [2]]|sum(start=[]) }}
{{ nums|min }} {{ nums|max }} {{ strs|min }} {{ strs|max }} {{ people|max(attribute='age') }} {{ []|min }}| {{ strs|min(case_sensitive=true) }}
{{ 2.567|round }} {{ 2.567|round(2) }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.561|round(1, 'ceil') }} {{ 2.567|round(1, 'floor') }} {{ 5|round }} {{ 1234|round(-2) }} {{ 0.15|round(1) }} {{ 2.675|round(2) }} {{ 5|round(method='ceil') }} {{ 1234.5|round(-2) }}
{{ nums|batch(2)|list }} {{ nums|batch(2, 'x')|list }} {{ nums|slice(2)|list }} {{ nums|slice(3, 'x')|list }} {{ []|batch(3)|list }}
{% for g in people|groupby('age') %}{{ g.grouper }}:{{ g.list|map(attribute='name')|join(',') }};{% endfor %} {% for k, v in strs|groupby(0) if false %}{% endfor %}
{% for k, v in people|groupby('name') %}{{ k }}{{ v|length }}{% endfor %} {{ people|groupby('pet', default='z') if false }}
{{ '%s is %d'|format('x', 5) }} {{ '%(a)s'|format(a=1) }} {{ 'x'|center(5) }}| {{ 'a b c'|wordcount }} {{ 'a b/c&d?é'|urlencode }} {{ '<a href="x">\'&'|escape }} {{ '<'|e }}
{{ d|attr('a') }}| {{ 'x'|attr('upper') is callable }} {{ d|attr('keys') is defined }}
{{ messages|map(attribute='content')|map('trim')|map('length')|list }}
{{ 'a'|upper|lower|upper ~ 'b' }} {{ nums|map('string')|map('upper')|join('+')|length }}
{{ messages|map('tojson')|join('\n') }}
{{ people|map(attribute='age')|sum / people|length }}
{{ (nums|sort)[0] }} {{ (nums|select('odd')|list)[0] }}
{% filter upper %}abc {{ s }}{% endfilter %} {% filter trim|replace('b', 'x') %}  abc  {% endfilter %}
{% set x | upper %}abc{% endset %}{{ x }} {% set y %} a {{ n }} {% endset %}[{{ y }}] {% set z2 | trim | length %}  abc {% endset %}{{ z2 }}
{{ nums|map('nofilter')|list if false }} {% if false %}{{ 1|nofilter }}{% endif %} {{ 1|nofilter if false else 2 }}
{{ [3, 1]|sort|first }} {{ "a\nb"|replace("\n", "\\n") }}
{{ [true, false, none]|map('tojson')|join(' ') }} {{ [1, 2, 3]|tojson|length }}
"""

TESTS = r"""
{% for v in mixed %}{{ v is string }}{{ v is number }}{{ v is none }}{{ v is boolean }}{{ v is mapping }}{{ v is sequence }}{{ v is iterable }}{{ v is true }}{{ v is false }}{{ v is integer }}{{ v is float }} {% endfor %}
{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }} {{ n is eq 7 }} {{ n is equalto 7 }} {{ n is ne 7 }} {{ n is gt 6 }} {{ n is ge 7 }} {{ n is lt 8 }} {{ n is le 7 }} {{ n is greaterthan 6 }} {{ n is lessthan 6 }} {{ n is == 7 if false else 1 }}
{{ n is in [7] }} {{ n is not in [7] }} {{ 'a' is in 'abc' }} {{ n is sameas n }} {{ none is sameas none }} {{ nums is sameas nums }} {{ [1] is sameas [1] }}
{{ undefd is defined }} {{ undefd is undefined }} {{ n is not defined }} {{ d.a is defined }} {{ d.zz is defined }} {{ d.zz is not undefined }} {{ nil is defined }} {{ undefd is none }}
{{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'aBc' is lower }} {{ '1' is upper }} {{ '' is lower }} {{ 'x' is escaped }} {{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }} {{ 'nope' is test }}
{{ range is callable }} {{ d.items is callable }} {{ n is callable }} {{ d is mapping }} {{ namespace() is mapping }} {{ range(3) is sequence }} {{ d.keys() is sequence }} {{ d.keys() is iterable }} {{ nums|map('int') is iterable }} {{ undefd is iterable }} {{ undefd is sequence }} {{ undefd is string }}
{{ -3 is odd }} {{ 3.0 is odd }} {{ true is odd }} {{ 0 is even }} {{ 1 is true }} {{ 1 == true }} {{ true is number }} {{ true is integer }} {{ 1.0 is number }}
{{ n is defined and n is number or false }} {{ not n is defined }} {{ (n is defined) ~ 'x' }} {{ n is string or 'z' }}
{{ 'x' is string and true }} {% if messages[0]['role'] is string and n is not none %}y{% endif %} {{ n is number is defined if false }}
{{ zoo|select('true')|list }} {{ zoo|select('integer')|list }} {{ zoo|select('sameas', true)|list }} {{ mixed|select('mapping')|list }}
"""

STATEMENTS = r"""
{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}{% if z %}a{% elif n %}b{% else %}c{% endif %}{% if z %}a{% elif nil %}b{% else %}c{% endif %}{% if z %}x{% endif %}
{% for x in nums %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}
{% for x in nums %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.depth }}{{ loop.depth0 }} {{ loop.previtem }}|{{ loop.nextitem }} {{ loop.previtem is defined }}{{ loop.nextitem is defined }};{% endfor %}
{% for x in nums %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x) }}{% endfor %}
{% for x in [] %}x{% else %}none{% endfor %} {% for x in undefd %}x{% else %}none{% endfor %} {% for c in 'aé' %}[{{ c }}]{% endfor %}
{% for x in nums if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }} {% else %}no{% endfor %} {% for x in nums if x > 9 %}{{ x }}{% else %}no{% endfor %}
{% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %} {% for k, v in d.items() %}{{ k }}={{ v }} {% endfor %} {% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %} {% for k in d %}{{ k }}{% endfor %}
{% for x in nums %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %} {% for x in nums %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in [1] %}{% continue %}{% else %}else{% endfor %} {% for x in [1] %}{% break %}{% else %}else{% endfor %} {% for x in [1, 2] %}{% if x == 1 %}{% continue %}{% endif %}{% else %}else{% endfor %}
{% for i in range(3) %}{% for j in range(i) %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{{ loop.index }}|{% endfor %}
{% set x = 1 %}{% for i in nums %}{% set x = i %}{{ x }}{% endfor %}{{ x }} {% for i in [1, 2] %}{{ q }}{% set q = i %}{{ q }}{% endfor %}{{ q }}
{% set ns = namespace(x=0, found=false) %}{% for i in nums %}{% set ns.x = ns.x + i %}{% if i == 2 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.x }} {{ ns.found }} {{ ns }}
{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set (c, e) = [3, 4] %}{{ c }}{{ e }} {% set t = 1, 2 %}{{ t }} {% set x = y = 1 if false else 2 %}
{% if true %}{% set q = 5 %}{% endif %}{{ q }} {% if false %}{% set r = 5 %}{% endif %}{{ r }}|
{% macro m(a, b=2, c='x') %}[{{ a }},{{ b }},{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='z') }}{{ m(a=5) }}{{ m() }}
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }} {% macro v() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ v(1, 2, x=3) }} {% macro k(a) %}{{ a }}{{ kwargs.b }}{% endmacro %}{{ k(1, b=2) }}
{% macro outer(x) %}{% macro inner(y) %}{{ x }}{{ y }}{% endmacro %}{{ inner(2) }}{% endmacro %}{{ outer(1) }} {% macro rec(n) %}{{ n }}{% if n > 0 %}{{ rec(n - 1) }}{% endif %}{% endmacro %}{{ rec(5) }}
{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}inner {{ n }}{% endcall %} {% macro each(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(v) each(nums) %}({{ v }}){% endcall %}
{% set g = 1 %}{% macro seeg() %}{{ g }}{{ n }}{% endmacro %}{{ seeg() }}{% set g = 2 %}{{ seeg() }} {{ seeg is callable }} {{ m2 is defined }}
{% with x = 5, y = n %}{{ x }}{{ y }}{% endwith %}{{ x }}| {% with %}{% set w = 1 %}{{ w }}{% endwith %}{{ w }}| {% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}{% endwith %}
{% for x in nested recursive %}{% if x is iterable and x is not string %}[{{ loop(x) }}]{% else %}{{ x }}:{{ loop.depth }}{% endif %}{% endfor %}
{% generation %}{{ n }}{% set inside = 1 %}{% endgeneration %}{{ inside }}|
{% for m in messages %}{% generation %}{{ m.role }}{% endgeneration %}{{ loop.index }}{% endfor %}
{% print n, 'x' %} {% print 1 %}
{% set x %}{% for i in nums %}{{ i }}{% endfor %}{% endset %}{{ x|length }} {% set ns = namespace() %}{% set ns.a %}blk{% endset %}{{ ns.a }}
{% for m in messages[::-1] %}{{ m.role }} {% endfor %} {% for m in messages[1:] %}{{ loop.index0 }}{{ m.content }} {% endfor %}
{% set loop_messages = messages[1:] if messages[0].role == 'system' else messages %}{{ loop_messages|length }} {% set sys = messages[0]['content'] %}{{ sys }}
{% for i in range(3) -%} {{ i }} {%- if not loop.last -%} , {%- endif -%} {%- endfor %}
{% if messages|selectattr('role', 'equalto', 'user')|list %}has{% endif %} {% if messages|selectattr('role', 'equalto', 'zz') %}always{% endif %}
{% for x in d.keys()|sort %}{{ x }}{% endfor %} {% for k, v in d|dictsort %}{{ k }}{% endfor %} {% for x in d.values() %}{{ x }}{% endfor %}
{% for x in nums: %}{{ x }}{% endfor %} {% if true: %}y{% endif %}
{% set it = nums|map('string') %}{{ it|join }}{{ it|join }}| {% set it2 = nums|select('odd') %}{{ it2|list }}{{ it2|list }}
{% for x in [3, 4] %}{% set outer_loop = loop %}{% for y in [1, 2] %}{{ outer_loop.index }}{{ loop.index }} {% endfor %}{% endfor %}
{% set messages = messages + [{'role': 'x', 'content': 'y'}] %}{{ messages|length }}{{ messages[-1].role }}
{% set s = 'shadow' %}{{ s }}{% for s in [1] %}{{ s }}{% endfor %}{{ s }} {% for n in [1, 2] %}{{ n }}{% endfor %}{{ n }}
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}b!{% endmacro %}{{ a() }}
{% for i in [1, 2, 3] %}{% if loop.index is divisibleby 2 %}{% continue %}{% endif %}{% with q = i %}{% if q == 3 %}{% break %}{% endif %}{{ q }}{% endwith %}{% endfor %}
{% if not tools is defined %}a{% else %}{% for t in tools %}{{ t.function | tojson(indent=4) }}{% endfor %}{% endif %}
{% set ns = namespace(i=0) %}{% for x in range(100) %}{% set ns.i = ns.i + x %}{% endfor %}{{ ns.i }}
{% macro m(x) -%}\n  {{ x }}\n{%- endmacro %}<{{ m(1) }}>
{% set x = {'a': [1, {'b': 2}]} %}{{ x.a[1].b }}{{ x['a'][0] }} {% set y = x.a + [3] %}{{ y }}{{ x }}
"""

FAILURES = r"""
{{ undefd.x }}
{{ undefd['x'] }}
{{ undefd() }}
{{ undefd + 1 }}
{{ 'x' + undefd }}
{{ 1 + undefd }}
{{ undefd < 1 }}
{{ -undefd }}
{{ d.zz.y }}
{{ d.zz() }}
{{ nums[10].x }}
{{ [][0].x }}
{{ ([]|first).x }}
{{ undefd|int }}
{{ undefd|float }}
{{ undefd|abs }}
{{ (1 if false).x }}
{{ (1 if false) + 1 }}
{% for x in [1] %}{{ loop.previtem.y }}{% endfor %}
{{ messages[0].nothing.more }}
{% set ns = namespace() %}{{ ns.x.y }}
{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m() }}
{{ undefd|round }}
{{ undefd|dictsort }}
{{ undefd is odd }}
{{ undefd[1:] }}
{{ 'x' + 1 }}
{{ 1 + 'x' }}
{{ [] + () }}
{{ none + 1 }}
{{ {} + {} }}
{{ 1 < 'x' }}
{{ none < 1 }}
{{ [1] < ['x'] }}
{{ {} < {} }}
{{ -'x' }}
{{ +none }}
{{ 1 in 5 }}
{{ 1 in 'x' }}
{{ [] in {} }}
{{ n() }}
{{ 'x'() }}
{{ none() }}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% set a, b = 1 %}
{% set a, b = [1] %}
{{ 5|length }}
{{ none|length }}
{{ (nums|map('int'))|length }}
{{ 5|list }}
{{ 5|join }}
{{ 5|first }}
{{ (nums|map('int'))|last }}
{{ mixed|sort }}
{{ {}|sum(1, 2, 3) }}
{{ 'a'|replace }}
{{ 'a'|replace('b') }}
{{ 'a'|upper(1) }}
{{ 'a'|trim(5) }}
{{ 'a'.strip(5) }}
{{ 'a'.replace(1, 2) }}
{{ 'a'.join([1]) }}
{{ 'a'.join(5) }}
{{ 'a'.startswith(5) }}
{{ 'a'.split('') }}
{{ 'a'.split(5) }}
{{ 'a'.index('z') }}
{{ nums.index(99) }}
{{ 'a'.nomethod() }}
{{ d.update({}) }}
{{ d.pop('a') }}
{{ nums.append(1) }}
{{ nums.sort() }}
{{ nums.insert(0, 1) }}
{{ ''.__class__.__mro__ }}
{{ ''.__class__() }}
{{ d.__init__.__globals__ }}
{{ ''['__class__'].x }}
{{ raise_exception('no way') }}
{{ raise_exception() }}
{% if n %}{{ raise_exception('Roles ' ~ n ~ ' must alternate') }}{% endif %}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 0 ** -1 }}
{{ nums[::0] }}
{{ nums['a':] }}
{{ n[1:] }}
{{ d[1:] }}
{{ range(1, 2, 0) }}
{{ range('x') }}
{{ range() }}
{{ range(1000000) }}
{{ range(10 ** 12) }}
{{ {[]: 1} }}
{{ {{}: 1} }}
{{ {(1, [2]): 1} }}
{{ d.get([]) }}
{{ d.get() }}
{{ dict(1) }}
{{ dict(a=1, **5) }}
{{ namespace(5) }}
{% set n.x = 1 %}
{% set undefd.x = 1 %}
{% set d.x = 1 %}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% for x in [1] %}{{ loop([]) }}{% endfor %}
{% for x in [1] %}{{ loop.cycle() }}{% endfor %}
{{ loop.index }}
{{ undefd2|tojson }}
{{ [undefd2]|tojson }}
{{ range|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ d.keys()|tojson }}
{% for x in 5|items %}{% endfor %}
{{ nums|map('nofilter')|list }}
{{ nums|map|list }}
{{ nums|map(attribute='x', foo=1)|list }}
{{ nums|select('notest')|list }}
{{ nums|selectattr|list }}
{{ '%d' % 'x' }}
{{ '%s %s' % 'x' }}
{{ '%s' % (1, 2) }}
{{ '%q' % 1 }}
{{ 'x' % undefd }}
{{ 'x' % 1 }}
{{ 5|reverse }}
{{ none|reverse }}
{{ '%' % 1 }}
{{ '{}'.format() }}
{{ '{'.format() }}
{{ '}'.format() }}
{{ '{x}'.format() }}
{{ 1|round(1, 'x') }}
{{ 'x'|round }}
{{ [1, 'x']|sum }}
{{ ['a']|sum }}
{{ 'x'|abs }}
{{ d|dictsort(by='z') }}
{{ [[1]]|unique|list }}
{{ 'x' is odd }}
{{ n is divisibleby 0 }}
{{ n is divisibleby }}
{{ n is in }}
{{ n is in 5 }}
{{ people|groupby }}
{{ people|map(attribute='pet.kind')|list }}
{% if true %}{{ 1|nofilter }}{% endif %}
{% if true %}{{ 1 is notest }}{% endif %}
{{ 1|nofilter if true else 2 }}
{% call n() %}{% endcall %}
{{ 'x'|center('y') }}
{{ 'x'.zfill('y') }}
{% macro r() %}{{ r() }}{% endmacro %}{{ r() }}
"""

SYNTAX = r"""
{{
{%
{#
{{ 1
{{ }}
{% %}
{{ 1 + }}
{{ + }}
{{ (1 }}
{{ 1) }}
{{ [1 }}
{{ [1) }}
{{ {1} }}
{{ {'a': } }}
{{ 'abc }}
{{ "abc }}
{{ a b }}
{{ a..b }}
{{ a. }}
{{ a[ }}
{{ a[1 }}
{{ a| }}
{{ a|1 }}
{{ a is }}
{{ a is 1 }}
{{ a is defined is defined }}
{{ 1 if }}
{{ 1 if 2 else }}
{{ not }}
{{ 1 not 2 }}
{{ ! a }}
{{ a ? b }}
{{ a & b }}
{{ a = 1 }}
{{ f(a=1, 2) }}
{{ f(**a, 1) }}
{{ f(*a, *b) }}
{{ f(, ) }}
{{ f(1 2) }}
{{ '\x4' }}
{{ '\u12' }}
{{ x|nofilter }}
{{ x is notest }}
{% for x in y %}{{ 1|nofilter }}{% endfor %}
{% if a %}{% for x in y %}{{ 1|nofilter }}{% endfor %}{% endif %}
{% macro m() %}{{ 1 is notest }}{% endmacro %}
{% if a %}
{% if a %}{% else %}
{% if %}{% endif %}
{% if a %}{% endfor %}
{% endif %}
{% else %}
{% elif a %}
{% for %}{% endfor %}
{% for x %}{% endfor %}
{% for x in %}{% endfor %}
{% for x in y %}
{% for 1 in y %}{% endfor %}
{% for x.y in z %}{% endfor %}
{% for x in y %}{% else %}{% else %}{% endfor %}
{% set %}
{% set 1 = 2 %}
{% set x = %}
{% set x %}
{% set x[0] = 1 %}
{% set x.y.z = 1 %}
{% set true = 1 %}
{% macro %}{% endmacro %}
{% macro m %}{% endmacro %}
{% macro m( %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% macro m() %}
{% macro m(1) %}{% endmacro %}
{% call %}{% endcall %}
{% call x %}{% endcall %}
{% filter %}{% endfilter %}
{% filter nofilter %}{% endfilter %}
{% with x %}{% endwith %}
{% with x = 1 %}
{% unknown %}
{% do x %}
{% while true %}{% endwhile %}
{% 1 %}
{% raw %}
{% break %}
{% continue %}
{% if a %}{% break %}{% endif %}
{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for x in y %}{% endfor %}{% break %}
{% if a %}x{% endif
{% if a }}x{% endif %}
{{ a %}
{% generation %}
line 1\nline 2 {{ 1 + }}\nline 3
{% if a %}\n\n{% endfor %}
a\n\n{{ 'x\n\n' + }}
a\r\nb\r\n{{ 1 1 }}
{{ [1,\n2,\n3 4] }}
{{ 1__0 }}
{{ 1.e5x }}
{{ 0x }}
{{ 012 }}
{% if a %}{% if b %}{% endif %}
{{ loop( }}
{{ a is not }}
{{ x if y else z else w }}
{% set a, = 1, %}{{ a }}{{ (1,,2) }}
{{ f(a==) }}
{{ `x` }}
{{ a $ b }}
{{ 'x' 5 }}
{{ 5 'x' }}
{%- -%}
{% endraw %}
{{ a[1:2:3:4] }}
{{ a[1 2] }}
{% for x in y recursive if z %}{% endfor %}
{% set x = 1 }}
{% print %}{{ 1 }}
"""


def all_snippets():
    for text in (EXPRESSIONS, FILTERS, TESTS, STATEMENTS, FAILURES):
        yield from text.strip("\n").split("\n")
    for text in (WHITESPACE, SYNTAX):  # here \n, \r and \t are characters of the template
        for line in text.strip("\n").split("\n"):
            yield line.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
