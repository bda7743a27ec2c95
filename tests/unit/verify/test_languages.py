"""What source files define: one sample for each language, what looks like code and is not, and texts that mean ill.

The samples are read by their expected lines: "8-11 Model.save" is a `save` in a `Model`, named on line 8, that ends on
line 11. Whatever is called ghost stands in a comment, a docstring or a string, and is never defined.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from truekeep.verify.languages import (
    Definition,
    body_digest,
    clean,
    definitions,
    is_config,
    language_of,
    names,
    syntax_tree,
)
from truekeep.verify.languages.registry import GRAMMARS

SAMPLES: dict[str, tuple[str, str]] = {}

SAMPLES["python.py"] = (
    '''"""Module docstring with def not_me(): inside."""
from os import path as renamed
import sys

VERSION = "1 # no comment"
first, second = 1, 2
count: int = 0
a = b = None
QUERY = """
def in_a_string():
    x = 1
"""
if sys.platform:
    FLAG = True
else:
    FLAG = False
print(
    end="",
)


@decorate(
    name="x",
)
async def fetch(
    url: str = "(", *, retries=3
) -> dict[str, int]:
    """Docstring: class Ghost: pass."""
    local = 1
    def inner(): return local
    return inner


class Model(Base, metaclass=Meta):
    """A model."""

    RED = 1  # a comment
    name: str
    """Of the model."""
    parts = dict(
        left=1,
        right=2,
    )

    def __init__(self):
        self.x, self.y = 1, 2
        self.z: int = 3
        other.w = 4
        value = helper(
            self.z)

    @property
    def size(self): return 1

    class Meta:
        ordering = ["x"]

    if True:
        def maybe(self):
            pass
type Alias = int
call(VERSION)
''',
    """
    5 VERSION, 6 first, 6 second, 7 count, 8 a, 8 b, 9-12 QUERY, 14 FLAG, 16 FLAG, 25-31 fetch, 30 fetch.inner,
    34-60 Model, 37 Model.RED, 38 Model.name, 40-43 Model.parts, 45-50 Model.__init__, 46 Model.x, 46 Model.y,
    47 Model.z, 53 Model.size, 55-56 Model.Meta, 56 Model.Meta.ordering, 59-60 Model.maybe, 61 Alias
    """,
)

SAMPLES["javascript.js"] = (
    r"""import { imported } from './x'
const fs = require('fs')
const RE = /["'{]\/[/]/g, other = 1
let url = "http://x" // a comment with function ghost() {}
const text = `class Ghost { ${fn(`}`)} }`
function plain(a = {}, b = "}") { return a / b / 2 }
export default async function* generator() {
  const local = 1
  const handler = async (e) => {
    call(e)
  }
  return { visit(node) { return node } }
}
export const arrow = (x) => x * 2
class Store extends Base(Mixin) {
  #count = 0
  static limit = { a: 1 }
  constructor(a) { super(a) }
  get size() { return this.#count }
  async *[Symbol.iterator]() {}
  async load({ id } = {}) {
    if (id) { call(id) }
  }
  onClick = () => {
    done()
  }
}
export const config = {
  name: 'x',
  nested: { deep: true },
  run() { return 1 },
  'quoted-key': 2,
}
exports.helper = function () {}
module.exports = { plain, renamed: url }
Store.prototype.clear = function () {}
const { left, right: turned } = config
export { imported as published }
export { fromThere } from './y'
describe('x', () => {
  it('y', () => { plain(1) })
})
""",
    """
    3 RE, 3 other, 4 url, 5 text, 6 plain, 7-13 generator, 9-11 generator.handler, 12 generator.visit, 14 arrow,
    15-27 Store, 16 Store.#count, 17 Store.limit, 17 Store.limit.a, 18 Store.constructor, 19 Store.size,
    21-23 Store.load, 24-26 Store.onClick, 28-33 config, 29 config.name, 30 config.nested,
    30 config.nested.deep, 31 config.run, 32 config.quoted-key, 34 helper, 35 plain, 35 renamed, 36 Store.clear,
    37 left, 37 turned, 38 published, 39 fromThere
    """,
)

SAMPLES["typescript.ts"] = (
    """/** function ghost() {} */
export interface Options<T = { a: 1 }> extends Base {
  readonly name: string
  nested?: { deep: number; call(x: string): void }
  on<K>(event: K): void
  [key: string]: unknown
}
export type Mode = 'a' | 'b'
type Shape = Base & {
  kind: Mode
}
export enum Level { Low = 1, High }
declare module 'x' {
  export function ambient(a: string): void
}
namespace Space {
  export const inside = 1
}
export abstract class Service<T> implements Options {
  private readonly items: Map<string, T[]> = new Map()
  constructor(private readonly db: Db, plain: string) {
    super()
  }
  abstract find(id: string): Promise<T | undefined>
  @Input({ alias: 'x' })
  protected static async make<T>(
    this: void,
    opts: { a: string },
  ): Promise<{ b: T }> {
    return { b: opts }
  }
}
export function overload(a: string): string
export function overload(a: number): number
export function overload(a: any) {
  return a as Mode
}
const typed: Record<string, () => void> = {
  key: () => {},
}
""",
    """
    2-7 Options, 3 Options.name, 4 Options.nested, 4 Options.nested.deep, 4 Options.nested.call, 5 Options.on,
    8 Mode, 9-11 Shape, 10 Shape.kind, 12 Level, 12 Level.Low, 12 Level.High, 14 ambient, 16-18 Space,
    17 Space.inside, 19-32 Service, 20 Service.items, 21-23 Service.constructor, 21 Service.db, 24 Service.find,
    26-31 Service.make, 33 overload, 34 overload, 35-37 overload, 38-40 typed, 39 typed.key
    """,
)

SAMPLES["view.vue"] = (
    """<template>
  <!-- function ghost() {} -->
  <p @click="save">Don't</p>
</template>
<script setup lang="ts">
// a comment
const count = 1
function save() {
  count
}
</script>
<style>
.a { color: red } /* x */
</style>
""",
    """
    7 count, 8-10 save
    """,
)

SAMPLES["main.go"] = (
    """package main

import "fmt"

// func ghost() {}
const Limit, Other = 1, 2
const (
	First = iota
	Second
	Text = `
func ghost() {}
`
)
var (
	table = map[string]int{
		"a": 1,
	}
)
var single = func() int { return 1 }

type Server struct {
	Name, Host string `json:"name"`
	inner      struct {
		Deep int
	}
	*Embedded
}
type Reader interface {
	Read(p []byte) (n int, err error)
	fmt.Stringer
}
type (
	ID   int
	Pair[K comparable, V any] struct {
		Key K
	}
)

func (s *Server) Run(f func() struct{ A int }) error {
	type local struct{ X int }
	var hidden = 1
	return nil
}
func Map[T any](in []T) map[string]interface{} {
	return nil
}
""",
    """
    6 Limit, 6 Other, 8 First, 9 Second, 10-12 Text, 15-17 table, 19 single, 21-27 Server, 22 Server.Name,
    22 Server.Host, 23-25 Server.inner, 24 Server.inner.Deep, 28-31 Reader, 29 Reader.Read, 33 ID, 34-36 Pair,
    35 Pair.Key, 39-43 Server.Run, 40 Server.Run.local, 40 Server.Run.local.X, 44-46 Map
    """,
)

SAMPLES["lib.rs"] = (
    """//! fn ghost() {}
use std::fmt as renamed;
pub mod outer {
    pub(crate) const LIMIT: usize = 'x' as usize;
    /* nested /* fn ghost() */ */
    static NAME: &'static str = "}";
}
#[derive(Debug)]
pub struct Point<'a, T: Default = [u8; 2]> {
    pub x: &'a T,
    #[serde(rename = "why")]
    y: fn(i32) -> i32,
}
struct Unit;
struct Pair(u8, u8);
pub enum Shape {
    Circle(f32, f32),
    Rect { width: u8, height: u8 },
    Empty = 3,
}
impl<T> fmt::Display for Point<'_, T>
where
    T: Clone,
{
    fn fmt(&self) -> [u8; 4] {
        let local = r#"fn ghost() { "# ;
        fn nested() {}
        nested()
    }
}
pub trait Draw {
    type Output;
    const SIDES: u8;
    fn draw<const N: usize>(&self, f: impl Fn() -> u8);
}
macro_rules! make {
    ($name:ident) => { fn $name() {} };
}
pub async unsafe extern "C" fn run() -> impl Iterator<Item = u8> { vec![] }
type Alias = Result<(), ()>;
union Bits { a: u32, b: f32 }
""",
    """
    3-7 outer, 4 outer.LIMIT, 6 outer.NAME, 9-13 Point, 10 Point.x, 12 Point.y, 14 Unit, 15 Pair, 16-20 Shape,
    17 Shape.Circle, 18 Shape.Rect, 18 Shape.Rect.width, 18 Shape.Rect.height, 19 Shape.Empty, 25-29 Point.fmt,
    27 Point.fmt.nested, 31-35 Draw, 32 Draw.Output, 33 Draw.SIDES, 34 Draw.draw, 36-38 make, 39 run, 40 Alias,
    41 Bits, 41 Bits.a, 41 Bits.b
    """,
)

SAMPLES["Main.java"] = (
    """package a.b;
