"""Names that try to break out of a page: HTML, scripts, SVG, CSS, templates, text direction, length."""

ACTS = "window.pwned=1"
HOSTILE = [
    *(f"<script>{ACTS}</script>", f"</script><script>{ACTS}</script>", f'"><script>{ACTS}</script>'),
    *(f"</style><script>{ACTS}</script>", f"</title><script>{ACTS}</script>", f"<img src=x onerror={ACTS}>"),
    *(f"<svg onload={ACTS}>", f"' onmouseover='{ACTS}", f"javascript:{ACTS}", f"${{{ACTS}}}", f"\u2028{ACTS}"),
    *(f"<iframe src=javascript:{ACTS}>", f"<a href=javascript:{ACTS}>x</a>", f"<details open ontoggle={ACTS}>"),
    *(f"<body onload={ACTS}>", f"<video><source onerror={ACTS}>", '<math><mi//xlink:href="data:x,<script>">'),
    *("{{ 7 * 7 }}", "{% raw %}", "<!--", "-->", "]]>", "<![CDATA[", "&lt;script&gt;", "&#60;script&#62;"),
    *("\u2029", "\ufeff", "\u202eevil", "\\u003cscript\\u003e", "</textarea>", "<base href=//x.example>"),
    *("<meta http-equiv=refresh content=0>", "<link rel=stylesheet href=//x.example>", "<object data=x>"),
    *("<form action=//x.example><input>", "<embed src=x>", "a\tb", "a\nb", "a\rb", "a;b", "a,b", "a'b", 'a"b'),
    *("a&b", "a<b", "a>b", "$x^2$", "%s %d", "[red]x[/red]", "x" * 300),
]

# Names of models must be printable, so these replace the ones with control characters.
HOSTILE_MODELS = [
    *(name for name in HOSTILE if name.isprintable()),
    *("..", ".", "a/b?c#d", "%2e%2e%2f", "*{display:none}", "</svg><svg onload=" + ACTS + ">", "{{ self.__class__ }}"),
    *(
        "{% include '/etc/passwd' %}",
        "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 <b>",
        "\u05e9\u05dc\u05d5\u05dd",
        "\U0001f469\U0001f3fd\u270a\U0001f600" * 20,
    ),
    *("e\u0301\u0323\u0302" * 60, "W" * 500),
]
