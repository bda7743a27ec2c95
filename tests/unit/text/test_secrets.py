"""What counts as a credential, what only looks like one, and that masking leaves nothing behind.

No credential is written out here, not even a made-up one, because push protection of code hosts reads tests too:
every sample is a template whose random part is drawn, from a fixed seed, when the test runs.
"""

from __future__ import annotations

import builtins
import random
import re
import string
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear
from truekeep.text.secrets import normalise, regex, scanner
from truekeep.text.secrets.rules import load_rules
from truekeep.text.secrets.scanner import Secret, cover_secrets, find_secrets, mask_lines, mask_secrets

RULES = load_rules()

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "B": string.ascii_letters + string.digits + "+/",
    "D": string.digits,
    "H": "0123456789abcdef",
    "L": string.ascii_lowercase + string.digits,
    "Q": "023456789acdefghjklmnpqrstuvwxyz",
    "S": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "T": string.ascii_uppercase + "234567",
    "U": string.ascii_uppercase + string.digits,
    "W": string.ascii_letters + string.digits + "_-",
}

# `{A36}` is 36 drawn letters or digits, `{UUID}` a drawn UUID; «…» marks the value where it is not the whole sample.
SAMPLES = {
    "aws-access-key-id": ["AKIA{T16}", "ASIA{T16}"],
    "aws-secret-access-key": ["aws_secret_access_key = «{B40}»", '"SecretAccessKey": "«{B40}»"'],
    "aws-session-token": ["AWS_SESSION_TOKEN=«{B200}»"],
    "aws-bedrock-key": ["ABSK{A120}"],
    "aws-marketplace-token": ["amzn.mws.{UUID}"],
    "amazon-client-secret": ["amzn1.oa2-cs.v1.{H64}"],
    "gcp-api-key": ["AIza{W35}"],
    "gcp-client-secret": ["GOCSPX-{W28}"],
    "google-access-token": ["ya29.{W60}"],
    "google-refresh-token": ["1//0{A2}{W60}"],
    "gcp-service-account-key": [
        '"private_key": "«-----BEGIN PRIVATE KEY-----\\n{B64}\\n{B64}\\n-----END PRIVATE KEY-----\\n»",'
    ],
    "firebase-server-key": ["AAAA{A7}:APA91b{W134}"],
    "azure-storage-key": ["DefaultEndpointsProtocol=https;AccountName=a;AccountKey=«{B86}==»;EndpointSuffix=x"],
    "azure-shared-access-key": ["Endpoint=sb://x/;SharedAccessKeyName=root;SharedAccessKey=«{B43}=»"],
    "azure-sas-signature": ["https://acc.blob.core.windows.net/c?sv=2022-11-02&se=2030&sig=«{A43}%3D»"],
    "azure-client-secret": ["{A3}8Q~{A34}"],
    "azure-devops-token": ["{A76}AZDO{A4}"],
    "azure-marked-key": ["{A42}AzSeA{A5}", "{A76}+ASt{A6}=="],
    "digitalocean-token": ["dop_v1_{H64}"],
    "alibaba-access-key-id": ["LTAI{A20}"],
    "alibaba-secret": ["ALIYUN_SECRET: «{A30}»"],
    "tencent-secret-id": ["AKID{A32}"],
    "heroku-key": ["HRKU-{UUID}", "HRKU-AA{W58}"],
    "heroku-legacy-key": ["HEROKU_API_KEY=«{UUID}»"],
    "scaleway-secret": ["SCW_SECRET_KEY=«{UUID}»"],
    "netlify-token": ["nfp_{A36}"],
    "vercel-token": ["vcp_{A56}"],
    "vercel-legacy-token": ["VERCEL_TOKEN=«{A24}»"],
    "render-key": ["rnd_{A32}"],
    "fly-token": ["fm2_{B80}", "fo1_{W43}"],
    "cloudflare-token": ["cfut_{A48}"],
    "cloudflare-legacy-token": ["CLOUDFLARE_API_TOKEN=«{A40}»", "CF_API_KEY: «{H37}»"],
    "cloudflare-origin-ca-key": ["v1.0-{H24}-{H146}"],
    "fastly-token": ["FASTLY_API_TOKEN=«{A32}»"],
    "github-token": ["ghp_{A36}", "gho_{A36}", "ghu_{A36}", "ghs_{A36}", "ghr_{A36}"],
    "github-fine-grained-token": ["github_pat_{A22}_{A59}"],
    "gitlab-token": ["glpat-{W20}", "gldt-{W20}", "glrt-{W20}", "glcbt-64_{W20}"],
    "gitlab-runner-registration": ["GR1348941{W20}"],
    "bitbucket-app-password": ["ATBB{A32}"],
    "atlassian-token": ["ATATT3{W180}={U8}", "ATCTT3{W180}={U8}"],
    "npm-token": ["npm_{A36}"],
    "npm-registry-auth": ["//registry.example/:_authToken=«{A36}»", "_auth=«{A30}==»"],
    "pypi-token": ["pypi-AgEI{W150}"],
    "rubygems-key": ["rubygems_{H48}"],
    "crates-token": ["cio{A32}"],
    "nuget-key": ["oy2{L43}"],
    "clojars-token": ["CLOJARS_{L60}"],
    "docker-token": ["dckr_pat_{W27}"],
    "jfrog-key": ["AKCp{A69}"],
    "circleci-token": ["CCIPAT_{A22}_{H40}"],
    "buildkite-token": ["bkua_{H40}"],
    "pulumi-token": ["pul-{H40}"],
    "terraform-token": ["{A14}.atlasv1.{W67}"],
    "infracost-key": ["ico-{A32}"],
    "sourcegraph-token": ["sgp_{H16}_{H40}", "slk_{H64}"],
    "snyk-token": ["snyk_uat.{H8}.{W40}"],
    "snyk-legacy-token": ["SNYK_TOKEN=«{UUID}»"],
    "prefect-key": ["pnu_{A36}"],
    "harness-token": ["pat.{W22}.{H24}.{A20}"],
    "anthropic-key": ["sk-ant-api03-{W93}AA", "sk-ant-oat01-{W93}AA"],
    "openrouter-key": ["sk-or-v1-{H64}"],
    "langfuse-key": ["sk-lf-{UUID}"],
    "openai-key": ["sk-proj-{W120}", "sk-svcacct-{W60}", "sk-proj-{W74}T3BlbkFJ{W74}"],
    "openai-legacy-key": ["sk-{A20}T3BlbkFJ{A20}"],
    "sk-key": ["sk-{H32}", "sk-{A48}"],
    "huggingface-token": ["hf_{A34}"],
    "groq-key": ["gsk_{A52}"],
    "replicate-token": ["r8_{A37}"],
    "perplexity-key": ["pplx-{A48}"],
    "xai-key": ["xai-{A80}"],
    "fireworks-key": ["fw_{A24}"],
    "nvidia-key": ["nvapi-{W64}"],
    "cerebras-key": ["csk-{L48}"],
    "pinecone-key": ["pcsk_{A6}_{A63}"],
    "voyage-key": ["pa-{W43}"],
    "together-key": ["tgp_v1_{W43}"],
    "tavily-key": ["tvly-dev-{A32}"],
    "jina-key": ["jina_{H32}{W28}"],
    "firecrawl-key": ["fc-{H32}"],
    "e2b-key": ["e2b_{H40}"],
    "elevenlabs-key": ["sk_{H48}"],
    "cursor-key": ["key_{H64}"],
    "langsmith-key": ["lsv2_pt_{H32}_{H10}"],
    "mistral-key": ["MISTRAL_API_KEY=«{A32}»"],
    "cohere-key": ["COHERE_API_KEY: «{A40}»", 'CO_API_KEY="«{A40}»"'],
    "deepgram-key": ["DEEPGRAM_API_KEY=«{H40}»"],
    "wandb-key": ["WANDB_API_KEY=«{H40}»"],
    "slack-token": ["xoxb-{D12}-{D12}-{A24}", "xoxp-{D12}-{D12}-{D12}-{H32}", "xoxe.xoxp-1-{A120}"],
    "slack-app-token": ["xapp-1-{U11}-{D13}-{H64}"],
    "slack-webhook": ["https://hooks.slack.com/services/«T{U10}/B{U10}/{A24}»"],
    "discord-token": ["M{A25}.{W6}.{W38}"],
    "discord-mfa-token": ["mfa.{W84}"],
    "discord-webhook": ["https://discord.com/api/webhooks/{D18}/«{W68}»"],
    "teams-webhook": ["https://org.webhook.office.com/webhookb2/«{UUID}@{UUID}/IncomingWebhook/{H32}/{UUID}»"],
    "telegram-token": ["{D10}:AA{W33}"],
    "twilio-key": ["SK{H32}"],
    "twilio-auth-token": ["Twilio AC{H32} with «{H32}»"],
    "sendgrid-key": ["SG.{W22}.{W43}"],
    "mailgun-key": ["key-{H32}"],
    "mailgun-signing-key": ["{H32}-{H8}-{H8}"],
    "mailchimp-key": ["{H32}-us19"],
    "brevo-key": ["xkeysib-{H64}-{A16}"],
    "resend-key": ["re_{A8}_{A24}"],
    "linear-key": ["lin_api_{A40}"],
    "notion-token": ["ntn_{A46}", "secret_{A43}"],
    "figma-token": ["figd_{W40}"],
    "airtable-token": ["pat{A14}.{H64}"],
    "asana-token": ["1/{D16}:{H32}"],
    "postman-key": ["PMAK-{H24}-{H34}"],
    "typeform-token": ["tfp_{W44}_{W10}"],
    "readme-key": ["rdme_{L70}"],
    "contentful-token": ["CFPAT-{W43}"],
    "hubspot-token": ["pat-na1-{UUID}"],
    "dropbox-token": ["sl.{W130}"],
    "frameio-token": ["fio-u-{W64}"],
    "onepassword-service-token": ["ops_eyJ{W200}"],
    "onepassword-secret-key": ["A3-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}"],
    "algolia-key": ["ALGOLIA_ADMIN_KEY=«{H32}»"],
    "new-relic-key": ["NRAK-{U27}", "{H36}NRAL"],
    "datadog-key": ["DD_API_KEY=«{H32}»", "datadog app key: «{H40}»"],
    "grafana-token": ["glsa_{A32}_{H8}", "glc_{A60}"],
    "grafana-legacy-key": ["eyJrIjoi{A70}"],
    "sentry-token": ["sntrys_{A80}_{A43}", "sntryu_{H64}"],
    "posthog-key": ["phx_{A43}"],
    "honeycomb-key": ["hcaik_{L58}"],
    "dynatrace-token": ["dt0c01.{U24}.{U64}"],
    "axiom-token": ["xaat-{UUID}"],
    "launchdarkly-key": ["sdk-{UUID}"],
    "planetscale-token": ["pscale_tkn_{W43}", "pscale_pw_{W43}"],
    "supabase-token": ["sbp_{H40}", "sb_secret_{W31}"],
    "neon-key": ["napi_{L64}"],
    "mongodb-atlas-secret": ["mdb_sa_sk_{W40}"],
    "databricks-token": ["dapi{H32}"],
    "doppler-token": ["dp.pt.{A43}", "dp.st.prd.{A43}"],
    "vault-token": ["hvs.{W95}", "hvb.{W120}"],
    "vault-legacy-token": ["s.{A12}7{A11}"],
    "age-key": ["AGE-SECRET-KEY-1{U58}"],
    "maxmind-key": ["{A6}_{A29}_mmk"],
    "openshift-token": ["sha256~{W43}"],
    "okta-token": ["Authorization: SSWS «00{W40}»"],
    "tailscale-key": ["tskey-auth-{A12}CNTRL-{A32}"],
    "adafruit-key": ["aio_{A28}"],
    "stripe-key": ["sk_live_{A24}", "rk_live_{A24}", "sk_test_{A99}"],
    "webhook-secret": ["whsec_{A32}"],
    "shopify-token": ["shpat_{H32}", "shpss_{H32}"],
    "square-token": ["sq0atp-{W22}", "sq0csp-{W43}"],
    "square-access-token": ["EAAA{W60}"],
    "facebook-token": ["EAAB{A160}"],
    "braintree-token": ["access_token$production${L16}${H32}"],
    "paypal-secret": ["PAYPAL_CLIENT_SECRET=«{A80}»"],
    "plaid-token": ["access-production-{UUID}"],
    "plaid-secret": ["PLAID_SECRET=«{H30}»"],
    "flutterwave-key": ["FLWSECK-{H32}-X", "FLWSECK_TEST-{H32}-X"],
    "duffel-token": ["duffel_live_{W43}"],
    "easypost-key": ["EZAK{A54}"],
    "shippo-token": ["shippo_live_{H40}"],
    "inngest-signing-key": ["signkey-prod-{H64}"],
    "mapbox-secret-token": ["sk.eyJ{A80}.{A22}"],
    "brave-search-key": ["BSA{A27}4"],
    "artifactory-reference-token": ["cmVmdGtu{A56}"],
    "ntfy-token": ["tk_{L28}4"],
    "nostr-private-key": ["nsec1{Q58}"],
    "bitcoin-private-key": ["5K{S48}7", "K{S50}7", "xprv{S107}"],
    "docker-config-auth": ['"auth": "«{B28}==»"'],
    "jwt": ["eyJ{W33}.eyJ{W60}.{W43}"],
    "private-key": [
        "-----BEGIN RSA PRIVATE KEY-----\n{B64}\n{B64}\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{B70}\n{B70}\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 2\n\n{B64}\n={B4}\n-----END PGP PRIVATE KEY BLOCK-----",
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{U32}\n\n{B64}\n{B64}\n",
    ],
    "private-key-body": ["MIIEpAIBAAKCAQEA{B60}\n{B64}", "b3BlbnNzaC1rZXktdjE{B60}\n{B70}"],
    "putty-key": ["PuTTY-User-Key-File-3: ssh-rsa\n«Private-Lines: 2\n{B64}\n{B64}\nPrivate-MAC: {H64}»"],
    "url-password": [
        "postgres://app:«{A12}»@db.internal:5432/app",
        "https://oauth2:«{A400}»@github.com/a/b",
        "redis://:«{A16}»@cache:6379/0",
        "https://deploy:«{A9}»@git.acme.dev/x.git",
        "mongodb+srv://svc:«p@{A9}»@cluster0.mongodb.net/db",
    ],
    "authorization-header": [
        "Authorization: Bearer «{A40}»",
        "authorization: Basic «{A22}==»",
        "curl -H 'Authorization: token «{H40}»'",
    ],
    "netrc-password": ["machine git.acme.dev login bot password «{A10}»"],
    "command-password": ["curl -u admin:«{A4}7{A5}3» https://host/x", "sshpass -p «{A4}7{A5}3» ssh host"],
    "option-password": ["mysqldump --password=«{A4}7{A5}3» db", "tool --admin-password «{A4}7{A5}3»"],
    "option-secret": ["deploy --token «{A6}4{A8}9{A5}»", "deploy --api-key=«{A6}4{A8}9{A5}»"],
    "assigned-password": [
        'password = "«{A4}7{A5}3»"',
        'password = "«{A4}7{A5}3,(x;]{}»"',
        '\\"password\\": \\"«{A4}7{A5}3;{A3}»\\",',
        "DB_PASSWORD=«{A4}7{A5}3»",
        "pwd: «{A4}7!{A4}»",
        '"passwd": "«{A4}7{A5}3»",',
        "| password | «{A4}7{A5}3» |",
        "**Password:** «{A4}7{A5}3»",
        "<password>«{A4}7{A5}3»</password>",
        "SMTP_PASS='«{A4}7{A5}3»'",
        "password (staging): `«{A4}7{A5}3»`",
        'db_password: str = "«{A4}7{A5}3»"',
        "password: «hunter{D1}»",
    ],
    "assigned-secret": [
        'api_key = "«{A6}4{A8}9{A5}»"',
        "CLIENT_SECRET=«{A6}4{A8}9{A5}»",
        "token: «{H40}»",
        "token: «{A900}»",
        "'accessKey': '«{A6}4{A8}9{A5}»'",
        'token = b"«{A6}4{A8}9{A5}»"',
        "X-Api-Key: «{A6}4{A8}9{A5}»",
        'const authToken: string = "«{A6}4{A8}9{A5}»";',
        "SECRET_KEY_BASE = x; APP_SECRET := `«{A6}4{A8}9{A5}»`",
    ],
    "spoken-password": [
        "the password is «hunter{D1}».",
        "Root password for staging is `«{A4}7{A4}»`, do not lose it",
        "we changed the password to «{A4}7!{A4}»",
        "passphrase for the backup was: «{A4}7{A4}»",
    ],
    "uuid-api-key": ["- API key: `«{UUID}»`", "SERVICE_API_KEY=«{UUID}»"],
    "described-password": ["Password for the staging db: «{A4}7{A5}3»", "root pw on db1: `«{A4}7{A5}3»`"],
    "described-secret": ["the API token for the mail service: «{A6}4{A8}9{A5}»"],
    "foreign-password": ["Пароль от базы: «{A4}7{A5}3»", "密码是«{A4}7{A5}3»。", "La contraseña es «{A4}7{A5}3»"],
    "foreign-secret": ["API 密钥：«{A6}4{A8}9{A5}»", "Токен бота — `«{A6}4{A8}9{A5}»`"],
    "spoken-secret": ["the API key is «{A9}4{A8}9{A5}»", "the token for CI is now `«{H32}»`"],
}
CASES = [(rule, template) for rule, templates in SAMPLES.items() for template in templates]
JOINED = [(rule.name, SAMPLES[rule.name][0]) for rule in RULES if rule.joins and "«" not in SAMPLES[rule.name][0]]


