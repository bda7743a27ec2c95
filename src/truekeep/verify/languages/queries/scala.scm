[(block) (lambda_expression) (case_block)] @local
(instance_expression (template_body) @open)

(class_definition name: (identifier) @name) @class
(class_definition "case" class_parameters: (class_parameters (class_parameter name: (identifier) @name) @field))
(class_parameter ["val" "var"] name: (identifier) @name) @field
(object_definition name: (identifier) @name) @object
(trait_definition name: (identifier) @name) @trait
(enum_definition name: (identifier) @name) @enum
(simple_enum_case name: (identifier) @name) @variant
(full_enum_case name: (identifier) @name) @variant
(function_definition name: (_) @name) @function
(function_declaration name: (_) @name) @function
(val_definition pattern: (identifier) @name) @property
(val_declaration name: (identifier) @name) @property
(var_definition pattern: (identifier) @name) @property
(var_declaration name: (identifier) @name) @property
(given_definition name: (identifier) @name) @given
(type_definition name: (type_identifier) @name) @type
