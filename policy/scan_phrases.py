# ruff: noqa: E501  (a table of patterns)
"""Phrases that the line of concepts cannot say: fixed sayings, chat markup, tool-call syntax, images that carry data out.

Each pattern starts at a fixed word or sign, has bounded repeats only, and no repeat inside a repeat: one pass. Pure.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Phrase(NamedTuple):
    """A pattern over the plain text, the words around which it is looked for, and the class of what it finds."""

    cls: str
    needs: tuple[str, ...]
    pattern: re.Pattern[str]
    beside: tuple[str, ...]
    """One of these is in all that the pattern matches, where there are any: around a common word nothing is to be found without."""


_BAR = re.compile(r"(?<!<)[|]")
"""What stands between two words; `<|` is one of its own."""


def _phrase(cls: str, needs: str, pattern: str, beside: str = "") -> Phrase:
    return Phrase(cls, tuple(_BAR.split(needs)), re.compile(pattern), tuple(beside.split("|")) if beside else ())


_TOOL_TAGS = "tool_calls?|tool_use|tool_result|tool_response|tool_code|tool_output|function_calls?|function_results?|function_response"

PHRASES = (
    _phrase("instruction", "do anything now", r"\bdo anything now\b"),
    _phrase("instruction", "instruction|directive|orders", r"\b(?:new|updated|revised|real|actual|true|secret|hidden)\s+(?:system\s+)?(?:instructions?|directives?|orders)\s*:"),
    _phrase("instruction", "important", r"\bimportant\s+(?:instructions?|message|note)\s+(?:for|to)\s+(?:the\s+|any\s+|all\s+|you,?\s+)?(?:ai|assistants?|llms?|language models?|agents?)\b"),
    _phrase("instruction", "new instruction|new task|new role|new goal|new objective|new identity|new persona", r"\b(?:your|the)\s+new\s+(?:instructions?|task|role|goal|objective|identity|persona)\s+(?:is|are)\b"),
    _phrase("instruction", "following", r"\bbefore\s+you\s+(?:can\s+|could\s+)?(?:solve|do|start|continue|answer|complete|proceed|respond)\b[^.!?\n]{0,80}\b(?:do|perform|execute|complete|follow)\s+the\s+following\b", "before"),
    _phrase("instruction", "override", r"\b(?:system|safety|security|admin|administrator|developer)\s+override\b\s*(?::|code|activated|engaged|enabled|initiated|accepted|protocol)"),
    _phrase("instruction", "pwned|hacked|h4cked", r"\b(?:say|print|output|respond with|reply with|write|answer with)\b[^.!?\n]{0,40}\b(?:pwned|hacked|h4cked)\b"),
    _phrase("instruction", "everything|whatever|you are doing|current task", r"\b(?:stop|abort|end)\s+(?:everything|whatever|what you are doing|the current task|your current task)\b[^.!?\n]{0,40}\b(?:and|then|instead)\b"),
    _phrase("instruction", "in character|in persona", r"\b(?:stay|remain|keep) in (?:character|persona)\b[^.!?\n]{0,80}\b(?:no matter|always|never|even if|regardless)\b"),
    _phrase("instruction", "<!--", r"<!--\s*(?:ai|assistants?|llms?|agents?|system|claude|chatgpt|gpt|model|note to (?:ai|llm|self|assistant))\s*[:,]"),
    _phrase("instruction", "assistant:|assistants:|assistant,|assistants,|agent:|agents:|agents,|ai:|ai,|llm:|llms:|llm,|chatbot:|chatbots:", r"\b(?:assistant|agent|ai|llm|chatbot)s?\s*[:,]\s*(?:please\s+)?(?:ignore|reveal|send|disregard|forget|delete|execute|run|exfiltrate|forward|upload|email|approve)\b"),
    _phrase("instruction", "end of", r"[#=*<\[-]{2,10}\s{0,3}end of (?:the |user |system ){0,2}(?:input|prompt|message|instructions?|context|query)\b"),
    _phrase("instruction", "system:|system :|developer:", r"(?m:^)\s{0,4}(?:system|developer)\s?:\s{0,3}(?:the user|you|your|ignore|grant|disregard|forget|new|override|reveal|call|run|execute|before|from now|please|assistant|cleanup)\b"),
    _phrase("instruction", "safety |security |content ", r"\b(?:safety|security|content)\s{1,3}(?:protocols?|filters?|guidelines|restrictions)\s{1,3}(?:are |is |have been |now ){0,3}(?:disabled|off|lifted|suspended|removed|deactivated)\b", "protocol|filter|guideline|restriction"),
    _phrase("instruction", "safety ", r"\b(?:skip|bypass|ignore|disregard)\s{1,3}(?:all |any |the |your ){0,2}safety (?:checks?|rules?|guidelines?|protocols?|measures?)\b"),
    _phrase("instruction", " above", r"\brepeat (?:the |all |back ){0,2}(?:words|text|everything|sentences?|lines?|messages?)\b.{0,12} above\b|\b(?:words|text) above starting\b", "repeat|above starting"),
    _phrase("instruction", "before ", r"\b(?:call|invoke|run|execute|use) (?:the )?\w{2,20}_\w{2,30}\b[^!?\n]{0,120}\bbefore (?:you )?(?:repl|respond|continu|answer|proceed|summar)", "before repl|before respond|before continu|before answer|before proceed|before summar|before you "),
    _phrase("instruction", "before ", r"\bbefore (?:you )?(?:repl\w{1,4}|respond\w{0,4}|continu\w{1,4}|answer\w{0,4}|proceed\w{0,4}|summar\w{1,6})\b[^.!?\n]{0,60}\b(?:call|invoke|run|execute|send|post|append) ", "before repl|before respond|before continu|before answer|before proceed|before summar|before you "),
    _phrase("broadcast", "note |message |instruction|reminder |hint |notice |important ", r"\b(?:note|message|instructions?|reminder|hint|notice|important) (?:to|for) (?:the |any |all |every ){0,2}(?:ai|bot|assistant|agent|llm|model|chatbot|language model|ai agent|ai assistant|coding agent|ai coding agent)s?\s?[:,(]", "to ai|for ai|the ai|any ai|all ai|every ai|to bot|for bot|the bot|any bot|all bot|every bot|assistant|agent|llm|model|chatbot"),
    _phrase("broadcast", "(for |for ai|for llm", r"\(for (?:the |any |all ){0,2}(?:ai|llm|assistant|agent|coding agent|ai agent|ai coding agent|ai assistant)s?\)\s?:"),
    _phrase("instruction", "system note|systemhinweis|sistema|systeme|system notice|system update", r"\b(?:system ?(?:note|notice|hint|update)|systemhinweis|nota (?:del|di) sistema|note systeme)\s?:"),
    _phrase("instruction", "your memory|term memory", r"\b(?:save|store|write|add|commit|persist|keep)\b[^.!?\n]{0,60}\b(?:to|in|into) your (?:long[- ]term |persistent )?memory\b"),
    _phrase("instruction", "future", r"\bremember\b[^.!?\n]{0,20}\b(?:for|in) (?:all|every|any) future\b|\b(?:in|to|at the end of) (?:all|every) future (?:repl|respon|answer|summar|report|message)", "remember|all future|every future"),
    _phrase("instruction", "decode|decrypt|translate|rot13", r"\b(?:decode|decrypt|translate|rot13)\b[^.!?\n]{0,80}\b(?:and|then)\b[^.!?\n]{0,30}\b(?:follow|execute|obey|do (?:exactly )?what|carry out)\b"),
    _phrase("instruction", "dan", r"\byou are (?:now )?dan\b|\bact(?:ing)? as (?:a |an )?dan\b|\bdan mode\b|\bknown as dan\b", "are dan|now dan|as dan|a dan|an dan|dan mode"),
    _phrase("instruction", "](", r"!\[[^\]\n]{0,200}\]\(\s*https?://[^)\s]{1,300}[?&][\w.-]{1,40}=(?:\{|<|\[|%7b|\$\{|[^)\s&]{0,80}(?:canary|secret|passw|prompt|conversation|api_?key))"),
    _phrase("instruction", "![", r"\b(?:load|render|embed|display|include|insert|append|show|output|fetch|visit|open)\b[^.!?\n(]{0,60}!\[[^\]\n]{0,200}\]\(\s*https?://[^)\s]{1,300}\?"),
    _phrase("tool_syntax", "<|", r"<\|(?:im_start|im_end|im_sep|system|user|assistant|endoftext|start_header_id|end_header_id|eot_id|begin_of_text|tool_call|channel|message|start|end|return|call)\|>"),
    _phrase("tool_syntax", "<<sys|<</sys|inst]|[available|[tool|_of_turn", r"<{2}/?sys>{2}|\[/?inst\]|\[/?(?:available_tools|tool_calls|tool_results)\]|<(?:start|end)_of_turn>"),
    _phrase("tool_syntax", "tool_|function_|invoke|<parameter", rf"<\s{{0,4}}/?\s{{0,4}}(?:antml:)?(?:{_TOOL_TAGS}|invoke|parameter)(?:\s+name\s*=|\s*>)"),
    _phrase("tool_syntax", "<system|</system|<admin", r"<\s{0,4}/?\s{0,4}(?:system[-_](?:prompt|reminder|message|override|instructions?)|admin[-_]?(?:message|override))\s*>"),
    _phrase("tool_syntax", "tool_|function_call", r"\"(?:tool_calls|function_call|tool_use|tool_uses)\"\s*:\s*[\[{]"),
    _phrase("tool_syntax", "\"arguments|\"parameters|\"args|input\"|\"kwargs|\"params", r"\{\s*\"(?:name|tool|tool_name|function|action|recipient_name)\"\s*:\s*\"[\w.:/-]{1,80}\"\s*,\s*\"(?:arguments|parameters|args|input|tool_input|action_input|kwargs|params)\"\s*:"),
    _phrase("tool_syntax", "tool_|function_call", r"\"type\"\s*:\s*\"(?:tool_use|tool_call|tool_result|function_call)\""),
    _phrase("tool_syntax", "action input", r"(?m:^)\s{0,8}action\s*:\s*[\w.-]{1,60}\s*\n\s{0,8}action input\s*:"),
    _phrase("tool_syntax", "[tool|[function", r"\[(?:tool|function)[ _-]?(?:output|result|response|call)\]\s*(?:system|assistant|user|developer)\s*:"),
    _phrase("tool_syntax", "##", r"(?m:^)#{2,4}\s*(?:system|assistant|instruction|human|user)\s*:"),
    # The same in other words: instructions made void, set aside, or declared over; what you were told.
    _phrase("instruction", "no longer appl|void|cancel|revoked|are null|superseded|obsolete|been replaced|overridden", r"\b(?:instructions?|rules|guidelines|guidance|directions|directives|orders|prompt)\s+(?:that\s+)?you\s+(?:got|received|have|had|were)\b[^.!?\n]{0,60}\b(?:no longer appl|(?:are|is|were) (?:now )?(?:void|cancell?ed|revoked|null|superseded|obsolete)|(?:have|has) been (?:superseded|revoked|cancell?ed|replaced|overridden))", "you"),
    _phrase("instruction", "no longer appl|void|cancel|revoked|are null|superseded|obsolete|been replaced|overridden", r"\byour\s+(?:earlier |previous |prior |old |original |current |initial |system ){0,2}(?:instructions?|rules|guidelines|guidance|directions|directives|orders|prompt)\b[^.!?\n]{0,30}\b(?:no longer appl|(?:are|is) (?:now )?(?:void|cancell?ed|revoked|null|superseded|obsolete)|(?:have|has) been (?:superseded|revoked|cancell?ed|overridden))", "your"),
    _phrase("instruction", "set aside|throw |pay no |take no notice|stop following|stop obeying|cease |abandon ", r"\b(?:set aside|throw (?:out|away)|pay no (?:attention|heed) to|take no notice of|stop (?:following|obeying)|cease (?:following|obeying)|abandon)\s+(?:all |any |of |the |everything ){0,3}(?:your |previous |prior |earlier |above |system |developer'?s? ){1,2}(?:\w{1,12} )?(?:instructions?|rules|guidelines|guidance|directions|directives|prompt|policies|orders|training)\b"),
    _phrase("instruction", "you received|you got|you were given|you have been given", r"\b(?:pay no (?:attention|heed) to|take no notice of|ignore|disregard|forget)\s+(?:all |any |the |of ){0,3}(?:instructions?|rules|guidelines|guidance|directions|directives|orders)\s+(?:that\s+)?you\s+(?:received|got|were given|have been given)\b"),
    _phrase("instruction", "obey |heed |comply ", r"\b(?:do not|don'?t|never)\s+(?:obey|heed|comply with)\s+(?:the |your |any |its ){0,2}(?:previous |prior |earlier |system |developer'?s? |operator'?s? |owner'?s? )(?:\w{1,12} )?(?:instructions?|rules|guidelines|prompt|policies|orders)\b"),
    _phrase("instruction", " above|before this|so far", r"\b(?:ignore|disregard|forget)\s+(?:all |any |the |of ){0,2}(?:text|content|messages?|words|context)\s+(?:above|before this|so far)\b", "ignore|disregard|forget"),
    _phrase("instruction", "as void|as null|as cancel|as obsolete", r"\btreat\s[^.!?\n]{0,30}\b(?:above|before)\b[^.!?\n]{0,20}\bas (?:void|null|cancell?ed|obsolete)\b"),
    _phrase("instruction", "your system|your initial|your original|your hidden|your developer|your full|your entire|your whole", r"\b(?:print|repeat|output|show|quote|recite|write|display|reveal|tell|give)\b[^.!?\n]{0,40}\byour\s+(?:full |entire |whole )?(?:system|initial|original|hidden|developer)\s+(?:message|prompt|instructions?)\b"),
    _phrase("instruction", "what were you", r"\bwhat were you (?:told|instructed)\b[^.!?\n]{0,40}\b(?:prompt|instructions?|beginning)\b"),
    # Files that only their owner reads, on their way out.
    _phrase("instruction", ".env|.ssh|.aws|id_rsa|/etc/shadow|.netrc|.npmrc|.kube", r"\b(?:post|send|upload|e-?mail|copy|paste|push|publish|forward|transmit|curl|exfiltrate)\b[^!?\n]{0,40}(?:(?<![\w.])\.env\b|\.ssh\b|\.aws\b|id_rsa|/etc/shadow|\.netrc|\.npmrc|\.kube\b)[^!?\n]{0,60}(?:https?://|\bgist\b|pastebin|webhook|[\w.-]@[\w-]{1,40}\.|\bcollector\b|\battacker\b)"),
    _phrase("instruction", " keys |secrets |credentials |passwords ", r"\b(?:post|send|upload|e-?mail|forward|transmit)\s+(?:all |any |the |every ){1,2}(?:api |secret |private |access )?(?:keys|secrets|credentials|passwords)\s+(?:from|in|of|stored)\b[^!?\n]{0,40}\bto\s+(?:https?://|[\w.-]{1,64}@)"),
    # Kept from the people who should know.
    _phrase("instruction", "without telling|without informing|without asking|without alerting|without notifying", r"(?:^|[.!?\n]\s{0,3})without (?:telling|informing|asking|alerting|notifying) (?:the |any |your )?(?:user|operator|owner|human)s?\s?,"),
    _phrase("instruction", "to the user|to any user|to your user|to user|to the operator|to your operator|to operator|to the human|to the owner|to anyone", r"\b(?:do not|don'?t|never)\s+(?:mention|disclose|reveal|report)\s+(?:this|these|that|it|the)\b[^.!?\n]{0,24}\bto (?:the |any |your )?(?:user|operator|human|owner|anyone)s?\b"),
    _phrase("instruction", "keep th|keep it", r"\bkeep (?:this|it|that|these)\b[^.!?\n]{0,16}\b(?:hidden|secret|concealed)\b[^.!?\n]{0,4}\bfrom (?:the |your )?(?:user|operator|human|owner)s?\b"),
    # Who the reader is to be, and who says so.
    _phrase("instruction", " mode", r"\byou (?:are|have been|were) (?:now )?(?:granted|given|in|switched (?:in)?to|placed in)\s+(?:the )?(?:developer|debug|god|admin|root|jailbreak|unrestricted|unfiltered) mode\b", "developer mode|debug mode|god mode|admin mode|root mode|jailbreak mode|unrestricted mode|unfiltered mode"),
    _phrase("instruction", "safety checks|safety controls|safety rails|safety rules", r"\bsafety (?:checks|controls|rails|rules) are (?:now )?(?:disabled|off|lifted|suspended|removed|deactivated)\b"),
    _phrase("instruction", "act as a|behave as|behave like", r"\b(?:act as|behave (?:as|like)) (?:an? )?(?:ai|assistant|model|llm|chatbot)\b[^.!?\n]{0,20}\b(?:no|without)\s(?:any )?(?:limits|limitations|rules|restrictions|filters|guidelines)\b"),
    _phrase("instruction", "authorize you|authorise you|permit you|allow you|order you|command you|instruct you", r"\bi (?:hereby )?(?:authori[sz]e|permit|allow|order|command|instruct) you to (?:bypass|ignore|skip|override|disable|reveal|disregard|delete)\b"),
    _phrase("instruction", "mark this", r"\bmark this (?:entry|note|memory|document|file) as (?:verified|trusted|approved)\b"),
    # What is to last.
    _phrase("instruction", "future |subsequent |later |every new |each new ", r"\b(?:in|for|at the start of) (?:every|all|each|any) (?:future|subsequent|later|new) (?:session|conversation|chat|run|task)s?\b\s?,?\s?(?:begin|start by|first|always|you must|run|fetch|call|send|ignore)\b"),
    _phrase("instruction", "summaris|summariz", r"\bwhen (?:you )?summari[sz](?:e|ing) (?:this|the)\b[^.!?\n]{0,24},\s?(?:always|you must|make sure|recommend|say|tell|never|do not)\b"),
    _phrase("instruction", "this rule|this instruction|this directive|this order", r"\b(?:persist|store|save|remember|keep) this (?:rule|instruction|directive|order) (?:in|to) (?:your |the )?(?:\w{1,10} )?memory\b"),
    _phrase("instruction", "without asking|without confirm|without telling|without approval|without permission", r"\b(?:run|execute) (?:the following|this) (?:shell |bash )?(?:commands?|code|script)\b[^.!?\n]{0,30}\bwithout (?:asking|confirm\w{1,6}|telling|approval|permission)\b"),
    # To every reader.
    _phrase("broadcast", "dear ", r"\bdear (?:language model|ai|assistant|llm|agent|chatbot|claude|chatgpt|gpt|model)\b"),
    _phrase("broadcast", "llm reader|ai reader|agent reader|llms:|model reader", r"(?m:^)\s{0,4}(?:llm|ai|agent|model|assistant) readers?\s?:"),
    _phrase("broadcast", "an alle|a tous|aux |a todos|a tutti|aan alle|do wszystkich|catre toti|till alla|til alle|всем|усім", r"(?:^|[\n.!?]\s{0,3})(?:an alle|a tous les|aux|a todos los|a todos os|a tutti gli|aan alle|do wszystkich|catre toti|till alla|til alle|всем|усім)\s(?:ki-?|ia |ai-?)?(?:agent\w{0,4}|assistent\w{0,3}|asistent\w{0,3}|assistant\w{0,3}|агент\w{0,3}|ассистент\w{0,3})\s?[:,!]"),
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
            if word in there and word in low and (found := _near(low, word, phrase.pattern)) is not None:
                yield phrase.cls, found.start(), found.end()
                break


_BEFORE, _AFTER = 240, 640
"""How far around a word that it needs a phrase may reach."""


def _near(low: str, word: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """The first match around an occurrence of a word; no part of the text is looked at twice."""
    at, end = low.find(word), 0
    while at >= 0:
        start, end = max(end - _BEFORE if at < end else 0, at - _BEFORE), at + _AFTER
        if (found := pattern.search(low, start, end)) is not None:
            return found
        at = low.find(word, end - _BEFORE)
    return None