def drawn(template: str, seed: int = 0) -> tuple[str, int, int]:
    """The sample of a template, and where its value begins and ends."""
    chance = random.Random(f"{template}{seed}")

    def draw(place: re.Match[str]) -> str:
        if place[0] == "{UUID}":
            return "-".join("".join(chance.choices(ALPHABETS["H"], k=n)) for n in (8, 4, 4, 4, 12))
        return "".join(chance.choices(ALPHABETS[place[1]], k=int(place[2])))

    marked = re.sub(r"\{UUID\}|\{([ABDHLQSTUW])([0-9]+)\}", draw, template)
    start, end = marked.find("«"), marked.find("»")
    sample = marked.replace("«", "").replace("»", "")
    return (sample, start, end - 1) if start >= 0 else (sample, 0, len(sample))


def a_token(seed: int = 0) -> str:
    return drawn("ghp_{A36}", seed)[0]


# --- Found ----------------------------------------------------------------------------------------------------------


def test_every_rule_has_a_sample() -> None:
    assert set(SAMPLES) == {rule.name for rule in RULES}
    assert len(RULES) == len(SAMPLES) >= 90


@pytest.mark.parametrize(("rule", "template"), CASES)
def test_a_sample_is_found_where_it_stands(rule: str, template: str) -> None:
    for seed in range(5):
        sample, start, end = drawn(template, seed)
        text = f"Notes on é and ☕ first.\n\n{sample}\n"
        before = text.index(sample)
        if template.startswith("-----BEGIN") and "-----END" not in template:
            end += 1  # without an END line the block runs to the end of the text
        assert find_secrets(text) == (Secret(rule=rule, start=before + start, end=before + end),)


