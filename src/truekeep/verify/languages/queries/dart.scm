[(block) (function_body) (function_expression)] @local
(annotation) @attribute

(class_definition name: (identifier) @name) @class
(mixin_declaration (identifier) @name) @class
(extension_declaration class: (_) @scope.name) @scope
(enum_declaration name: (identifier) @name) @enum
(enum_constant name: (identifier) @name) @constant
(type_alias . (type_identifier) @name) @type
((method_signature [(function_signature name: (identifier) @name) (getter_signature name: (identifier) @name)
  (setter_signature name: (identifier) @name)]) @method . (function_body) @body)
((method_signature (constructor_signature name: (identifier) @name .  parameters: (_))) @method . (function_body) @body)
((function_signature name: (identifier) @name) @function . (function_body) @body)
((getter_signature name: (identifier) @name) @function . (function_body) @body)
((setter_signature name: (identifier) @name) @function . (function_body) @body)
(function_signature name: (identifier) @name) @function
(getter_signature name: (identifier) @name) @function
(setter_signature name: (identifier) @name) @function
(constructor_signature name: (identifier) @name . parameters: (_)) @method
(constant_constructor_signature (identifier) @name . (formal_parameter_list)) @method
(factory_constructor_signature (identifier) @name . (formal_parameter_list)) @method
(declaration (initialized_identifier_list (initialized_identifier . (identifier) @name))) @field
(declaration (static_final_declaration_list (static_final_declaration . (identifier) @name))) @field
(program (static_final_declaration_list (static_final_declaration . (identifier) @name) @constant))
(program (initialized_identifier_list (initialized_identifier . (identifier) @name) @variable))
