[(block) (accessor_list) (arrow_expression_clause) (lambda_expression) (anonymous_method_expression)] @local

(namespace_declaration name: (_) @name) @namespace
(file_scoped_namespace_declaration name: (_) @name) @namespace.rest
(class_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @struct
(interface_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(record_declaration name: (identifier) @name) @record
(record_declaration (parameter_list (parameter name: (identifier) @name) @field))
(delegate_declaration name: (identifier) @name) @type
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(local_function_statement name: (identifier) @name) @function
(operator_declaration "operator" @name operator: _ @name) @method
(property_declaration name: (identifier) @name) @property
(event_declaration name: (identifier) @name) @field
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @field
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @field
(enum_member_declaration name: (identifier) @name) @constant