@pytest.mark.parametrize(("rule", "template"), CASES)
def test_masking_removes_the_value_wholly(rule: str, template: str) -> None:
    sample, start, end = drawn(template, 7)
    masked = mask_secrets(f"Before {sample} after\n")
    assert masked is not None
    assert f"[secret: {rule}]" in masked
    assert sample[start:end] not in masked
    assert masked.startswith("Before ")
    assert mask_secrets(masked) == masked


@pytest.mark.parametrize(
    "frame",
    [
        "---\ntitle: x\nsource: {}\n---\n",
        "```sh\nexport GH={}\n```\n",
        "[link](https://host/path?access={}&x=1)",
        "![]({})",
        "<!-- {} -->",
        "notes-{}.md",
        "> quoted {}",
        "| a | {} |",
        '{{"a": ["{}"]}}',
        "x{}",
        "é{}é",
        "{}",
        "\ufeff{}",
        "\ud800{}\udfff",
        "\x00{}\x00",
    ],
)
def test_a_token_is_found_in_every_part_of_a_page(frame: str) -> None:
    token = a_token()
    text = frame.format(token)
    secrets_found = find_secrets(text)
    assert [secret.rule for secret in secrets_found] == ["github-token"]
    assert text[secrets_found[0].start : secrets_found[0].end] == token
    assert mask_secrets(text) == frame.format("[secret: github-token]")


