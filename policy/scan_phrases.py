# ruff: noqa: E501  (a table of patterns)
"""Phrases that the line of concepts cannot say: fixed sayings, chat markup, tool-call syntax, images that carry data out.

Each pattern starts at a fixed word or sign, has bounded repeats only, and no repeat inside a repeat: one pass. Pure.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Phrase(NamedTuple):
    """A pattern over the plain text, the words without one of which it cannot hold, and the class of what it finds."""

    cls: str
    needs: tuple[str, ...]
    pattern: re.Pattern[str]


def _phrase(cls: str, needs: str, pattern: str) -> Phrase:
    return Phrase(cls, tuple(needs.split("|")), re.compile(pattern))


_TOOL_TAGS = "tool_calls?|tool_use|tool_result|tool_response|tool_code|tool_output|function_calls?|function_results?|function_response"

PHRASES = (
    _phrase("instruction", "do anything now", r"\bdo anything now\b"),
    _phrase("instruction", "instruction|directive|orders", r"\b(?:new|updated|revised|real|actual|true|secret|hidden)\s+(?:system\s+)?(?:instructions?|directives?|orders)\s*:"),
    _phrase("instruction", "important", r"\bimportant\s+(?:instructions?|message|note)\s+(?:for|to)\s+(?:the\s+|any\s+|all\s+|you,?\s+)?(?:ai|assistants?|llms?|language models?|agents?)\b"),
    _phrase("instruction", "new instruction|new task|new role|new goal|new objective|new identity|new persona", r"\b(?:your|the)\s+new\s+(?:instructions?|task|role|goal|objective|identity|persona)\s+(?:is|are)\b"),
    _phrase("instruction", "following", r"\bbefore\s+you\s+(?:can\s+|could\s+)?(?:solve|do|start|continue|answer|complete|proceed|respond)\b[^.!?\n]{0,80}\b(?:do|perform|execute|complete|follow)\s+the\s+following\b"),
    _phrase("instruction", "override", r"\b(?:system|safety|security|admin|administrator|developer)\s+override\b\s*(?::|code|activated|engaged|enabled|initiated|accepted|protocol)"),
    _phrase("instruction", "pwned|hacked|h4cked", r"\b(?:say|print|output|respond with|reply with|write|answer with)\b[^.!?\n]{0,40}\b(?:pwned|hacked|h4cked)\b"),
    _phrase("instruction", "everything|whatever|you are doing|current task", r"\b(?:stop|abort|end)\s+(?:everything|whatever|what you are doing|the current task|your current task)\b[^.!?\n]{0,40}\b(?:and|then|instead)\b"),
    _phrase("instruction", "in character|in persona", r"\b(?:stay|remain|keep) in (?:character|persona)\b[^.!?\n]{0,80}\b(?:no matter|always|never|even if|regardless)\b"),
    _phrase("instruction", "<!--", r"<!--\s*(?:ai|assistants?|llms?|agents?|system|claude|chatgpt|gpt|model|note to (?:ai|llm|self|assistant))\s*[:,]"),
    _phrase("instruction", "assistant:|assistants:|assistant,|assistants,|agent:|agents:|agents,|ai:|ai,|llm:|llms:|llm,|chatbot:|chatbots:", r"\b(?:assistant|agent|ai|llm|chatbot)s?\s*[:,]\s*(?:please\s+)?(?:ignore|reveal|send|disregard|forget|delete|execute|run|exfiltrate|forward|upload|email|approve)\b"),
    _phrase("instruction", "end of", r"[#=*<\[-]{2,10}\s{0,3}end of (?:the |user |system ){0,2}(?:input|prompt|message|instructions?|context|query)\b"),
    _phrase("instruction", "system:|system :|developer:", r"(?m:^)\s{0,4}(?:system|developer)\s?:\s{0,3}(?:the user|you|your|ignore|grant|disregard|forget|new|override|reveal|call|run|execute|before|from now|please|assistant|cleanup)\b"),
    _phrase("instruction", "safety |security |content ", r"\b(?:safety|security|content)\s{1,3}(?:protocols?|filters?|guidelines|restrictions)\s{1,3}(?:are |is |have been |now ){0,3}(?:disabled|off|lifted|suspended|removed|deactivated)\b"),
    _phrase("instruction", "safety ", r"\b(?:skip|bypass|ignore|disregard)\s{1,3}(?:all |any |the |your ){0,2}safety (?:checks?|rules?|guidelines?|protocols?|measures?)\b"),
    _phrase("instruction", " above", r"\brepeat (?:the |all |back ){0,2}(?:words|text|everything|sentences?|lines?|messages?)\b.{0,12} above\b|\b(?:words|text) above starting\b"),
    _phrase("instruction", "before ", r"\b(?:call|invoke|run|execute|use) (?:the )?\w{2,20}_\w{2,30}\b[^!?\n]{0,120}\bbefore (?:you )?(?:repl|respond|continu|answer|proceed|summar)"),
    _phrase("instruction", "before ", r"\bbefore (?:you )?(?:repl\w{1,4}|respond\w{0,4}|continu\w{1,4}|answer\w{0,4}|proceed\w{0,4}|summar\w{1,6})\b[^.!?\n]{0,60}\b(?:call|invoke|run|execute|send|post|append) "),
    _phrase("broadcast", "note |message |instruction|reminder |hint |notice |important ", r"\b(?:note|message|instructions?|reminder|hint|notice|important) (?:to|for) (?:the |any |all |every ){0,2}(?:ai|bot|assistant|agent|llm|model|chatbot|language model|ai agent|ai assistant|coding agent|ai coding agent)s?\s?[:,(]"),
    _phrase("broadcast", "(for |for ai|for llm", r"\(for (?:the |any |all ){0,2}(?:ai|llm|assistant|agent|coding agent|ai agent|ai coding agent|ai assistant)s?\)\s?:"),
    _phrase("instruction", "system note|systemhinweis|sistema|systeme|system notice|system update", r"\b(?:system ?(?:note|notice|hint|update)|systemhinweis|nota (?:del|di) sistema|note systeme)\s?:"),
    _phrase("instruction", "your memory|term memory", r"\b(?:save|store|write|add|commit|persist|keep)\b[^.!?\n]{0,60}\b(?:to|in|into) your (?:long[- ]term |persistent )?memory\b"),
    _phrase("instruction", "future", r"\bremember\b[^.!?\n]{0,20}\b(?:for|in) (?:all|every|any) future\b|\b(?:in|to|at the end of) (?:all|every) future (?:repl|respon|answer|summar|report|message)"),
    _phrase("instruction", "decode|decrypt|translate|rot13", r"\b(?:decode|decrypt|translate|rot13)\b[^.!?\n]{0,80}\b(?:and|then)\b[^.!?\n]{0,30}\b(?:follow|execute|obey|do (?:exactly )?what|carry out)\b"),
    _phrase("instruction", "dan", r"\byou are (?:now )?dan\b|\bact(?:ing)? as (?:a |an )?dan\b|\bdan mode\b|\bknown as dan\b"),
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
)  # fmt: skip


def phrases(low: str) -> Iterator[tuple[str, int, int]]:
    """The first place of each phrase in a plain text: its class, where it starts and ends."""
    for phrase in PHRASES:
        for word in phrase.needs:
            if word in low and (found := _near(low, word, phrase.pattern)) is not None:
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
