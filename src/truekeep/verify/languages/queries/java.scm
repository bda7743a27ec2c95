[(block) (constructor_body) (lambda_expression)] @local
(object_creation_expression (class_body) @open)

(class_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(record_declaration name: (identifier) @name) @record
(record_declaration parameters: (formal_parameters (formal_parameter name: (identifier) @name) @field))
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(annotation_type_element_declaration name: (identifier) @name) @method
(enum_constant name: (identifier) @name) @constant
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @field
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @field
(module_declaration name: (_) @name) @module
