"""Model servers on loopback for the real harnesses: Anthropic's messages and OpenAI's responses, as event streams.

A server is told what to answer by what it hears: the first rule whose words are in the latest turn is used, once.
Everything that it was asked stays, to be looked at.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple


class Say(NamedTuple):
    """A text as the model's answer."""

    text: str


class Use(NamedTuple):
    """A tool that the model asks for."""

    tool: str
    given: dict[str, Any]


Steps = Sequence[Say | Use]
Rule = tuple[str, Steps | Callable[[str], Steps]]
"""Words in the latest turn, and the answer: what it is, or how it follows from that turn."""


class Asked(NamedTuple):
    """One request, as far as the tests look at it."""

    model: str
    text: str  # all that the model is told
    latest: str  # what was said since the model spoke last


class Model:
    """What a model heard, and what it will say."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._numbers = count(1)

    def expect(self, *rules: Rule) -> None:
        self._rules = list(rules)

    @property
    def is_done(self) -> bool:
        """Whether everything that was to be said was said."""
        return not self._rules

    def answer(self, asked: Asked) -> Steps:
        with self._lock:
            self.asked.append(asked)
            for number, (words, steps) in enumerate(self._rules):
                if words in asked.latest:
                    del self._rules[number]
                    return steps(asked.latest) if callable(steps) else steps
        return [Say("ok")]

    def number(self) -> int:
        return next(self._numbers)


@contextmanager
def serve_model() -> Iterator[Model]:
    """A model that both protocols reach, below /v1 of its URL."""
    model = Model()

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            speak = _PROTOCOLS.get(self.path.partition("?")[0])
            if speak is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in speak(model, body):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        def log_message(self, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _heard(model: str, turns: Sequence[Any], is_mine: Callable[[Any], bool]) -> Asked:
    mine = [number for number, turn in enumerate(turns) if is_mine(turn)]
    latest = turns[mine[-1] + 1 :] if mine else turns
    return Asked(model, "\n".join(map(_text, turns)), "\n".join(map(_text, latest)))


def _text(value: Any) -> str:
    """Every text in a turn, whatever holds it."""
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "\n".join(filter(None, map(_text, parts)))


def _messages(model: Model, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Anthropic's POST /v1/messages."""
    asked = _heard(body["model"], body["messages"], lambda turn: turn["role"] == "assistant")
    steps = model.answer(asked)
    message = {"id": f"msg_{model.number()}", "type": "message", "role": "assistant", "model": body["model"]}
    usage = {"input_tokens": 1, "output_tokens": 1}
    ending: dict[str, Any] = {"stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": {**message, "content": [], "usage": usage, **ending}}
    for index, step in enumerate(steps):
        if isinstance(step, Say):
            block: dict[str, Any] = {"type": "text", "text": ""}
            change = {"type": "text_delta", "text": step.text}
        else:
            block = {"type": "tool_use", "id": f"toolu_{model.number()}", "name": step.tool, "input": {}}
            change = {"type": "input_json_delta", "partial_json": json.dumps(step.given)}
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": change}
        yield {"type": "content_block_stop", "index": index}
    ending["stop_reason"] = "tool_use" if any(isinstance(step, Use) for step in steps) else "end_turn"
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _responses(model: Model, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """OpenAI's POST /v1/responses."""
    asked = _heard(
        body["model"],
        body["input"],
        lambda turn: turn.get("role") == "assistant" or turn["type"] in ("function_call", "custom_tool_call"),
    )
    yield {"type": "response.created", "response": {"id": "r"}}
    for index, step in enumerate(model.answer(asked)):
        number = model.number()
        item: dict[str, Any]
        if isinstance(step, Say):
            content = [{"type": "output_text", "text": step.text}]
            item = {"type": "message", "role": "assistant", "id": f"m{number}", "content": content}
        else:
            space, _, name = step.tool.rpartition("/")
            item = {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": name}
            item |= {"arguments": json.dumps(step.given)} | ({"namespace": space} if space else {})
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    yield {"type": "response.completed", "response": {"id": "r", "usage": usage}}


_PROTOCOLS = {"/v1/messages": _messages, "/v1/responses": _responses}