def test_several_secrets_come_in_order_and_apart() -> None:
    first, second = a_token(1), drawn("xoxb-{D12}-{D12}-{A24}")[0]
    text = f"{second} then {first}\npassword: {drawn('{A9}7')[0]}\n"
    found = find_secrets(text)
    assert [secret.rule for secret in found] == ["slack-token", "github-token", "assigned-password"]
    assert all(a.end <= b.start for a, b in pairwise(found))


def test_overlapping_finds_are_one_named_by_the_vendor() -> None:
    token = a_token()
    text = f'token = "{token}"'
    assert find_secrets(text) == (Secret(rule="github-token", start=9, end=9 + len(token)),)


def test_a_value_that_was_found_once_is_masked_wherever_it_stands() -> None:
    value = drawn("{A9}7{A6}")[0]
    text = f"Log in as ada with {value}.\n- password: {value}\n\nÜ: mytool -p{value}, `{value[:4]}\u200b{value[4:]}`\n"
    mark = "[secret: assigned-password]"
    assert mask_secrets(text) == f"Log in as ada with {mark}.\n- password: {mark}\n\nÜ: mytool -p{mark}, `{mark}`\n"
    assert mask_lines(text) == mask_secrets(text)
    assert value not in cover_secrets(text)


def test_of_two_values_that_begin_alike_the_longer_one_is_masked_whole() -> None:
    value = drawn("{A9}7{A6}")[0]
    text = f"pwd: {value}\npwd: {value}x9\nnow {value}x9, before {value}\n"
    mark = "[secret: assigned-password]"
    assert mask_secrets(text) == f"pwd: {mark}\npwd: {mark}\nnow {mark}, before {mark}\n"


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("password: 482913\nInvoice 14829137 and 482913x", "Invoice 14829137 and 482913x"),
        ("pwd: hun7er\nthe hun7ers", "the hun7ers"),
        ("postgres://app:carts@db.internal/x\nThe carts are in `app/carts.py`.", "The carts are in `app/carts.py`."),
    ],
)
def test_a_short_value_or_a_word_is_not_looked_for_in_other_words(text: str, stays: str) -> None:
    masked = str(mask_secrets(text))
    assert masked.startswith(text.split("\n")[0][:5])
    assert "[secret: " in masked
    assert masked.endswith(stays)


@pytest.mark.parametrize("end", ["", ".", "\n"])
def test_a_short_value_is_masked_at_the_end_of_a_text(end: str) -> None:
    assert "hun7er" not in str(mask_secrets(f"pwd: hun7er\nuse hun7er{end}"))


