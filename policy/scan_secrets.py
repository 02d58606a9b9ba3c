# ruff: noqa: E501  (a table of patterns)
"""Credentials in a text: known formats first, then values that are assigned to a name that says what they are.

The table is our own: the one kept library (detect-secrets 1.5.0) costs some 7,000 µs a KB against 50 here, imports `requests`,
and its entropy and keyword detectors flag checksums and placeholders. A placeholder is not a credential. Pure, one pass.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from amem.policy.scan_needles import compiled
from amem.policy.scan_shapes import Word
from amem.policy.scan_words import trie
from amem.typed import NamedTuple


class Format(NamedTuple):
    """A known format: the text that every one of it has, and the pattern, matched where that text stands."""

    name: str
    needle: str
    pattern: str
    back: int = 0
    """How far before the needle a match may start."""


def _format(name: str, needles: str, pattern: str, back: int = 0) -> tuple[Format, ...]:
    return tuple(Format(name, needle, pattern, back) for needle in needles.split())


_B = r"(?<![A-Za-z0-9_-])"
_E = r"(?![A-Za-z0-9])"

FORMATS: tuple[Format, ...] = (
    *_format("private key", "PRIVATE", r"PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|[\s\"'+]){0,12}(?:Proc-Type|Version|Comment|[A-Za-z0-9+/]{12})"),
    *_format("private key", "PuTTY-User-Key-File", r"PuTTY-User-Key-File-[23]:"),
    *_format("private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,60}"),
    *_format("AWS key", "AKIA ASIA ABIA ACCA", rf"{_B}A[KSBC][IC]A[A-Z2-7]{{16}}{_E}"),
    *_format("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_B}gh[pousr]_[A-Za-z0-9]{{36,251}}{_E}"),
    *_format("GitHub token", "github_pat_", rf"{_B}github_pat_[A-Za-z0-9_]{{50,100}}"),
    *_format("GitLab token", "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct-", rf"{_B}gl[a-z]{{2,6}}-[A-Za-z0-9_-]{{20,64}}"),
    *_format("API key", "sk-", rf"{_B}sk-(?:ant-|proj-|svcacct-|admin-|None-|or-v1-|lf-)?[A-Za-z0-9_-]{{20,200}}"),
    *_format("Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ sk_prod_ whsec_", rf"{_B}(?:[srp]k_(?:live|test|prod)|whsec)_[A-Za-z0-9]{{16,200}}"),
    *_format("Slack token", "xoxb- xoxa- xoxp- xoxe- xoxr- xoxs- xoxo-", r"xox[abeoprs]-[A-Za-z0-9-]{10,250}"),
    *_format("Slack token", "xapp-", r"xapp-\d-[A-Z0-9]{8,16}-\d{8,16}-[a-f0-9]{40,80}"),
    *_format("Slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,100}"),
    *_format("Discord webhook", "discord.com/api/ discordapp.com/api/", r"discord(?:app)?\.com/api/webhooks/\d{15,21}/[A-Za-z0-9_-]{40,80}"),
    *_format("Google key", "AIza", rf"{_B}AIza[A-Za-z0-9_-]{{35}}{_E}"),
    *_format("Google key", "GOCSPX- ya29. 1//0", r"(?:GOCSPX-[A-Za-z0-9_-]{24,40}|ya29\.[A-Za-z0-9_-]{20,300}|1//0[A-Za-z0-9_-]{30,120})"),
    *_format("Hugging Face token", "hf_ api_org_", rf"{_B}(?:hf|api_org)_[A-Za-z0-9]{{30,50}}{_E}"),
    *_format("npm token", "npm_", rf"{_B}npm_[A-Za-z0-9]{{36}}{_E}"),
    *_format("PyPI token", "pypi-AgE", r"pypi-[A-Za-z0-9_-]{60,250}"),
    *_format("SendGrid key", "SG.", rf"{_B}SG\.[A-Za-z0-9_-]{{16,32}}\.[A-Za-z0-9_-]{{30,60}}"),
    *_format("Twilio key", "SK AC", rf"{_B}(?:SK|AC)[a-f0-9]{{32}}{_E}"),
    *_format("Mailgun key", "key-", rf"{_B}key-[a-f0-9]{{32}}{_E}"),
    *_format("Square key", "sq0", rf"{_B}sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{{22,60}}"),
    *_format("Shopify token", "shpat_ shpca_ shppa_ shpss_", rf"{_B}shp(?:at|ca|pa|ss)_[a-fA-F0-9]{{32}}"),
    *_format("cloud token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    *_format("Vault token", "hvs. hvb.", rf"{_B}hv[sb]\.[A-Za-z0-9_-]{{24,300}}"),
    *_format("Terraform token", ".atlasv1.", r"\.atlasv1\.[A-Za-z0-9_=-]{60,80}"),
    *_format("Databricks token", "dapi", rf"{_B}dapi[a-f0-9]{{32}}"),
    *_format("Atlassian token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{100,260}"),
    *_format("Linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
    *_format("Notion token", "ntn_ secret_", rf"{_B}(?:ntn_[A-Za-z0-9]{{40,60}}|secret_[A-Za-z0-9]{{43}}){_E}"),
    *_format("Figma token", "figd_ figo_ figu_", r"fig[dou]_[A-Za-z0-9_-]{38,60}"),
    *_format("Postman key", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    *_format("Sentry token", "sntrys_ sntryu_", r"sntry[us]_[A-Za-z0-9_=+/-]{40,300}"),
    *_format("Doppler token", "dp.pt. dp.st. dp.ct. dp.sa.", r"dp\.[a-z]{2}\.[A-Za-z0-9._-]{40,60}"),
    *_format("Grafana token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9_=+/-]{30,200}"),
    *_format("Airtable token", "pat", rf"{_B}pat[A-Za-z0-9]{{14}}\.[a-f0-9]{{64}}"),
    *_format("RubyGems key", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    *_format("Meta token", "EAA", rf"{_B}EAA[A-Za-z0-9]{{80,250}}"),
    *_format("PlanetScale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,64}"),
    *_format("model key", "nvapi- r8_ gsk_ xai- pplx-", rf"{_B}(?:nvapi-[A-Za-z0-9_-]{{60,80}}|r8_[A-Za-z0-9]{{37}}|gsk_[A-Za-z0-9]{{48,60}}|xai-[A-Za-z0-9]{{60,90}}|pplx-[A-Za-z0-9]{{40,60}})"),
    *_format("Tailscale key", "tskey-", r"tskey-[a-z]{2,10}-[A-Za-z0-9-]{20,60}"),
    *_format("Supabase key", "sbp_ sb_secret_", r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{30,60})"),
    *_format("New Relic key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    *_format("1Password token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9_-]{200,1000}"),
    *_format("Docker token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{20,40}"),
    *_format("Heroku key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{36,64}"),
    *_format("NuGet key", "oy2", rf"{_B}oy2[a-z0-9]{{43}}{_E}"),
    *_format("Pulumi token", "pul-", rf"{_B}pul-[a-f0-9]{{40}}{_E}"),
    *_format("LangSmith key", "lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    *_format("Pinecone key", "pcsk_", r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,80}"),
    *_format("Bitbucket token", "ATBB", rf"{_B}ATBB[A-Za-z0-9]{{28,40}}{_E}"),
    *_format("Artifactory key", "AKCp", rf"{_B}AKCp[A-Za-z0-9]{{60,80}}{_E}"),
    *_format("SonarQube token", "sqp_ squ_ sqa_", rf"{_B}sq[pua]_[a-f0-9]{{40}}{_E}"),
    *_format("Firebase token", ":APA91b", r":APA91b[A-Za-z0-9_-]{120,200}"),
    *_format("Mailchimp key", "-us", rf"(?<![A-Za-z0-9])[a-f0-9]{{32}}-us\d{{1,2}}{_E}", 33),
    *_format("token", "_TOKEN= _KEY= _authToken=", r"(?:_TOKEN|_KEY|_authToken)=[\"']?[a-f0-9]{8}-(?:[a-f0-9]{4}-){3}[a-f0-9]{12}"),
    *_format("Telegram token", ":AA", r"(?<![0-9])\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9])", 10),
    *_format("Discord token", ".", rf"{_B}[MNO][A-Za-z0-9_-]{{23,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,40}}", 28),
    *_format("JWT", "eyJ", r"(?<![A-Za-z0-9_.-])eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{16,2000}"),
    *_format("Azure key", "AccountKey= SharedAccessKey=", r"(?:AccountKey=[A-Za-z0-9+/]{60,90}|SharedAccessKey=[A-Za-z0-9+/]{40,50})={0,2}"),
    *_format("signed URL", "sig=", r"sig=[A-Za-z0-9%]{40,80}"),
    *_format("URL with a password", "://", r"://[^\s:/?#@\"'<>]{0,64}:(?P<value>[^\s/?#@\"'<>:]{3,128})@[\w.-]"),
    *_format("authorization", "earer EARER", r"(?i:earer)\s{1,4}(?P<value>[A-Za-z0-9_.~+/=-]{20,2000})"),
    *_format("authorization", "uthorization AUTHORIZATION", r"(?i:uthorization)[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?i:token|basic)\s{1,4}(?P<value>[A-Za-z0-9_.~+/=-]{16,2000})"),
    *_format("authorization", '"auth"', r"\"auth\"\s{0,3}:\s{0,3}\"(?P<value>[A-Za-z0-9+/]{16,400}={0,2})\""),
    *_format("curl password", "-u --user", r"(?:-u|--user)[ =]?[\"']?[\w.@-]{1,64}:(?P<value>[^\s\"']{6,128})"),
    *_format("netrc password", "login", r"login\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(?P<value>\S{4,128})"),
)  # fmt: skip
"""A group `value`, where there is one, must not be a placeholder; else the match must not be."""

_KEYWORDS = (
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "connection string",
    "connectionstring",
    "contras",
    "senha",
    "kennwort",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    " pin",
)
_KEY_BEFORE = re.compile(
    r"(?:api|access|auth|private|encrypt\w{0,4}|signing|master|service|account|admin|app|client|license|session|storage|webhook|deploy|secret|shared|hmac|aes|jwt|stripe|aws|openai|anthropic|azure|gcp)[ _.-]?$",
    re.IGNORECASE,
)
"""`key` says nothing by itself: it is the key of a map until a word like these stands before it."""
_PASS_AFTER = re.compile(r"w|ph|code|[^a-z\s]|\s{0,4}[:=]", re.IGNORECASE)
"""`pass` begins many words, and says nothing by itself until a value is assigned to it."""
_PAGE_BEFORE = re.compile(
    r"(?:next|page|paging|pagination|continuation|sync|start|csrf|lock|cancellation|client|design|max|input|output|total)[ _.-]?$",
    re.IGNORECASE,
)
"""A token that marks a place in a list, or a piece of text."""
_ABOUT_AFTER = re.compile(r"s?[_-]?(?:name|ref|type|length|count|ttl|expir\w{0,4}|version)\b", re.IGNORECASE)
"""What is said of a credential and is none."""
_VALUE = r"[\w.-]{0,24}[\"'`*]{0,3}[ \t]{0,4}(?:=>|:=|={1,2}|:|：|(?:\s\w{1,12}){0,3}?\s(?:is|was|es|ist|est|to)(?:\snow)?:?\s)[ \t]{0,8}[\"'`*]{0,3}(?P<value>[^\s\"'`,;<>(){}\[\]]{6,256})(?P<after>[\"'`(\[{]?)"
_ASSIGNED = re.compile(_VALUE)
_PLACEHOLDER = re.compile(
    r"(?i:example|sample|dummy|placeholder|changeme|change[_-]?me|redacted|replace|insert|todo|fixme|foobar|your[_-]?|my[_-]?(?:pass|secret|token|key)|xxx|\*\*\*|\.\.\.|…|<|\$\{|\$\(|\{\{|%[sd(]|^\$|^%|test|fake|mock|none\b|null\b|undefined|true$|false$"
    r"|process\.env|os\.(?:environ|getenv)|getenv|env\.|env\[|secrets?\.|vault:|ref\+|arn:|config\.|settings\.|self\.|this\.|args\.|params\.|request\.|options\.|^sha\d{3}[-:]|^https?://|^/|^\./|^~|0123456789|123456789|abcdefgh|qwerty|aaaaa|00000|-{4}|_{4}|={4}|\bredact|^[a-z_]+\.[a-z_.]+$)"
)  # fmt: skip
_WEAK = re.compile(
    r"[A-Za-z]+|[0-9]+|[A-Za-z_-]+|[A-Z_]+[0-9]{0,4}|[a-z]+(?:[A-Z][a-z]+)+|[0-9.:/-]+|[a-f0-9]{8}-(?:[a-f0-9]{4}-){3}[a-f0-9]{12}"
    r"|(?:[$\\/._:=~-]*(?:[A-Z]?[a-z]+|[A-Z]+)(?![A-Za-z0-9]))+[$\\/._:=~-]*"
)
"""Values that are words, numbers, names, dates, paths or a UUID."""
SHOWN = 4
"""Letters of a credential that an excerpt shows."""


def secrets(text: str, low: str, long_words: Sequence[Word], there: set[str]) -> Iterator[tuple[str, int, int]]:
    """The credentials in a text, given it in plain form as well: what each is, where it starts, where it ends.

    `there` has the needles that the plain form may hold.
    """
    for word in long_words:
        if word.text.isalnum() and word.text.islower() and not word.text.startswith(("dapi", "oy2")):
            continue  # a digest or a name: no other format is without a sign or a capital
        if _ANY_OF_A_WORD.search(word.text) is None:
            continue
        for form in _OF_A_WORD:
            if form.needle in word.text:
                yield from _matches(form, word.text, word.start)
    for needle, form in _LOW_NEEDLES:
        if needle in there:
            yield from _matches(form, text, 0)
    if len(low) != len(text):
        low = text
    for keyword in _KEYWORDS:
        at = low.find(keyword) if keyword in there or not (keyword.isascii() or low.isascii()) else -1
        while at >= 0:
            after = at + len(keyword)
            if (match := _ASSIGNED.match(text, after)) is not None and _names_one(keyword, text, at, after):
                value = match["value"].rstrip(".,:;!?*\\")
                if not _placeholder(value, "") and _looks_random(value) and match["after"] not in ("(", "[", "{"):
                    yield "assigned", at, match.end()
            at = low.find(keyword, max(after, match.end("value") if match else 0))


def _names_one(keyword: str, text: str, start: int, end: int) -> bool:
    """Whether a keyword, where it stands, is the name of a credential."""
    if _ABOUT_AFTER.match(text, end) is not None:
        return False
    if keyword == "key":
        return _KEY_BEFORE.search(text, max(0, start - 12), start) is not None
    if keyword == "token":
        return _PAGE_BEFORE.search(text, max(0, start - 16), start) is None
    return keyword != "pass" or _PASS_AFTER.match(text, end) is not None


_REACH = 120
_OF_MORE = tuple(form for form in FORMATS if form.name in ("private key", "authorization", "curl password", "netrc password"))
"""The formats that hold a space."""
_OF_A_WORD = tuple(form for form in FORMATS if form not in _OF_MORE)
_ANY_OF_A_WORD = re.compile(r"\.[A-Za-z0-9_-]{6}\.|" + trie(form.needle for form in _OF_A_WORD if form.needle != "."))
_LOW_NEEDLES = tuple((form.needle.lower(), form) for form in _OF_MORE)
NEEDLES = frozenset((*(needle for needle, _ in _LOW_NEEDLES), *_KEYWORDS))
"""One without a letter beyond ASCII stands in a text as it does in its plain form; of the others the plain form may keep none."""


def _matches(form: Format, text: str, offset: int) -> Iterator[tuple[str, int, int]]:
    at = text.find(form.needle)
    while at >= 0:
        pattern = compiled(form.pattern)
        match = pattern.search(text, max(0, at - form.back), at + len(form.needle) + _REACH) if form.back else pattern.match(text, at)
        if match is not None and (form.name == "private key" or not _placeholder(match.groupdict().get("value") or match[0], form.name)):
            yield form.name, offset + match.start(), offset + match.end()
        at = text.find(form.needle, max(at + 1, match.end() if match else 0))


def _placeholder(value: str, name: str) -> bool:
    if name == "URL with a password":
        return _PLACEHOLDER.search(value) is not None or value.lower() in (
            "password",
            "pass",
            "pwd",
            "secret",
            "user",
            "port",
            "postgres",
            "root",
            "admin",
            "pw",
        )
    if _PLACEHOLDER.search(value):
        return True
    body = value.rpartition("_")[2] if name not in ("JWT", "authorization") else value
    return len(body) >= 12 and (len(set(body)) <= 5 or _entropy(body) < 2.5)


def _looks_random(value: str) -> bool:
    """Whether a value assigned to a name that says so is a credential, not a word, a name, a number or a reference."""
    if len(value) < 8 or _WEAK.fullmatch(value):
        return False
    kinds = sum((any(map(str.islower, value)), any(map(str.isupper, value)), any(map(str.isdigit, value)), not value.isalnum()))
    return _entropy(value) >= (2.5 if kinds >= 3 else 3.0)


def _entropy(value: str) -> float:
    """Bits a character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())
