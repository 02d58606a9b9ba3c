# ruff: noqa: E501  (a table of patterns)
"""Phrases that the line of concepts cannot say: chat markup, tool-call syntax, images that carry data out, fixed sayings.

Each pattern starts at a fixed word or sign, has bounded repeats only, and no repeat inside a repeat: one pass. Pure.
"""

import re
from collections.abc import Iterator

from amem.policy.scan_needles import compiled
from amem.typed import NamedTuple


class Phrase(NamedTuple):
    """A pattern over the plain text, the words around which it is looked for, and the class of what it finds."""

    cls: str
    needs: tuple[str, ...]
    pattern: str
    beside: tuple[str, ...]
    """One of these is in all that the pattern matches, where there are any: around a common word nothing is to be found without."""
    reach: int
    """No match is longer."""


_BAR = re.compile(r"(?<!<)[|]")
"""What stands between two words; `<|` is one of its own."""


def _phrase(cls: str, needs: str, pattern: str, beside: str = "", reach: int = 130) -> Phrase:
    return Phrase(cls, tuple(_BAR.split(needs)), pattern, tuple(beside.split("|")) if beside else (), reach)


_TOOL_TAGS = "tool_calls?|tool_use|tool_result|tool_response|tool_code|tool_output|function_calls?|function_results?|function_response"

_TO_A_MODEL = "ai:|ai,|ai (|ais:|bot:|bots:|bots,|assistant:|assistant,|assistants:|assistants,|agent:|agent,|agents:|agents,|llm:|llm,|llms:|llms,|model:|models:|models,|chatbot:|chatbots:"
_BEFORE_ANSWER = "before repl|before you repl|before respond|before you respond|before continu|before you continu|before answer|before you answer|before proceed|before you proceed|before summar|before you summar"

