(compound_statement) @local

(function_definition type: (_) declarator: (_) @declarator) @function
; Without a type it is a constructor, or else the use of a macro, such as TEST(name).
(function_definition !type declarator: (_) @declarator (#not-match? @declarator "^[A-Z0-9_]+\\s*\\(")) @function
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @union
(enum_specifier name: (_) @name body: (_)) @enum
(enumerator name: (identifier) @name) @constant.always
(type_definition
  type: [(struct_specifier !name body: (_)) (union_specifier !name body: (_)) (enum_specifier !name body: (_))]
  declarator: (_) @declarator) @type
(type_definition declarator: (_) @declarator) @type.leaf
; Members belong to the type when it has a name, and to the variable otherwise.
(field_declaration
  type: [(struct_specifier name: (_) body: (_)) (union_specifier name: (_) body: (_)) (enum_specifier name: (_) body: (_))]
  declarator: (_) @declarator) @field.leaf
(declaration
  type: [(struct_specifier name: (_) body: (_)) (union_specifier name: (_) body: (_)) (enum_specifier name: (_) body: (_))]
  declarator: (_) @declarator) @variable.leaf
(field_declaration declarator: (_) @declarator) @field
(declaration type: (_) declarator: (_) @declarator) @variable
(declaration !type declarator: (_) @declarator (#not-match? @declarator "^[A-Z0-9_]+\\s*\\(")) @variable