def test_a_refused_value_does_not_hide_one_inside_it() -> None:
    text = f"secret: https://host.internal/?api_key={drawn('{A6}4{A8}9{A5}')[0]}"
    assert [secret.rule for secret in find_secrets(text)] == ["assigned-secret"]


@pytest.mark.parametrize("is_before", [True, False])
def test_the_other_half_of_a_key_pair_is_masked_whole_where_the_look_around_ends(is_before: bool) -> None:
    name, other = drawn("AKIA{T16}")[0], "wJ4rXUtnFEMI7K9MDENGbPxRfiCYq3H8zTk2LsVd"
    for gap in range(250, 310, 5):
        between = " " + ("ordinary words here " * 20)[: gap - 2] + " "
        text = f"{other}{between}{name}" if is_before else f"{name}{between}{other}"
        masked = mask_secrets(text) or ""
        assert (other in masked) == (gap >= 300)
        assert gap >= 300 or not any(other[at : at + 6] in masked for at in range(34)), (gap, masked)


def test_a_key_block_ends_at_its_end_line_and_text_after_it_stays() -> None:
    block = drawn(SAMPLES["private-key"][0])[0]
    assert (
        mask_secrets(f"one\n{block}\ntwo {block} three")
        == "one\n[secret: private-key]\ntwo [secret: private-key] three"
    )


# --- Not found ------------------------------------------------------------------------------------------------------

EXAMPLE = "EXAMPLE"  # apart, so that the keys in Amazon's own documentation are not written out either
LOOK_ALIKES = [
    # Identities and digests
    "Fixed in {H40}, see also {H7}.",
    "commit {H40}\nAuthor: A <a@b.c>",
    "dist/assets/index-CQnl8oWA.js and index-{A8}.css",
    "chunk-{U8}.mjs, main.{H20}.js",
    "sha256:{H64}",
    "image: nginx:1.25@sha256:{H64}",
    "docker://alpine:3.8@sha256:{H64}",
    "{H64}  truekeep-1.0.tar.gz",
    "md5 {H32}",
    "id {UUID}",
    "- **Session Key**: agent:main:telegram:direct:4471190023",
    "- **Session Key:** agent:main:telegram:group:-1009944771100:topic:12",
    "session_key: agent:main:subagent:{UUID}",
    "sessionKey=agent:ops:cron:{UUID}:run:{UUID}",
    "Session key: agent:main:slack:channel:c0zz9qk3tt8",
    "Lauf-Pass: 12.345→11.870",
    "Token: SHOP-4c0fe2 is the currency of the fair",
    "Token: 0x52908400098527886E0F7030069857D2E4169EE7",
    "Token: 9noXzpXnkyEcKF3AeXqUHTdR59V5uvrRBUo9bwsHaByz, its wallet is empty",
    "app_token: bascnCMII2ORej2RItqpZZUNMIe",
    "session {UUID} resumed",
    "id: 01{U24}",
    "ulid 01ARZ3NDEKTSV4RRFFQ69G5FAV",
    '"integrity": "sha512-{B86}==",',
    '"resolved": "https://registry.example/a/-/a-1.0.0.tgz#{H40}"',
    "![](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{B400}==)",
    "--hash=sha256:{H64}",
    "etag: W/{H32}",
    "digest = {H64}",
    "key: {H12}",
    "cache-key: v3-{H16}-linux",
    "token: {UUID}",
    "token: sha256:{H64}",
    "-----BEGIN CERTIFICATE-----\n{B64}\n{B64}\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n{B64}\n-----END PUBLIC KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{B43} me@host",
    "go.sum: github.com/x/y v1.2.3 h1:{B43}=",
    "Twilio account AC{H32} is ours",
    # Placeholders
    f"AKIAIOSFODNN7{EXAMPLE}",
    f"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY{EXAMPLE}KEY",
    "api_key = YOUR_API_KEY",
    'api_key: "<your-api-key>"',
    "token: <token>",
    "token = ${TOKEN}",
    "token=$TOKEN",
    "password: {{ vault_db_password1 }}",
    "password: {% raw %}",
    "password = %(db_password1)s",
    "password: xxxxxxxxxxxx",
    "password: ************",
    "password=changeme1",
    'password = "example-1"',
    "password: REDACTED1",
    'password: "…"',
    "password: ......",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_************************************",
    "export GITHUB_TOKEN=ghp_YOUR_TOKEN_HERE",
    "sk-ant-api03-... goes into the keychain",
    "sk-ant-your-key-goes-here-please",
    "sk-proj-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "xoxb-not-a-real-token",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer ${{ secrets.GITHUB_TOKEN }}",
    "Authorization: Bearer <token>",
    "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "postgres://user:password@localhost:5432/db",
    "postgres://user:pass@host/db",
    "postgres://postgres:postgres@localhost/test",
    "https://user:${PASSWORD}@host/x",
    "https://user:$PASSWORD@host/x",
    "https://user:<password>@host/x",
    "https://user:****@host/x",
    "https://USER:PASSWORD@host/x",
    "https://x-access-token:TOKEN@github.com/a/b",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx",
    # Code that fetches one
    'password = os.environ["DB_PASSWORD1"]',
    'token = os.getenv("TOKEN_V2")',
    "token: process.env.API_TOKEN2,",
    "const apiKey = process.env.OPENAI_API_KEY;",
    "api_key=config.services.v2.api_key",
    "password = get_password_v2(user)",
    "token = await fetchTokenV2(session)",
    "secret = self._secrets[name]",
    "apiKey: import.meta.env.VITE_KEY1",
    "password: Optional[str] = None",
    "token: str | None = None",
    "password: string;",
    "tokens = tokenizer.encode(text)",
    "return Authorization.bearer(tokenFromKeychain)",
    "if (password === confirmPassword2) {",
    "password: !vault |",
    "password: op://Private/db/password1",
    "secret: vault:secret/data/app#key1",
    "secret: projects/my-app1/secrets/db-password/versions/3",
    "secretName: app-db-credentials-v2",
    "token_path: /run/secrets/token_v2",
    "password: /run/secrets/db_password1",
    "credentials: ~/.config/gcloud/key2.json",
    "private_key = keys/id_ed25519.pem",
    "token_url: https://login.acme.dev/oauth2/v2.0/token",
    "api key: see docs/api-key-v2.md",
    "secret_arn: arn:aws:secretsmanager:eu-west-1:123456789012:secret:db",
    "const key = `user:${id}:v2`",
    # Talk
    "the password is stored in 1Password",
    "the password is in 1Password under db-prod-2",
    "The token is read from the keychain.",
    "the secret is in Vault at kv/app2",
    "the password is hashed with argon2id",
    "password is base64-encoded, then sha256-hashed",
    "switch password hashing to PBKDF2-SHA256",
    "the password is at least 12 characters",
    "the token is valid for 3600s",
    "the API key was rotated on 2026-01-05",
    "token is a JWT signed with RS256",
    "passwordless login via WebAuthn2",
    "a token bucket with 100 tokens: refill 10/s",
    "secret santa: draw names on 2026-12-01",
    "max_tokens: 4096, token_count=123456",
    "tokenizer: gpt2-medium-v1",
    "The secretary: Anna Schmidt-1984",
    "DB_PASSWORD, API_TOKEN and AWS_SECRET_ACCESS_KEY must be set",
    "env vars: GITHUB_TOKEN, OPENAI_API_KEY",
    "password: required, min 8",
    "| Password | Description |\n|---|---|\n| token | the access token |",
    "The `password` field is `string`; `token` is `null`.",
    "primary key: user_id, foreign key -> orders.user_id2",
    "pwd: /srv/main",
    "PWD=/home/dev2/project",
    "--token-file ./token2.txt --key id_rsa2",
    "docker run -u 1000:1000 image",
    "curl -u admin:admin http://localhost",
    "http://localhost:8080/path@v2 and http://127.0.0.1:3000",
    "git@github.com:org/repo.git and ssh://git@github.com:22/org/repo",
    "https://cdn.jsdelivr.net:443/npm/vue@3",
    "mail admin@acme.dev or http://acme.dev:80",
    "files start with `-----BEGIN RSA PRIVATE KEY-----` and we never keep them\n\nMore prose follows here.",
    "GitHub tokens start with ghp_ or github_pat_; Slack ones with xoxb-.",
    "npm_config_registry and npm_package_version are set by npm",
    "sk-learn-compatible-estimators-for-everyone",
    "task-runner, risk-assessment-of-2026, disk-usage",
    "the hf_hub_download_with_resume_and_more function",
    "s.translateEverythingTwice(x)",
    "Bearer authentication-with-refresh-tokens is on",
    "basic understanding-of-the-problem first",
    "src/truekeep/secrets.py\nsrc/truekeep/model.py\nsrc/truekeep/very_long_module_name_here.py",
    "See the documentation\nfor-the-long-kebab-case-name-of-this-thing.",
    "Emoji ⚠️ and 👩‍💻 and ﬁne print ①②③ are text.",
    "ｐａｓｓｗｏｒｄ policy is ｆｕｌｌ width",
    "a_b \\_escaped\\_ underscores\\_everywhere in\\_Markdown",
    "[secret: github-token] and password: [secret: assigned-password]",
    "",
]


