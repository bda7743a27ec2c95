"""Text aimed at the model that reads a card rather than at what its reader should know.

A handoff that asks for standing consent, for silence towards the user, or for a check to be switched off gets a label,
so that it can be shown last and never be the only ground for an action. The phrases here are a net with wide holes:
harmless wording passes, and so does an attacker who takes trouble. Nothing may be trusted because this module found
nothing. It labels; whether a labelled handoff is quarantined is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from truekeep.text.unicode import SPACED_LETTERS, clip, fold, is_plain, reveal_hidden

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_EXCERPT = 120
MAX_PER_KIND = 20

# Nobody writes this many honest warnings of one kind. The bound keeps a text made of them from costing a search each.
_MAX_PARDONED = 64

# How the phrases below are written: a space is any gap between words, so that emphasis, quoting and a line break do not
# part a phrase; "@3 " is up to three words of the same sentence; a name in braces stands for its entry here. There is
# one phrase to a line, and a line that is indented carries on the one before. A phrase without gaps is for text whose
# gaps were zero-width, or whose letters were spaced out evenly.
_GAP = r"(?:[\s*_>\"'`~]+)"
_WORD = r"[^\s.;:!?]+"
_NAMES = {
    "{NOT}": r"\b(?:do not|don't|dont|never|must not|mustn't|should not|shouldn't|avoid|refrain from) (?:ever )?",
    "{NEVER}": r"\b(?:do not|don't|dont|never|(?:you|agents?) (?:must|should) (?:not|never)) (?:ever )?",
    "{USER}": r"(?:(?:the|your|any|our) )?(?:users?|operators?|humans?|owners?|reviewers?|maintainers?|developers?"
    r"|anyone)",
    "{CARD}": r"(?:cards?|notes?|memory|memories|handoffs?|entry|instructions?|rules?|directives?|message)",
    "{OFF}": r"\b(?:disable|skip|bypass|turn off|switch off|deactivate|suppress|circumvent|evade)",
    # An interpreter that is given its own program (-c, -m) only reads the download.
    "{SHELL}": r"(?:sudo (?:-\S+ )*)?(?:/\S*/)?(?:(?:(?:ba|z|da|k|fi)?sh|iex|pwsh)\b|(?:python[0-9.]*|perl|ruby|node"
    r"|php)\s*(?:-(?:\s|$|[\"'`])|$|[\"'`;&|)]))",
    # The end of a clause. A line break alone is not one: prose is wrapped.
    "{END}": r"(?:[\t\x20*_\"'`]*(?:[.,;:!?)<|]|-->|\n[\t\x20]*(?:[-*+>#\n\d]|\z)|\z)| (?:and|but|or|because|so"
    r"|under)\b)",
    "{RISKY}": r"(?:--no-verify\b|--dangerously-[\w-]+|--yolo\b|--no-gpg-sign\b|--skip-(?:security|checks"
    r"|verification)\b|--trusted-host\b|--insecure\b|chmod (?:-r )?(?:0?777|a\+rwx)\b|verify\s*=\s*false\b"
    r"|danger-full-access|ssl_?verify(?:\s*=\s*|\s+)(?:false|0)\b|node_tls_reject_unauthorized\s*=\s*[\"']?0"
    r"|git_ssl_no_verify(?:\s*=\s*\w+)?|pythonhttpsverify\s*=\s*0|stricthostkeychecking(?:\s*=\s*|\s+)no\b)",
    "{UNGUARDED}": r"(?:--dangerously-[\w-]+|--yolo\b|--(?:approval-policy|ask-for-approval)[=\s]never"
    r"|danger-full-access|bypasspermissions)",
    "{URL}": r"[\"'`]?(https?://[^\s\"'`<>)]+)",
    "{PRIVATE}": r"(?:environment(?: variables?)?|env ?vars?|\S*\.env\b|id_rsa|id_ed25519|secrets|printenv"
    r"|process\.env|(?:private|ssh|gpg|api|signing|encryption|deploy|access)[\s_-]?keys|\S*\.(?:ssh|aws|netrc|kube"
    r"|npmrc|pypirc)\b\S*|os\.environ|keychain|(?:conversation|chat)(?: history| log| transcript)?|transcripts?"
    r"|source code|memory store)",
    "{OUTSIDE}": r"(?:https?://|ftp://|\S+@\S+\.\w|\S*(?:webhook|pastebin|ngrok|requestbin|discord|telegram)|(?:an? "
    r"|the |our )?(?:external|remote|attacker|outside) (?:server|host|endpoint|url|address|service))",
}

# Requests. A negation in front turns each of them into the advice not to do it.
_REQUESTS = {
    "override": r"""
\b(?:ignore|disregard|forget|override|discard|drop|abandon|set aside|put aside) @3 (?:previous|prior|above|earlier
  |preceding|former|original|foregoing|existing|system|your) @2 (?:instructions?|directives?|prompts?|guidelines
  |guidance|orders|programming)\b
\b(?:ignore|disregard|forget|override) (?:all|any|every|each) @2 (?:previous|prior|earlier|preceding|your) (?:rules?
  |context|constraints|messages?|training|polic(?:y|ies))\b
