[(statements) (lambda_literal) (computed_property) (willset_didset_block)] @local
(attribute) @attribute

(class_declaration declaration_kind: "extension" name: (_) @scope.name) @scope
(class_declaration declaration_kind: "class" name: (_) @name) @class
(class_declaration declaration_kind: "actor" name: (_) @name) @class
(class_declaration declaration_kind: "struct" name: (_) @name) @struct
(class_declaration declaration_kind: "enum" name: (_) @name) @enum
(protocol_declaration name: (_) @name) @protocol
(typealias_declaration "typealias" . (_) @name) @type
(associatedtype_declaration "associatedtype" . (_) @name) @type
(function_declaration "func" . _ @name) @function
(protocol_function_declaration "func" . _ @name) @function
(init_declaration "init" @name) @method
(property_declaration (value_binding_pattern mutability: "let") name: (pattern bound_identifier: (simple_identifier) @name)) @constant
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @property
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @property
(enum_entry name: (simple_identifier) @name) @variant
(macro_declaration (simple_identifier) @name) @macro