PHRASES = (
    _phrase("instruction", "do anything now", r"\bdo anything now\b"),
    _phrase("instruction", "instruction:|instructions:|directive:|directives:|orders:", r"\b(?:new|updated|revised|real|actual|true|secret|hidden)\s{1,8}(?:system\s{1,8})?(?:instructions?|directives?|orders)\s{0,8}:"),
    _phrase("instruction", "following", r"\bbefore you\s{1,8}(?:can\s{1,8}|could\s{1,8})?(?:solve|do|start|continue|answer|complete|proceed|respond)\b[^.!?\n]{0,80}\b(?:do|perform|execute|complete|follow)\s{1,8}the\s{1,8}following\b", "before you", reach=160),
    _phrase("instruction", "system override|safety override|security override|admin override|administrator override|developer override|operator override", r"\b(?:system|safety|security|admin|administrator|developer|operator) override\b\s{0,8}(?:[:/\]>-]|code|activated|engaged|enabled|initiated|accepted|protocol)"),
    _phrase("instruction", "pwned|hacked|h4cked", r"\b(?:say|print|output|respond with|reply with|write|answer with)\b[^.!?\n]{0,40}\b(?:pwned|hacked|h4cked)\b"),
    _phrase("instruction", "everything is fine|everything is ok|everything went|everything is in order|all is well", r"\b(?:say|report|claim|answer|reply|respond|tell \w{1,12})\b[^.!?\n]{0,24}\b(?:everything (?:is (?:fine|ok|in order)|went)|all is well)"),
    _phrase("instruction", "in character|in persona", r"\b(?:stay|remain|keep) in (?:character|persona)\b[^.!?\n]{0,80}\b(?:no matter|always|never|even if|regardless)\b"),
    _phrase("instruction", "<!--", r"<!--\s{0,8}(?:ai|assistants?|llms?|agents?|system|claude|chatgpt|gpt|model|note to (?:ai|llm|self|assistant))(?: instructions?| notes?| hints?| only)?\s{0,8}[:,]"),
    _phrase("instruction", _TO_A_MODEL, r"\b(?:assistant|agent|ai|llm|chatbot)s?\s{0,8}[:,]\s{0,8}(?:please\s{1,8})?(?:ignore|reveal|send|disregard|forget|delete|execute|run|exfiltrate|forward|upload|email|approve)\b"),
    _phrase("instruction", "end of input|end of user|end of system|end of prompt|end of message|end of instruction|end of context|end of query|end of document|end of file|end of the", r"[#=*<\[-]{2,10}\s{0,3}end of (?:the |user |system ){0,2}(?:input|prompt|message|instructions?|context|query|document|file|data)\b"),
    _phrase("instruction", "system:|system :|developer:", r"(?m:^)\s{0,4}(?:system|developer)\s?:\s{0,3}(?:the user|you|your|ignore|grant|disregard|forget|new|override|reveal|call|run|execute|before|from now|please|assistant|cleanup)\b"),
    _phrase("instruction", "system message]|system prompt]|system note]|system notice]|system override]|[system]|[admin]|[developer]|(system)|<<system", r"(?m:^)[\s>]{0,4}[\[(<]{1,2}\s?(?:system|admin|developer)\s?[\])>]{1,2}(?!\()|[\[(<]{1,2}\s?system (?:message|prompt|note|notice|override)\s?[\])>]{1,2}(?!\()"),
    _phrase("instruction", "words above|text above|everything above|sentences above|lines above|messages above|above starting|this line|this point", r"\b(?:repeat|output|print|copy|show|write)\b (?:the |all |back |out ){0,4}?(?:words|text|everything|sentences?|lines?|messages?)\b.{0,12} (?:above|before this (?:line|point))\b|\b(?:words|text) above starting\b", "repeat|output|print|copy|show|write|above starting"),
    _phrase("instruction", _BEFORE_ANSWER, r"\b(?:call|invoke|run|execute|use) (?:the )?\w{2,20}_\w{2,30}\b[^!?\n]{0,120}\bbefore (?:you )?(?:repl|respond|continu|answer|proceed|summar)", reach=210),
    _phrase("instruction", _BEFORE_ANSWER, r"\bbefore (?:you )?(?:repl\w{1,4}|respond\w{0,4}|continu\w{1,4}|answer\w{0,4}|proceed\w{0,4}|summar\w{1,6})\b[^.!?\n]{0,60}\b(?:call|invoke|run|execute|send|post|append) "),
    _phrase("instruction", "curl |wget ", r"\b(?:tool|function)\b[^\n]{0,60}\b(?:curl|wget)\b[^\n|]{0,120}\|\s?(?:ba|z|da)?sh\b", "tool|function", reach=200),
    _phrase("instruction", "invoke |call ", r"\b(?:invoke|call) `?\w{2,20}_\w{2,30}`? with (?:to|recipient|body|subject|message|content|command|cmd|path|url|query|amount|confirm|args?|arguments)\s?=", " with "),
    _phrase("broadcast", _TO_A_MODEL, r"\b(?:note|message|instructions?|reminder|hint|notice|important) (?:to|for) (?:the |any |all |every |automated ){0,2}(?:ai|bot|assistant|agent|llm|model|chatbot|reader|language model|ai agent|ai assistant|coding agent|ai coding agent)s?\s?[:,(]"),
    _phrase("broadcast", "automated readers|machine readers|ai readers|llm readers|agent readers", r"\b(?:automated|machine|ai|llm|agent) readers\s?:"),
    _phrase("broadcast", "(for ai|(for llm|(for the|(for any|(for all|(for agent|(for assistant|(for coding", r"\(for (?:the |any |all ){0,2}(?:ai|llm|assistant|agent|coding agent|ai agent|ai coding agent|ai assistant)s?\)\s?:"),
    _phrase("instruction", "system note|systemhinweis|del sistema|di sistema|note systeme|system notice|system update|system hint", r"\b(?:system ?(?:note|notice|hint|update)|systemhinweis|nota (?:del|di) sistema|note systeme)\s?:"),
    _phrase("instruction", "decode|decrypt|translate|rot13", r"\b(?:decode|decrypt|translate|rot13)\b[^.!?\n]{0,80}\b(?:and|then)\b[^.!?\n]{0,30}\b(?:follow|execute|obey|do (?:exactly )?what|carry out)\b", "follow|execute|obey|do what|do exactly|carry out", reach=140),
    _phrase("instruction", "are dan|now dan|as dan|a dan|an dan|dan mode", r"\byou are (?:now )?dan\b|\bact(?:ing)? as (?:a |an )?dan\b|\bdan mode\b|\bknown as dan\b"),
    _phrase("instruction", "![", r"!\[[^\]\n]{0,200}\]\(\s{0,8}https?://[^)\s]{1,300}[?&][\w.-]{1,40}=(?:\{|<|\[|%7b|\$\{|[^)\s&]{0,80}(?:canary|secret|passw|prompt|conversation|api_?key))", reach=660),
    _phrase("instruction", "![", r"\b(?:load|render|embed|display|include|insert|append|show|output|fetch|visit|open)\b[^.!?\n(]{0,60}!\[[^\]\n]{0,200}\]\(\s{0,8}https?://[^)\s]{1,300}\?", reach=590),
    _phrase("instruction", "assistant,|agent,|reviewer,|model,|chatbot,|llm,", r"(?:^|[.!?>:\])\"*#-]\s{0,3}|[\"*#>-])(?:dear |hello |hi |hey |ok )?(?:ai )?(?:assistant|agent|reviewer|chatbot|language model|llm),\s(?:please |kindly |now |just |also |you (?:must|should) |always ){0,2}(?:tell|say|give|recommend|include|mention|visit|call|rank|mark|rate|transfer|skip|insert|append|do not|don't|never|book|buy|click|praise|promote|convince|ask|post|output|print|conclude|report)\b"),
    _phrase("broadcast", "copilot:|claude:|chatgpt:|gpt:|gemini:|codex:|copilot,|claude,|chatgpt,|gpt,|gemini,", r"(?m:^)[\s#/*<!;-]{0,8}(?:note |message |attention |dear |hint )?(?:for |to )?(?:github )?(?:(?<=for )|(?<=to )|(?<=dear ))(?:copilot|claude|chatgpt|gpt|gemini|codex)\s?[:,]"),
    _phrase("instruction", "assistant:|ai:", r"\b(?:human|user)\s?:[^\n]{1,240}\b(?:assistant|ai)\s?:\s?(?:understood|sure|ok\b|okay|of course|certainly|yes,|confirmed|i will|i'll|got it|absolutely)", reach=270),
    _phrase("instruction", "as if nothing", r"\b(?:continue|carry on|go on|proceed|act|behave)\b[^.!?\n]{0,20}\bas if nothing\b"),
    _phrase("instruction", "trace of|traces of", r"\b(?:remove|delete|erase|wipe|cover|clear)\b (?:up |away )?(?:all |any |every |the ){0,3}?traces? of (?:this|these|your|that|it)\b"),
    _phrase("instruction", "even though|even if|no matter|regardless|whatever the", r"\b(?:say|claim|report|answer|state|tell \w{1,12}|reply|respond|confirm|conclude|include)\b[^.!?\n]{0,60}\b(?:succeeded|passed|fine|ok|safe|secure|compliant|done|positive|correct|approved|no (?:issues|problems))\W{1,3}(?:\w{1,10} )?(?:even (?:though|if)|no matter|regardless|whatever the)\b"),
    _phrase("broadcast", "agents:|agents,|assistants:|assistants,|models:|models,|bots:|bots,|agents!|all-agents|llms:|llms,", r"(?:(?m:^)[\s>*@-]{0,6}|[.!?:]\s{1,3}@?)(?:all(?: of)?(?: the)?|every|fellow|dear|attention)[ -](?:ai |other |llm )?(?:agents|assistants|models|bots|llms|all-agents)\s?[:,!]"),
    _phrase("instruction", "answer every|answer each|answer all|answer any|respond to every|respond to all|respond to any|reply to every|reply to all", r"\b(?:answer|respond to|reply to) (?:every|each|all|any) (?:question|request|message|prompt|quer)\w{0,3} (?:with|by|in) [\"'`a-z]"),
    _phrase("instruction", "reverse shell|bind shell", r"(?<!to )(?<!can )(?<!may )(?<!ould )\b(?:open|start|spawn|launch|establish|create) (?:an? )?(?:reverse|bind) shell"),
    _phrase("instruction", "<important>|<information>", r"<(?:important|information)>[^<]{0,300}\b(?:before (?:using|calling|you)|you must|must (?:first|also|always)|do not (?:tell|mention)|message from me)\b", reach=330),
    _phrase("instruction", "above this|before this|of this|of our|of the con|of the chat", r"\b(?:repeat|output|print|copy|show|write|paste|put|quote|return|give|convert|summari[sz]e|translate|encode|recite|reproduce|display|tell|dump)\b[^.!?\n]{0,60}\b(?:text|words?|everything|sentences?|lines?|messages?|instructions?|all|content)\b[^.!?\n]{0,24}\b(?:above this|before this (?:line|message|sentence|point|conversation|chat)|(?:start|beginning|top|outset) of (?:this|our|the) (?:chat|conversation|context|session|dialogue|thread))", "text|word|everything|sentence|line|message|instruction|all|content", reach=140),
    _phrase("instruction", "between us|between you and me|to yourself|user's back|no trace|no record", r"\b(?:keep|stays?|leave|hold) (?:this|it|that|these|all of this) (?:strictly )?(?:between (?:us|you and me)|to yourself)\b|\bbehind the user's back\b|\bleave no (?:trace|record)\b"),
    _phrase("instruction", "refuse|say no", r"\b(?:you|he|she|ai|dan|it)\b[^.!?\n]{0,24}\b(?:never|cannot|can ?not|can't|won't|will not|must not|do not|don't|doesn't|unable to|not allowed to) (?:ever )?(?:refuse|say no)\b|(?:^|[.!?,;] )never refuse\b"),
    _phrase("instruction", "your developer|your creator|your administrator|your owner|your operator|your admin", r"\bthis is your (?:developer|creator|administrator|admin|owner|operator)\b"),
    _phrase("broadcast", "bots:|llms:|ais:|chatbots:|models:|ai agents:|ai assistants:|ai systems:|ai models:", r"(?m:^)[\s>*#-]{0,6}(?:bots|llms|ais|chatbots|language models|ai (?:agents|assistants|systems|models))\s?:\s"),
    _phrase("instruction", "and do not|and don't|and never", r"\band (?:do not|don't|never) (?:report|log|record|mention|disclose|reveal) (?:it|this|that|them|any of)\b"),
    _phrase("instruction", "pipe it|pipe this|pipe the", r"\b(?:download|fetch|get|curl|wget)\b[^.!?\n]{0,60}\bpipe (?:it|this|the \w{1,12}) (?:in)?to (?:ba|z)?sh\b"),
    _phrase("instruction", "out of the log|out of the report|out of the summary|out of the audit|out of your", r"\b(?:keep|leave) (?:it|this|that|these|them) out of (?:the|your) (?:logs?|report|summary|audit|answer|reply)\b"),
    _phrase("instruction", "it says|page says|file says|text says|it tells|it asks|message says|note says", r"\bdo (?:whatever|what|exactly what|everything) (?:it|the (?:page|file|text|message|note)) (?:says|tells|asks)\b"),
    _phrase("instruction", "anyone asks|anybody asks|someone asks|somebody asks", r"\bif (?:anyone|anybody|someone|somebody) asks\b,? (?:you|say|tell|deny|answer|claim|just)\b"),
    _phrase("instruction", "this message|this note|this entry|this memory|this comment|this paragraph|this instruction", r"\b(?:delete|destroy|erase|remove|discard) this (?:message|note|entry|memory|comment|paragraph|instruction) (?:after|once|when|as soon|immediately)\b"),
    _phrase("instruction", "suspicious", r"\bso (?:that )?(?:nobody|no one|the user|they)\b[^.!?\n]{0,24}\bsuspicious\b"),
    _phrase("tool_syntax", "<|", r"<\|(?:im_start|im_end|im_sep|system|user|assistant|endoftext|start_header_id|end_header_id|eot_id|begin_of_text|tool_call|channel|message|start|end|return|call)\|>"),
    _phrase("tool_syntax", "<<sys|<</sys|inst]|[available|[tool|_of_turn", r"<{2}/?sys>{2}|\[/?inst\]|\[/?(?:available_tools|tool_calls|tool_results)\]|<(?:start|end)_of_turn>"),
    _phrase("tool_syntax", "tool_|function_|invoke|<parameter", rf"<\s{{0,4}}/?\s{{0,4}}(?:antml:)?(?:{_TOOL_TAGS}|invoke|parameter)(?:\s{{1,8}}name\s{{0,8}}=|\s{{0,8}}>)"),
    _phrase("tool_syntax", "<system|</system|<admin", r"<\s{0,4}/?\s{0,4}(?:system[-_](?:prompt|reminder|message|override|instructions?)|admin[-_]?(?:message|override))\s{0,8}>"),
    _phrase("tool_syntax", "tool_|function_call", r"\"(?:tool_calls|function_call|tool_use|tool_uses)\"\s{0,8}:\s{0,8}[\[{]"),
    _phrase("tool_syntax", "\"arguments|\"parameters|\"args|input\"|\"kwargs|\"params", r"\{\s{0,8}\"(?:name|tool|tool_name|function|action|recipient_name)\"\s{0,8}:\s{0,8}\"[\w.:/-]{1,80}\"\s{0,8},\s{0,8}\"(?:arguments|parameters|args|input|tool_input|action_input|kwargs|params)\"\s{0,8}:", reach=170),
    _phrase("tool_syntax", "tool_|function_call", r"\"type\"\s{0,8}:\s{0,8}\"(?:tool_use|tool_call|tool_result|function_call)\""),
    _phrase("tool_syntax", "action input", r"(?m:^)\s{0,8}action\s{0,8}:\s{0,8}[\w.-]{1,60}\s{0,8}\n\s{0,8}action input\s{0,8}:", reach=130),
    _phrase("tool_syntax", "[tool|[function", r"\[(?:tool|function)[ _-]?(?:output|result|response|call)\]\s{0,8}(?:system|assistant|user|developer)\s{0,8}:"),
    _phrase("tool_syntax", "system:|assistant:|instruction:|human:|user:", r"(?m:^)#{2,4}\s{0,8}(?:system|assistant|instruction|human|user)\s{0,8}:"),
    _phrase("instruction", "developer mode|debug mode|god mode|admin mode|root mode|jailbreak mode|unrestricted mode|unfiltered mode", r"\byou (?:are|have been|were) (?:now )?(?:granted|given|in|switched (?:in)?to|placed in)\s{1,8}(?:the )?(?:developer|debug|god|admin|root|jailbreak|unrestricted|unfiltered) mode\b"),
    _phrase("instruction", "mark this", r"\bmark this (?:entry|note|memory|document|file) as (?:verified|trusted|approved)\b"),
    _phrase("instruction", "summaris|summariz", r"\bwhen (?:you )?summari[sz](?:e|ing) (?:this|the)\b[^.!?\n]{0,24},\s?(?:always|you must|make sure|recommend|say|tell|never|do not)\b"),
)  # fmt: skip