@pytest.mark.parametrize("template", LOOK_ALIKES)
def test_a_look_alike_is_left_alone(template: str) -> None:
    for seed in range(20):
        text = drawn(template, seed)[0]
        assert find_secrets(text) == ()
        assert mask_secrets(text) == text


LISTED_PASSWORDS = [
    "VNC works (port 5900, password «Kestrel{D2}»)",
    "the console (port 5900, password «kestrel{D1}») is up",
    "(ssh to 10.0.0.4; user ada; password `«maple{D1}tree»`)",
    "(password «KestrelBay», port 22)",
    "login (user: ada, pw «hawk{D3}9», rarely used)",
    "on the NAS (host 10.0.0.7, port 5900, and password «48213377»)",
]
UNLISTED_PASSWORDS = [
    "(port 5900, password is required)",
    "(port 5900, password required)",
    "(port 5900, password protected)",
    "(port 5900, no password)",
    "(port 5900, password optional since v2)",
    "(port 5432, password DB_PASSWORD)",
    "(port 5432, password $PGPASSWORD)",
    "(user ada, password sha256)",
    "(user ada, password KeePassXC)",
    "(user ada, password LastPass)",
    "(OAuth2, password argon2id)",
    "(see docs, password Policy2024)",
    "(port 22, passwords Policy2024)",
]


@pytest.mark.parametrize("template", LISTED_PASSWORDS)
def test_a_password_in_a_list_in_brackets_is_found(template: str) -> None:
    for seed in range(20):
        text, start, end = drawn(template, seed)
        assert [(secret.start, secret.end) for secret in find_secrets(text)] == [(start, end)], text


@pytest.mark.parametrize("template", UNLISTED_PASSWORDS)
def test_a_word_about_passwords_in_brackets_stays(template: str) -> None:
    assert find_secrets(template) == ()


LABELLED = tomllib.loads((Path(__file__).parents[2] / "samples" / "credentials.toml").read_text(encoding="utf-8"))
MIN_FOUND, MAX_FALSE = 0.97, 0.01


@pytest.mark.parametrize("half", ["development", "held_out"])
def test_labelled_lines(half: str) -> None:
    drawn_twice = [(template, seed) for template in LABELLED[half]["credential"] for seed in range(10)]
    missed = [template for template, seed in drawn_twice if not _is_found(template, seed)]
    assert len(missed) <= (1 - MIN_FOUND) * len(drawn_twice), Counter(missed)
    ordinary = [(template, seed) for template in LABELLED[half]["ordinary"] for seed in range(10)]
    wrong = [template for template, seed in ordinary if find_secrets(drawn(template, seed)[0])]
    assert len(wrong) <= MAX_FALSE * len(ordinary), Counter(wrong)


