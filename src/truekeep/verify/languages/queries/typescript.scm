; inherits: ecmascript
(internal_module body: (statement_block) @open)
(module body: (statement_block) @open)
(ambient_declaration (statement_block) @open)

(type_parameters) @local
(variable_declarator type: (type_annotation) @local)

(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(type_alias_declaration name: (_) @name) @type
(internal_module name: (_) @name) @module
(module name: (identifier) @name) @module
(function_signature name: (identifier) @name) @function
(abstract_method_signature name: (property_identifier) @name) @method
(method_signature name: [(property_identifier) (private_property_identifier)] @name) @method.member
(method_signature name: (string (string_fragment) @name)) @method.member
(property_signature name: [(property_identifier) (private_property_identifier)] @name) @field
(property_signature name: (string (string_fragment) @name)) @field
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name) @field
(public_field_definition name: (string (string_fragment) @name)) @field
(enum_body name: (property_identifier) @name @variant)
(enum_body name: (string (string_fragment) @name @variant))
(enum_assignment name: (property_identifier) @name) @variant
(enum_assignment name: (string (string_fragment) @name)) @variant
(required_parameter [(accessibility_modifier) (override_modifier) "readonly"] pattern: (identifier) @name) @field.promoted
(optional_parameter [(accessibility_modifier) (override_modifier) "readonly"] pattern: (identifier) @name) @field.promoted
