[(block) (function_body) (lambda_literal) (getter) (setter) (anonymous_initializer)] @local
(object_literal (class_body) @open)
(companion_object (class_body) @open)

(class_declaration "interface" name: (identifier) @name) @interface
(class_declaration (modifiers (class_modifier "enum")) name: (identifier) @name) @enum
(class_declaration name: (identifier) @name) @class
(object_declaration name: (identifier) @name) @object
(companion_object name: (identifier) @name) @object
(type_alias type: (identifier) @name) @type
(function_declaration (user_type (identifier) @in) . "." . name: (identifier) @name) @function
(function_declaration name: (identifier) @name) @function
(property_declaration (variable_declaration (identifier) @name)) @property
(property_declaration (multi_variable_declaration (variable_declaration (identifier) @name))) @property
(class_parameter ["val" "var"] . (identifier) @name) @field
(enum_entry (identifier) @name) @constant