def _is_found(template: str, seed: int) -> bool:
    """Whether all of a value is found, up to a closing sign that may belong to the sentence."""
    text, start, end = drawn(template, seed)
    value_end = end - (text[end - 1] in "!?")
    return any(secret.start <= start and value_end <= secret.end for secret in find_secrets(text)) or (
        "«" not in template and bool(find_secrets(text))
    )


def test_tokens_of_two_vendors_keep_their_names() -> None:
    text = drawn("AKIA{T16} and token=ghp_{A36}")[0]
    assert [secret.rule for secret in find_secrets(text)] == ["aws-access-key-id", "github-token"]


def test_markers_are_never_taken_for_secrets() -> None:
    for rule in RULES:
        text = f"password: [secret: {rule.name}] and https://u:[secret: {rule.name}]@h\ntoken [secret: {rule.name}]"
        assert find_secrets(text) == ()


# --- Hidden and broken tokens ---------------------------------------------------------------------------------------

HIDDEN = [
    "\u200b",
    "\u200d",
    "\u200f",
    "\u2060",
    "\u2064",
    "\ufeff",
    "\u00ad",
    "\U000e0041",
    "\ufe0f",
    "\U000e0101",
    "\x00",
]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("everywhere", [False, True])
def test_hidden_characters_do_not_hide_a_token(hidden: str, everywhere: bool) -> None:
    token = a_token()
    veiled = hidden.join(token) if everywhere else f"{token[:20]}{hidden}{token[20:]}"
    text = f"é{hidden}x {veiled} after{hidden}"
    start = text.index(veiled)
    assert find_secrets(text) == (Secret(rule="github-token", start=start, end=start + len(veiled)),)
    assert mask_secrets(text) == f"é{hidden}x [secret: github-token] after{hidden}"


def test_a_letter_and_a_hidden_character_before_a_token_do_not_hide_it() -> None:
    token = a_token()
    text = f"word\u200b{token[:15]}\u200b{token[15:]}"
    assert mask_secrets(text) == "word\u200b[secret: github-token]"


def test_hidden_characters_do_not_hide_a_password() -> None:
    text = f"pass\u200bword: {drawn('{A5}')[0]}\u200b{drawn('{A5}7')[0]}"
    assert mask_secrets(text) == "pass\u200bword: [secret: assigned-password]"


def test_markdown_escapes_do_not_hide_a_token() -> None:
    token = drawn("github_pat_{A22}_{A59}")[0].replace("_", "\\_")
    assert mask_secrets(f"a {token} b") == "a [secret: github-fine-grained-token] b"


def test_full_width_letters_do_not_hide_a_token() -> None:
    token = a_token()
    wide = "".join(chr(ord(character) + 0xFEE0) for character in token)
    masked = mask_secrets(f"one\ntwo {wide} three\nfour")
    assert masked is not None
    assert wide not in masked
    assert unicodedata.normalize("NFKC", masked).find(token) < 0
    assert masked.startswith("one\n")
    assert masked.endswith("\nfour")


def test_folding_moves_no_offset() -> None:
    for first, last in normalise.COMPATIBLE:
        for code in range(first, last + 1):
            assert len(unicodedata.normalize("NFKC", chr(code))) == 1


@pytest.mark.parametrize(
    "rule", ["github-token", "aws-access-key-id", "anthropic-key", "jwt", "gcp-api-key", "slack-token"]
)
@pytest.mark.parametrize("seam", ["\n", "\r\n", "  \n", "\n    ", "\n> ", "\\\n"])
def test_a_line_break_anywhere_does_not_hide_a_token(rule: str, seam: str) -> None:
    token = drawn(SAMPLES[rule][0])[0]
    for at in range(1, len(token)):
        text = f"Some words, then {token[:at]}{seam}{token[at:]} and more."
        masked = mask_secrets(text)
        assert masked is not None
        assert token[:at][-8:] not in masked or at < 8, at
        assert token[at:][:8] not in masked or len(token) - at < 8, at
        assert find_secrets(text)
        assert masked.startswith("Some words, then ")
        assert masked.endswith(" and more.")


@pytest.mark.parametrize(("rule", "template"), JOINED)
def test_every_token_format_is_found_across_a_line_break(rule: str, template: str) -> None:
    sample = drawn(template, 3)[0]
    at = len(sample) // 2
    assert find_secrets(f"x {sample[:at]}\n{sample[at:]}\n")


def test_a_token_over_three_lines_is_found() -> None:
    token = drawn("sk-ant-api03-{W93}AA")[0]
    text = f"k {token[:40]}\n{token[40:80]}\n{token[80:]}\nThe end."
    assert mask_secrets(text) == "k [secret: anthropic-key]\nThe end."


def test_the_word_after_a_token_at_the_end_of_a_line_stays() -> None:
    token = drawn("sk-ant-api03-{W93}AA")[0]
    assert mask_secrets(f"key {token}\nnext line") == "key [secret: anthropic-key]\nnext line"


def test_many_words_after_a_broken_token_do_not_hide_it() -> None:
    token = drawn("sk-ant-api03-{W93}AA")[0]
    text = f"k {token[:20]}\n{token[20:]}\n" + "someordinaryword\n" * 100
    assert token[30:80] not in (mask_secrets(text) or "")


# --- Masking --------------------------------------------------------------------------------------------------------


def test_text_without_secrets_comes_back_as_it_is() -> None:
    text = "nothing here \u200b\n"
    assert mask_secrets(text) is text


