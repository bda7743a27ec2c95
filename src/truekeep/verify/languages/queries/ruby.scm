; A heredoc that is never closed: the rest of the file may be code.
((heredoc_body (heredoc_end) @_end) @unparsed (#not-match? @_end "[A-Za-z]"))

(class name: (_) @name) @class
(module name: (_) @name) @module
(method name: (_) @name) @method
(singleton_method name: (_) @name) @method
(alias name: (_) @name) @alias
(assignment left: (constant) @name) @constant.always
(operator_assignment left: (constant) @name) @constant.always
(call method: (identifier) @_attr arguments: (argument_list (simple_symbol) @name)
  (#match? @_attr "^[cm]?attr_(accessor|reader|writer)$")) @field
(call method: (identifier) @_macro arguments: (argument_list . (simple_symbol) @name)
  (#any-of? @_macro "alias_method" "define_method" "scope" "has_many" "has_one" "belongs_to"
    "has_and_belongs_to_many" "attribute")) @alias.always
