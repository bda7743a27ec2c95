"""Loaded by every Python of a machine of the walk: gives it the machine's name, and its clock, which may be ahead."""

import datetime
import os
import time

_AHEAD = float(os.environ.get("WALK_SECONDS_AHEAD") or 0)
_NAME = os.environ.get("WALK_MACHINE", "")

if _NAME:
    _uname = os.uname

    def _named() -> os.uname_result:
        found = _uname()
        return os.uname_result((found.sysname, _NAME, found.release, found.version, found.machine))

    os.uname = _named

if _AHEAD:
    _time, _time_ns, _localtime, _gmtime = time.time, time.time_ns, time.localtime, time.gmtime

    class _Moment(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "_Moment":
            return cls.fromtimestamp(time.time(), tz)

        @classmethod
        def today(cls) -> "_Moment":
            return cls.now()

    class _Day(datetime.date):
        @classmethod
        def today(cls) -> "_Day":
            return cls.fromtimestamp(time.time())

    _plain = time.strftime

    def _strftime(form: str, moment: time.struct_time | None = None) -> str:
        return _plain(form, moment or time.localtime())

    time.time = lambda: _time() + _AHEAD
    time.time_ns = lambda: _time_ns() + int(_AHEAD * 1e9)
    time.localtime = lambda seconds=None: _localtime(time.time() if seconds is None else seconds)
    time.gmtime = lambda seconds=None: _gmtime(time.time() if seconds is None else seconds)
    time.strftime = _strftime  # type: ignore[assignment]
    datetime.datetime, datetime.date = _Moment, _Day  # type: ignore[misc]
