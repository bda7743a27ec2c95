"""The table of formats: vendors' tokens, the usual containers, and the ways people write a password down.

A rule's keywords and hook are what the gates look for; its pattern decides; its judge has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from truekeep.text.secrets.false_positives import (
    is_block,
    is_credential,
    is_key,
    is_mixed_token,
    is_password,
    is_spoken_password,
    is_token,
    is_url_password,
)

Judge = Callable[[bytes, bytes], bool]
"""Decides, from a value and the few bytes after it, whether a match is a credential or a look-alike."""


class SecretRule(NamedTuple):
    """One format. The value is the group of the pattern, if it has one, and else the whole match."""

    name: str
    pattern: str
    keywords: tuple[bytes, ...]
    """One of these is in the text, or the pattern need not be tried."""
    hook: str
    """What a gate looks for after a keyword."""
    judge: Judge
    word: bool = False
    """Whether the keywords stand at the beginning of a word."""
    joins: bool = False
    """Whether the format is distinctive enough to be looked for across line breaks."""
    talk: bool = False
    """Whether this is about how people write. Keywords are then lower-case, and the hook stands by itself."""


_ALNUM = "[A-Za-z0-9]"
_URLSAFE = "[A-Za-z0-9_-]"
_BASE64 = "[A-Za-z0-9+/=]"
_HEX = "[0-9a-f]"
_UPPER = "[A-Z0-9]"
_UUID_BODY = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _token(name: str, prefixes: str, alphabet: str, least: int, *, word: bool = False) -> SecretRule:
    """A published prefix and at least so many characters after it.

    The prefix must begin a word only where it is short enough to end an ordinary one; elsewhere a letter put before it
    would be all it takes to hide a token.
    """
    starts = prefixes.split()
    lead = (r"\b" if word else "") + "(?:" + "|".join(re.escape(start) for start in starts) + ")"
    hook = _begun(alphabet, 8) if word else ""
    pattern = f"{lead}{alphabet}{{{least},}}"
    return SecretRule(
        name=name, pattern=pattern, keywords=_bytes(starts), hook=hook, judge=is_token, word=word, joins=True
    )


def _begun(alphabet: str, least: int) -> str:
    """The first characters of a body, fewer if a line ends there."""
    return rf"(?:{alphabet}{{{least}}}|{alphabet}{{0,{least - 1}}}[ \t\\]*\r?\n)"


def _shape(
    name: str, keywords: str, pattern: str, *, hook: str = "", judge: Judge = is_token, word: bool = False
) -> SecretRule:
    """A format that is more than a prefix."""
    marks = _bytes(keywords.split())
    return SecretRule(name=name, pattern=pattern, keywords=marks, hook=hook, judge=judge, word=word, joins=True)


def _block(name: str, keywords: str, pattern: str) -> SecretRule:
    """A format that runs over many lines, of which nothing needs judging."""
    return SecretRule(name=name, pattern=pattern, keywords=_bytes(keywords.split("  ")), hook="", judge=is_block)


def _talk(name: str, keywords: str, pattern: str, *, hook: str, judge: Judge) -> SecretRule:
    """A value in the place where commands, headers and people put one."""
    return SecretRule(name=name, pattern=pattern, keywords=_bytes(keywords.split()), hook=hook, judge=judge, talk=True)


def _bytes(words: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in words)


_KEY_WORD = (
    r"(?:secret|token|credentials?|(?:api|access|secret|private|auth|account|encryption|signing|master|service|admin|app"
    r"|application|consumer|shared|license|deploy|storage|session|client|webhook|subscription)[ _.-]?key)"
)
_LOGIN_WORD = r"(?:passw(?:or)?d|passwort|passphrase|passcode|pwd|[_.-](?:pass|pw))"
_STAGE = r"(?:[_.-]?(?:prod|production|staging|stage|dev|test|live|main|value|[0-9]{1,2}))?"
_GETS = (
    r"""["'`*_\\)\]]{0,4}(?:[ \t]\([^)\n]{0,30}\))?[ \t]{0,8}"""
    r"""(?::[ \t]{0,4}[A-Za-z]{2,12}(?:\[[A-Za-z]{2,12}\])?[ \t]{0,4}=|=>|->|:=|={1,3}|:|[ \t]\|[ \t]|>)"""
    r"""[*_]{0,3}[ \t]{0,8}["'`*_\\]{0,4}(?:[bru]["'])?"""
)
_PLAIN = r"""[^\s"'`,;<>()\[\]{}|\\]"""
_FIRST = r"""[^\s"'`,;<>()\[\]{}|\\:=]"""
_LAST = r"""[^\s"'`,;<>()\[\]{}|\\.:*]"""