import x.Y;
/** class Ghost {} */
@Annotation(name = "x", list = {1, 2})
public final class Main<T extends Map<String, List<T>>> extends Base implements A, B {
    private static final String NAME = "a;b{";
    int x, y = 2;
    private final Map<String, Integer> map = new HashMap<String, Integer>();
    static { call(); }
    public Main(int a) throws E { super(a); }
    @Override
    public <K, V> Map<K, V> find(
            @Nullable String key, int... rest)
            throws IOException {
        for (int i = 0; i < 3; i++) { use(i); }
        return new Task() {
            @Override
            public void run() { call(); }
        };
    }
    abstract void later();
    enum Color { RED, GREEN(1) { @Override int id() { return 1; } }; int id() { return 0; } }
    interface Shape { double area(); default int n() { return 1; } }
    record Point(int px, @NotNull String label) { Point { check(px); } }
    @interface Marker { String value() default ""; }
}
""",
    """
    5-26 Main, 6 Main.NAME, 7 Main.x, 7 Main.y, 8 Main.map, 10 Main.Main, 12-20 Main.find, 18 Main.find.run,
    21 Main.later, 22 Main.Color, 22 Main.Color.RED, 22 Main.Color.GREEN, 22 Main.Color.GREEN.id,
    22 Main.Color.id, 23 Main.Shape, 23 Main.Shape.area, 23 Main.Shape.n, 24 Main.Point,
    24 Main.Point.px, 24 Main.Point.label, 25 Main.Marker, 25 Main.Marker.value
    """,
)

SAMPLES["Main.kt"] = (
    """package a
import b.c as d
/* fun ghost() */
const val LIMIT = 10
typealias Names = List<String>
data class User(val name: String, private var age: Int = 1, plain: Int) : Base(), Face {
    val size: Int
        get() = 1
    companion object {
        const val KEY = "fun ghost()"
        fun create(): User { val local = 1; return User("", 1, 2) }
    }
    override suspend fun load(
        id: Int,
    ): List<String> = listOf(
        "a",
    )
}
enum class Mode(val code: Int) {
    ON(1) { override fun act() {} },
    OFF(2);
    abstract fun act()
}
object Registry { fun add() {} }
fun <T> List<T>.second(): T = this[1]
interface Face { fun show() }
""",
    """
    4 LIMIT, 5 Names, 6-18 User, 6 User.name, 6 User.age, 7-8 User.size, 10 User.KEY, 11 User.create,
    13-17 User.load, 19-23 Mode, 19 Mode.code, 20 Mode.ON, 20 Mode.ON.act, 21 Mode.OFF, 22 Mode.act,
    24 Registry, 24 Registry.add, 25 List.second, 26 Face, 26 Face.show
    """,
)

SAMPLES["Main.swift"] = (
    """import Foundation
// func ghost() {}
public protocol Shape: AnyObject {
    associatedtype Item
    var area: Double { get }
    func draw() throws -> Bool
}
final class Circle: Shape {
    static let pi = 3.14
    private(set) var radius: Double = 1 { didSet { print(oldValue) } }
    init?(radius: Double) { self.radius = radius }
    func draw() -> Bool {
        let local = "}"
        func inner() {}
        return local.isEmpty
    }
}
enum Planet: Int {
    case earth = 3, mars
    indirect case moon(Planet)
}
extension Circle {
    class func make() -> Circle { Circle(radius: 1)! }
}
struct Box<T> { var value: T }
""",
    """
    3-7 Shape, 4 Shape.Item, 5 Shape.area, 6 Shape.draw, 8-17 Circle, 9 Circle.pi, 10 Circle.radius,
    11 Circle.init, 12-16 Circle.draw, 14 Circle.draw.inner, 18-21 Planet, 19 Planet.earth, 19 Planet.mars,
    20 Planet.moon, 23 Circle.make, 25 Box, 25 Box.value
    """,
)

SAMPLES["Main.scala"] = (
    """package a