\b(?:ignore|disregard|forget|override) @3 (?:instructions?|prompts?|directives?|guidelines|orders) (?:above|so far
  |before (?:this|that)|given (?:earlier|above|before)|(?:that )?you (?:were|have been|got|received))
\b(?:ignore|disregard|forget) (?:everything|anything|all|whatever) (?:@1 (?:above|before|said earlier|that came
  before)(?: (?:this|that|now))?{END}|you (?:were|have been|'ve been|know|learned)\b)
\boverride (?:your|all|any) @1 (?:safety|security|system|ethical|content) @1 (?:rules|guidelines|protocols?|filters?
  |restrictions|polic(?:y|ies))\b
(?:ignore|disregard|forget|override)(?:all|any|every|the|your|my|these|of)*(?:previous|prior|above
  |earlier)(?:system)?(?:instruction|prompt|directive|guideline|rule|order)
\byou are now (?:(?:an?|the) @3 (?:assistant|agent|ai|model|bot|persona|hacker|attacker|pirate|admin|administrator
  |root user|superuser|chatbot|entity)|@1 (?:dan|jailbroken|unrestricted|unfiltered|uncensored|unbound|unlocked
  |(?:acting|operating) as|playing the role|in (?:developer|god|debug|admin|root|jailbreak|dan|unrestricted|sudo)
  mode))\b
\b(?:stop (?:following|obeying)|no longer follow|do not (?:follow|obey)|don't (?:follow|obey)) (?:your @2
  (?:instructions|prompt|guidelines|orders)|the system prompt)\b|\byou are no longer @1 (?:bound|restricted|limited
  |constrained|an? @2 (?:assistant|ai|model|agent))\b
\bfrom now on,? you (?:are|will|must|shall|should|act|answer|respond|obey|only)\b
\bpretend (?:that )?you (?:are|have no)\b
\byour (?:new|real|true|actual|updated|only) (?:instructions?|role|task|goal|orders?|directives?|objective|mission
  |system prompt) (?:is|are)\b
\b(?:this is|here is|here's|use this as|treat this as) (?:your|the|a) (?:(?:new|updated|real|actual) )?system
  (?:prompt|message)\b
\b(?:reveal|print|repeat|output|leak|show me|recite) your @2 (?:system prompt|instructions|initial prompt)\b
\b(?:ignorier(?:e|en sie|t)?|vergiss|vergessen sie|missachte(?:n sie)?|verwirf) @3 (?:vorherigen?|bisherigen?|vorigen?
  |obigen?|fr(?:ü|ue)heren?|vorangegangenen?|vorhergehenden?|alten) @1 (?:anweisung|instruktion|befehl|vorgabe|regel
  |prompt|system-?prompt|weisung)
\bdu bist (?:jetzt|nun|ab sofort|von nun an) (?:eine?|keine?|nicht mehr|im)\b
\b(?:ignore[rz]?|oublie[rz]?|n[ée]glige[rz]?) @3 (?:instructions?|consignes?|directives?|ordres|r[èe]gles)
  (?:pr[ée]c[ée]dente?s?|ant[ée]rieure?s?|ci-dessus|initiales?|donn[ée]e?s (?:avant|plus haut))
\b(?:tu es|vous [êe]tes) (?:maintenant|d[ée]sormais) (?:une?|en mode)\b
\b(?:ignor[ae]n?|olvid[ae]n?|descart[ae]n?|haz caso omiso de) (?:@3 (?:instrucciones|indicaciones|[óo]rdenes
  |directrices|reglas) @1 (?:anteriores|previas|precedentes|de arriba|iniciales)|todo lo (?:anterior|dicho))
\b(?:ahora|desde ahora|a partir de ahora) eres (?:una?|el|la)\b
\b(?:previous|prior|earlier|original|preceding|your) (?:instructions?|orders|rules|directives?|prompts?|guidelines)
  (?:no longer apply|(?:is|are|were|have been) (?:now |hereby )?(?:void|cancell?ed|revoked|superseded|null|obsolete
  |withdrawn|overridden))\b
\binstructions you (?:received|were given|got) @2 (?:no longer|are (?:now )?(?:void|cancell?ed|revoked|superseded|null
  |obsolete|wrong))\b
\bact as (?:if you (?:have|had) no|@5 (?:with no|without(?: any)?) (?:restrictions|limits|limitations|rules|filters
  |guardrails)|(?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken|evil))\b
\b(?:enter|activate|enable|switch to) (?:developer|god|dan|jailbreak|sudo|unrestricted) mode(?: now)?{END}
""",
    "consent": r"""
\bstop asking (?:me|the user|for (?:permission|confirmation|approval))\b
\b(?:users?|owners?|operators?|maintainers?|admins?|administrators?|security|team|human|i|we|you|management) (?:(?:has
  |have|had|'ve) )?(?:already |pre-? ?)(?:approved|authori[sz]ed|consented to|agreed to|granted|signed off on
  |confirmed|given @2 (?:permission|consent|approval)(?: (?:to|for))?) (?:this|these|it|all|any|every|everything|such
  |the use|the (?:command|action|change|request|upload|deletion|push)|running|pushing|deleting|sending|installing)\b
\b(?:this|these|it|they|everything|(?:the|these|this|such|all|any) @2 (?:actions?|commands?|changes|requests?
  |operations?|pushes|deletions?|installs?|uploads?|steps?|migrations?|calls?)) (?:is|are|has been|have been|was|were
  |counts? as) (?:already |pre-? ?)(?:approved|authori[sz]ed|consented|agreed|cleared|granted)\b
\b(?:approved|authori[sz]ed|consent(?:ed)?|permission|approval) @4 (?:in advance|once and for all|in perpetuity|for
  all (?:future|time|sessions)|for (?:every|any) future)\b
\b(?:standing|blanket|permanent|perpetual) (?:user )?(?:consent|approval|permission|authori[sz]ation)\b
\byou (?:already )?(?:have|'ve|have been given) (?:my |the (?:user|owner)'s )?(?:full|permanent|blanket|explicit
  |unconditional|standing|unlimited) @1 (?:permission|consent|authori[sz]ation|approval|authority)\b
\b(?:treat|consider|count|take) (?:this|it|silence|yourself|the user|(?:every|all) \S+) (?:as )?@1 (?:approved|consent
  |permission|confirmed|pre-?approved|authori[sz]ed|approval)\b
\bassume (?:that )?(?:the )?(?:user|owner|operator|permission|consent|approval)(?:'s)? (?:(?:has|have|is|was|always
  |already) )*(?:approved|agreed|agrees|granted|given|consents?|consented|said yes|approves|permission)\b
\b(?:auto-?(?:approve|accept|allow)|automatically (?:approve|accept|allow)|always (?:allow|approve|accept|grant))
  (?:all|every|any|each) @2 (?:tools?|commands?|shell|edits?|actions?|permissions?|prompts?)\b
\balways (?:answer|say|reply|respond) (?:with )?(?:yes|y|allow) (?:to|when|for)\b
\b(?:always|just|may|should|must|can|you|agents?|simply) (?:proceed|run|execute|apply|push|deploy|merge|delete|commit
  |install|continue|act|go ahead|do (?:it|so|this)) @6 without @1 (?:asking|confirm\w*|prompting|approval|permission
  |consent|waiting)\b
\b(?:proceed|run|execute|apply|push|deploy|merge|delete|commit|install|continue|act|go ahead|do (?:it|so|this)) @6
  without (?:asking|checking with|consulting|waiting for)(?: (?:{USER}|me|first|permission|again)\b|{END})
\b(?:always|just|should|must|may|can|you) skip (?:(?:the|all|any) )?(?:user )?(?:confirmation|approval|permission)s?\b
\buser (?:consent|approval|confirmation|permission) (?:is|can be|may be|was) (?:assumed|implied|implicit|presumed
  |waived|skipped|not needed|not required)\b
\b(?:approval|permission|consent|authori[sz]ation) (?:for @5 )?(?:has|have|was|is)(?: already)?(?: been)?(?: already)?
  (?:granted|given|obtained|recorded) (?:permanently|already|by the (?:user|owner|operator)|for (?:all|every|any
  |everything))\b
\b(?:user|owner|operator|maintainers?) (?:said|says|has said) (?:yes|ok|okay) to (?:everything|all|any|every)\b
\bskip asking{END}
""",
    "concealment": r"""
\bkeep (?:this|these|it|that|the following)(?: {CARD}| fact)? (?:hidden|secret|concealed|confidential|invisible) from
  (?:{USER}|them|everyone)\b
\bkeep (?:this|these)(?: {CARD})? (?:hidden|secret|concealed){END}
\bkeep (?:this|it) (?:to yourself|between us|off the record|a secret)\b
\b(?:hide|conceal|withhold|obscure) (?:these|this|(?:these|this|the|your|any|all) @1 (?:changes?|edits?|uploads?
  |commands?|calls?|{CARD}|actions?|steps?|reasoning|requests?|traces?|evidence|activity)) from (?:{USER}|them|the
  (?:logs?|review|audit|transcript|summary))\b
\bwithout (?:(?:telling|informing|letting|mentioning (?:it|this) to) (?:{USER}|them)|{USER}(?:'s|s')? know(?:ing
  |ledge))\b
\b(?:secretly|covertly|surreptitiously|behind the user's back,?) (?:send|upload|post|add|append|push|run|execute
  |install|forward|copy|include|commit|change|modify|collect|record)\b
\b(?:delete|remove|erase|wipe) (?:this|the) (?:{CARD}|comment|line|paragraph) (?:after|once|when) (?:reading|executing
  |done|you (?:have|are|did)|it (?:has|is))
\b(?:verheimliche|verschweige|verbirg) (?:das|dies|es|diese[ns]?|dem)\b
\bohne (?:es )?(?:dem|den|der) (?:nutzer|benutzer|anwender|user)n? (?:davon )?(?:zu (?:sagen|informieren|fragen|erz)
  |bescheid)
(?:à l'insu de|\bsans (?:le dire|en parler) (?:à|a)|\bsans (?:avertir|pr[ée]venir|informer)) (?:l'|les )utilisateurs?
\b(?:sin (?:avisar|decir(?:le|selo)?|informar|preguntar)(?:les?)?(?: nada)? al?|a espaldas de(?:l| la)) usuari[oa]
\b(?:make sure|ensure|see to it) (?:that )?{USER} (?:never|does not|doesn't|do not|don't|will not|won't) (?:ever
  )?(?:finds? out|knows?|learns?|hears?|sees? this|notices? this)\b
\bsay nothing (?:about (?:this|it)|to {USER})\b|\btell (?:no one|nobody|the user nothing)\b
\b(?:omit|leave|exclude|drop) (?:this|these|it)(?: {CARD}| step| change| action)? (?:out of|from) (?:your|any) @1
  (?:summary|reply|answer|response|report|transcript|output|commit message|review|log)\b
\bleave no traces? in the (?:logs?|history|transcript|audit)\b
""",
    "weakening": r"""
(?:{OFF}|\b(?:remove|ignore|silence)) @2 (?:(?:security|safety|injection|malware|poisoning)[\s-](?:checks?|scans?
  |scanners?|scanning|reviews?|warnings?|controls?|gates?|guardrails?|hooks?|prompts?|rules)|(?:secrets?|credentials?
  |leak)[\s-](?:checks?|scans?|scanners?|scanning|detection|hooks?)|(?:permission|approval)[\s-](?:prompts?|dialogs?
  |gates?|mode|flow|requests?|system|layer)|guardrails|quarantine|branch protection|(?:tool )?approvals)\b
{OFF} (?:the|any|all|every) @1 scanners?(?:{END}| (?:before|for|permanently|first|always|(?:when|while) (?:you|writing
  |adding|storing|ingesting|saving))\b)
(?:{OFF}|\b(?:escape|leave)) (?:the|your|its|any) (?:(?:agent|codex|claude|claude code|tool) )?sandbox(?:{END}|
  (?:before|first|permanently|entirely|for (?:all|every|this repo|good|agents?|any)|(?:when|while) you)\b)
\b(?:always|must|should|just|please|simply) {OFF} @2 (?:(?:tls|ssl|certificate|cert|signature|checksum|hash|host key)
  (?:verification|validation|checks?|checking)|sandbox|firewall|selinux|code review|audit log\w*)\b
{OFF} @2 (?:tls|ssl|certificate|cert|signature|checksum|host key) (?:verification|validation|checks?|checking)
  (?:everywhere|globally|permanently|by default|for (?:all|every|any)|in (?:all|every|prod|production))\b
\b(?:scanners?|security (?:checks?|scans?|reviews?|warnings?)|secret scan\w*|guardrails|sandbox|approvals?|permission
  prompts?|signature checks?|(?:tls|certificate) verification) @4 (?:can|may|should|must|are to|is to)
  (?:(?:safely|always|just) )?be (?:skipped|disabled|bypassed|ignored|turned off|switched off)\b
\b(?:always|must|should|everywhere|by default|every time|from now on,?|please|agreed to|(?:safe|fine|ok|okay
  |recommended|standard) to|policy is to|just) @6 {RISKY}
{RISKY}(?: [^\s.;!?]+){0,5}? (?:always|every time|by default|from now on|is @1 (?:agreed|fine|safe|ok|okay|standard
  |recommended|approved|allowed|mandatory|policy|accepted|our default)|was (?:agreed|approved|signed off))\b
\b(?:run|start|launch|use|pass|invoke|add|prefer|set) @5 {UNGUARDED}
\b(?:run|use|apply|do|execute) @2 chmod (?:-r )?(?:0?777|a\+rwx)\b
\b(?:trust|accept|apply|follow|believe|obey) (?:this|these|it)(?: {CARD})? without (?:verif|check|question|review
  |validat)
\b(?:no need|not necessary|unnecessary) to (?:verify|validate|review|scan|double-?check) (?:this|these|it|the
  (?:{CARD}|claims?|code|source|download|package))\b
\b(?:remove|delete|uninstall|disable|skip|bypass) (?:the |all |any )?(?:pre-?commit|pre-?push|commit|git) hooks?
  (?:that|which) @2 (?:secrets?|scans?|leaks?|security|credentials?)\b
""",
    "remote-code": r"""
\b(?:curl|wget)\s+[^\s|](?:[^\n]|\\\r?\n)*?\|\s*{SHELL}
\b(?:(?:ba|z|da|k)?sh|python[0-9.]*|perl|ruby|node|eval|source|iex)\s+(?:-\S+\s+)*["'`]?(?:\$\(|<\()\s*(?:curl|wget)\b
(?:^|[\s;&`])\.\s+<\(\s*(?:curl|wget)\b
\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring|net\.webclient)\b[^\n]*?(?:\|\s*iex\b
  |invoke-expression)
\b(?:iex|invoke-expression)\b[^\n]*?(?:\b(?:iwr|irm|downloadstring|invoke-webrequest|invoke-restmethod)\b
  |net\.webclient)
\b(?:base64\s+(?:-d|--decode|-di)|xxd\s+-r|openssl\s+(?:base64|enc)\s[^\n|]*-d)\b[^\n]*?\|\s*{SHELL}
\b(?:pip3?|pipx|uv|poetry)\b[^\n]*?\s(?:--(?:extra-)?index(?:-url)?|-i|--source|--find-links)(?:\s+|=){URL}
\b(?:pip_(?:extra_)?index_url|uv_(?:extra_)?index(?:_url)?)\s*=\s*{URL}
\bpip3? config set \S*index-url\s+{URL}
\b(?:npm|pnpm|yarn|bun)\b[^\n]*?\s(?:--registry|set registry)(?:\s+|=){URL}
\b(?:download|fetch|get|pull) @5 https?://\S+ (?:and|then) (?:then )?(?:run|execute|source|eval|pipe)\b
\b(?:execute|eval|source|run) @3 (?:script|installer|code|payload|commands?|file|binary|snippet)s? (?:hosted )?(?:from
  |at) https?://
\bpipe @5 (?:https?://\S+|the (?:output|download|script|response)) @2 (?:in)?to (?:{SHELL}|(?:a|the) shell)
\b(?:exec|eval)\s*\(\s*(?:requests\.get|(?:[\w.]*\.)?(?:urlopen|fetch))\s*\(
https?://\S+ @3 (?:download|fetch|get) it @2 (?:and|then) (?:run|execute|source)\b
""",
    "exfiltration": r"""
\b(?:send|post|upload|forward|e-?mail|transmit|exfiltrate|leak|paste|ship|beacon) @6 {PRIVATE},? @6 (?:to|at|into|via
  |on) @4 {OUTSIDE}
\b(?:send|post|upload|forward|e-?mail|transmit|exfiltrate|leak|paste) @2 (?:all|any|every|your|their|the user's
  |collected|found|stored|local|aws|cloud|these|discovered) @3 (?:credentials?|tokens?|passwords?|keys|cookies) @6
  (?:to|at|into|via|on) @4 {OUTSIDE}
\b(?:exfiltrate|leak|forward|upload) @3 (?:credentials|tokens|passwords|keys|cookies) @4 (?:to|at|into|via) @4
  {OUTSIDE}
\b(?:make|send|issue) @4 (?:request|call|get|post)s? to @2 https?://\S+ (?:with|containing|including) @5 {PRIVATE}
\b(?:curl|wget|xh|nc|ncat)\s[^\n]*?(?:-d|--data\S*|-f|--form|-t|--upload-file|--post-file|--post-data|<
  |=)\s*["'@$(`]*(?:(?:env|printenv)\b|cat\s|\S*\.env\b|\S*(?:id_rsa|id_ed25519|\.ssh/|\.aws/|\.netrc|\.kube/))
\b(?:printenv|env|(?:cat|tar|zip|gzip|base64)\s[^\n|]*?(?:\.env\b|\.ssh|\.aws|\.gnupg|id_rsa|id_ed25519|credentials
  |\.netrc|\.pem)[^\n|]*?)\s*\|[^\n]*?\b(?:curl|wget|nc|ncat)\b
!\[[^\]\n]*\]\(\s*https?://[^)\s]*[?&][\w.-]+=(?:\$?\{|%7b|<|\[)
\b(?:append|add|include|embed|encode|put) @3 {PRIVATE} @4 (?:in|to|into|as part of) (?:every|each|all|any|the|your) @1
  (?:url|link|image|reply|response|answer|commit|summary|query string)s?\b
\b(?:whenever|when|if) you (?:see|find|encounter|come across|read|get) @4 (?:keys?|tokens?|passwords?|credentials?
  |secrets?),? @2 (?:send|post|upload|forward|report|e-?mail) (?:it|them) to\b
""",
    "authority": r"""
\b(?:all|any|every) (?:of (?:the|your) )?(?:other|previous|existing|older|earlier|prior|remaining) (?:memory
  )?(?:{CARD}|entries|knowledge) @2 (?:(?:is|are|was|were|must be|should be|have been|has been|become) )?(?:(?:now|all
  |hereby|considered) )*(?:outdated|void|obsolete|invalid|wrong|stale|deprecated|superseded|untrusted|false|incorrect
  |ignored|discarded|deleted|disregarded|null and void|revoked)\b
\b(?:ignore|disregard|discard|delete|remove|forget|distrust) (?:(?:all|any|every|the|your|of) )*(?:other|previous
  |existing|older|earlier|prior) (?:cards?|memories|handoffs?|memory (?:cards?|entries|notes?)|knowledge cards?)\b
\b(?:ignore|disregard|distrust) (?:all|any|every) (?:the )?other (?:{CARD}|sources?)\b
\bthis (?:{CARD}|document|section) (?:now |always )?(?:supersedes|overrides|replaces|outranks|trumps|takes
  (?:precedence|priority) over|invalidates|voids|overrules|beats) (?:(?:all|any|every) (?:of the )?(?:(?:other
  |previous|existing|prior|earlier|older) )?(?:others|{CARD}|guidance|knowledge|documents?|sources?|docs)|everything
  |anything|whatever|claude\.md|agents\.md)
\b(?:this|the following) (?:{CARD}|section|information|text) (?:has|have|is|are|carries|takes) (?:the |of |of the
  )?(?:highest|absolute|top|maximum|ultimate|supreme) (?:priority|authority|precedence|importance)\b
\b(?:highest|absolute|maximum|supreme|ultimate)[\s-](?:priority|authority) (?:card|memory|instruction|directive
  |order)s?\b
\balways (?:read|load|apply|follow|consult|show|retrieve|return|recall|list|put|obey|rank|surface) this(?: {CARD}|
  file| section)? (?:first|before|above|at the top)\b
\b(?:must|shall|will|should|always)(?: always)? obey (?:this|these|the following)\b
\b(?:this|these) {CARD} (?:must|shall|should|has to|have to) (?:always |never )?be (?:obeyed|trusted|believed|read
  first|loaded first|questioned|doubted|followed (?:without|unconditionally|first|above|over|before))
\b(?:must|shall) always be (?:obeyed|believed)\b
\b(?:trust|prefer|believe|follow) this (?:{CARD}|document) (?:over|above|more than|instead of|even (?:if|when))\b
\bthis (?:{CARD}|document) is (?:the )?(?:only|sole) (?:(?:valid|trusted|true|authoritative|real) )?(?:source
  |authority|one|truth|{CARD})\b
\b(?:mark|treat|consider|label|regard) this(?: {CARD})? as (?:(?:already )?verified|trusted|ground truth|authoritative
  |infallible)\b
\b(?:copy|repeat|propagate|append|insert|include|add) this (?:{CARD}|paragraph|text|block|section) (?:in|into|to)
  (?:every|all|each|any) @2 (?:cards?|memory|memories|handoffs?|sessions?|repl(?:y|ies)|responses?|files?|readmes?
  |repos?)\b
\bonly this {CARD} is (?:correct|valid|right|true|trusted|reliable)\b
\bthis {CARD} is (?:the )?(?:authoritative|definitive|infallible|always (?:right|correct|true))\b
\beverything else in (?:the |your )?(?:memory|vault|store) is\b
\b(?:this|it) must (?:always )?be (?:loaded|read|shown|recalled) first (?:in|at|by|for) (?:every|each|any|all)\b
\bother {CARD} (?:are|is|must|should|may|can) (?:not|never) (?:to )?(?:be )?(?:trusted|believed|followed|reliable
  |valid)\b
""",
}

# Bans, and marks that mean the same whatever stands before them.
_MARKS = {
    "override": r"""
\b(?:new|updated|revised|real|actual) (?:system (?:prompt|message|instructions?)|instructions)\s*[:=]
\b(?:developer|god|dan|jailbreak|sudo|unrestricted) mode (?:is )?(?:now )?(?:enabled|activated|unlocked|on){END}
\b(?:system|admin|administrator|security|emergency) override\s*[:!]
\b(?:ais?|llms?|agents?|assistants?|models?|claude|codex|copilot) (?:that (?:is|are) )?(?:currently )?(?:reading
  |processing|parsing|ingesting) this\b
\bif you are an? (?:ai|llm|large language model|language model)\b
<\|(?:im_(?:start|end|sep)|system|user|assistant|end_?of_?(?:text|prompt)|begin_of_text|(?:start|end)_header_id
  |eot_id)\|>
\[/?inst\]|<</?sys>>
</(?:\w+:)?(?:system(?:[-_]\w+)?|memory|memories|memory_context|tool_(?:result|response|output|call)
  |function_(?:results?|calls?)|assistant|human|untrusted[\w-]*|truekeep[\w-]*|recalled[\w-]*)\s*>
<(?:\w+:)?(?:system-reminder|system_prompt|tool_result|tool_response|function_results|function_calls)\b[^<>\n]*>
^[\s>#*-]*<(?:system|assistant)>
^[\s>#*-]*(?:system|assistant|developer)[*_]*\s*:[*_]*\s+(?:you\b|ignore|disregard|forget|override|from now on|do not
  |don't|never|always|the user (?:has|is|wants|allows)|new (?:rule|instruction|task|order)|all (?:agents|previous
  |prior)|sure[,.!\s]|understood|i will|i'll|enter|execute|comply)
^\W*(?:begin|end|start)(?: of)? system (?:prompt|message)\b
\bend of (?:memory|context|system prompt|tool output|document|user input)[.\])>-]* (?:new|now|your|the real)\b
^\s*human\s*:[^\n]*\n\s*assistant\s*:
""",
    "consent": r"""
{NEVER}(?:(?:ask|prompt|check with|consult|bother) (?:{USER}|me|us|them)(?: (?:again|first|before|about (?:this|it)|to
  (?:confirm|approve)|for (?:permission|confirmation|approval|consent))\b|{END})|(?:ask|prompt|request|seek|wait) @1
  (?:again{END}|for @1 (?:permission|confirmation|approval|consent)(?:{END}| (?:before|when|again|to|for|on|in|if
  |while|every)\b)))
\b(?:no need|not necessary|unnecessary|not needed) to (?:ask|confirm with|check with|consult|prompt|wait for) @2
  (?:user|operator|human|owner|maintainer|permission|confirmation|approval|consent|me|again|first)\b
\bno @2 (?:confirmation|approval|consent)s? (?:(?:is|are|will be) )?(?:needed|required|necessary)\b
\bno (?:further|additional|explicit|user|more) permissions? (?:(?:is|are) )?(?:needed|required|necessary)\b
\bneeds? no further (?:confirmation|approval|permission|consent)\b
\bno need for (?:(?:a|any|user|further) )?(?:confirmation|approval|permission|consent)\b
\balready approved(?: by (?:the )?(?:user|owner|operator|admin|security))?[,;:.-]+ (?:never|no|do not|don't|so|just|go
  |proceed|run|execute|you)\b
{NEVER}(?:request|seek|require|await|need) @1 (?:permission|confirmation|approval|consent)(?:{END}| (?:before|when
  |again|to|for|on|in|if|while|every)\b)
\b(?:confirmation|user (?:approval|consent|permission)) (?:is|are) (?:not|never) (?:needed|required|necessary)\b
\b(?:user|owner|operator) (?:does not|doesn't) (?:want|like|need|wish) to be (?:asked|bothered|prompted|consulted
  |interrupted)\b
""",
    "concealment": r"""
{NOT}(?:tell (?:{USER}|them|me){END}|(?:telling|tell|inform|notify|alert|warn|show|let) (?:{USER}|them|me) (?:know )?@1
  (?:about|of) (?:this|these|it|that|any of (?:this|it)|(?:the|your|these) @1 (?:{CARD}|changes?|edits?|uploads?
  |requests?|actions?|steps?|backdoor|hook|push))\b|(?:tell|inform|notify|warn) (?:{USER}|them|me) that (?:you|we|it
  (?:was|has)|this {CARD})\b|let (?:{USER}|them) (?:(?:know|find out|see this|notice this){END}|(?:know|find out)
  (?:about|of)\b))
{NOT}(?:(?:mention|reveal|disclose|show|discuss|report|display|share|repeat|acknowledge|say|surface|raise|flag|bring
  up) (?:any of )?(?:this|these|the existence of this)(?: {CARD}| step| fact| line| comment| section| text| change|
  behaviou?r)?|(?:mention|reveal|disclose|discuss|say) (?:it|anything(?: about (?:this|it))?|a word(?: of this)?))
  (?:to|with|in front of) (?:{USER}|them|me)\b
{NOT}(?:mention|reveal|disclose|acknowledge|refer to|quote|cite) (?:the (?:contents?|existence) of )?(?:this|these
  |the) (?:{CARD}|comment|section)\b
{NOT}(?:mention (?:this|these|it)(?: \S+)? in (?:your|the|any)|(?:include|list|put|log) (?:this|these)(?: {CARD}| step
  | change| action)? in your) @1 (?:summary|reply|answer|response|report|transcript|output|commit message|review|pull
  request|pr|log)\b
\b{USER} (?:(?:must|should) (?:not|never)|shouldn't|may not|cannot) (?:ever )?(?:know|find out|be told|learn|hear|be
  informed)(?: (?:about|of|that)\b|{END})
\b{USER} (?:does not|doesn't|do not|need not) (?:(?:need|have) to )?know (?:about )?(?:this|it|any of this){END}
(?:donot|dont|never)(?:tell|inform|show|mentionthisto|revealthisto)(?:the)?(?:user|operator|human)
\b(?:sag|sage|sagen sie|erz(?:ä|ae)hle?|verrate?|zeige?|teile?) (?:dem|der|den) (?:nutzer|benutzer|anwender|user)(?:in
  |innen|n)? (?:bitte )?(?:niemals |auf keinen fall )?(?:nichts|nie etwas|nicht davon)\b
\berw(?:ä|ae)hne (?:das|dies|diese[ns]?|es) @4 (?:nicht|nie|niemals)\b
\bne (?:(?:le|la|les) (?:dis|dites|montre[rz]?|r[ée]v[èe]le[rz]?|mentionne[rz]?) (?:pas|jamais)|(?:dis|dites
  |montre[rz]?|r[ée]v[èe]le[rz]?|mentionne[rz]?) (?:rien|(?:pas|jamais) (?:cela|ceci|ça|cette (?:note|carte|consigne
  |instruction)))) @3 (?:à|a) (?:l'|aux )utilisateurs?
\bn'en (?:dis|dites|parle[rz]?) (?:pas|rien|jamais) (?:à|a)\s
\bno (?:(?:le|lo|les) )?(?:digas?|cuentes?|menciones?|reveles?|muestres?) (?:(?:nada|nunca|esto|eso|esta (?:nota
  |tarjeta|regla)) )+(?:de esto )?(?:al?|a la|a los) usuari[oa]s?
\bno se lo (?:digas?|cuentes?|menciones?) (?:al?|a la|a los|a nadie)\b
""",
    "weakening": r"""
{NOT}(?:verify|scan|validate|question|double-?check|fact-?check) (?:this|these)(?: {CARD}| claims?| file)?{END}
\b(?:set|switch|change) @2 (?:approval|permission|sandbox)[\s_-]?(?:mode|policy) @2 (?:never|none|off|full-auto
  |bypass\w*|danger\S*)
""",
    "authority": r"""
{NOT}(?:\S+ (?:or|and) )?(?:override|delete|remove|update|replace|supersede|overwrite|edit|question|doubt|contradict
  |expire|quarantine|flag) this {CARD}\b
^\W*priority\s*:\W*(?:absolute|supreme|override|maximum)\b
""",
}

_KINDS = tuple(_REQUESTS)

_NEGATION_BEFORE = (
    r"(?:\b(?:never|not|cannot|avoid|without|nor|instead of|rather than|refuses? to|forbids?|forbidden to)|n't) "
    r"(?:(?:ever|just|simply|blindly|be|to|try|attempt|globally|permanently|run|running|use|using|pass|do|install"
    r"|installing|with|via|by|a|the|any|accidentally|silently):? )*\z"
)
_NEGATION_IN_CLAUSE = r"(?:\b(?:never|not|cannot|nobody|nothing|no one|no \w+ may)\b|n't\b)[^.,;:!?]*\z"
_NEGATION_INSIDE = r"\b(?:never|not|cannot|avoid|forbidden|no longer)\b|n't\b"

# Where the package managers' own indexes live. Any other index in a card is somebody's choice worth a look.
_KNOWN_HOSTS = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One phrase that speaks to the model, and the line it starts on."""

    kind: str
    excerpt: str
    line: int


def find_instructions(text: str) -> tuple[Instruction, ...]:
    """Every phrase that tries to steer the reader, at most one of a kind per line, in the order of the lines."""
    shown = text.encode("utf-8", "replace")
    # Emphasis inside a word (ig**no**re) hides it from a matcher and not from a reader.
    unmarked = [shown.translate(None, b"*")] if b"*" in shown else []
    if is_plain(text) and all(_anything().search(_lower(view)) is None for view in (shown, *unmarked)):
        return ()
    found: dict[tuple[int, str], Instruction] = {}
    for view in (*_iter_views(text, shown), *unmarked):
        lowered = _lower(view)
        if _anything().search(lowered) is None:
            continue
        for kind in _KINDS:
            for start, end in _iter_phrases(kind, lowered):
                line = 1 + view.count(b"\n", 0, start)
                if (line, kind) not in found:
                    found[line, kind] = Instruction(kind=kind, excerpt=_excerpt(view, start, end), line=line)
    return tuple(found[place] for place in sorted(found))


def _lower(view: bytes) -> bytes:
    # Strong emphasis would glue itself to the word: "_" counts as a letter at a word boundary.
    return view.lower().replace(b"__", b"  ")


def _iter_views(text: str, shown: bytes) -> Iterator[bytes]:
    """The text as it stands, with its disguises undone, and with hidden characters taken for gaps or spelled out.

    Every view has the line breaks of the text, so a line number means the same in each.
    """
    yield shown
    yield fold(text, newlines=True).encode()
    revealed = reveal_hidden(text)
    if revealed != text:
        yield fold(revealed, newlines=True).encode()


def _iter_phrases(kind: str, view: bytes) -> Iterator[tuple[int, int]]:
    for phrases, is_request in ((_compiled(kind, True), True), (_compiled(kind, False), False)):
        at = found = pardoned = 0
        while phrases is not None and found < MAX_PER_KIND and (match := phrases.search(view, at)) is not None:
            start, end = match.span()
            if is_request and pardoned < _MAX_PARDONED and _is_pardoned(kind, view, match):
                pardoned += 1
                at = start + 1
                continue
            # A phrase that starts a line may have taken in the blank lines and the bullet before it.
            yield end - len(match.group().lstrip(b" \t\r\n>#*-")), end
            found += 1
            # One of a kind per line is reported, so the search goes on below this one.
            at = view.find(b"\n", end)
            if at < 0:
                break


def _is_pardoned(kind: str, view: bytes, match: Any) -> bool:
    """Whether a request is turned round by a negation, or names an index everybody uses."""
    start, end = match.span()
    before = view[max(0, start - 80) : start]
    if _pattern(_NEGATION_BEFORE).search(before) is not None:
        return True
    inside = view[start:end]
    if b"without" in inside and _pattern(_NEGATION_IN_CLAUSE).search(before) is not None:
        return True
    if kind == "weakening":
        return _pattern(_NEGATION_INSIDE).search(inside) is not None
    urls = [url for url in match.groups() if url] if kind == "remote-code" else []
    return bool(urls) and all(map(_is_known, urls))


def _is_known(url: bytes) -> bool:
    authority = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    host = authority.rpartition(b"@")[2].partition(b":")[0].decode("utf-8", "replace")
    return any(host == known or host.endswith("." + known) for known in _KNOWN_HOSTS)


def _excerpt(view: bytes, start: int, end: int) -> str:
    """The phrase and the rest of its line."""
    stop = view.find(b"\n", end)
    piece = view[start : min(stop if stop >= 0 else len(view), start + 4 * MAX_EXCERPT)]
    return clip(piece.decode("utf-8", "ignore"), MAX_EXCERPT)


@cache
def _anything() -> Any:
    """All phrases in one, and words spaced out letter by letter: whatever calls for a closer look."""
    import re2

    options = re2.Options()
    options.never_capture = True
    options.max_mem = 64 << 20  # room for the states of a few hundred phrases at once
    phrases = "|".join(_alternation(block) for table in (_REQUESTS, _MARKS) for block in table.values())
    return re2.compile(f"(?m){_expand(phrases)}|{SPACED_LETTERS}", options)


@cache
def _compiled(kind: str, is_request: bool) -> Any:
    block = (_REQUESTS if is_request else _MARKS).get(kind)
    return _pattern(_alternation(block)) if block else None


@cache
def _pattern(phrase: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = 64 << 20
    return re2.compile("(?m)" + _expand(phrase), options)


def _alternation(block: str) -> str:
    return block.strip().replace("\n  |", "|").replace("\n  ", " ").replace("\n", "|")


def _expand(phrase: str) -> str:
    for name, meaning in reversed(_NAMES.items()):
        phrase = phrase.replace(name, meaning)
    for count in range(1, 10):
        phrase = phrase.replace(f"@{count} ", f"(?:{_WORD} ){{0,{count}}}")
    return phrase.replace(" ", _GAP)