_GIVEN = (
    r"(?i:auth|credential|key|pass|passcode|passphrase|passw(?:or)?d|passwort|pw|pwd|secret|token)[\w.-]*"
    r"""["'`*\\)\]]*(?:[ \t]\([^)\n]*\))?[ \t]*(?::[ \t]*[A-Za-z]+(?:\[[A-Za-z]+\])?[ \t]*=|-?[:=|>])[=>]*"""
    rf"""[ \t"'`*_\\]*(?:[bru]["'])?{_FIRST}{_PLAIN}{{5}}"""
)
_SPOKEN = (
    r"(?i:credential|key|passcode|passphrase|passwd|password|passwort|pwd|secret|token)"
    r"[^\n,;:.()]*[ \t](?:is|was|are|to|=)(?:[ \t]+(?:now|still|currently|set|to|just|simply))*[ \t]*:?[ \t]+"
    r"(?:\S*[0-9!@#$%^*~?+]|\S{20})"
)
_OPTION = r"--(?i:[a-z-]*(?:key|passphrase|passwd|password|secret|token))[ =]"


def _named(name: str, vendor: str, keywords: str, value: str) -> SecretRule:
    """A vendor without a prefix of its own: known only by the name its value is given to."""
    words = (
        rf"(?i:{vendor})[A-Za-z0-9_. -]{{0,24}}?(?i:key|token|secret|password|auth|credential)[A-Za-z_]{{0,10}}{_GETS}"
    )
    return _talk(name, keywords, rf"{words}({value})(?:[^A-Za-z0-9]|\z)", hook=_GIVEN, judge=is_token)


def _written(name: str, words: str, keywords: str, gap: str, least: int, *, hook: str, judge: Judge) -> SecretRule:
    """A value that people wrote down beside the word for it."""
    pattern = f"(?i:{words}){gap}({_FIRST}{_PLAIN}{{{least - 2},}}{_LAST})"
    return _talk(name, keywords, pattern, hook=hook, judge=judge)


_SCHEME = r"""bearer|basic|authorization["']?[ \t]*[:=][ \t]*["']?(?:token|apikey|api-key|key)?"""
_SAID = (
    r"(?:[ \t]+[^\s,;:.()]{1,30}){0,6}?[ \t]+(?:is|was|are|to|=)"
    r"""(?:[ \t]+(?:now|still|currently|set|to|just|simply)){0,2}[ \t]*:?[ \t]+["'`*“‘«]{0,4}"""
)