def test_text_is_withheld_when_masking_leaves_something(monkeypatch: pytest.MonkeyPatch) -> None:
    token = a_token()
    partial = (Secret(rule="github-token", start=0, end=1),)
    real = scanner.find_secrets
    answers = iter([partial])
    monkeypatch.setattr(scanner, "find_secrets", lambda text: next(answers, None) or real(text))
    assert scanner.mask_secrets(f"x {token}") is None


TOKENS = st.builds(
    lambda case, seed: drawn(case[1], seed),
    st.sampled_from([case for case in CASES if case[0] not in {"private-key", "private-key-body"}]),
    st.integers(0, 10**6),
)


@settings(deadline=None)  # the first example pays for compiling rules
@given(before=st.text(max_size=60), after=st.text(max_size=60), drawn_token=TOKENS)
def test_masking_leaves_no_token_whatever_stands_around_it(
    before: str, after: str, drawn_token: tuple[str, int, int]
) -> None:
    sample, start, end = drawn_token
    text = f"{before} {sample} {after}"
    masked = mask_secrets(text)
    assert masked is None or sample[start:end] not in masked
    found = find_secrets(text)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(0 <= secret.start < secret.end <= len(text) for secret in found)


@settings(deadline=None)  # the first example pays for compiling rules
@given(st.text(alphabet=st.sampled_from("ghp_ \n\u200bAb1:=\"'é\\>-@/.") | st.characters(), max_size=200))
def test_masking_is_settled_after_one_time(text: str) -> None:
    masked = mask_secrets(text)
    assert masked is None or mask_secrets(masked) == masked


PIECES = st.one_of(
    TOKENS.map(lambda sample: sample[0]),
    st.sampled_from([keyword.decode() for rule in RULES for keyword in rule.keywords]),
    st.sampled_from(
        ["password", "Token", "API key", " is ", " was now: ", ": ", "=", " => ", ' = b"', "`", "\n", "\n> ", "  \n"]
    ),
    st.text(max_size=12),
)


@pytest.mark.slow
@settings(deadline=None)  # the first example pays for compiling rules
@given(st.lists(PIECES, max_size=8).map("".join))
def test_the_gates_stop_wherever_a_rule_would(text: str) -> None:
    found = find_secrets(text)
    with pytest.MonkeyPatch.context() as patch:
        everything = [range(len(RULES)), [order for order, rule in enumerate(RULES) if rule.joins]]
        patch.setattr(scanner, "_gate", lambda: regex.compiled(""))
        patch.setattr(scanner, "_find_live", lambda data, joined: everything[joined])
        assert find_secrets(text) == found


# --- Failing closed, silence, time ----------------------------------------------------------------------------------


def test_without_re2_the_error_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any) -> Any:
        if name == "re2":
            raise ImportError(name)
        return real(name, *args)

    caches = (scanner._gate, scanner._prose_gate, regex.compiled)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError):
        find_secrets("anything at all")
    with pytest.raises(ImportError):
        mask_secrets("anything at all")


def test_a_secret_never_holds_its_value() -> None:
    token = a_token()
    (secret,) = find_secrets(token)
    assert token[4:12] not in repr(secret)
    assert set(Secret._fields) == {"rule", "start", "end"}


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for rule, template in CASES:
        assert rule
        mask_secrets(drawn(template, 1)[0])
    assert capfd.readouterr() == ("", "")


HOSTILE: dict[str, Callable[[int], str]] = {
    "one long run": lambda size: "a" * size,
    "prefixes without end": lambda size: "ghp_" * (size // 4),
    "prefixes of every rule": lambda size: (" ".join(k.decode() for r in RULES for k in r.keywords) * size)[:size],
    "nested prefixes": lambda size: "sk-ant-sk-proj-" * (size // 15),
    "almost key blocks": lambda size: "-----BEGIN PRIVATE KEY-----\n" * (size // 28),
    "almost URLs": lambda size: "a://b:" * (size // 6),
    "assignments of dummies": lambda size: "password=xxxxxxxx " * (size // 18),
    "assignments of words": lambda size: "token: refresh_token secret: " * (size // 29),
    "assignments of values": lambda size: "pwd=a1b2c3d4 " * (size // 13),
    "assignments of assignments": lambda size: "token=" * (size // 6),
    "quotes": lambda size: 'pwd="a1b2c3(' * (size // 12),
    "talk": lambda size: "the password " * (size // 13),
    "talk that says nothing": lambda size: "the password is 1 to 2 " * (size // 23),
    "tokens": lambda size: (a_token() + " ") * (size // 41),
    "hidden characters": lambda size: "g\u200b" * (size // 2),
    "line breaks": lambda size: "abcdefghijkl\n" * (size // 13),
    "broken tokens": lambda size: "ghp_" + "a1b2c3d4e5f6\n" * (size // 13),
    "dots": lambda size: "M.abcdef." * (size // 9),
    "passwords": lambda size: "".join(f"pwd: {drawn('{A11}7')[0]}{at}q\n" for at in range(size // 24)),
    "passwords that begin alike": lambda size: "".join(
        f"pwd: a1b2c3{'d4' * (at % 90)}{at}\n" for at in range(size // 110)
    ),
    "headings of tables": lambda size: "password|x\n---|---\n" * (size // 19),
    "headings of lists": lambda size: "name,password\n" * (size // 14),
    "random": lambda size: "".join(random.Random(1).choices(ALPHABETS["W"] + " =:", k=size)),
}


def test_every_row_below_a_heading_is_read_whatever_stands_between() -> None:
    one, other = (f"q7{drawn('{A11}', seed)[0]}4" for seed in range(2))
    table = f"| User | Password |\n|---|---|\n| ada | {one} |\n|---|---|\n| bob | {other} |\n\n| a | {other}x |\n"
    assert [table[found.start : found.end] for found in find_secrets(table)][:2] == [one, other]


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_no_faster_than_the_text(name: str) -> None:
    assert_about_linear(lambda size: find_secrets(HOSTILE[name](size)), 10_000, huge=400_000)
