(call target: (identifier) @_module (arguments . (alias) @name)
  (#any-of? @_module "defmodule" "defprotocol")) @module
(call target: (identifier) @_def
  (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: [(identifier) @name (call target: (identifier) @name)])])
  (#any-of? @_def "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate")) @function
(unary_operator operand: (call target: (identifier) @_type
  (arguments . [
    (binary_operator left: [(identifier) @name (call target: (identifier) @name)])
    (identifier) @name])
  (#any-of? @_type "type" "typep" "opaque" "callback" "macrocallback"))) @type
(unary_operator operand: (call target: (identifier) @name (arguments (_)))
  (#not-match? @name
    "^(doc|moduledoc|typedoc|spec|impl|type|typep|opaque|callback|macrocallback|behaviour|tag|describetag)$")) @constant.always