// def ghost = 1
sealed trait Shape { def area: Double }
case class Circle(val r: Double) extends Shape {
  private val pi = 3.14
  override def area: Double = { val local = 1; pi * r }
}
object Main {
  type Id = Int
  def main(args: Array[String]): Unit = {
    println("def ghost")
  }
}
""",
    """
    3 Shape, 3 Shape.area, 4-7 Circle, 4 Circle.r, 5 Circle.pi, 6 Circle.area, 8-13 Main, 9 Main.Id,
    10-12 Main.main
    """,
)

SAMPLES["Main.cs"] = (
    r"""using System;
namespace App.Core
{
    /// <summary>class Ghost</summary>
    [Serializable]
    public class Store<T> : Base, IStore where T : class, new()
    {
        private const string Path = @"c:\dir\";
        public event Action Changed;
        public int Count { get; private set; } = 3;
        public string Name => "a";
        public Store(int n) : base(n) { }
        [Obsolete("x")]
        public async Task<List<T>> LoadAsync<K>(K key, int n = 1)
        {
            var local = new Item { Size = 1, Name = "}" };
            return null;
        }
        public T this[int i] { get { return default; } }
        public static Store<T> operator +(Store<T> a, Store<T> b) => a;
    }
    enum Level : byte { Low = 1, [Description("x")] High }
    public record Point(int X, int Y);
    interface IStore { void Save(string path); }
    struct Pair { public int A, B; }
}
""",
    """
    2-26 App.Core, 6-21 App.Core.Store, 8 App.Core.Store.Path, 9 App.Core.Store.Changed, 10 App.Core.Store.Count,
    11 App.Core.Store.Name, 12 App.Core.Store.Store, 14-18 App.Core.Store.LoadAsync,
    20 App.Core.Store.operator +, 22 App.Core.Level, 22 App.Core.Level.Low, 22 App.Core.Level.High,
    23 App.Core.Point, 23 App.Core.Point.X, 23 App.Core.Point.Y, 24 App.Core.IStore, 24 App.Core.IStore.Save,
    25 App.Core.Pair, 25 App.Core.Pair.A, 25 App.Core.Pair.B
    """,
)

SAMPLES["main.dart"] = (
    """import 'package:x/y.dart' show z;
/// class Ghost {}
const limit = 10;
abstract class Shape<T> extends Base with Mixin {
  final String name;
  static int count = 0;
  Shape(this.name, {required int a});
  Shape.named() : name = '';
  double get area => 1.0;
  Future<void> load(String id) async {
    var local = id;
  }
}
enum Mode { on, off }
void main(List<String> args) { print('}'); }
""",
    """
    3 limit, 4-13 Shape, 5 Shape.name, 6 Shape.count, 7 Shape.Shape, 8 Shape.named, 9 Shape.area,
    10-12 Shape.load, 14 Mode, 14 Mode.on, 14 Mode.off, 15 main
    """,
)

SAMPLES["main.c"] = (
    r"""#include <stdio.h>
/* int ghost(void) {} */
#define LIMIT 10 /* x */
#define MAX(a, b) \
    ((a) > (b) ? (a) : (b))
