; Shared by JavaScript and TypeScript.

; Where members count: the module itself, a bare block, a function around a whole file, exported objects.
(program (statement_block) @open)
(program (expression_statement (call_expression function: (parenthesized_expression
  [(function_expression body: (statement_block) @open) (arrow_function body: (statement_block) @open)]))))
(program (expression_statement (unary_expression argument: (call_expression
  function: (function_expression body: (statement_block) @open)))))
(export_statement value: (object) @open)
(export_statement value: (call_expression arguments: (arguments (object) @open)))
(assignment_expression left: [(identifier) (member_expression)] @_exports right: (object) @open
  (#any-of? @_exports "exports" "module.exports"))

; Where variables are local.
[(statement_block) (expression_statement) (for_statement) (for_in_statement) (arguments) (array) (template_substitution)] @local
[(arrow_function) (function_expression) (generator_function)] @local

; Imports bind a name, but do not define it.
(variable_declarator name: (_) @ignore
  value: (call_expression function: (identifier) @_require) (#eq? @_require "require"))
(variable_declarator name: (_) @ignore
  value: (await_expression (call_expression function: (import))))

(decorator) @attribute
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (_) @name) @class
(class body: (class_body) @open)

(method_definition name: [(property_identifier) (private_property_identifier)] @name) @method
(method_definition name: (string (string_fragment) @name)) @method

(variable_declarator name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name
  value: (call_expression function: [(function_expression) (parenthesized_expression (function_expression))])) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(lexical_declaration kind: "const" (variable_declarator name: (identifier) @name) @constant)
(lexical_declaration kind: "let" (variable_declarator name: (identifier) @name) @variable)
(variable_declaration (variable_declarator name: (identifier) @name) @variable)
(variable_declarator name: (object_pattern [
  (shorthand_property_identifier_pattern) @name
  (pair_pattern value: (identifier) @name)
  (pair_pattern value: (assignment_pattern left: (identifier) @name))
  (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name)
  (rest_pattern (identifier) @name)])) @variable
(variable_declarator name: (array_pattern [
  (identifier) @name
  (assignment_pattern left: (identifier) @name)
  (rest_pattern (identifier) @name)])) @variable

(object (shorthand_property_identifier) @name @field)
(pair key: (property_identifier) @name) @field
(pair key: (string (string_fragment) @name)) @field

; exports.name = ..., Class.prototype.name = ..., object.name = function
(assignment_expression
  left: (member_expression object: [(identifier) (member_expression)] @_exports property: (property_identifier) @name)
  right: [(arrow_function) (function_expression) (generator_function)]
  (#any-of? @_exports "exports" "module.exports")) @function.global
(assignment_expression
  left: (member_expression object: [(identifier) (member_expression)] @_exports property: (property_identifier) @name)
  (#any-of? @_exports "exports" "module.exports")) @variable.global
(assignment_expression
  left: (member_expression
    object: (member_expression object: (_) @in property: (property_identifier) @_prototype)
    property: (property_identifier) @name)
  (#eq? @_prototype "prototype")) @method
(assignment_expression
  left: (member_expression object: (_) @in property: (property_identifier) @name)
  right: [(arrow_function) (function_expression) (generator_function) (class)]
  (#not-eq? @name "exports")) @method
; module.exports = class Name
(assignment_expression left: (member_expression) @_exports right: (class name: (_) @name) @class
  (#eq? @_exports "module.exports"))
(assignment_expression left: (member_expression) @_exports right: (function_expression name: (identifier) @name) @function
  (#eq? @_exports "module.exports"))

(export_specifier alias: (identifier) @name) @export
(export_statement (export_clause (export_specifier name: (identifier) @name !alias) @export) source: (string))
(namespace_export (identifier) @name) @export
