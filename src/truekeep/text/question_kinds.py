"""What a question asks for: an amount of money, a time, a number; and whether a text has one.

Pure. Short lists for the languages that memory is often written in: other questions ask
for anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from truekeep.text.words import WORD

_MONEY_TEXT = (
    "price prices cost costs salary rent fee fees paid pay overpaid budget kostet gekostet kosten preis miete "
    "gehalt bezahlt bezahlen prix coûte coûté coûtent loyer payons paie payé payer custa custou preço salário "
    "aluguel pago pagamos paguei mensalidade cuesta costó precio alquiler sueldo pagué pagamos harga biaya gaji "
    "koster betaler pris стоит стоила цена зарплата аренда giá"
)
_MONEY = frozenset(_MONEY_TEXT.split())
_MONEY_LETTERS = ("多少钱", "多少錢", "价格", "價格", "费用", "費用", "いくら", "料金")
_TIME_TEXT = "when wann quand quando cuándo cuando когда kapan hvornår bila"
_TIME = frozenset(_TIME_TEXT.split())
_TIME_PHRASES = (
    "what date", "what day", "what time", "what year", "what month", "which date", "which day", "which year",
    "which month", "an welchem tag", "quelle date", "quel jour", "que dia", "em que data", "qué día", "qué fecha",
    "tanggal berapa", "khi nào", "ngày nào", "hvilken dag",
    "什么时候", "什麼時候", "何时", "何時", "哪天", "哪一天", "几号", "几点", "幾點", "いつ", "언제",
)  # fmt: skip
_NUMBER_TEXT = "combien quanto quanta quantos quantas cuánto cuánta cuántos cuántas berapa сколько wieviel wieviele mấy"
_NUMBER = frozenset(_NUMBER_TEXT.split())
_NUMBER_PHRASES = (
    "how much", "how many", "how long", "how often", "how old", "how big", "how large", "how far", "how high",
    "what number", "what percentage", "what port", "which port", "what version", "which version", "wie viel",
    "wie lange", "wie oft", "wie hoch", "wie alt", "bao nhiêu", "hvor mange", "hvor meget", "hvor længe",
    "多少", "几个", "幾個", "多久", "多长", "幾張", "いくつ", "何人", "何個", "얼마", "몇",
)  # fmt: skip
_HAS_MONEY = re.compile(
    r"[$€£¥₽₹₩₫]|\b(?:usd|eur|gbp|chf|aed|sgd|myr|rm|idr|rp|cny|rmb|jpy|brl|reais|euros?|dollars?|dkk|kr|nok|sek|zar|"
    r"cop|mxn|vnd|inr|pln|cents?)\b|\d ?[kKmM]\b|[元円块萬万원]|руб",
    re.IGNORECASE,
)
_HAS_TIME = re.compile(
    r"\d{4}[-/.年]\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\b\d{1,2}:\d\d|\b(?:19|20)\d\d\b|\bQ[1-4]\b"
    r"|\d ?[月日号天点時时]"
    r"|\b(?:jan|feb|fev|m[aä]r|apr|abr|avr|ma[iy]|jui?n|jul|juil|aug|ago|ao[uû]t|sep|set|o[ckcu]t|out|nov|d[eé][czs])"
    r"[a-zäéûç]*\.?\s+\d|\d(?:st|nd|rd|th)?\.?\s+(?:de |of )?"
    r"(?:jan|feb|fev|m[aä]r|apr|abr|avr|ma[iy]|jui?n|jul|juil|aug|ago|ao[uû]t|sep|set|o[ckcu]t|out|nov|d[eé][czs])"
    r"|\b\d{1,2} ?(?:am|pm|uhr)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day|\bdaily\b|\bweekly\b",
    re.IGNORECASE,
)
_HAS_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|thousand)\b", re.IGNORECASE
)


def what_answers(question: str) -> tuple[Callable[[str], object], ...]:
    """What a text has to have to answer: none if anything may."""
    lowered = question.lower()
    words = set(WORD.findall(lowered))
    wanted: list[Callable[[str], object]] = []
    if words & _MONEY or any(letters in lowered for letters in _MONEY_LETTERS):
        wanted.append(_HAS_MONEY.search)
    elif words & _NUMBER or any(phrase in lowered for phrase in _NUMBER_PHRASES):
        wanted.append(_HAS_NUMBER.search)
    if words & _TIME or any(phrase in lowered for phrase in _TIME_PHRASES):
        wanted.append(_HAS_TIME.search)
    return tuple(wanted)