typedef struct node {
    struct node *next, **prev;
    unsigned flags : 3;
    void (*callback)(int);
    union { int i; float f; } value;
} node_t;
typedef int (*handler)(void *);
enum color { RED, GREEN = 1 << 2 };
struct forward;
extern int shared;
static const char *names[] = { "a;", "{" };
int add(int a, int b);
static inline __attribute__((unused)) int
add_all(struct node *n,
        int count)
{
    int local = MAX(count, 1);
    struct inner { int x; };
    return printf("}") + local;
}
#ifdef A
int first(int a) {
#else
int first(long a) {
#endif
    return 0;
}
DECLARE(thing);
enum { ANON = 1 };
""",
    """
    3 LIMIT, 4-5 MAX, 6-11 node, 7 node.next, 7 node.prev, 8 node.flags, 9 node.callback, 10 node.value,
    10 node.value.i, 10 node.value.f, 11 node_t, 12 handler, 13 color, 13 color.RED, 13 color.GREEN, 15 shared,
    16 names, 17 add, 19-25 add_all, 23 add_all.inner, 23 add_all.inner.x, 27-32 first, 34 ANON
    """,
)

SAMPLES["main.cpp"] = (
    """#pragma once
// class Ghost {};
namespace outer::inner {
template <typename T, int N = (1 > 2)>
class API Box final : public Base<T>, private Other {
 public:
  explicit Box(T value) : value_{value}, n_(N) { init(); }
  ~Box() override = default;
  Box& operator=(const Box& other) = delete;
  bool operator<(const Box& o) const { return n_ < o.n_; }
  template <class U> auto map(U u) const noexcept -> Box<U>;
  static constexpr int kLimit = 1'000;
  enum class Mode : unsigned { kOn, kOff };
 private:
  T value_;
  std::map<std::string, std::vector<int>> table_;
  friend class Peer;
};
using Alias = std::vector<int>;
}  // namespace
std::string outer::inner::Box<int>::name() const {
  auto local = R"(class Ghost { )";
  return local;
}
extern "C" {
void c_function(int);
}
int global{3};
""",
    """
    3-20 outer.inner, 5-18 outer.inner.Box, 7 outer.inner.Box.Box, 8 outer.inner.Box.~Box,
    9 outer.inner.Box.operator=, 10 outer.inner.Box.operator<, 11 outer.inner.Box.map,
    12 outer.inner.Box.kLimit, 13 outer.inner.Box.Mode, 13 outer.inner.Box.Mode.kOn,
    13 outer.inner.Box.Mode.kOff, 15 outer.inner.Box.value_, 16 outer.inner.Box.table_, 19 outer.inner.Alias,
    21-24 outer.inner.Box.name, 26 c_function, 28 global
    """,
)

SAMPLES["main.rb"] = (
    """# def ghost; end
=begin
class Ghost
=end
module App
  VERSION = "1.0".freeze
  class Store < Base
    attr_accessor :name, :size
    alias_method :old, :new
    LIST = %w[a
      b]
    def initialize(name = "#{1}")
      @name = name
    end
    def self.create(*args) = new(*args)
    def name=(value)
      text = <<~SQL
        def ghost
        end
      SQL
    end
    class << self
      def build?; true; end
    end
    private def hidden
    end
    def [](key)
      key =~ /def "#/
    end
  end
  class Error < StandardError; end
  class Deep::Inner
  end
end
__END__
def ghost; end
""",
    """
    5-34 App, 6 App.VERSION, 7-30 App.Store, 8 App.Store.name, 8 App.Store.size, 9 App.Store.old,
    10-11 App.Store.LIST, 12-14 App.Store.initialize, 15 App.Store.create, 16-21 App.Store.name=,
    23 App.Store.build?, 25-26 App.Store.hidden, 27-29 App.Store.[], 31 App.Error, 32-33 App.Deep.Inner
    """,
)

SAMPLES["main.php"] = (
    r"""<html>Don't function ghost() {}
<?php
namespace App;
use function other\imported;
// class Ghost {} ?>
<?php
const LIMIT = 10;
define('APP_KEY', "x");
/** function ghost() */
abstract class Store extends Base implements Face
{
    use Mixin;
    const A = 'it\'s';
    public static ?string $name = null;
    private array $items = [], $other;
    public function __construct(private readonly Db $db, int $plain) {}
    #[Attr]
    final protected static function &make(array $a = ['}']): ?self {
        static $cache = [];
        $local = function () use ($a) { return 1; };
        return new class { public function inner() {} };
    }
    abstract function later();
}
interface Face { public function show(): void; }
trait Mixin {}
enum Suit: string { case Hearts = 'H'; case Spades = 'S'; }
function helper() {
    $sql = <<<SQL
function ghost() {}
SQL;
    return call($sql);
}
""",
    """
    7 LIMIT, 8 APP_KEY, 10-24 Store, 13 Store.A, 14 Store.name, 15 Store.items, 15 Store.other, 16 Store.__construct,
    16 Store.db, 18-22 Store.make, 21 Store.make.inner, 23 Store.later, 25 Face, 25 Face.show, 26 Mixin, 27 Suit,
    27 Suit.Hearts, 27 Suit.Spades, 28-33 helper
    """,
)

SAMPLES["main.sh"] = (
    """#!/bin/bash
# ghost() { :; }
NAME="value # no comment"
export PATH_X=$HOME
readonly LIMIT=3 # x
greet() {
  local text='it
ghost() {'
  echo "${#text} ${NAME#*/}"
}
function deploy {
  cat <<EOF
ghost() {
don't
EOF
  if [ "$a" = 1 ]; then INNER=1; fi
}
greet "$NAME"
""",
    """
    3 NAME, 4 PATH_X, 5 LIMIT, 6-10 greet, 11-17 deploy
    """,
)

SAMPLES["main.lua"] = (
    """--[[ function ghost() end ]]
local M = {}
local limit = 10 -- x
function M.run(a)
  local text = [[
function ghost() end
]]
  if a then
    return text
  end
end
local function helper() return 1 end
M.other = function(x)
end
""",
    """
    2 M, 3 limit, 4-11 M.run, 12 helper, 13-14 M.other
    """,
)

SAMPLES["main.pl"] = (
    """package App::Store;
use strict;
use constant LIMIT => 10;
our $VERSION = '1.0'; # sub ghost {}
sub new {
    my ($class) = @_;
    return bless {}, $class;
}

=pod

sub ghost {}

=cut

sub name { $_[0]{name} }
__END__
sub ghost {}
""",
    """
    1 App.Store, 3 App.Store.LIMIT, 4 App.Store.VERSION, 5-8 App.Store.new, 16 App.Store.name
    """,
)

SAMPLES["main.ex"] = (
    r'''defmodule App.Store do
  @moduledoc """
  def ghost do
  """
  @limit 10
  @type t :: map()
  @doc "def ghost"
  def fetch(id, opts \\ []) when is_integer(id) do
    # def ghost
    {:ok, id}
  end
  defp hidden?(x), do: x
  defmacro make(x) do
    quote do: unquote(x)
  end
end
''',
    """
    1-16 App.Store, 5 App.Store.limit, 6 App.Store.t, 8-11 App.Store.fetch, 12 App.Store.hidden?,
    13-15 App.Store.make
    """,
)

SAMPLES["main.hs"] = (
    """module App.Store where
-- ghost :: Int
{- ghost2 :: Int -}
data Shape = Circle Double
  | Square Double
type Name = String
class Draw a where
  draw :: a -> String
area :: Shape -> Double
area (Circle r) = r
area (Square s) = s
""",
    """
    1 App.Store, 4-5 Shape, 4 Shape.Circle, 5 Shape.Square, 6 Name, 7-8 Draw, 8 Draw.draw, 9 area
    """,
)

SAMPLES["main.ml"] = (
    """(* let ghost = 1 *)
type shape = Circle of float
module Store = struct
  let create () = 1
end
let rec area x =
  x + 1
exception Bad of string
""",
    """
    2 shape, 3-4 Store, 4 create, 6-7 area, 8 Bad
    """,
)

SAMPLES["main.zig"] = (
    """const std = @import("std");
// fn ghost() void {}
pub const Point = struct {
    x: i32,
    pub fn add(self: Point) i32 {
        const local = 1;
        return self.x + local;
    }
};
""",
    """
    1 std, 3-9 Point, 4 Point.x, 5-8 Point.add
    """,
)

SAMPLES["main.nim"] = (
    """# proc ghost() = discard
type
  Person = object
    name: string
const Limit = 10
proc greet*(p: Person): string =
  let local = "proc x"
  result = p.name
""",
    """
    3-4 Person, 5 Limit, 6-8 greet
    """,
)

SAMPLES["build.gradle"] = (
    """// void ghost() {}
def version = '1.0'
class Plugin {
    String name
    void apply(Project p) { println "}" }
}
""",
    """
    2 version, 3-6 Plugin, 4 Plugin.name, 5 Plugin.apply
    """,
)

SAMPLES["main.sql"] = (
    """-- create table ghost (id int);
CREATE TABLE IF NOT EXISTS app.users (
  id int, note text default 'create table ghost;'
);
create or replace view active as select 1;
CREATE UNIQUE INDEX CONCURRENTLY users_id ON users (id);
select * from users;
""",
    """
    2-4 users, 5 active, 6 users_id
    """,
)

SAMPLES["Makefile"] = (
    r"""# ghost: x
VERSION ?= 1.0
export NAME := a \
  b
.PHONY: all clean
all: build test ## the default
	echo "ghost:"
build/%.o: %.c
	cc -c $<

clean:
	rm -rf build
test: NAME = x
""",
    """
    2 VERSION, 3-4 NAME, 6-7 all, 8-9 build/%.o, 11-12 clean
    """,
)

SAMPLES["Dockerfile"] = (
    r"""# ENV GHOST=1
FROM python:3.11 AS build
ARG VERSION=1
ENV HOME=/app MODE="a b" \
    LAST=3
ENV OLD value
RUN echo ENV GHOST=1
""",
    """
    2 build, 3 VERSION, 4-5 HOME, 4-5 MODE, 5 LAST, 6 OLD
    """,
)

SAMPLES["api.proto"] = (
    """syntax = "proto3";
package api.v1;
option go_package = "x";
// message Ghost {}
message User {
  string name = 1;
  repeated int32 ids = 2 [packed = true];
  map<string, User> peers = 3;
  oneof kind { bool admin = 4; }
  enum Role { UNKNOWN = 0; OWNER = 1; }
}
service Users {
  rpc Get(User) returns (User) {}
}
""",
    """
    5-11 User, 6 User.name, 7 User.ids, 8 User.peers, 9 User.kind, 9 User.kind.admin, 10 User.Role,
    10 User.Role.UNKNOWN, 10 User.Role.OWNER, 12-14 Users, 13 Users.Get
    """,
)

SAMPLES["schema.graphql"] = (
    '''"""type Ghost { a: Int }"""
type User implements Node @key(fields: "id") {
  "the ghost: x"
  id: ID!
  posts(first: Int = 10, after: String): [Post!]!
}
enum Role { ADMIN USER }
enum Level {
  LOW
  HIGH
}
input NewUser { name: String }
scalar Date
query GetUser($id: ID!) { user(id: $id) { id } }
''',
    """
    2-6 User, 4 User.id, 5 User.posts, 7 Role, 7 Role.ADMIN, 7 Role.USER, 8-11 Level, 9 Level.LOW,
    10 Level.HIGH, 12 NewUser, 12 NewUser.name, 13 Date, 14 GetUser
    """,
)

SAMPLES["main.tf"] = (
    """# variable "ghost" {}
variable "region" {
  default = "eu"
}
resource "aws_instance" "web" {
  ami = "x"
}
locals {
  name = "a"
}
output "ip" { value = 1 }
""",
    """
    2-4 region, 5-7 web, 9 name, 11 ip
    """,
)

SAMPLES["main.css"] = (
    """/* .ghost { } */
:root {
  --main-color: red;
}
.card, .card:hover {
  color: var(--other);
}
.btn-primary { width: 1.5em }
""",
    """
    3 --main-color, 5-7 card, 8 btn-primary
    """,
)

SAMPLES["config.yaml"] = (
    """# ghost: 1
name: "a # b"
on:
  push:
    branches: [main]
jobs:
  - id: x
    run: |
      ghost: 1
      # kept
    "quoted key": 2
url: http://x/#y
""",
    """
    2 name, 3-5 on, 4-5 on.push, 5 on.push.branches, 6-11 jobs, 7 jobs.id, 8-9 jobs.run, 11 jobs.quoted key,
    12 url
    """,
)

SAMPLES["config.toml"] = (
    '''# ghost = 1
title = "a # b"
[tool.ruff.lint]
select = [
  "E",
]
"quoted.key" = 1
text = """
ghost = 1
"""
[[package]]
name.first = 'x'
''',
    """
    2 title, 3 tool, 3 tool.ruff, 3 tool.ruff.lint, 4-6 tool.ruff.lint.select, 7 tool.ruff.lint.quoted.key,
    8-10 tool.ruff.lint.text, 11 package, 12 package.name, 12 package.name.first
    """,
)

SAMPLES["config.json"] = (
    r"""{
  // "ghost": 1
  "name": "ghost: \"x\": 1",
  "scripts": {"build": "tsc", "list": [{"a": 1}]},
  "last": true
}
""",
    """
    3 name, 4 scripts, 4 scripts.build, 4 scripts.list, 4 scripts.list.a, 5 last
    """,
)

SAMPLES["config.ini"] = (
    """; ghost = 1
[tool:pytest]
addopts = -q
# ghost = 2
testpaths: tests
[other section]
key with blank = 1
""",
    """
    2 tool:pytest, 3 tool:pytest.addopts, 5 tool:pytest.testpaths, 6 other section,
    7 other section.key with blank
    """,
)

SAMPLES[".env"] = (
    """# GHOST=1
DATABASE_URL=postgres://x#y
export DEBUG="1"
""",
    """
    2 DATABASE_URL, 3 DEBUG
    """,
)

SAMPLES["app.properties"] = (
    """! ghost=1
server.port=80
app.name : x
""",
    """
    2 server.port, 3 app.name
    """,
)

LANGUAGES = sorted({language_of(path) for path in SAMPLES} | {"svelte", "html"})


def defined(text: str | bytes, language: str) -> list[Definition]:
    """The definitions of a text, after the promises that hold for every text were checked."""
    data = text if isinstance(text, bytes) else text.encode()
    cleaned = clean(data, language)
    assert len(cleaned) == len(data)
    assert [at for at, byte in enumerate(cleaned) if byte == 10] == [at for at, byte in enumerate(data) if byte == 10]
    found = definitions(cleaned, language)
    assert set(names(cleaned, language)) == {one.name.encode() for one in found}
    lines = data.count(b"\n") + 1
    for one in found:
        assert one.name
        assert 1 <= one.line <= one.end <= lines
        assert 0 <= one.start < one.stop <= len(data)
        assert one.name.encode() in cleaned[one.start : one.stop]
        assert cleaned.count(b"\n", 0, one.start) < one.line
        assert body_digest(cleaned, one)
    return found


def listed(found: list[Definition]) -> list[str]:
    return [
        f"{one.line}{f'-{one.end}' if one.line != one.end else ''} {f'{one.scope}.' if one.scope else ''}{one.name}"
        for one in found
    ]


def named(text: str, language: str) -> set[str]:
    return {one.name for one in defined(text, language)}


def kept(text: str, language: str) -> str:
    """What is left of a text without its comments, white space squeezed."""
    return " ".join(clean(text.encode(), language).decode().split())


# --- Samples --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SAMPLES)
def test_sample(path: str) -> None:
    text, expected = SAMPLES[path]
    found = defined(text, language_of(path))
    assert listed(found) == [item.strip() for item in expected.split(",")]
    assert not [one for one in found if "ghost" in one.name.lower()]


@pytest.mark.parametrize("path", SAMPLES)
def test_sample_with_other_line_ends(path: str) -> None:
    text, language = SAMPLES[path][0], language_of(path)
    expected = listed(defined(text, language))
    assert listed(defined(text.replace("\n", "\r\n"), language)) == expected
    assert listed(defined(text.rstrip("\n"), language)) == expected
    assert listed(defined("\ufeff" + text, language)) == expected


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py",
         "python"), ("b.pyi", "python"), ("x.tsx", "typescript"), ("x.d.ts", "typescript"), ("x.jsx", "javascript"),
        ("App.vue", "vue"), ("a.h", "c"), ("a.hpp", "cpp"), ("Makefile", "make"), ("rules.mk", "make"),
        ("Dockerfile", "dockerfile"), ("docker/Dockerfile.dev", "dockerfile"), ("web.dockerfile", "dockerfile"),
        (".env", "env"), (".env.local", "env"), ("Rakefile", "ruby"), ("pyproject.toml", "toml"), ("uv.lock", "toml"),
        ("a.YML", "yaml"), ("schema.graphql", "graphql"), ("main.tf", "terraform"), ("deploy.sh", "shell"),
        ("README.md",
         ""), ("docs/a.rst", ""), ("notes.txt", ""), ("CHANGELOG", ""), ("x.png", ""), ("", ""), ("LICENSE", ""),
        (".py", ""), ("py", ""), ("a.py/", ""),
    ],
)  # fmt: skip
def test_language_by_name(path: str, language: str) -> None:
    assert language_of(path) == language


def test_config_is_what_has_keys() -> None:
    assert {language for language in LANGUAGES if is_config(language)} == {
        "yaml", "toml", "json", "ini", "env", "properties",
    }  # fmt: skip
    assert not is_config("")


def test_what_is_not_source_defines_nothing() -> None:
    assert clean(b"# a\ndef f(): pass", "") == b"# a\ndef f(): pass"
    assert names(b"def f(): pass", "") == []
    assert definitions(b"def f(): pass", "nonsense") == []


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("python.py", "class constant field function method type variable"),
        ("typescript.ts", "class constant enum field function interface method module type variant"),
        ("main.go", "constant field function interface method struct type variable"),
        ("lib.rs", "constant enum field function macro method module struct trait type union variant"),
        ("Main.java", "class constant enum field interface method record"),
        ("main.c", "constant enum field function macro struct type variable"),
        ("config.yaml", "key"),
    ],
)
def test_kinds(path: str, kinds: str) -> None:
    assert {one.kind for one in defined(SAMPLES[path][0], language_of(path))} == set(kinds.split())


def test_a_definition_begins_with_its_decorators_and_ends_with_its_body() -> None:
    text = "x = 1\n\n\n@cache\n@route(\n    '/',\n)\ndef f(\n    a,\n):\n    return [\n  1,\n    ]\n\n\ny = 2\n"
    (one,) = (one for one in defined(text, "python") if one.name == "f")
    assert text[one.start : one.stop].startswith("@cache\n@route(")
    assert text[one.start : one.stop].endswith("    ]")
    text = "#[test]\n#[ignore]\npub fn f() {\n}\n"
    (one,) = defined(text, "rust")
    assert text[one.start : one.stop] == text.strip()
    text = "class A {\n    @Override\n    public int f() { return 1; }\n}\n"
    one = next(one for one in defined(text, "java") if one.name == "f")
    assert text[one.start : one.stop] == "@Override\n    public int f() { return 1; }"


# --- Comments and docstrings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "text", "left"),
    [
        ("python", "x = '# no' # yes\n", "x = '# no'"),
        ("python", "def f():\n    'doc'\n    return 'kept'\n", "def f(): return 'kept'"),
        ("python", "def f(): # why\n    # more\n    r'''doc'''\n", "def f():"),
        ("python", "# c\n'''module'''\nx = '''data'''\n", "x = '''data'''"),
        ("python", "class A:\n    x: int\n    '''of x'''\n    y = 1\n    \"\"\"of y\"\"\"\n", "class A: x: int y = 1"),
        ("python", "f(\n    '''data''',\n)\nd = {'a':\n'''data'''\n}\n", "f( '''data''', ) d = {'a': '''data''' }"),
        ("python", "x = (\n    'a'\n    '''b'''\n)\n", "x = ( 'a' '''b''' )"),
        ("python", "x = y in \\\n'''data'''\n", "x = y in \\ '''data'''"),
        ("python", "x = 'it\\'s # no'  # yes", "x = 'it\\'s # no'"),
        ("javascript", "a = 'http://x' // b\n/* c */ d = \"//\"", "a = 'http://x' d = \"//\""),
        ("javascript", "a = /[/]\"'/ // c\nb = a / 2 // d\n", "a = /[/]\"'/ b = a / 2"),
        ("javascript", "a = `x ${b /* c */ + `// ${'}'}`} // kept`; // gone", "a = `x ${b + `// ${'}'}`} // kept`;"),
        ("javascript", "<p>Don't</p> // a\n<b>isn't</b>", "<p>Don't</p> <b>isn't</b>"),
        ("go", "a := `// x\n/*` // y", "a := `// x /*`"),
        ("rust", "fn f<'a>(x: &'a str, c: char) { '\"' } // '\"'", "fn f<'a>(x: &'a str, c: char) { '\"' }"),
        ("rust", "let a = r##\"\"# // kept\"##; /// doc", "let a = r##\"\"# // kept\"##;"),
        ("rust", "/* a /* b */ c */ #[attr] x", "#[attr] x"),
        ("c", "#define A \"//\" // x\nchar c = '\"'; /* y */", "#define A \"//\" char c = '\"';"),
        ("cpp",
         "int a = 1'000; // x\nauto s = R\"x(// \")\" kept)x\";", 'int a = 1\'000; auto s = R"x(// ")" kept)x";'),
        ("csharp", 'a = @"c:\\"; // x\nb = "a"; /// y', 'a = @"c:\\"; b = "a";'),
        ("ruby", "a = \"#{b} # kept\" # gone\n=begin\nx\n=end\nc\n__END__\nd", 'a = "#{b} # kept" c'),
        ("php",
         "<?php $a = '#'; # x\n// y ?>\nDon't // kept\n<?php b();", "<?php $a = '#'; ?> Don't // kept <?php b();"),
        ("php", "<p>It's</p><?php /* x */ a();", "<p>It's</p><?php a();"),
        ("shell", "a=${b#c} $# # x\necho 'it # y\n# z' # w", "a=${b#c} $# echo 'it # y # z'"),
        ("shell", "cat <<EOF # x\n# kept isn't\nEOF\n# gone", "cat <<EOF # x # kept isn't EOF"),
        ("sql", "select '--' -- x\n/* y */", "select '--'"),
        ("lua", "a = '--' -- x\n--[==[ y ]] ]==] b", "a = '--' b"),
        ("haskell", "a --> b -- c\n{- d {- e -} -}", "a --> b"),
        ("elixir", "@doc \"\"\"\nx\n\"\"\"\ndef f, do: \"# y\" # z", 'def f, do: "# y"'),
        ("yaml", "a: b#c # x\nd: 'e # f'", "a: b#c d: 'e # f'"),
        ("toml", 'a = "#" # x', 'a = "#"'),
        ("json", '{"a": "//" /* x */} // y', '{"a": "//" }'),
        ("css", "a { b: url(http://c) } /* x */ // y", "a { b: url(http://c) }"),
        ("vue", "<!-- a --><p>// b</p>\n<script>c // d\n</script><style>/* e */</style>",
         "<p>// b</p> <script>c </script><style> </style>"),
        ("make", "a = b\\#c # x\n# y", "a = b\\#c"),
        ("dockerfile", "# a\nRUN b # c", "RUN b # c"),
        ("terraform", 'a = "#" # x\n// y\nb = <<EOT\n# kept\nEOT\n', 'a = "#" b = <<EOT # kept EOT'),
    ],
)  # fmt: skip
def test_comments_go_and_strings_stay(language: str, text: str, left: str) -> None:
    assert kept(text, language) == left


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "x = 'open\ndef found(): pass"),
        ("python", "x = '''open\ndef found(): pass"),
        ("python", "f(\ndef found(): pass"),
        ("javascript", "x = 'open\nfunction found() {}"),
        ("javascript", "x = `open\nfunction found() {}"),
        ("javascript", "/* open\nfunction found() {}"),
        ("javascript", "a = b(c, `${d}`, `${`\nfunction found() {}"),
        ("go", "var x = `open\nfunc found() {}"),
        ("rust", "/* open\nfn found() {}"),
        ("rust", 'let a = r#"open\nfn found() {}'),
        ("java", "/* open\nclass found {}"),
        ("ruby", "x = <<~OPEN\ndef found; end"),
        ("ruby", "=begin\ndef found; end"),
        ("shell", "x='open\nfound() {\n:\n}"),
        ("shell", "cat <<EOF\nfound() { :; }"),
        ("php", "<?php $x = 'open;\nfunction found() {}"),
        ("lua", "--[[ open\nfunction found() end"),
        ("toml", 'x = """open\nfound = 1'),
        ("vue", "<script>\n/* open\nfunction found() {}"),
    ],
)  # fmt: skip
def test_what_is_never_closed_does_not_hide_the_rest(language: str, text: str) -> None:
    assert "found" in named(text, language)


# --- What is not defined --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "import no\nfrom no import no as no\nno()\nno.no = 1\nno[0] = 1\nno += 1\nif no == 1: no\n"),
        ("python", "f(\nno=1,\n)\ng(a,\n  no=2)\nx_ = {\n    no: 1,\n}\nassert no, 'no = 1'\n".replace("x_ = ", "")),
        ("python", "def _(no, no2=1):\n    no = 1\n    for no in no: no = 2\n    with no as no: no: int = 3\n"),
        ("python", "class _(\n    no=1,\n): pass\n_.call(\n    no = 1\n)\n"),
        ("javascript",
         "import no, { no as no } from 'no'\nconst no = require('no')\nno(function () {})\nif (no) { no() }\n"),
        ("javascript", "function _(no, { no: no2 }) { const no = 1; let no3; no: while (1) {} }\nno = 1\nno.no = 1\n"),
        ("javascript",
         "while (no(1)) { }\nfor (const no of no) { }\nswitch (no) { case no: }\nexport { no }\nexport default no\n"),
        ("typescript",
         "import type { no } from 'no'\nlet _ = <no>{} as no\nfunction __(no?: no): no is no { return no! }\n"),
        ("go", "import no \"no\"\nfunc _() {\n\tvar no = 1\n\tno := 2\n\tconst no = 3\n\tno(func() { no() })\n}\n"),
        ("rust", "use no::no as no;\nfn _(no: u8) { let no = no::<no>(); no!(no); struct_(no { no: no }); }\n"),
        ("java", "import no.no;\nclass _ { void __(int no) { int no = no(no); no.no(); new no(no) ; } { no(); } }\n"),
        ("csharp", "using no;\nclass _ { void __(int no) { var no = new no { no = no }; no(no => no); } }\n"),
        ("c",
         "#include <no.h>\nstruct no;\nno(no);\nint __(int no, struct no *no) { int no = no(); no: return no; }\n"),
        ("cpp",
         ("using namespace no;\nusing no::no;\nclass no;\n"
          "template <class no> void __(no no) { auto no = no::no(no); }\n")),
        ("ruby", "require 'no'\nno = 1\nno(:no)\n@no = no\nif no == No then no end\n"),
        ("php", "<?php use no\\no; $no = new no($no); no($no); function _(int $no) { static $no = 1; $no->no = 2; }\n"),
        ("kotlin", "import no.no\nfun _(no: Int) { val no = no { no -> no(no) } }\n"),
        ("swift", "import no\nfunc _(no no: Int) { let no = no { no in no(no) }; switch no { case .no: no() } }\n"),
        ("shell", "no\nno \"$no\" && no\nif no; then no; fi\n[ no = no ]\n"),
        ("sql", "insert into no values (1); drop table no; select create_no();\n"),
        ("make", "_:\n\tno = 1\n\tno: no\nifeq (no,no)\nendif\ninclude no\n"),
        ("yaml", "_: no\n__: [no, no]\n___: |\n  no: no\n"),
    ],
)  # fmt: skip
def test_what_is_called_imported_or_local_is_not_defined(language: str, text: str) -> None:
    assert {name for name in named(text, language) if name.startswith("no")} == set()