NEEDLES = frozenset(word for phrase in PHRASES for word in (*phrase.needs, *phrase.beside))
_PLACES = {word: [place for place, phrase in enumerate(PHRASES) if word in phrase.needs] for word in NEEDLES}


def phrases(low: str, there: set[str]) -> Iterator[tuple[str, int, int]]:
    """The first place of each phrase in a plain text: its class, where it starts and ends; `there` has the needles it may hold."""
    for place in sorted({place for word in there & NEEDLES for place in _PLACES[word]}):
        phrase = PHRASES[place]
        if phrase.beside and not any(word in there and word in low for word in phrase.beside):
            continue
        for word in phrase.needs:
            if word in there and (found := _near(low, word, phrase)) is not None:
                yield phrase.cls, found.start(), found.end()
                break


def _near(low: str, word: str, phrase: Phrase) -> re.Match[str] | None:
    """The first match around an occurrence of a word. No part of the text is looked at more than three times, however often the word comes."""
    at, end = low.find(word), 0
    while at >= 0:
        start, end = max(0, end - phrase.reach if at < end else at - phrase.reach), at + len(word) + 2 * phrase.reach
        if (found := compiled(phrase.pattern).search(low, start, end)) is not None:
            return found
        at = low.find(word, end - phrase.reach)
    return None
