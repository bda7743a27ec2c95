"""What a question asks for, and whether a text has it."""

from __future__ import annotations

import pytest

from truekeep.text.question_kinds import what_answers


def answers(question: str, text: str) -> bool:
    return all(has(text) for has in what_answers(question))


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("What is the rent of the office?", "The office is 900 € a month", "The office has two floors"),
        ("quanto custa a mensalidade?", "Mensalidade: R$ 129", "A unidade abre cedo"),
        ("服务器多少钱一个月？", "每月 90 元", "服务器在法兰克福"),
        ("When does the lease end?", "The lease ends in March 2027", "The lease was signed by Odo"),
        ("Wann wurde der Server bestellt?", "bestellt am 3. Mai", "Der Server ist laut"),
        ("护照什么时候到期？", "护照 2029年3月 到期", "护照在抽屉里"),
        ("How many nodes are there?", "three nodes", "the nodes are small"),
        ("berapa jumlah mesin?", "ada 4 mesin", "mesin lama"),
    ],
)
def test_an_amount_a_time_or_a_number_is_asked_for(question: str, right: str, wrong: str) -> None:
    assert answers(question, right)
    assert not answers(question, wrong)


@pytest.mark.parametrize("question", ["who repaired the crane", "wie heißt der Hund", "что решили"])
def test_any_text_may_answer_other_questions(question: str) -> None:
    assert what_answers(question) == ()