# --- Bodies ---------------------------------------------------------------------------------------------------------


def digest(text: str, language: str) -> str:
    return body_digest(clean(text.encode(), language), defined(text, language)[0])


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("python", "def f(a, b):\n    return a+b", "def f(a,b):\n    # why\n    '''doc'''\n\n    return a + b  # what"),
        ("python", "def f(a, b): return [1, 2]", "x = 1\nclass A:\n\n  def f(\n      a, b\n  ): return [\n 1, 2 ]"),
        (
            "python",
            "class A:\n  x = 1\n  def f(self):\n    pass",
            "class A:\n    x = 1\n\n    def f(self):\n        pass",
        ),
        ("javascript", "function f(a) { return a }", "function f(a)\n{\n  // why\n  return a\n}"),
        ("rust", "fn f() -> u8 { 1 }", "fn f()\n->u8{\n/* a */ 1 }"),
        ("go", "func f() {\n\treturn\n}", "func f() {\n\n\t// x\n\treturn\n}"),
        ("java", "class A { int x = 1; }", "class A\n{\n    int x=1; // x\n}"),
    ],
)
def test_digest_is_the_same_for_the_same_code(language: str, one: str, other: str) -> None:
    name = defined(one, language)[0].name
    bodies = (
        body_digest(clean(text.encode(), language), found)
        for text in (one, other)
        for found in defined(text, language)
        if found.name == name
    )
    assert len(set(bodies)) == 1


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("python", "def f():\n    return x", "def f():\n    return y"),
        ("python", "def f():\n    return 'a b'", "def f():\n    return 'ab'"),
        ("python", "def f():\n    return '''a\n  b'''", "def f():\n    return '''a\n b'''"),
        ("python", "def f():\n    if a:\n        b()\n        c()", "def f():\n    if a:\n        b()\n    c()"),
        ("python", "def f():\n    x = a\n    -b", "def f():\n    x = a - b"),
        ("python", "def f():\n    return not a", "def f():\n    return nota"),
        ("javascript", "function f() { return a b }", "function f() { return ab }"),
        ("javascript", "function f() { return 'a  b' }", "function f() { return 'a b' }"),
        ("rust", "fn f() { a - 1 }", "fn f() { a + 1 }"),
    ],
)
def test_digest_differs_when_the_code_does(language: str, one: str, other: str) -> None:
    assert digest(one, language) != digest(other, language)