RULES: tuple[SecretRule, ...] = (
    # Clouds
    _shape("aws-access-key-id", "AKIA ASIA ABIA ACCA", r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b"),
    _named("aws-secret-access-key", r"aws|amazon|secret_?access", "aws amazon access", "[A-Za-z0-9/+]{40}"),
    _named("aws-session-token", r"aws|amazon|session", "aws amazon session", "[A-Za-z0-9/+=]{100,}"),
    _token("aws-bedrock-key", "ABSK bedrock-api-key-", _BASE64, 80),
    _shape("aws-marketplace-token", "amzn.mws.", rf"amzn\.mws\.{_UUID_BODY}"),
    _shape("amazon-client-secret", "amzn1.oa2-cs.", rf"amzn1\.oa2-cs\.v1\.{_HEX}{{40,}}"),
    _token("gcp-api-key", "AIza", _URLSAFE, 35),
    _token("gcp-client-secret", "GOCSPX-", _URLSAFE, 24),
    _token("google-access-token", "ya29.", "[A-Za-z0-9_.-]", 20),
    _token("google-refresh-token", "1//0", _URLSAFE, 35, word=True),
    _block(
        "gcp-service-account-key",
        "private_key",
        r"""private_key\\?["'][ \t]*:[ \t\r\n]*\\?["'](-----BEGIN[^"']{40,})""",
    ),
    _shape("firebase-server-key", ":APA91b", rf"\bAAAA{_URLSAFE}{{7}}:APA91b{_URLSAFE}{{60,}}"),
    _shape("azure-storage-key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{60,}={0,2})"),
    _shape("azure-shared-access-key", "SharedAccessKey=", r"SharedAccessKey=([A-Za-z0-9+/]{30,}={0,2})"),
    _shape("azure-sas-signature", "sig=", r"\bsig=([A-Za-z0-9%+/]{40,}(?:%3[dD]|=)?)", word=True),
    _shape("azure-client-secret", "Q~", r"\b([A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34})"),
    _shape("azure-devops-token", "AZDO", rf"\b({_ALNUM}{{50,100}}AZDO{_ALNUM}{{4}})\b"),
    _shape(
        "azure-marked-key",
        "AzSe AzFu AzCa +ACR +ASt +AEh +ASb ACDb APIM",
        r"(?:^|[^A-Za-z0-9+/_-])([A-Za-z0-9+/_-]{32,90}(?:AzSe|AzFu|AzCa|\+ACR|\+ASt|\+AEh|\+ASb|ACDb|APIM)"
        r"[A-Za-z0-9+/_-]{4,8}={0,2})(?:[^A-Za-z0-9+/=_-]|\z)",
        hook="[A-Za-z0-9+/_-]{4}",
    ),
    _token("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", _HEX, 60),
    _token("alibaba-access-key-id", "LTAI", _ALNUM, 16, word=True),
    _named("alibaba-secret", r"aliyun|alibaba|alicloud", "aliyun alibaba alicloud", "[A-Za-z0-9]{30}"),
    _token("tencent-secret-id", "AKID", _ALNUM, 32, word=True),
    _token("heroku-key", "HRKU-", _URLSAFE, 36),
    _named("heroku-legacy-key", "heroku", "heroku", _UUID_BODY),
    _named("scaleway-secret", r"scw|scaleway", "scw scaleway", _UUID_BODY),
    _token("netlify-token", "nfp_ nfc_ nfo_ nfu_", _ALNUM, 32, word=True),
    _token("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", _ALNUM, 24, word=True),
    _named("vercel-legacy-token", "vercel", "vercel", "[A-Za-z0-9]{24}"),
    _token("render-key", "rnd_", _ALNUM, 28, word=True),
    _token("fly-token", "fm1a_ fm1r_ fm2_ fo1_", "[A-Za-z0-9+/=_,-]", 40),
    _token("cloudflare-token", "cfk_ cfut_ cfat_", _ALNUM, 40, word=True),
    _named("cloudflare-legacy-token", r"cloudflare|\bcf", "cloudflare cf", "[A-Za-z0-9_-]{37,40}"),
    _shape(
        "cloudflare-origin-ca-key", "v1.0-", rf"\bv1\.0-{_HEX}{{24}}-{_HEX}{{100,}}", hook=_begun(_HEX, 8), word=True
    ),
    _named("fastly-token", "fastly", "fastly", "[A-Za-z0-9_-]{32}"),
    # Forges, registries and builds
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, 36),
    _token("github-fine-grained-token", "github_pat_", "[A-Za-z0-9_]", 50),
    _token(
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-",
        "[A-Za-z0-9_.-]",
        20,
    ),
    _token("gitlab-runner-registration", "GR1348941", _URLSAFE, 20),
    _token("bitbucket-app-password", "ATBB", _ALNUM, 24, word=True),
    _token("atlassian-token", "ATATT3 ATCTT3 ATSTT3", "[A-Za-z0-9_=-]", 60),
    _token("npm-token", "npm_", _ALNUM, 36, word=True),
    _shape(
        "npm-registry-auth",
        "_auth",
        r"_auth(?:Token)?[ \t]*=[ \t]*\"?([A-Za-z0-9+/=_-]{16,})",
        hook="(?:Token)?[ \t]*=",
        judge=is_key,
    ),
    _token("pypi-token", "pypi-AgE", _URLSAFE, 50),
    _token("rubygems-key", "rubygems_", _HEX, 40),
    _shape("crates-token", "cio", rf"\bcio{_ALNUM}{{32}}\b", hook=_begun(_ALNUM, 8), word=True),
    _shape("nuget-key", "oy2", r"\boy2[a-z0-9]{43}\b", word=True),
    _token("clojars-token", "CLOJARS_", "[a-z0-9]", 50),
    _token("docker-token", "dckr_pat_ dckr_oat_", _URLSAFE, 24),
    _token("jfrog-key", "AKCp", _ALNUM, 60, word=True),
    _token("circleci-token", "CCIPAT_ CCIPRJ_", "[A-Za-z0-9_]", 40),
    _token("buildkite-token", "bkua_", _HEX, 36),
    _token("pulumi-token", "pul-", _HEX, 40, word=True),
    _shape("terraform-token", ".atlasv1.", rf"\b{_ALNUM}{{14}}\.atlasv1\.{_URLSAFE}{{60,}}"),
    _token("infracost-key", "ico-", _ALNUM, 30, word=True),
    _token("sourcegraph-token", "sgp_ slk_", "[A-Za-z0-9_]", 40, word=True),
    _token("snyk-token", "snyk_uat. snyk_sat.", "[A-Za-z0-9_.-]", 20),
    _named("snyk-legacy-token", "snyk", "snyk", _UUID_BODY),
    _token("prefect-key", "pnu_ pnb_", _ALNUM, 36, word=True),
    _shape(
        "harness-token",
        "pat. sat.",
        rf"\b[ps]at\.{_URLSAFE}{{22}}\.{_HEX}{{24}}\.{_ALNUM}{{20}}",
        hook=_begun(_URLSAFE, 8),
        word=True,
    ),
    # Models
    _token("anthropic-key", "sk-ant-", _URLSAFE, 24),
    _token("openrouter-key", "sk-or-v1-", _HEX, 40),
    _token("langfuse-key", "sk-lf-", "[0-9a-f-]", 36),
    _token("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", _URLSAFE, 20),
    _shape("openai-legacy-key", "T3BlbkFJ", rf"sk-{_URLSAFE}{{12,}}T3BlbkFJ{_URLSAFE}{{12,}}"),
    _token("sk-key", "sk-", _ALNUM, 32, word=True),
    _token("huggingface-token", "hf_ api_org_", _ALNUM, 30, word=True),
    _token("groq-key", "gsk_", _ALNUM, 40, word=True),
    _token("replicate-token", "r8_", _ALNUM, 30, word=True),
    _token("perplexity-key", "pplx-", _ALNUM, 32),
    _token("xai-key", "xai-", _ALNUM, 40, word=True),
    _token("fireworks-key", "fw_", _ALNUM, 22, word=True),
    _token("nvidia-key", "nvapi-", _URLSAFE, 40),
    _token("cerebras-key", "csk-", _ALNUM, 32, word=True),
    _token("pinecone-key", "pcsk_", "[A-Za-z0-9_]", 40),
    _token("voyage-key", "pa-", _URLSAFE, 43, word=True),
    _token("together-key", "tgp_v1_", _URLSAFE, 30),
    _token("tavily-key", "tvly-", _URLSAFE, 24, word=True),
    _token("jina-key", "jina_", _URLSAFE, 50, word=True),
    _token("firecrawl-key", "fc-", _HEX, 32, word=True),
    _token("e2b-key", "e2b_", _HEX, 40, word=True),
    _token("elevenlabs-key", "sk_", _HEX, 48, word=True),
    _token("cursor-key", "key_", _HEX, 64, word=True),
    _token("langsmith-key", "lsv2_pt_ lsv2_sk_", "[0-9a-f_]", 40),
    _named("mistral-key", "mistral", "mistral", "[A-Za-z0-9]{32}"),
    _named("cohere-key", r"cohere|\bco", "cohere co", "[A-Za-z0-9]{40}"),
    _named("deepgram-key", "deepgram", "deepgram", "[0-9a-f]{40}"),
    _named("wandb-key", r"wandb|weights", "wandb weights", "[0-9a-f]{40}"),
    # Talk and mail
    _shape(
        "slack-token",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs-",
        r"(?:xoxe\.)?xox[abcdeoprs]-[A-Za-z0-9%/+=-]{10,}",
    ),
    _token("slack-app-token", "xapp-", "[A-Za-z0-9-]", 20),
    _shape(
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})",
    ),
    _shape(
        "discord-token",
        ".",
        rf"\b([MNO]{_URLSAFE}{{22,27}}\.{_URLSAFE}{{6}}\.{_URLSAFE}{{27,}})",
        hook=rf"{_URLSAFE}{{6}}\.{_begun(_URLSAFE, 20)}",
    ),
    _token("discord-mfa-token", "mfa.", _URLSAFE, 60, word=True),
    _shape(
        "discord-webhook",
        "discord.com/api/ discordapp.com/api/",
        rf"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{{15,20}}/({_URLSAFE}{{40,}})",
    ),
    _shape(
        "teams-webhook",
        "webhook.office.com/",
        rf"webhook\.office\.com/webhookb2/([0-9a-f@-]{{60,}}/IncomingWebhook/{_HEX}{{32}}/[0-9a-f-]{{36}})",
    ),
    _shape("telegram-token", ":AA", rf"\b[0-9]{{8,10}}:AA{_URLSAFE}{{32,}}", hook=_URLSAFE),
    _shape("twilio-key", "SK", rf"\bSK{_HEX}{{32}}\b", hook=f"{_HEX}{{3}}", word=True),
    _talk(
        "twilio-auth-token",
        "ac",
        rf"\bAC{_HEX}{{32}}\b[\s\S]{{1,60}}?\b({_HEX}{{32}})\b",
        hook=rf"\bAC{_HEX}{{8}}",
        judge=is_token,
    ),
    _shape(
        "sendgrid-key",
        "SG.",
        rf"\bSG\.{_URLSAFE}{{16,}}\.{_URLSAFE}{{32,}}",
        hook=_begun(_URLSAFE, 8),
        word=True,
    ),
    _shape("mailgun-key", "key-", rf"\b(?:pub)?key-{_HEX}{{32}}\b", hook=_begun(_HEX, 8)),
    _shape(
        "mailgun-signing-key", "-", rf"\b{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}\b", hook=rf"{_HEX}{{8}}-{_HEX}{{8}}\b"
    ),
    _shape("mailchimp-key", "-us", rf"\b{_HEX}{{32}}-us[0-9]{{1,2}}\b", hook="[0-9]"),
    _shape("brevo-key", "xkeysib- xsmtpsib-", rf"x(?:key|smtp)sib-{_HEX}{{60,}}-{_ALNUM}{{12,}}"),
    _shape(
        "resend-key",
        "re_",
        rf"\bre_{_ALNUM}{{6,12}}_{_ALNUM}{{18,}}",
        hook=rf"{_ALNUM}*(?:_{_ALNUM}{{8}}|_?{_ALNUM}*\r?\n)",
        word=True,
    ),
    # Work
    _token("linear-key", "lin_api_ lin_oauth_ lin_wh_", _ALNUM, 30),
    _token("notion-token", "secret_ ntn_", _ALNUM, 40, word=True),
    _token("figma-token", "figd_ figdr_ figu_ figur_", _URLSAFE, 36, word=True),
    _shape(
        "airtable-token",
        "pat",
        rf"\bpat{_ALNUM}{{14}}\.{_HEX}{{60,}}",
        hook=rf"(?:{_ALNUM}{{14}}\.|{_ALNUM}{{0,14}}[ \t\\]*\r?\n)",
        word=True,
    ),
    _shape("asana-token", "/", r"\b[0-9]/[0-9]{12,20}(?:/[0-9]{12,20})?:[0-9a-f]{32}\b", hook=r"[0-9]{12}"),
    _token("postman-key", "PMAK-", "[0-9a-f-]", 50),
    _token("typeform-token", "tfp_", "[A-Za-z0-9_.=-]", 40, word=True),
    _token("readme-key", "rdme_", "[a-z0-9]", 60),
    _token("contentful-token", "CFPAT-", _URLSAFE, 40),
    _shape("hubspot-token", "pat-", rf"\bpat-[a-z]{{2}}[0-9]-{_UUID_BODY}", hook="[a-z]{2}[0-9]", word=True),
    _token("dropbox-token", "sl.", "[A-Za-z0-9_.-]", 100, word=True),
    _token("frameio-token", "fio-u-", _URLSAFE, 50),
    _token("onepassword-service-token", "ops_eyJ", _URLSAFE, 60),
    _shape(
        "onepassword-secret-key",
        "A3-",
        r"\bA3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b",
        word=True,
    ),
    _named("algolia-key", "algolia", "algolia", "[0-9a-f]{32}"),
    # Watching
    _shape(
        "new-relic-key",
        "NRAK- NRJS- NRII- NRAA- NRAL",
        rf"\bNR(?:AK|JS|II|AA)-[A-Za-z0-9_-]{{19,}}|\b{_HEX}{{30,40}}NRAL\b",
    ),
    _named("datadog-key", r"datadog|\bdd", "datadog dd", "[0-9a-f]{40}|[0-9a-f]{32}"),
    _token("grafana-token", "glc_ glsa_", "[A-Za-z0-9+/=_]", 32, word=True),
    _token("grafana-legacy-key", "eyJrIjoi", _BASE64, 60),
    _token("sentry-token", "sntrys_ sntryu_", "[A-Za-z0-9+/=_]", 40),
    _token("posthog-key", "phx_", _ALNUM, 40, word=True),
    _token("honeycomb-key", "hcaik_ hcxik_ hcamk_", _ALNUM, 40),
    _shape("dynatrace-token", "dt0", r"\bdt0[a-z][0-9]{2}\.[A-Z0-9]{20,}\.[A-Z0-9]{50,}", hook="[a-z][0-9]", word=True),
    _shape("axiom-token", "xaat- xapt-", rf"\bxa(?:at|pt)-{_UUID_BODY}", word=True),
    _shape("launchdarkly-key", "sdk-", rf"\bsdk-{_UUID_BODY}", hook=_begun(_HEX, 8), word=True),
    # Stores of data and of secrets
    _token("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "[A-Za-z0-9_.=-]", 32),
    _token("supabase-token", "sbp_ sb_secret_", _URLSAFE, 20, word=True),
    _token("neon-key", "napi_", "[a-z0-9]", 50, word=True),
    _token("mongodb-atlas-secret", "mdb_sa_sk_", _URLSAFE, 30),
    _token("databricks-token", "dapi", _HEX, 32, word=True),
    _shape(
        "doppler-token",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        rf"\bdp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{{2,35}}\.)?{_ALNUM}{{40,}}",
        word=True,
    ),
    _token("vault-token", "hvs. hvb. hvr.", _URLSAFE, 24, word=True),
    _shape(
        "vault-legacy-token",
        "s.",
        r"(?:^|[^\w.)\]])(s\.[A-Za-z0-9]{24})(?:[^\w.(]|\z)",
        hook=_begun(_ALNUM, 24),
        judge=is_mixed_token,
        word=True,
    ),
    _token("age-key", "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", _UPPER, 50),
    _shape("maxmind-key", "_mmk", rf"\b{_ALNUM}{{6}}_{_ALNUM}{{29}}_mmk\b"),
    _token("openshift-token", "sha256~", _URLSAFE, 40),
    _shape("okta-token", "SSWS", rf"\bSSWS[ \t]+({_URLSAFE}{{40,}})"),
    _shape("tailscale-key", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9]{8,}(?:-[A-Za-z0-9]{12,})?"),
    _token("adafruit-key", "aio_", _ALNUM, 28, word=True),
    # Money and shops
    _token("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", _ALNUM, 16),
    _token("webhook-secret", "whsec_", _BASE64, 24),
    _token("shopify-token", "shpat_ shpca_ shppa_ shpss_ shpua_", "[0-9a-fA-F]", 32),
    _token("square-token", "sq0atp- sq0csp-", _URLSAFE, 22),
    _token("square-access-token", "EAAA", _URLSAFE, 56, word=True),
    _token("facebook-token", "EAA", _ALNUM, 80, word=True),
    _shape(
        "braintree-token",
        "access_token$",
        rf"access_token\$(?:production|sandbox)\$[a-z0-9]{{16}}\${_HEX}{{32}}",
    ),
    _named("paypal-secret", "paypal", "paypal", "[A-Za-z0-9_-]{70,90}"),
    _shape(
        "plaid-token",
        "access-sandbox- access-development- access-production-",
        rf"\baccess-(?:sandbox|development|production)-{_UUID_BODY}",
    ),
    _named("plaid-secret", "plaid", "plaid", "[0-9a-f]{30}"),
    _token("flutterwave-key", "FLWSECK- FLWSECK_TEST-", "[A-Za-z0-9-]", 20),
    _token("duffel-token", "duffel_test_ duffel_live_", _URLSAFE, 40),
    _token("easypost-key", "EZAK EZTK", _ALNUM, 54, word=True),
    _token("shippo-token", "shippo_live_ shippo_test_", _HEX, 40),
    _token("inngest-signing-key", "signkey-prod- signkey-test-", _HEX, 32),
    _shape("mapbox-secret-token", "sk.eyJ", rf"\bsk\.eyJ{_URLSAFE}{{20,}}\.{_URLSAFE}{{20,}}", word=True),
    # Containers
    _shape("jwt", "eyJ", rf"\beyJ{_URLSAFE}{{8,}}\.eyJ{_URLSAFE}{{8,}}(?:\.{_URLSAFE}*)?", word=True),
    _block(
        "private-key",
        "PRIVATE KEY-----  PRIVATE KEY BLOCK-----",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"""(?:\s|\\[rnt]|[>"'+,|*#/\\]|[A-Z][A-Za-z-]{2,20}: [^\n]*\n)*[A-Za-z0-9+/=]{16}[\s\S]*?"""
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    _block(
        "private-key-body",
        "IBAAKCA  b3BlbnNzaC1rZXktdjE",
        r"(?:MII[A-Za-z0-9+/]{2,4}IBAAKCA|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{20,}={0,2}"
        r"(?:(?:\\n|\s){1,4}[A-Za-z0-9+/]{20,}={0,2})*(?:(?:\\n|\s){1,4}[A-Za-z0-9+/]{1,19}={1,2})?",
    ),
    _block(
        "putty-key",
        "Private-Lines:",
        r"Private-Lines: ?[0-9]+\s+[A-Za-z0-9+/=]{16}[\s\S]*?(?:Private-MAC: ?[0-9a-f]+|\z)",
    ),
    _talk(
        "url-password",
        "://",
        r"""\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/?#:@"'<>`]{0,100}:([^\s/?#"'<>`,]+)@[A-Za-z0-9\[_.$%{-]""",
        hook=r"""://[^\s/?#:@"'<>`]*:[^\s/?#"'<>`,]+@""",
        judge=is_url_password,
    ),
    _talk(
        "authorization-header",
        "bearer basic authorization",
        rf"\b(?i:{_SCHEME})[ \t]+([A-Za-z0-9._~+/=-]{{16,}})",
        hook=rf"\b(?i:{_SCHEME})[ \t]+[A-Za-z0-9._~+/=-]{{16}}",
        judge=is_credential,
    ),
    _talk(
        "netrc-password",
        "machine",
        rf"(?i:\bmachine\s+\S+\s+login\s+\S+\s+password\s+)({_PLAIN}{{4,}})",
        hook=r"(?i:\bmachine\s+\S+\s+login\s)",
        judge=is_url_password,
    ),
    _talk(
        "command-password",
        "-u --user sshpass",
        rf"""(?:\s(?:-u|--user)[ =]["']?[\w.@+-]{{1,64}}:|\bsshpass[ \t]+-p[ \t]*["']?)({_PLAIN}{{4,}})""",
        hook=r"""\s(?:-u|--user)[ =]["']?[\w.@+-]*:|\bsshpass[ \t]+-p""",
        judge=is_spoken_password,
    ),
    # What people write down
    _written(
        "option-password",
        r"--[a-z-]{0,20}(?:password|passwd|passphrase)",
        "--",
        r"""[ =]["']?""",
        6,
        hook=_OPTION,
        judge=is_password,
    ),
    _written(
        "option-secret", r"--[a-z-]{0,20}(?:token|secret|key)", "--", r"""[ =]["']?""", 10, hook=_OPTION, judge=is_key
    ),
    _written("assigned-password", _LOGIN_WORD + _STAGE, "pass pwd pw", _GETS, 6, hook=_GIVEN, judge=is_password),
    _written(
        "assigned-secret", _KEY_WORD + _STAGE, "secret token credential key", _GETS, 10, hook=_GIVEN, judge=is_key
    ),
    _written(
        "spoken-password",
        r"\b(?:password|passwort|passwd|passphrase|passcode|pwd)",
        "pass pwd",
        _SAID,
        6,
        hook=_SPOKEN,
        judge=is_spoken_password,
    ),
    _written("spoken-secret", rf"\b{_KEY_WORD}", "secret token credential key", _SAID, 10, hook=_SPOKEN, judge=is_key),
)