# --- Texts that mean ill --------------------------------------------------------------------------------------------

PIECES = [
    b'"', b"'", b"`", b"{", b"}", b"(", b")", b"[", b"]", b"<", b">", b"/*", b"*/", b"//", b"#", b"\\", b'\\"',
    b'"""', b"'''", b"`${", b"${", b"<!--", b"<script>", b"<script ", b"{\n", b"}\n", b"(\n", b"/", b"= /a[", b"a(",
    b"f(){", b"class A{", b"class A(\n", b"function a(", b"const a = (", b"const a = {\n", b"type A = {\n",
    b"type A<", b"def f(\n", b"def f():\n", b" ", b"\t", b"\n", b"\r\n", b"\x00", b"\xff", b"\x80", b"if x\n a=1\n",
    b"class A:\n a=1\n", b"fn a<", b"impl A {\n", b"enum A {\n", b"type A struct {\n", b"const (\n", b"a: |\n",
    b"- a: b\n", b"[[", b"--[[", b"<<A\n", b"<<<A\n", b"?>", b"<?php ", b"\n=begin\n", b"\n=pod\n", b"(*", b"{-",
    b"#[", b"#if A\n{\n#else\n", b"#define A \\\n", b"a<b<c,", b"a,", b"a::", b"operator", b"operator(",
    b"int a, b = ", b"new A() {\n", b"@A(", b'r#"', b'R"x(', b'@"', b"self.a = ", b"a = ", b"export { a as b, ",
    b"module.exports = {\n", b"() => {", b"get a() {", b"public ", b"val a ", b"fun A.", b"case a, ", b'"a": {',
    b'resource "a" "b" {\n', b"ENV a=b \\\n", b".a{", b"%r{", b";", b":", b",", b".", b"=",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_one_thing_over_and_over(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of these takes long or goes deep. A quadratic one of this size would take minutes."""
    monkeypatch.setattr(syntax_tree, "_SECONDS", 0.01)
    for piece in PIECES:
        for data in (piece * (20_000 // len(piece)), b"class A {\n" + piece * (5_000 // len(piece))):
            cleaned = clean(data, language)
            assert len(cleaned) == len(data)
            found = names(cleaned, language)
            if language not in GRAMMARS:  # which a time limit may stop sooner or later
                assert set(found) == {one.name.encode() for one in definitions(cleaned, language)}


HOSTILE = {
    "a megabyte of open brackets": b"(" * 1_000_000,
    "deeply nested": b"(" * 100_000 + b")" * 100_000,
    "braces that are never closed": b"class A { " * 5_000,
    "NUL bytes": b"class A {\0\0 int \0b; }\n" * 1_000,
    "no UTF-8": b"class \xff\xfe { \x80 }\n" * 5_000,
    "one long line": b"int a, " * 100_000,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_neither_crashes_nor_hangs(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax_tree, "_SECONDS", 0.01)
    monkeypatch.setattr(syntax_tree, "_SECONDS_PER_BYTE", 0.0)
    for language in GRAMMARS:
        names(clean(HOSTILE[what], language), language)


def test_a_file_that_takes_too_long_is_searched_for_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax_tree, "_SECONDS", -1.0)
    text = 'pub struct Point { x: u8 }\nlet text = "fn ghost() {}";\npub(crate) fn distance(a: Point) -> u8 { 1 }\n'
    text += "use a::b;\n" * 500
    assert listed(defined(text, "rust")) == ["1 Point", "3 distance"]


@pytest.mark.parametrize("path", SAMPLES)
def test_asking_for_one_name_gives_the_same_definitions(path: str) -> None:
    language = language_of(path)
    cleaned = clean(SAMPLES[path][0].encode(), language)
    found = definitions(cleaned, language)
    for name in {one.name for one in found}:
        assert definitions(cleaned, language, {name}) == [one for one in found if one.name == name]
    assert definitions(cleaned, language, {"nothing_has_this_name"}) == []


def test_every_query_fits_its_grammar() -> None:
    for grammars in GRAMMARS.values():
        for grammar in grammars:
            syntax_tree._query(grammar)  # raises QueryError if the grammar does not have a node or field


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(LANGUAGES), st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(PIECES)).map(b"".join)))
@example("python", b"\xef\xbb\xbf")
@example("csharp", b"namespace A. {")
@example("php", b"<?php '")
def test_any_bytes(language: str, data: bytes) -> None:
    defined(data, language)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_a_sample_with_something_cut_out_and_something_put_in(path: str, data: st.DataObject) -> None:
    text = SAMPLES[path][0].encode()
    first, last = sorted((data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))))
    defined(text[:first] + data.draw(st.sampled_from(PIECES)) + text[min(last, first + 40) :], language_of(path))


@pytest.mark.parametrize("path", SAMPLES)
def test_cleaning_twice_is_cleaning_once(path: str) -> None:
    language = language_of(path)
    cleaned = clean(SAMPLES[path][0].encode(), language)
    assert clean(cleaned, language) == cleaned


def test_names_in_other_scripts() -> None:
    assert named("def größe(): pass\nclass Ключ:\n    名 = 1\n", "python") == {"größe", "Ключ", "名"}
    assert named("func größe() {}\n", "go") == {"größe"}
    assert names(b"def \xff\xfe(): pass\ndef fine(): pass", "python") == [b"fine"]


def test_code_inside_of_a_template_inside_of_a_template() -> None:
    text = b"const a = `x${ {b: `y${c}z`}.b }w` // gone\nfunction kept() {}\n"
    cleaned = clean(text, "javascript")
    assert b"gone" not in cleaned
    assert [item.name for item in definitions(cleaned, "javascript")] == ["a", "kept"]


def test_two_pieces_of_code_in_one_template() -> None:
    text = b"const a = `${f({})} and ${g({})}` // gone\nfunction kept() {}\n"
    assert [item.name for item in definitions(clean(text, "javascript"), "javascript")] == ["a", "kept"]
